"""What copy engines reach: between host and GPU, and between two GPUs.

The arithmetic is in :mod:`va100.perf.links`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from va100.spec.model import Spec, cited
from va100.spec.sources import assumed, derived, measured
from va100.units import GB, US


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySpec(Spec):
    """Rates and floors of copies; PCIe figures are generation 4's."""

    floor_s: float
    """What a copy costs before its first byte."""
    peer_floor_s: float
    peer_link_bytes_per_s: float
    """One NVLink's share, one direction."""
    peer_both_ways_ratio: float
    """Each direction's rate when both are busy."""
    pinned_bytes_per_s: float
    pinned_both_ways_ratio: float
    pageable_bytes_per_s: float
    peer_pci_bytes_per_s: float
    """GPUs without NVLink, from one root port to another."""


_LOG: Final = measured("SUPERBENCH", "gpu_copy_bw_performance.log, DMA rows")

COPIES: Final = CopySpec(
    floor_s=1.5 * US,
    peer_floor_s=9 * US,
    peer_link_bytes_per_s=279 * GB / 12,
    peer_both_ways_ratio=531 / (2 * 279),
    pinned_bytes_per_s=26.2 * GB,
    pinned_both_ways_ratio=49.4 / (2 * 26.2),
    pageable_bytes_per_s=12.7 * GB,
    peer_pci_bytes_per_s=23.7 * GB,
    sources=cited(
        (assumed("RECALLED", "least of a driver's copies"), "floor_s"),
        (
            derived("GPU-INSPECTOR", "40 MB at 262 GB/s on average, where large copies reach 279"),
            "peer_floor_s",
        ),
        (
            _LOG,
            "peer_link_bytes_per_s peer_both_ways_ratio pinned_bytes_per_s pinned_both_ways_ratio",
        ),
        (measured("GPU-INSPECTOR", "pageable host memory"), "pageable_bytes_per_s"),
        (measured("VIDUR", "rings of four cards in two bridged pairs"), "peer_pci_bytes_per_s"),
    ),
)
