"""What lies between two devices of a node: NVLinks, PCIe switches, sockets; and who is near whom.

Pure functions of a kind of node and of the links that work.  Which links do not is in
:mod:`va100.node.fabric`; kinds of node are in :mod:`va100.spec.nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from va100.perf.fabric import Fabric, whole_fabric
from va100.spec.copies import COPIES
from va100.spec.nodes import LinkKind, NodeSpec, board_of
from va100.spec.rates import pcie_bytes_per_s


class Relation(Enum):
    """How near two devices are, as ``nvidia-smi topo -m`` spells it, nearest first."""

    SELF = "X"
    NVLINK = "NV"
    """The count of links follows."""
    SWITCH = "PIX"
    """One PCIe switch at most."""
    SWITCHES = "PXB"
    """Several PCIe switches, and no host bridge."""
    BRIDGE = "PHB"
    """A host bridge."""
    NUMA = "NODE"
    """Host bridges of one NUMA node."""
    SYSTEM = "SYS"
    """Between NUMA nodes."""


MEANINGS: Final[Mapping[Relation, str]] = {
    Relation.SELF: "the device itself",
    Relation.NVLINK: "a set of NVLinks, as many as the number says",
    Relation.SWITCH: "one PCIe switch",
    Relation.SWITCHES: "several PCIe switches, no host bridge",
    Relation.BRIDGE: "a PCIe host bridge",
    Relation.NUMA: "PCIe host bridges of one NUMA node",
    Relation.SYSTEM: "the connection between NUMA nodes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a device hangs."""

    name: str
    gpu: int | None
    numa: int
    switch: int | None
    """None: a root port of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The way from one device to another that copies take."""

    relation: str
    """``NV12``, ``PXB`` and so on."""
    hops: tuple[str, ...]
    """What is passed, both ends included."""
    links_count: int
    raw_bytes_per_s: float
    """What the way's narrowest part is made for, one direction."""
    copy_bytes_per_s: float
    """What large copies were seen to reach."""


def places(node: NodeSpec) -> tuple[Place, ...]:
    """GPUs, then network adapters, in the order tools list them."""
    gpus = tuple(
        Place(
            name=f"GPU{gpu}",
            gpu=gpu,
            numa=node.gpu_numa_ids[gpu],
            switch=_switch(node.gpu_switch_ids[gpu]),
        )
        for gpu in range(node.gpu_count)
    )
    nics = tuple(
        Place(name=f"NIC{index}", gpu=None, numa=nic.numa_id, switch=_switch(nic.switch_id))
        for index, nic in enumerate(node.nics)
    )
    return gpus + nics


def relation(node: NodeSpec, one: Place, other: Place, fabric: Fabric | None = None) -> str:
    """Spell how near two devices are."""
    if one == other:
        return Relation.SELF.value
    links = _links(node, one, other, fabric)
    if links:
        return f"{Relation.NVLINK.value}{links}"
    return _pcie_relation(node, one, other).value


def matrix(node: NodeSpec, fabric: Fabric | None = None) -> tuple[tuple[str, ...], ...]:
    """Relations of all devices with each other, as :func:`places` orders them."""
    devices = places(node)
    return tuple(tuple(relation(node, a, b, fabric) for b in devices) for a in devices)


def path(node: NodeSpec, source: str, target: str, fabric: Fabric | None = None) -> Path:
    """Find the way between two devices of a node, by name.

    Raises
    ------
    ValueError
        No such device, or twice the same.
    """
    by_name = {place.name: place for place in places(node)}
    for name in (source, target):
        if name not in by_name:
            raise ValueError(f"{node.name} has no {name}; it has {', '.join(by_name)}")
    if source == target:
        raise ValueError(f"source and target are both {source}")
    one, other = by_name[source], by_name[target]
    links = _links(node, one, other, fabric)
    if links:
        return _nvlink_path(node, one, other, links)
    return _pcie_path(node, one, other)


def cpu_affinity(node: NodeSpec, gpu: int) -> str:
    """Logical processors of the GPU's NUMA node, as tools print them: ``48-63,176-191``."""
    each = node.core_count // node.numa_count
    first = node.gpu_numa_ids[gpu] * each
    second = node.core_count + first
    return f"{first}-{first + each - 1},{second}-{second + each - 1}"


def parse_bus_id(text: str) -> tuple[int, int, int]:
    """Domain, bus and slot of ``0000:07:00.0``; eight digits of domain are taken, too.

    Raises
    ------
    ValueError
        It is no PCI address.
    """
    match = re.fullmatch(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.0", text)
    if match is None:
        raise ValueError(f"{text!r} is no PCI address such as 0000:07:00.0")
    domain, bus, slot = (int(part, 16) for part in match.groups())
    return domain, bus, slot


def _switch(number: int) -> int | None:
    return None if number < 0 else number


def _links(node: NodeSpec, one: Place, other: Place, fabric: Fabric | None) -> int:
    if one.gpu is None or other.gpu is None:
        return 0
    return (fabric or whole_fabric(node)).pair_links[one.gpu][other.gpu]


def _pcie_relation(node: NodeSpec, one: Place, other: Place) -> Relation:
    if one.switch is not None and one.switch == other.switch:
        return Relation.SWITCH if node.switch_level_count < 2 else Relation.SWITCHES
    return Relation.NUMA if one.numa == other.numa else Relation.SYSTEM


def _socket(node: NodeSpec, numa: int) -> int:
    return numa // (node.numa_count // node.socket_count)


def _nvlink_path(node: NodeSpec, one: Place, other: Place, links: int) -> Path:
    board = board_of(node)
    rate = board.link_bytes_per_s if board else node.chip.nvlink.link_bytes_per_s
    between = {
        LinkKind.SWITCHED: (
            f"{links} links through {board.nvswitch_count if board else 0} switches",
        ),
        LinkKind.MESH: (f"{links} links",),
        LinkKind.BRIDGE: (f"{links} links of the bridge",),
        LinkKind.NONE: (),
    }[node.links]
    return Path(
        relation=f"{Relation.NVLINK.value}{links}",
        hops=(one.name, *between, other.name),
        links_count=links,
        raw_bytes_per_s=links * rate,
        copy_bytes_per_s=links * COPIES.peer_link_bytes_per_s,
    )


def _pcie_path(node: NodeSpec, one: Place, other: Place) -> Path:
    near = _pcie_relation(node, one, other)
    up, down = _above(one), _above(other)
    hops: tuple[str, ...]
    if near in (Relation.SWITCH, Relation.SWITCHES):
        hops = up
    else:
        inside = [f"NUMA {one.numa}"]
        if one.numa != other.numa:
            if _socket(node, one.numa) != _socket(node, other.numa):
                inside.append("the link between sockets")
            inside.append(f"NUMA {other.numa}")
        hops = (*up, *inside, *reversed(down))
    generation = 2.0 ** (node.pcie_generation - 4)
    return Path(
        relation=near.value,
        hops=(one.name, *hops, other.name),
        links_count=0,
        raw_bytes_per_s=pcie_bytes_per_s(node.chip.pcie) * generation,
        copy_bytes_per_s=COPIES.peer_pci_bytes_per_s * generation,
    )


def _above(place: Place) -> tuple[str, ...]:
    return () if place.switch is None else (f"PCIe switch {place.switch}",)
