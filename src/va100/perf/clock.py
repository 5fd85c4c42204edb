"""A chip at another clock than boost.

What a clock costs in power is in :mod:`va100.perf.energy`.
"""

from __future__ import annotations

from dataclasses import replace

from va100.spec.model import ChipSpec


def at_clock(chip: ChipSpec, clock_hz: float) -> ChipSpec:
    """A chip whose SMs and L2 run at another clock than boost; DRAM keeps its own.

    Raises
    ------
    ValueError
        The chip does not run so slow or so fast.
    """
    least, most = chip.idle_clock_hz, chip.boost_clock_hz
    if not least <= clock_hz <= most:
        raise ValueError(
            f"{chip.name} runs at {least / 1e6:g} to {most / 1e6:g} MHz, not at "
            f"{clock_hz / 1e6:g} MHz; clocks are given in Hz"
        )
    if clock_hz == most:
        return chip
    ratio = clock_hz / most
    measured = chip.measured
    return replace(
        chip,
        boost_clock_hz=round(clock_hz),
        measured=replace(
            measured,
            l1_bytes_per_s=measured.l1_bytes_per_s * ratio,
            l2_bytes_per_s=measured.l2_bytes_per_s * ratio,
            fp32_flop_per_s=measured.fp32_flop_per_s * ratio,
            bf16_gemm_flop_per_s=measured.bf16_gemm_flop_per_s * ratio,
            int8_gemm_flop_per_s=measured.int8_gemm_flop_per_s * ratio,
        ),
    )
