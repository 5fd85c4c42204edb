"""What launches do to a card while they run, handed to the driver for the node's readings.

``native/include/va100/activity.h`` says what the figures mean; they follow from the estimate.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Final

from va100.gpu.native import library
from va100.perf.kernel import Bound, KernelEstimate
from va100.perf.memory import Traffic
from va100.spec.model import ChipSpec
from va100.spec.rates import memory_bytes_per_s

UNITS: Final = (Bound.DRAM, Bound.TENSOR, Bound.FP64, Bound.FMA, Bound.FP16)
"""In the order of the native structure."""
_NO_LIMIT_W: Final = 1_000_000


class Activity(ctypes.Structure):
    """``va_activity``."""

    _fields_ = (
        ("power_mw", ctypes.c_uint32),
        ("permille", ctypes.c_uint32 * len(UNITS)),
        ("load_bytes", ctypes.c_uint64),
        ("store_bytes", ctypes.c_uint64),
    )


def unlimited(chip: ChipSpec) -> ChipSpec:
    """The chip as it would be if no power limit held its clock down: the node heeds its own."""
    return replace(chip, power_default_w=_NO_LIMIT_W)


def activity_of(found: KernelEstimate, flow: Traffic, chip: ChipSpec) -> Activity:
    """Say what a launch does, from its estimate at the boost clock.

    DRAM is told as a share of its peak rate, which copies do not reach; pipes as one of cycles.
    """
    reached = chip.measured.dram_read_bytes_per_s / memory_bytes_per_s(chip)
    shares = [found.fraction(unit) for unit in UNITS]
    shares[0] *= reached
    above_w = max(found.energy.power_w - chip.measured.idle_w, 0.0)
    permille = (ctypes.c_uint32 * len(UNITS))(*(round(1000 * min(s, 1.0)) for s in shares))
    stored = round(flow.l2_bytes * flow.store_fraction)
    return Activity(round(above_w * 1000), permille, round(flow.l2_bytes) - stored, stored)


def tell_activity(variant_id: int, cta_count: int, activity: Activity) -> None:
    """Let the driver know; the launches of this kind that follow are told of so."""
    library().va_launch_activity(
        ctypes.c_uint64(variant_id), ctypes.c_uint64(cta_count), ctypes.byref(activity)
    )
