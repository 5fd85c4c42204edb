"""Seconds that one copy takes: between a host and a GPU, and between two GPUs.

Copy engines, not kernels: what ``cuMemcpy`` and its kin would take.  Collectives are in
:mod:`va100.perf.collectives`.
"""

from __future__ import annotations

from dataclasses import dataclass

from va100.perf.fabric import Fabric, whole_fabric
from va100.spec.copies import COPIES
from va100.spec.nodes import NodeSpec, find_node


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyEstimate:
    """One copy."""

    time_s: float
    rate_bytes_per_s: float
    """Bytes over time."""
    bound: str
    links_count: int
    """NVLinks that carry it."""


def host_copy(
    size_bytes: int,
    *,
    node: str | NodeSpec = "hgx-a100-8x80gb",
    pinned: bool = True,
    both_ways: bool = False,
) -> CopyEstimate:
    """Copy between host memory and one GPU; the two directions are alike on an A100.

    Parameters
    ----------
    both_ways : bool
        Whether as much goes the other way meanwhile; ``size_bytes`` is one way's.
    """
    kind = find_node(node) if isinstance(node, str) else node
    rate = COPIES.pinned_bytes_per_s * 2.0 ** (kind.pcie_generation - 4)
    if both_ways:
        rate *= COPIES.pinned_both_ways_ratio
    if not pinned:
        rate = min(rate, COPIES.pageable_bytes_per_s)
    return _copy(size_bytes, COPIES.floor_s, rate, "PCIe" if pinned else "pageable host memory", 0)


def peer_copy(
    size_bytes: int,
    source: int,
    target: int,
    *,
    node: str | NodeSpec = "hgx-a100-8x80gb",
    fabric: Fabric | None = None,
    both_ways: bool = False,
) -> CopyEstimate:
    """Copy from one GPU of a node to another, over NVLink where they meet, else over PCIe.

    Raises
    ------
    ValueError
        No such GPUs.
    """
    kind = find_node(node) if isinstance(node, str) else node
    for gpu in (source, target):
        if not 0 <= gpu < kind.gpu_count:
            raise ValueError(f"{kind.name} has GPUs 0 to {kind.gpu_count - 1}, not {gpu}")
    if source == target:
        raise ValueError(f"source and target are both GPU {source}: no link is in between")
    links = (fabric or whole_fabric(kind)).pair_links[source][target]
    if links:
        rate = (
            links
            * COPIES.peer_link_bytes_per_s
            * (COPIES.peer_both_ways_ratio if both_ways else 1.0)
        )
        return _copy(size_bytes, COPIES.peer_floor_s, rate, "NVLink", links)
    rate = COPIES.peer_pci_bytes_per_s * 2.0 ** (kind.pcie_generation - 4)
    return _copy(size_bytes, COPIES.peer_floor_s, rate, "PCIe", 0)


def _copy(size_bytes: int, floor_s: float, rate: float, bound: str, links: int) -> CopyEstimate:
    if size_bytes < 0:
        raise ValueError(f"a copy cannot be of {size_bytes} bytes")
    time_s = floor_s + size_bytes / rate
    return CopyEstimate(
        time_s=time_s,
        rate_bytes_per_s=size_bytes / time_s,
        bound="latency" if size_bytes / rate < floor_s else bound,
        links_count=links,
    )
