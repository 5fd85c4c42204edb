"""What a group of GPUs has to talk over: NVLinks, PCIe, the network between nodes.

A :class:`Fabric` counts the links that work; :mod:`va100.node.fabric` makes one with links and
switches taken out.  Times are in :mod:`va100.perf.links` and :mod:`va100.perf.collectives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from va100.spec.nccl import TUNER, Hop
from va100.spec.nodes import LinkKind, NetworkSpec, NodeSpec, board_of


@dataclass(frozen=True, slots=True)
class Fabric:
    """NVLinks of one node that work."""

    pair_links: tuple[tuple[int, ...], ...]
    """Between each two GPUs, if no other pair talks; 0 on the diagonal."""
    gpu_links: tuple[int, ...]
    """Of each GPU."""


def whole_fabric(node: NodeSpec) -> Fabric:
    """Fabric of a kind of node with nothing broken."""
    count, board = node.gpu_count, board_of(node)
    links = board.links_per_gpu_count if board else node.chip.nvlink.link_count
    if node.links is LinkKind.NONE:
        return Fabric(((0,) * count,) * count, (0,) * count)
    if node.links is LinkKind.BRIDGE:
        joined = {frozenset(pair) for pair in node.bridged_ids}
        return Fabric(
            tuple(
                tuple(links if frozenset((a, b)) in joined else 0 for b in range(count))
                for a in range(count)
            ),
            tuple(links if any(a in pair for pair in joined) else 0 for a in range(count)),
        )
    assert board is not None
    between = board.links_per_peer_count or links
    return Fabric(
        tuple(tuple(0 if a == b else between for b in range(count)) for a in range(count)),
        (links,) * count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """How a group's neighbours meet, within nodes and between them."""

    hop: Hop
    links_count: int
    """NVLinks that rings use out of each GPU; 0 over PCIe."""
    tuner_bytes_per_s: float
    """What NCCL reckons for a ring within a node."""
    net_bytes_per_s: float
    """What all of a node's adapters that take part carry, one direction; 0 within one node."""
    net_hop_s: float
    bridged: bool
    """Whether cards meet under a bridge, with no switch between them."""


def ring_of(
    node: NodeSpec,
    gpus: Sequence[int],
    *,
    fabric: Fabric | None = None,
    network: NetworkSpec | None = None,
) -> Ring:
    """Best rings through these GPUs of each node.

    Parameters
    ----------
    network : NetworkSpec, optional
        Between nodes; none for a group within one.
    """
    fabric = fabric or whole_fabric(node)
    links = _ring_links(fabric, gpus)
    pci = TUNER.pci_bytes_per_s * 2 ** (node.pcie_generation - 3)
    return Ring(
        hop=Hop.NVLINK if links else Hop.PCI,
        links_count=links,
        tuner_bytes_per_s=links * TUNER.link_bytes_per_s if links else pci,
        net_bytes_per_s=network_bytes_per_s(network, len(gpus)) if network else 0.0,
        net_hop_s=network.hop_s if network else 0.0,
        bridged=bool(links) and node.links is LinkKind.BRIDGE,
    )


def network_bytes_per_s(network: NetworkSpec, gpus: int) -> float:
    """Rate out of a node from which ``gpus`` GPUs take part, one direction."""
    ports = min(network.nic_count, gpus)
    return ports * network.nic_bytes_per_s * network.efficiency_ratio


def _ring_links(fabric: Fabric, gpus: Sequence[int]) -> int:
    """Links that rings can use out of every GPU; 0 unless NVLinks alone close a ring."""
    if len(gpus) < 2:
        return min((fabric.gpu_links[gpu] for gpu in gpus), default=0)
    if not _closes(fabric, tuple(gpus)):
        return 0
    return min(
        min(fabric.gpu_links[gpu], sum(fabric.pair_links[gpu][peer] for peer in gpus))
        for gpu in gpus
    )


def _closes(fabric: Fabric, gpus: tuple[int, ...]) -> bool:
    """Whether a ring through all of them runs over NVLinks alone."""

    def extend(path: tuple[int, ...]) -> bool:
        if len(path) == len(gpus):
            return fabric.pair_links[path[-1]][path[0]] > 0
        return any(
            extend((*path, gpu))
            for gpu in gpus
            if gpu not in path and fabric.pair_links[path[-1]][gpu]
        )

    return extend(gpus[:1])
