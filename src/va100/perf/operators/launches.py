"""How a kernel is started, and what that adds to it.

Estimates are of kernels one after the other in a CUDA graph.  Started one by one they take longer,
and from an eager framework, timed by events around the call, the host is in the time, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from va100.perf.operators.chips import Chip
from va100.perf.operators.estimates import Demand
from va100.units import US

LAUNCHES: Final[Mapping[str, float]] = MappingProxyType(
    {"graph": 0.0, "stream": 0.0, "eager": 17.0 * US}
)
"""Seconds beside the kernel, by name; of a stream, see :func:`launched`.  The last is what PyTorch
2.1 added on one machine (NEUSIGHT): fitted to large element-wise kernels."""


def launched(demand: Demand, launch: str, chip: Chip, kernel_count: int = 1) -> Demand:
    """Add what starting kernels so costs.

    Raises
    ------
    ValueError
        No such way to start them.
    """
    if launch not in LAUNCHES:
        raise ValueError(f"launch {launch!r} is not one of {', '.join(LAUNCHES)}")
    if launch == "graph":
        return demand
    gap_s = (chip.stream_launch_s - chip.launch_s) * kernel_count
    host_s = LAUNCHES[launch] * kernel_count
    return replace(demand, fixed_s=demand.fixed_s + gap_s + host_s)
