"""NVLinks and NVSwitches that fail, and what is left of a node's fabric.

Pure functions: a :class:`Damage` says what is broken and how the fabric manager takes it.  How an
operator breaks things, and how tools see it, is in the node's state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from va100.perf.fabric import Fabric, whole_fabric
from va100.spec.nodes import LinkKind, NodeSpec, board_of

NVLINK_XID: Final = 74
"""What a GPU reports of a link that failed."""
JOB_XID: Final = 45
"""What it reports of work that was stopped for it."""


class Policy(Enum):
    """What the fabric manager does about a link to a switch that failed."""

    DROP_GPU = "drop-gpu"
    """Mode 0, which is the default: the GPU talks to its peers over PCIe."""
    DISABLE_SWITCH = "disable-switch"
    """Mode 1: the switch goes, and every GPU loses its links there."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What is broken."""

    links: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    """GPU and link of it, 0 to 11."""
    switches: frozenset[int] = field(default_factory=frozenset)
    policy: Policy = Policy.DROP_GPU


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a GPU reports."""

    gpu: int
    xid: int
    text: str


def link_target(node: NodeSpec, gpu: int, link: int) -> str:
    """Name what a link of a GPU ends in: ``NVSwitch3``, ``GPU2``.

    Raises
    ------
    ValueError
        No such GPU or link.
    """
    _require(node, gpu, link)
    if node.links is LinkKind.SWITCHED:
        return f"NVSwitch{_switch_of(node, gpu, link)}"
    return f"GPU{_peer_of(node, gpu, link)}"


def surviving(node: NodeSpec, damage: Damage) -> Fabric:
    """Fabric that works in spite of the damage.

    Raises
    ------
    ValueError
        The damage names what the node does not have.
    """
    for gpu, link in damage.links:
        _require(node, gpu, link)
    _require_switches(node, damage)
    if node.links is LinkKind.SWITCHED:
        return _switched(node, damage)
    return _direct(node, damage)


def troubles(node: NodeSpec, damage: Damage) -> tuple[Trouble, ...]:
    """What the GPUs report, in the order of the GPUs."""
    surviving(node, damage)
    found = [
        Trouble(gpu, NVLINK_XID, f"NVLink {link} to {link_target(node, gpu, link)} failed")
        for gpu, link in sorted(damage.links)
    ]
    found += [
        Trouble(gpu, NVLINK_XID, f"links to NVSwitch{switch} failed")
        for switch in sorted(damage.switches)
        for gpu in range(node.gpu_count)
    ]
    return tuple(sorted(found, key=_by_gpu))


def _by_gpu(trouble: Trouble) -> int:
    return trouble.gpu


def _links_per_switch(node: NodeSpec) -> int:
    board = board_of(node)
    return board.links_per_switch_count if board else 0


def _switch_of(node: NodeSpec, gpu: int, link: int) -> int:
    """Switches are numbered baseboard by baseboard, and links switch by switch."""
    board = board_of(node)
    assert board is not None
    per_board = board.nvswitch_count // board.baseboard_count
    baseboard = gpu * board.baseboard_count // board.gpu_count
    return baseboard * per_board + link // board.links_per_switch_count


def _peer_of(node: NodeSpec, gpu: int, link: int) -> int:
    pairs = whole_fabric(node).pair_links[gpu]
    for peer, links in enumerate(pairs):
        if link < links:
            return peer
        link -= links
    raise ValueError(f"GPU {gpu} of {node.name} has {sum(pairs)} links, counted from 0")


def _require(node: NodeSpec, gpu: int, link: int) -> None:
    if not 0 <= gpu < node.gpu_count:
        raise ValueError(f"{node.name} has GPUs 0 to {node.gpu_count - 1}, not {gpu}")
    links = whole_fabric(node).gpu_links[gpu]
    if not links:
        raise ValueError(f"GPU {gpu} of {node.name} has no NVLink")
    if not 0 <= link < links:
        raise ValueError(f"GPU {gpu} of {node.name} has links 0 to {links - 1}, not {link}")


def _require_switches(node: NodeSpec, damage: Damage) -> None:
    board = board_of(node)
    count = board.nvswitch_count if board else 0
    for switch in damage.switches:
        if not 0 <= switch < count:
            has = f"NVSwitches 0 to {count - 1}" if count else "no NVSwitch"
            raise ValueError(f"{node.name} has {has}, not {switch}")


def _switched(node: NodeSpec, damage: Damage) -> Fabric:
    whole = whole_fabric(node)
    gone = set(damage.switches)
    dropped = {gpu for gpu, _ in damage.links} if damage.policy is Policy.DROP_GPU else set()
    if damage.policy is Policy.DISABLE_SWITCH:
        gone |= {_switch_of(node, gpu, link) for gpu, link in damage.links}
    left = [
        0
        if gpu in dropped
        else sum(_switch_of(node, gpu, link) not in gone for link in range(links))
        for gpu, links in enumerate(whole.gpu_links)
    ]
    count = range(node.gpu_count)
    pairs = tuple(tuple(0 if a == b else min(left[a], left[b]) for b in count) for a in count)
    return Fabric(pairs, tuple(left))


def _direct(node: NodeSpec, damage: Damage) -> Fabric:
    whole = whole_fabric(node)
    pairs = [list(row) for row in whole.pair_links]
    cut: dict[tuple[int, int], set[int]] = {}
    for gpu, link in damage.links:
        peer = _peer_of(node, gpu, link)
        first = min(_links_to(whole, gpu, peer))
        cut.setdefault((min(gpu, peer), max(gpu, peer)), set()).add(link - first)
    for (one, other), links in cut.items():  # the two ends of a link fail as one
        pairs[one][other] -= len(links)
        pairs[other][one] -= len(links)
    return Fabric(tuple(map(tuple, pairs)), tuple(sum(row) for row in pairs))


def _links_to(whole: Fabric, gpu: int, peer: int) -> range:
    before = sum(whole.pair_links[gpu][:peer])
    return range(before, before + whole.pair_links[gpu][peer])
