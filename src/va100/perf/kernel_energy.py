"""Joules of a launch, from what was counted of it, and the clock that its power leaves it.

Energies of operations and bytes are in :mod:`va100.perf.energy`; here counts become operations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from va100.perf import pipes
from va100.perf.energy import (
    CONSTANT_RATIO,
    SPARSE_FLOP_RATIO,
    EnergyEstimate,
    Level,
    card_of,
    estimate_energy,
)
from va100.perf.memory import Traffic
from va100.spec.model import ChipSpec, MmaKind, Operation
from va100.work import WARP_SIZE, Counters, Pipe

_FLOPS: Final = {
    Pipe.FMA: (Operation.FP32_FMA, 2.0),
    Pipe.FP16: (Operation.FP16_FMA, 4.0),
    Pipe.FP64: (Operation.FP64_FMA, 2.0),
    Pipe.XU: (Operation.SPECIAL, 1.0),
    Pipe.ALU: (Operation.INT32_MUL, 1.0),
}
"""Operations of one lane of each pipe; FP16 works on pairs, integer operations are taken for half a
multiply-add."""
FRESH_FLOP_PER_BYTE: Final = 2.0
"""Operations a loaded byte up to which operands are taken to differ from one to the next, as in
products of random matrices.  Assumed; a sweep that goes on to 126 operations a byte draws at its
end what burns of registers do (GPU-BENCHES, gpu-roofline)."""


def kernel_energy(
    counters: Counters, flow: Traffic, duration_s: float, chip: ChipSpec, clock_hz: float
) -> EnergyEstimate:
    """Predict the joules of a launch that takes so long at a clock.

    Parameters
    ----------
    chip : ChipSpec
        At its boost clock, whatever ``clock_hz`` is.
    """
    operations = dict(_operations(counters))
    on_lanes = sum(count for unit, count in operations.items() if isinstance(unit, Operation))
    changing = CONSTANT_RATIO + (1 - CONSTANT_RATIO) * _fresh(counters, on_lanes)
    traffic = {
        Level.DRAM: flow.dram_bytes,
        Level.L2: flow.l2_bytes,
        Level.SHARED: (flow.shared_wavefront_count + flow.l1_wavefront_count)
        * chip.sm.l1_line_bytes,
    }
    scaled = {
        unit: count * (changing if isinstance(unit, Operation) else 1.0)
        for unit, count in operations.items()
    }
    return estimate_energy(scaled, traffic, duration_s, card_of(chip), clock_hz)


def _operations(counters: Counters) -> Iterator[tuple[MmaKind | Operation, float]]:
    """Operations by class, a multiply-add counted as two."""
    found: dict[MmaKind | Operation, float] = defaultdict(float)
    for pipe, count in pipes.issued(counters).items():
        if pipe in _FLOPS:
            unit, each = _FLOPS[pipe]
            found[unit] += count * WARP_SIZE * each
    for opcode, count in counters.opcode_instructions.items():
        work = pipes.mma_work(opcode)
        if work is not None:
            kind, multiply_adds, sparse = work
            found[kind] += 2.0 * count * multiply_adds * (SPARSE_FLOP_RATIO if sparse else 1.0)
    yield from found.items()


def _fresh(counters: Counters, operations: float) -> float:
    """Part of the operations whose operands differ from the last ones', 0 to 1.

    Loops that load nothing turn the same values over and over; tensor cores are taken to be fed.
    """
    loaded = counters.global_load_bytes + 4.0 * WARP_SIZE * max(
        counters.shared_requests, counters.shared_wavefronts
    )
    if not operations:
        return 1.0
    return min(loaded * FRESH_FLOP_PER_BYTE / operations, 1.0)
