"""How NCCL chooses, and what its choices cost on A100s.

Two kinds of numbers.  :class:`TunerSpec` holds the constants NCCL itself reckons with when it
picks an algorithm and a protocol; they decide *what* runs.  :class:`CostSpec` holds what the
choices were measured to cost; they say *how long* it takes.  The arithmetic is in
:mod:`va100.perf.collectives`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from va100.spec.model import Spec, cited
from va100.spec.sources import assumed, datasheet, measured
from va100.units import GB, KIB, MIB, US


class Protocol(Enum):
    """How NCCL moves data; the value is NCCL's own word."""

    LL = "LL"
    """Eight bytes at a time, four of them a flag: least latency."""
    LL128 = "LL128"
    """A line at a time, eight bytes of it a flag; NVLink only."""
    SIMPLE = "Simple"
    """Large chunks between fences: most bandwidth."""


class Hop(Enum):
    """What lies between two neighbours of a ring."""

    NVLINK = "NVLink"
    PCI = "PCIe"
    NET = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class TunerSpec(Spec):
    """Constants of NCCL's tuner; tuples go by protocol: LL, LL128, Simple."""

    ring_base_s: tuple[float, float, float]
    tree_base_s: tuple[float, float, float]
    ring_nvlink_s: tuple[float, float, float]
    ring_pci_s: tuple[float, float, float]
    ring_net_s: tuple[float, float, float]
    tree_nvlink_s: tuple[float, float, float]
    tree_pci_s: tuple[float, float, float]
    tree_net_s: tuple[float, float, float]
    link_bytes_per_s: float
    """What NCCL counts for one NVLink of an A100, one direction."""
    pci_bytes_per_s: float
    """PCIe, generation 3, sixteen lanes; doubles with each generation."""
    ll_most_bytes_per_s: tuple[float, float, float]
    """Most that LL reaches: on one node, on two, on more."""
    ring_ll128_channel_bytes_per_s: float
    tree_ll128_channel_bytes_per_s: tuple[float, float, float]
    ll_ratio: float
    """LL's share of the bandwidth."""
    ll128_ratio: float
    tree_ratio: float
    """A tree's share of the bandwidth, beside a ring's."""
    channel_count: int
    """Most channels that collectives run on."""


_LATENCY: Final = datasheet("NCCL", "tuning.cc, base and hardware latencies")
_BANDWIDTH: Final = datasheet("NCCL", "topo.h and tuning.cc, bandwidths of compute capability 8.0")
_SHARES: Final = assumed("RECALLED", "shares of protocols and channels in NCCL's tuner")


def _us(ll: float, ll128: float, simple: float) -> tuple[float, float, float]:
    return ll * US, ll128 * US, simple * US


TUNER: Final = TunerSpec(
    ring_base_s=_us(6.6, 14.0, 8.4),
    tree_base_s=_us(6.8, 14.0, 8.4),
    ring_nvlink_s=_us(0.6, 1.9, 3.4),
    ring_pci_s=_us(1.0, 2.5, 5.7),
    ring_net_s=_us(2.7, 4.0, 14.0),
    tree_nvlink_s=_us(0.6, 1.25, 4.0),
    tree_pci_s=_us(1.0, 1.9, 4.0),
    tree_net_s=_us(5.0, 8.5, 14.0),
    link_bytes_per_s=20.0 * GB,
    pci_bytes_per_s=12.0 * GB,
    ll_most_bytes_per_s=(87.7 * GB, 22.5 * GB, 19.0 * GB),
    ring_ll128_channel_bytes_per_s=20.0 * GB,
    tree_ll128_channel_bytes_per_s=(24.0 * GB, 23.6 * GB, 17.8 * GB),
    ll_ratio=0.5,
    ll128_ratio=0.92,
    tree_ratio=0.92,
    channel_count=24,
    sources=cited(
        (
            _LATENCY,
            "ring_base_s tree_base_s ring_nvlink_s ring_pci_s ring_net_s tree_nvlink_s tree_pci_s"
            " tree_net_s",
        ),
        (
            _BANDWIDTH,
            "link_bytes_per_s pci_bytes_per_s ll_most_bytes_per_s ring_ll128_channel_bytes_per_s"
            " tree_ll128_channel_bytes_per_s",
        ),
        (_SHARES, "ll_ratio ll128_ratio tree_ratio channel_count"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSpec(Spec):
    """What collectives cost on A100s: fitted, the rows and the rest's errors in the docs.

    Written for NVLink; other hops add what NCCL's tuner says they take beyond an NVLink.
    """

    ll_base_s: float
    ll_step_s: float
    ll_widen_s: float
    """What the threads and channels of a larger message add, in all."""
    ll_widen_bytes: float
    """Message at which half of that is paid."""
    ll_bytes_per_s: float
    ll_fill_ratio: float
    """A rank's own part through LL's smaller buffers, in steps."""
    ll128_base_s: float
    ll128_step_s: float
    ll128_bytes_per_s: float
    simple_base_s: float
    simple_step_s: float
    simple_bytes_per_s: float
    ramp_s: float
    """Lost, in all, until a long transfer runs at its full rate."""
    ramp_time_s: float
    """Transfer after which all but 1/e of that is lost."""
    narrow_reduce_ratio: float
    """Rate of reducing steps on one-byte types over that on wider ones."""
    reduce_fill_ratio: float
    """Last chunk's way through a ring that reduces and gathers, in steps."""
    gather_fill_ratio: float
    """The same where each rank also copies its own part."""
    scatter_fill_ratio: float
    p2p_base_s: float
    p2p_peer_s: float
    p2p_bytes_per_s: float
    pair_base_s: float
    """One send and its receive."""
    pair_bytes_per_s: float
    pci_bytes_per_s: float
    """A ring that crosses PCIe, generation 4, through host memory."""
    pci_base_s: float
    """What such a ring adds to every call."""
    bridge_saved_s: float
    """What large messages save where cards meet without a switch between them."""


_FIT: Final = measured(
    "AICONFIG", "NCCL 2.27.3 on eight A100-SXM4-80GB, float16 rows; fitted: docs/collectives.md"
)
_LARGE: Final = measured(
    "VTRAIN", "two and eight ranks, beside the rows of AICONFIG; fitted: docs/collectives.md"
)
_NARROW: Final = measured("AICONFIG", "int8 rows of two ranks; fitted: docs/collectives.md")
_PAIRS: Final = measured("VIDUR", "every second row; fitted: docs/collectives.md")

COST: Final = CostSpec(
    ll_base_s=7.67 * US,
    ll_step_s=1.007 * US,
    ll_widen_s=3.142 * US,
    ll_widen_bytes=9.24 * KIB,
    ll_bytes_per_s=132.8 * GB,
    ll_fill_ratio=0.939,
    ll128_base_s=6.56 * US,
    ll128_step_s=1.9 * US,
    ll128_bytes_per_s=129.0 * GB,
    simple_base_s=24.5 * US,
    simple_step_s=4.78 * US,
    simple_bytes_per_s=240.6 * GB,
    ramp_s=80.8 * US,
    ramp_time_s=651 * US,
    narrow_reduce_ratio=0.95,
    reduce_fill_ratio=0.415,
    gather_fill_ratio=0.545,
    scatter_fill_ratio=0.317,
    p2p_base_s=10.25 * US,
    p2p_peer_s=0.278 * US,
    p2p_bytes_per_s=222.1 * GB,
    pair_base_s=11 * US,
    pair_bytes_per_s=232 * GB,
    pci_bytes_per_s=26.2 * GB,
    pci_base_s=15 * US,
    bridge_saved_s=12 * US,
    sources=cited(
        (
            _FIT,
            "ll_base_s ll_step_s ll_widen_s ll_widen_bytes ll_bytes_per_s ll_fill_ratio"
            " ll128_base_s ll128_step_s ll128_bytes_per_s reduce_fill_ratio"
            " gather_fill_ratio scatter_fill_ratio p2p_base_s p2p_peer_s p2p_bytes_per_s",
        ),
        (
            _LARGE,
            "simple_base_s simple_step_s simple_bytes_per_s ramp_s ramp_time_s",
        ),
        (_NARROW, "narrow_reduce_ratio"),
        (_PAIRS, "pair_base_s pair_bytes_per_s pci_bytes_per_s pci_base_s bridge_saved_s"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectReduceSpec(Spec):
    """All-reduce kernels of serving frameworks, which read peers' memory over NVLink directly."""

    base_s: float
    rank_s: float
    """Added by each rank's flags."""
    widen_s: float
    widen_bytes: float
    one_shot_bytes_per_s: float
    """Every rank reads everybody's whole buffer."""
    two_shot_s: float
    """Second barrier, and writing between."""
    two_shot_bytes_per_s: float
    """Every rank reduces its part, and reads the others' results."""
    one_shot_most_bytes: tuple[float, float, float]
    """Least size that goes in two shots: on 2 ranks, on up to 4, on more."""
    most_bytes: float
    """Larger ones are left to NCCL."""


_DIRECT: Final = measured(
    "AICONFIG", "vLLM and SGLang rows in CUDA graphs; fitted: docs/collectives.md"
)
_LIMITS: Final = assumed("RECALLED", "limits in vLLM's sources")

DIRECT_REDUCE: Final = DirectReduceSpec(
    base_s=4.7 * US,
    rank_s=0.12 * US,
    widen_s=0.7 * US,
    widen_bytes=8.0 * KIB,
    one_shot_bytes_per_s=195.0 * GB,
    two_shot_s=4.5 * US,
    two_shot_bytes_per_s=197.0 * GB,
    one_shot_most_bytes=(math.inf, 512.0 * KIB, 256.0 * KIB),
    most_bytes=8.0 * MIB,
    sources=cited(
        (
            _DIRECT,
            "base_s rank_s widen_s widen_bytes one_shot_bytes_per_s two_shot_s"
            " two_shot_bytes_per_s",
        ),
        (_LIMITS, "one_shot_most_bytes most_bytes"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySpec(Spec):
    """Energy of moving bytes."""

    link_bit_j: float
    """NVLink and the switch behind it, per bit and direction."""
    pci_bit_j: float
    network_bit_j: float
    memory_bit_j: float
    """HBM2, its controller and the way to the SMs."""
    sm_busy_w: float
    """One SM that copies or reduces."""
    clocks_w: float
    """A GPU that works at all, above idle."""


_GUESS: Final = assumed("RECALLED", "published figures per bit; no A100 was measured")

ENERGY: Final = EnergySpec(
    link_bit_j=10e-12,
    pci_bit_j=12e-12,
    network_bit_j=30e-12,
    memory_bit_j=9e-12,
    sm_busy_w=0.8,
    clocks_w=35.0,
    sources=cited(
        (_GUESS, "link_bit_j pci_bit_j network_bit_j memory_bit_j sm_busy_w clocks_w"),
    ),
)
