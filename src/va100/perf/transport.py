"""One collective over one fabric: what NCCL picks for it, and what the pick costs.

The two are kept apart on purpose.  :func:`choose` reckons as NCCL's tuner does, with the tuner's
constants; :func:`true_s` with fitted ones.  Which collective it is, and how people ask, is in
:mod:`va100.perf.collectives`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from va100.perf.fabric import Ring
from va100.spec.nccl import COST, DIRECT_REDUCE, ENERGY, TUNER, Hop, Protocol
from va100.units import US


class Pattern(Enum):
    """How bytes move."""

    REDUCE_AND_GATHER = "all-reduce"
    REDUCE = "reduce-scatter"
    GATHER = "all-gather"
    CHAIN = "one buffer along the ring"
    EXCHANGE = "every rank with every other"
    ONE_ROOT = "every rank with one"
    PAIR = "one rank to another"


class Algorithm(Enum):
    """NCCL's own words, and one for point to point."""

    RING = "ring"
    TREE = "tree"
    P2P = "point to point"
    DIRECT = "direct"
    """Not NCCL's: kernels of serving frameworks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A call: what moves, how much, between how many."""

    pattern: Pattern
    size_bytes: float
    ranks: int
    nodes: int
    narrow: bool = False
    """Whether elements are one byte wide."""

    @property
    def steps(self) -> int:
        """Steps from the first byte sent to the last one received, chunk by chunk."""
        if self.pattern is Pattern.REDUCE_AND_GATHER:
            return 2 * (self.ranks - 1)
        return 1 if self.pattern is Pattern.PAIR else self.ranks - 1

    @property
    def node_steps(self) -> int:
        """Those of the steps that go from node to node."""
        if self.nodes == 1:
            return 0
        if self.pattern is Pattern.PAIR:
            return 1
        return (2 if self.pattern is Pattern.REDUCE_AND_GATHER else 1) * (self.nodes - 1)

    @property
    def per_node(self) -> int:
        """Ranks of one node."""
        return self.ranks // self.nodes

    @property
    def sent_bytes(self) -> float:
        """Bytes out of each rank; of the root, where there is one."""
        if self.pattern in (Pattern.CHAIN, Pattern.PAIR):
            return self.size_bytes if self.ranks > 1 else 0.0
        return self.steps * self.size_bytes / self.ranks


@dataclass(frozen=True, slots=True)
class Choice:
    """Which way a call is done."""

    algorithm: Algorithm
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class Cost:
    """Where a call's time goes."""

    latency_s: float
    transfer_s: float
    rate_bytes_per_s: float
    """Of the slowest hop."""
    resource: str
    """What that hop is."""

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.latency_s + self.transfer_s

    @property
    def bound(self) -> str:
        """Latency, or the hop."""
        return "latency" if self.latency_s > self.transfer_s else self.resource


_PROTOCOLS: Final = tuple(Protocol)
_INDEX: Final[Mapping[Protocol, int]] = {kind: index for index, kind in enumerate(Protocol)}
_RING_HOPS: Final = {
    Hop.NVLINK: TUNER.ring_nvlink_s,
    Hop.PCI: TUNER.ring_pci_s,
    Hop.NET: TUNER.ring_net_s,
}
_TREE_HOPS: Final = {
    Hop.NVLINK: TUNER.tree_nvlink_s,
    Hop.PCI: TUNER.tree_pci_s,
    Hop.NET: TUNER.tree_net_s,
}
_LAUNCH_ALONE_S: Final = 3.0 * US
"""A communicator of one rank copies, or does nothing in place."""


def choose(shape: Shape, ring: Ring) -> Choice:
    """Pick as NCCL's tuner does: the least of what it reckons for each way."""
    if shape.pattern in (Pattern.EXCHANGE, Pattern.ONE_ROOT, Pattern.PAIR):
        return Choice(Algorithm.P2P, _p2p_protocol(shape, ring))
    ways = [
        (reckoned, algorithm, protocol)
        for algorithm in _algorithms(shape)
        for protocol in _PROTOCOLS
        if (reckoned := reckoned_s(shape, ring, algorithm, protocol)) is not None
    ]
    _, algorithm, protocol = min(ways, key=_reckoned)
    return Choice(algorithm, protocol)


def _reckoned(way: tuple[float, Algorithm, Protocol]) -> float:
    return way[0]


def _algorithms(shape: Shape) -> tuple[Algorithm, ...]:
    """Trees within a node are chains, which gain nothing on rings."""
    if shape.pattern is Pattern.REDUCE_AND_GATHER and shape.nodes > 1:
        return (Algorithm.RING, Algorithm.TREE)
    return (Algorithm.RING,)


def _p2p_protocol(shape: Shape, ring: Ring) -> Protocol:
    """LL up to what a peer is sent in one LL slot over all channels, Simple beyond."""
    return Protocol.LL if true_ll_s(shape, ring) < true_simple_s(shape, ring) else Protocol.SIMPLE


def reckoned_s(shape: Shape, ring: Ring, algorithm: Algorithm, protocol: Protocol) -> float | None:
    """Seconds as NCCL reckons them; none where it would not take that way."""
    if protocol is Protocol.LL128 and ring.hop is not Hop.NVLINK:
        return None
    index = _INDEX[protocol]
    rate = min(ring.tuner_bytes_per_s, ring.net_bytes_per_s or math.inf)
    most_ll = TUNER.ll_most_bytes_per_s[min(max(shape.nodes - 1, 0), 2)]
    if algorithm is Algorithm.TREE:
        shares = (
            min(rate * TUNER.tree_ratio / 3.8, most_ll),
            min(
                rate * TUNER.tree_ratio * 120 / 128,
                TUNER.channel_count * TUNER.tree_ll128_channel_bytes_per_s[min(shape.nodes - 1, 2)],
            ),
            rate * TUNER.tree_ratio,
        )
        hops = 2 * ((shape.per_node - 1) * _TREE_HOPS[ring.hop][index])
        hops += 2 * math.log2(shape.nodes) * _TREE_HOPS[Hop.NET][index]
        return TUNER.tree_base_s[index] + hops + 2 * shape.size_bytes / shares[index]
    shares = (
        min(rate * TUNER.ll_ratio, most_ll),
        min(rate * TUNER.ll128_ratio, TUNER.channel_count * TUNER.ring_ll128_channel_bytes_per_s),
        rate,
    )
    near = shape.steps - shape.node_steps
    hops = near * _RING_HOPS[ring.hop][index] + shape.node_steps * _RING_HOPS[Hop.NET][index]
    return TUNER.ring_base_s[index] + hops + shape.sent_bytes / shares[index]


def suits_direct(shape: Shape, ring: Ring) -> bool:
    """Whether serving frameworks do a call by kernels of their own rather than by NCCL."""
    return (
        shape.pattern is Pattern.REDUCE_AND_GATHER
        and shape.nodes == 1
        and shape.ranks in (2, 4, 6, 8)
        and ring.hop is Hop.NVLINK
        and shape.size_bytes < DIRECT_REDUCE.most_bytes
    )


def direct_s(shape: Shape, ring: Ring) -> Cost:
    """Seconds that such a kernel takes in a CUDA graph."""
    spec, ranks, size = DIRECT_REDUCE, shape.ranks, shape.size_bytes
    latency = spec.base_s + ranks * spec.rank_s + spec.widen_s * size / (size + spec.widen_bytes)
    share = ring.links_count / _FULL_LINKS
    limit = spec.one_shot_most_bytes[0 if ranks == 2 else 1 if ranks <= 4 else 2]
    if size < limit:
        rate = spec.one_shot_bytes_per_s * share
        return Cost(latency, (ranks - 1) * size / rate, rate, "NVLink bandwidth")
    rate = spec.two_shot_bytes_per_s * share
    return Cost(latency + spec.two_shot_s, shape.sent_bytes / rate, rate, "NVLink bandwidth")


def true_s(shape: Shape, ring: Ring, choice: Choice) -> Cost:
    """Seconds that the chosen way takes, by fitted costs."""
    if shape.ranks == 1:
        return Cost(_LAUNCH_ALONE_S, 0.0, ring.tuner_bytes_per_s, ring.hop.value)
    if choice.algorithm is Algorithm.P2P:
        return _p2p(shape, ring, choice.protocol)
    if choice.algorithm is Algorithm.DIRECT:
        return direct_s(shape, ring)
    if choice.algorithm is Algorithm.TREE:
        return _tree(shape, ring, choice.protocol)
    return _ring(shape, ring, choice.protocol)


def true_ll_s(shape: Shape, ring: Ring) -> float:
    """Point to point by small messages."""
    return _p2p(shape, ring, Protocol.LL).total_s


def true_simple_s(shape: Shape, ring: Ring) -> float:
    """Point to point by large ones."""
    return _p2p(shape, ring, Protocol.SIMPLE).total_s


_STEP_S: Final = {
    Protocol.LL: COST.ll_step_s,
    Protocol.LL128: COST.ll128_step_s,
    Protocol.SIMPLE: COST.simple_step_s,
}
_BASE_S: Final = {
    Protocol.LL: COST.ll_base_s,
    Protocol.LL128: COST.ll128_base_s,
    Protocol.SIMPLE: COST.simple_base_s,
}
_RATE: Final = {
    Protocol.LL: COST.ll_bytes_per_s,
    Protocol.LL128: COST.ll128_bytes_per_s,
    Protocol.SIMPLE: COST.simple_bytes_per_s,
}
_SHARE: Final = {Protocol.LL: TUNER.ll_ratio, Protocol.LL128: TUNER.ll128_ratio}
_FILL: Final = {
    Pattern.REDUCE_AND_GATHER: COST.reduce_fill_ratio,
    Pattern.GATHER: COST.gather_fill_ratio,
    Pattern.REDUCE: COST.scatter_fill_ratio,
    Pattern.CHAIN: 0.0,
}
_REDUCING: Final = {Pattern.REDUCE_AND_GATHER: 0.5, Pattern.REDUCE: 1.0}
"""Share of a pattern's steps that add."""
_FULL_LINKS: Final = 12


def _near_rate(ring: Ring, protocol: Protocol) -> float:
    """What a ring within one node carries."""
    if ring.hop is Hop.NVLINK:
        return _RATE[protocol] * ring.links_count / _FULL_LINKS
    full = COST.pci_bytes_per_s * ring.tuner_bytes_per_s / (2 * TUNER.pci_bytes_per_s)
    return full * _SHARE.get(protocol, 1.0)


def _slowest(ring: Ring, protocol: Protocol) -> tuple[float, str]:
    near = _near_rate(ring, protocol)
    if not ring.net_bytes_per_s:
        return near, f"{ring.hop.value} bandwidth"
    net = ring.net_bytes_per_s * _SHARE.get(protocol, 1.0)
    return (net, "network bandwidth") if net < near else (near, f"{ring.hop.value} bandwidth")


def _hop_s(ring: Ring, protocol: Protocol) -> float:
    """One step within a node: an NVLink's, and what NCCL says PCIe adds."""
    index = _INDEX[protocol]
    return _STEP_S[protocol] + (_RING_HOPS[ring.hop][index] - TUNER.ring_nvlink_s[index])


def _net_s(ring: Ring, protocol: Protocol, hops: Mapping[Hop, tuple[float, float, float]]) -> float:
    return hops[Hop.NET][_INDEX[protocol]] + ring.net_hop_s


def _extra_s(ring: Ring, transfer_s: float) -> float:
    """What large messages lose until NVLinks run at full rate, less what bridges save."""
    if ring.hop is not Hop.NVLINK:
        return 0.0
    ramp = COST.ramp_s * (1 - math.exp(-transfer_s / COST.ramp_time_s))
    return ramp - (COST.bridge_saved_s if ring.bridged else 0.0)


def _base_s(shape: Shape, ring: Ring, protocol: Protocol) -> float:
    base = _BASE_S[protocol] + (COST.pci_base_s if ring.hop is Hop.PCI else 0.0)
    if protocol is Protocol.LL:
        size = shape.size_bytes
        base += COST.ll_widen_s * size / (size + COST.ll_widen_bytes) if size else 0.0
    return base


def _ring(shape: Shape, ring: Ring, protocol: Protocol) -> Cost:
    rate, resource = _slowest(ring, protocol)
    near = shape.steps - shape.node_steps
    latency = _base_s(shape, ring, protocol) + near * _hop_s(ring, protocol)
    latency += shape.node_steps * _net_s(ring, protocol, _RING_HOPS)
    fill = COST.ll_fill_ratio if protocol is Protocol.LL else _FILL[shape.pattern]
    transfer = shape.sent_bytes / rate
    if shape.pattern is not Pattern.CHAIN:
        transfer += fill * shape.size_bytes / shape.ranks / _near_rate(ring, protocol)
    if protocol is Protocol.SIMPLE:
        if shape.narrow:
            slower = 1 / COST.narrow_reduce_ratio - 1
            transfer *= 1 + slower * _REDUCING.get(shape.pattern, 0.0)
        latency += _extra_s(ring, transfer)
    return Cost(latency, transfer, rate, resource)


def _tree(shape: Shape, ring: Ring, protocol: Protocol) -> Cost:
    rate, resource = _slowest(ring, protocol)
    latency = _base_s(shape, ring, protocol)
    latency += 2 * (shape.per_node - 1) * _hop_s(ring, protocol)
    latency += 2 * math.log2(shape.nodes) * _net_s(ring, protocol, _TREE_HOPS)
    transfer = 2 * shape.size_bytes / (rate * TUNER.tree_ratio)
    if protocol is Protocol.SIMPLE:
        latency += _extra_s(ring, transfer)
    return Cost(latency, transfer, rate * TUNER.tree_ratio, resource)


def _p2p(shape: Shape, ring: Ring, protocol: Protocol) -> Cost:
    """Every peer at once, through channels of its own."""
    if shape.pattern is Pattern.PAIR:
        return _pair(shape, ring)
    near, resource = _near_rate(ring, protocol), f"{ring.hop.value} bandwidth"
    if protocol is Protocol.SIMPLE and ring.hop is Hop.NVLINK:
        near *= COST.p2p_bytes_per_s / COST.simple_bytes_per_s
    part = shape.size_bytes / shape.ranks
    inside, outside = shape.per_node - 1, shape.ranks - shape.per_node
    transfer, rate = inside * part / near, near
    if outside:
        talkers = shape.per_node if shape.pattern is Pattern.EXCHANGE else 1
        share = ring.net_bytes_per_s / talkers * _SHARE.get(protocol, 1.0)
        if outside * part / share > transfer:
            transfer, rate, resource = outside * part / share, share, "network bandwidth"
    fill = COST.ll_fill_ratio if protocol is Protocol.LL else COST.reduce_fill_ratio
    transfer += fill * part / near
    latency = (shape.ranks - 1) * COST.p2p_peer_s + (
        COST.pci_base_s if ring.hop is Hop.PCI else 0.0
    )
    if outside:
        latency += _net_s(ring, protocol, _RING_HOPS)
    if protocol is Protocol.LL:
        size = shape.size_bytes
        latency += COST.p2p_base_s
        latency += COST.ll_widen_s * size / (size + COST.ll_widen_bytes) if size else 0.0
    else:
        latency += COST.simple_base_s + _extra_s(ring, transfer)
    return Cost(latency, transfer, rate, resource)


def _pair(shape: Shape, ring: Ring) -> Cost:
    near = COST.pci_bytes_per_s if ring.hop is Hop.PCI else COST.pair_bytes_per_s
    if ring.hop is Hop.NVLINK:
        near *= ring.links_count / _FULL_LINKS
    latency, rate, resource = COST.pair_base_s, near, f"{ring.hop.value} bandwidth"
    if shape.nodes > 1:
        latency += _net_s(ring, Protocol.SIMPLE, _RING_HOPS)
        if ring.net_bytes_per_s < near:
            rate, resource = ring.net_bytes_per_s, "network bandwidth"
    return Cost(latency, shape.size_bytes / rate, rate, resource)


_BUSY_SMS: Final = {
    Algorithm.RING: 24,
    Algorithm.TREE: 24,
    Algorithm.P2P: 16,
    Algorithm.DIRECT: 36,
}


def energy_j(shape: Shape, ring: Ring, choice: Choice, time_s: float, idle_w: float) -> float:
    """Joules of all ranks: idle power, awake clocks, busy SMs, and every bit moved."""
    power = idle_w + ENERGY.clocks_w + _BUSY_SMS[choice.algorithm] * ENERGY.sm_busy_w
    wire = ENERGY.link_bit_j if ring.hop is Hop.NVLINK else ENERGY.pci_bit_j
    sent_bits = 8 * shape.sent_bytes
    moved = sent_bits * (wire + 3 * ENERGY.memory_bit_j)  # read here, read and written there
    if shape.nodes > 1 and shape.steps:
        moved += sent_bits * ENERGY.network_bit_j * shape.node_steps / shape.steps
    return shape.ranks * (power * time_s + moved)
