"""Seconds and joules of NCCL's collectives on A100 nodes.

What runs is chosen as NCCL chooses it: by its own reckoning of each algorithm and protocol, with
its own constants.  How long that takes is reckoned with costs fitted to measurements.  Both sets
are in :mod:`va100.spec.nccl`; what the GPUs have to talk over is in :mod:`va100.perf.fabric`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from va100.perf.fabric import Fabric, Ring, ring_of
from va100.perf.transport import (
    Algorithm,
    Choice,
    Pattern,
    Shape,
    choose,
    energy_j,
    suits_direct,
    true_s,
)
from va100.spec.nccl import Hop, Protocol
from va100.spec.nodes import NETWORKS, NetworkSpec, NodeSpec, find_node
from va100.units import MIB, bytes_text, rate_text


class Collective(Enum):
    """Operations, by the names that ``op=`` takes."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    ALL_TO_ALL = "all_to_all"
    GATHER = "gather"
    SCATTER = "scatter"
    SEND_RECV = "send_recv"


_NAMES: Final[Mapping[str, Collective]] = {
    **{op.value: op for op in Collective},
    **{op.value.replace("_", ""): op for op in Collective},
    "alltoall": Collective.ALL_TO_ALL,
    "sendrecv": Collective.SEND_RECV,
    "p2p": Collective.SEND_RECV,
}
PATTERNS: Final[Mapping[Collective, Pattern]] = {
    Collective.ALL_REDUCE: Pattern.REDUCE_AND_GATHER,
    Collective.ALL_GATHER: Pattern.GATHER,
    Collective.REDUCE_SCATTER: Pattern.REDUCE,
    Collective.BROADCAST: Pattern.CHAIN,
    Collective.REDUCE: Pattern.CHAIN,
    Collective.ALL_TO_ALL: Pattern.EXCHANGE,
    Collective.GATHER: Pattern.ONE_ROOT,
    Collective.SCATTER: Pattern.ONE_ROOT,
    Collective.SEND_RECV: Pattern.PAIR,
}


def _twice_but_one(ranks: int) -> float:
    return 2 * (ranks - 1) / ranks


def _but_one(ranks: int) -> float:
    return (ranks - 1) / ranks


def _whole(ranks: int) -> float:
    return 1.0 if ranks > 1 else 0.0


BUS_FACTORS: Final[Mapping[Collective, Callable[[int], float]]] = {
    Collective.ALL_REDUCE: _twice_but_one,
    Collective.ALL_GATHER: _but_one,
    Collective.REDUCE_SCATTER: _but_one,
    Collective.BROADCAST: _whole,
    Collective.REDUCE: _whole,
    Collective.ALL_TO_ALL: _but_one,
    Collective.GATHER: _but_one,
    Collective.SCATTER: _but_one,
    Collective.SEND_RECV: _whole,
}
"""Bus bandwidth over algorithm bandwidth, as nccl-tests defines it."""

BAND_LARGE_RATIO: Final = 0.07
"""Nine of ten measured calls of 64 MiB and more came within this (docs/collectives.md)."""
BAND_SMALL_RATIO: Final = 0.13
"""The same below 64 MiB, on NVLink."""
BAND_UNMEASURED_RATIO: Final = 0.4
"""Between nodes and over PCIe a handful of figures at most was compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveEstimate:
    """One call's predicted time and what it is made of."""

    op: Collective
    size_bytes: int
    """As nccl-tests counts it: a rank's whole buffer, the larger of what it gives and gets."""
    ranks: int
    nodes: int
    time_s: float
    algbw_bytes_per_s: float
    busbw_bytes_per_s: float
    energy_j: float
    """Of all ranks together, above nothing: idle power is in it."""
    bound: str
    band: tuple[float, float]
    """Least and most seconds it would take, nine times of ten."""
    algorithm: str
    protocol: str
    hop: str
    """What neighbours talk over."""
    steps_count: int
    sent_bytes: float
    """Out of each rank."""
    ceiling_bytes_per_s: float
    """Bus bandwidth that no size exceeds here."""

    @property
    def algbw(self) -> float:
        """Bytes a second, the size over the time; nccl-tests' name for it."""
        return self.algbw_bytes_per_s

    @property
    def busbw(self) -> float:
        """Bytes a second that each rank's link carried one way; nccl-tests' name for it."""
        return self.busbw_bytes_per_s

    @property
    def why(self) -> str:
        """Which way it was done, with bytes and steps, and what keeps it from the links' peak."""
        limit = (
            "NVLink 3's 25 GB/s a link and direction carry 20 of data between SMs, 12 links 240; "
            "600 GB/s counts both directions"
            if self.hop == Hop.NVLINK.value
            else "the slowest hop's"
        )
        return (
            f"{self.algorithm}, protocol {self.protocol}, over {self.hop}: "
            f"{self.steps_count} steps, {bytes_text(self.sent_bytes)} out of each rank; bound by "
            f"{self.bound}. No size exceeds {rate_text(self.ceiling_bytes_per_s, 'B/s')} of bus "
            f"bandwidth here: {limit}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The ranks of a communicator and what they talk over."""

    node: NodeSpec
    ranks: int
    nodes: int
    ring: Ring


def group_of(
    ranks: int,
    node: str | NodeSpec = "hgx-a100-8x80gb",
    *,
    nodes: int | None = None,
    network: str | NetworkSpec | None = None,
    gpus: Sequence[int] | None = None,
    fabric: Fabric | None = None,
) -> Group:
    """Place ranks on nodes, equally many on each.

    Parameters
    ----------
    nodes : int, optional
        As few as hold the ranks when it isn't given.
    network : str or NetworkSpec, optional
        Between nodes, in place of the kind's own: a name of :data:`va100.spec.nodes.NETWORKS`.
    gpus : sequence of int, optional
        GPUs used of each node, the first ones when they aren't given.

    Raises
    ------
    ValueError
        The ranks don't fit, or aren't the same on each node; no such kind, network or GPU.
    """
    kind = find_node(node) if isinstance(node, str) else node
    if ranks < 1:
        raise ValueError(f"a communicator has at least one rank, not {ranks}")
    count = nodes if nodes is not None else math.ceil(ranks / kind.gpu_count)
    if count < 1 or ranks % count or ranks // count > kind.gpu_count:
        raise ValueError(
            f"{ranks} ranks do not spread evenly over {count} nodes of {kind.gpu_count} GPUs "
            f"({kind.name}); give nodes= so that each gets as many, at most {kind.gpu_count}"
        )
    chosen = tuple(gpus) if gpus is not None else tuple(range(ranks // count))
    if len(chosen) != ranks // count or len(set(chosen)) != len(chosen):
        raise ValueError(f"{ranks // count} different GPUs are used of each node, not {chosen}")
    if any(not 0 <= gpu < kind.gpu_count for gpu in chosen):
        raise ValueError(f"{kind.name} has GPUs 0 to {kind.gpu_count - 1}, not {chosen}")
    between = _network(kind, network) if count > 1 else None
    ring = ring_of(kind, chosen, fabric=fabric, network=between)
    return Group(node=kind, ranks=ranks, nodes=count, ring=ring)


def estimate(
    op: str | Collective,
    bytes: int,
    ranks: int,
    node: str | NodeSpec = "hgx-a100-8x80gb",
    *,
    dtype: str = "float16",
    group: Group | None = None,
    **placement: object,
) -> CollectiveEstimate:
    """Predict one call, all ranks ready.

    Parameters
    ----------
    op : str or Collective
        ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast``, ``reduce``,
        ``all_to_all``, ``gather``, ``scatter`` or ``send_recv``.
    bytes : int
        As nccl-tests counts it: the whole buffer, of which each rank of an all-gather gives its
        part.
    dtype : str
        Its width matters to reductions only.
    group : Group, optional
        Made by :func:`group_of` once for many calls; ``ranks``, ``node`` and the rest are its.
    placement
        ``nodes``, ``network``, ``gpus``, ``fabric``: as :func:`group_of` takes them.

    Raises
    ------
    ValueError
        No such operation, or what :func:`group_of` refuses.
    """
    kind = op if isinstance(op, Collective) else _collective(op)
    if bytes < 0:
        raise ValueError(f"a message cannot be of {bytes} bytes")
    if group is None:
        group = group_of(ranks, node, **placement)  # type: ignore[arg-type]
    if kind is Collective.SEND_RECV and group.ranks != 2:
        raise ValueError(f"send_recv is between 2 ranks, not {group.ranks}")
    shape = Shape(
        pattern=PATTERNS[kind],
        size_bytes=float(bytes),
        ranks=group.ranks,
        nodes=group.nodes,
        narrow="8" in dtype and not dtype.endswith("128"),
    )
    choice = choose(shape, group.ring)
    return _estimate(kind, shape, group, choice)


def estimate_direct(
    bytes: int,
    ranks: int,
    node: str | NodeSpec = "hgx-a100-8x80gb",
    *,
    group: Group | None = None,
    **placement: object,
) -> CollectiveEstimate:
    """Predict an all-reduce as serving frameworks do it, in a CUDA graph.

    Small ones go by kernels that read peers' memory over NVLink; the others are left to NCCL.
    Arguments are those of :func:`estimate`.
    """
    if group is None:
        group = group_of(ranks, node, **placement)  # type: ignore[arg-type]
    by_nccl = estimate(Collective.ALL_REDUCE, bytes, ranks, group=group)
    shape = Shape(
        pattern=Pattern.REDUCE_AND_GATHER,
        size_bytes=float(bytes),
        ranks=group.ranks,
        nodes=group.nodes,
    )
    if not suits_direct(shape, group.ring):
        return by_nccl
    choice = Choice(Algorithm.DIRECT, Protocol.SIMPLE)
    return _estimate(Collective.ALL_REDUCE, shape, group, choice)


def _estimate(kind: Collective, shape: Shape, group: Group, choice: Choice) -> CollectiveEstimate:
    cost = true_s(shape, group.ring, choice)
    time_s = cost.total_s
    algbw = shape.size_bytes / time_s if shape.size_bytes else 0.0
    ratio = _band_ratio(shape, group)
    return CollectiveEstimate(
        op=kind,
        size_bytes=int(shape.size_bytes),
        ranks=group.ranks,
        nodes=group.nodes,
        time_s=time_s,
        algbw_bytes_per_s=algbw,
        busbw_bytes_per_s=algbw * BUS_FACTORS[kind](group.ranks),
        energy_j=energy_j(shape, group.ring, choice, time_s, group.node.chip.measured.idle_w),
        bound=cost.bound,
        band=(time_s / (1 + ratio), time_s / (1 - ratio)),
        algorithm=choice.algorithm.value,
        protocol=choice.protocol.value,
        hop=Hop.NET.value if group.nodes > 1 else group.ring.hop.value,
        steps_count=shape.steps,
        sent_bytes=shape.sent_bytes,
        ceiling_bytes_per_s=cost.rate_bytes_per_s,
    )


def _band_ratio(shape: Shape, group: Group) -> float:
    if group.nodes > 1 or group.ring.hop is not Hop.NVLINK:
        return BAND_UNMEASURED_RATIO
    return BAND_LARGE_RATIO if shape.size_bytes >= 64 * MIB else BAND_SMALL_RATIO


def _collective(name: str) -> Collective:
    found = _NAMES.get(name.lower().replace("-", "_"))
    if found is None:
        known = ", ".join(op.value for op in Collective)
        raise ValueError(f"no collective is called {name!r}; there are: {known}")
    return found


def _network(node: NodeSpec, network: str | NetworkSpec | None) -> NetworkSpec:
    if network is None:
        return node.network
    if isinstance(network, NetworkSpec):
        return network
    if network not in NETWORKS:
        raise ValueError(
            f"no network is called {network!r}; there are: {', '.join(sorted(NETWORKS))}"
        )
    return NETWORKS[network]


__all__ = [
    "BUS_FACTORS",
    "Collective",
    "CollectiveEstimate",
    "Group",
    "Protocol",
    "estimate",
    "estimate_direct",
    "group_of",
]
