"""A MIG slice as a chip of its own: what it has of SMs, L2, memory and their rates.

What sharing costs beside that is not here: neighbours are taken to leave a slice its own.
"""

from __future__ import annotations

from dataclasses import replace

from va100.spec import mig
from va100.spec.model import ChipSpec


def slice_of(chip: ChipSpec, profile: str) -> ChipSpec:
    """A GPU instance with all of its compute in one instance.

    Parameters
    ----------
    profile : str
        Such as ``1g.5gb``.

    Raises
    ------
    ValueError
        The chip does not offer it; the message names what it offers.
    """
    found = mig.profile_named(chip, profile)
    memory = found.memory_slice_count / mig.MEMORY_SLICES
    compute = found.sm_count / chip.sm_count
    measured = chip.measured
    return replace(
        chip,
        name=f"{chip.name} MIG {found.name}",
        sm_count=found.sm_count,
        l2_bytes=found.l2_bytes,
        l2_slice_count=round(chip.l2_slice_count * memory),
        memory_bytes=found.memory_bytes,
        memory_bus_bits=round(chip.memory_bus_bits * memory),
        measured=replace(
            measured,
            l1_bytes_per_s=measured.l1_bytes_per_s * compute,
            fp32_flop_per_s=measured.fp32_flop_per_s * compute,
            bf16_gemm_flop_per_s=measured.bf16_gemm_flop_per_s * compute,
            int8_gemm_flop_per_s=measured.int8_gemm_flop_per_s * compute,
            l2_bytes_per_s=measured.l2_bytes_per_s * memory,
            l2_curve_footprint_bytes=tuple(
                size * memory for size in measured.l2_curve_footprint_bytes
            ),
            l2_curve_bytes_per_s=tuple(rate * memory for rate in measured.l2_curve_bytes_per_s),
            dram_read_bytes_per_s=measured.dram_read_bytes_per_s * memory,
            dram_write_bytes_per_s=measured.dram_write_bytes_per_s * memory,
            dram_scale_bytes_per_s=measured.dram_scale_bytes_per_s * memory,
            idle_w=measured.idle_w * memory,
        ),
    )
