"""From block counters to what happened: instructions by pipe, bytes, barriers.

The machine code counts how often each block ran, and with how many lanes; everything that is
constant within a block follows by multiplication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from va100.jit.compile import CompiledBlock, Layout
from va100.jit.function import COUNTERS_PER_BLOCK
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import Vector
from va100.ptx.types import Space
from va100.work import WARP_SIZE, Counters, LaunchConfig, Pipe


@dataclass(slots=True)
class BlockCost:
    """What one execution of a block by one warp amounts to."""

    pipes: Counter[Pipe] = field(default_factory=Counter)
    opcodes: Counter[str] = field(default_factory=Counter)
    instructions: int = 0
    load_bytes: int = 0
    """Requested of global memory by one lane."""
    store_bytes: int = 0
    global_requests: int = 0
    shared_requests: int = 0
    atomics: int = 0
    barriers: int = 0
    branches: int = 0


def block_costs(layout: Layout, blocks: Sequence[CompiledBlock]) -> list[BlockCost]:
    """Cost of each block of a variant."""
    operations = [
        (operation, instruction)
        for name in layout.functions
        for operation, instruction in zip(
            layout.flows[name].operations, layout.flows[name].instructions, strict=True
        )
    ]
    costs = []
    for block in blocks:
        cost = BlockCost()
        for operation, instruction in operations[block.first_site : block.end_site]:
            elements = max(
                (len(o.elements) for o in instruction.operands if isinstance(o, Vector)), default=1
            )
            _add(cost, operation, elements)
        costs.append(cost)
    return costs


def _add(cost: BlockCost, operation: Operation, elements: int) -> None:
    family, space = operation.form.family, operation.space
    cost.pipes[operation.form.pipe] += 1
    cost.opcodes[operation.text] += 1
    cost.instructions += 1
    if operation.opcode in ("bra", "brx"):
        cost.branches += 1
    elif family is Family.BARRIER:
        cost.barriers += 1
    elif family is Family.ATOMIC:
        cost.atomics += 1
    elif operation.opcode in ("ld", "ldu", "st"):
        if space is Space.SHARED:
            cost.shared_requests += 1
        elif space in (Space.GLOBAL, Space.GENERIC):
            cost.global_requests += 1
            size = operation.type.size_bytes * elements
            if operation.opcode == "st":
                cost.store_bytes += size
            else:
                cost.load_bytes += size


def counters_from(
    costs: Sequence[BlockCost], counts: Sequence[int], config: LaunchConfig
) -> Counters:
    """Sum over the blocks of a finished launch."""
    pipes: Counter[Pipe] = Counter()
    opcodes: Counter[str] = Counter()
    total: Mapping[str, float]
    sums = Counter[str]()
    for index, cost in enumerate(costs):
        whole, parted, lanes = counts[index * COUNTERS_PER_BLOCK : (index + 1) * COUNTERS_PER_BLOCK]
        issues, active = whole + parted, whole * WARP_SIZE + lanes
        if not issues:
            continue
        for pipe, n in cost.pipes.items():
            pipes[pipe] += n * issues
        for opcode, n in cost.opcodes.items():
            opcodes[opcode] += n * issues
        sums["threads"] += cost.instructions * active
        sums["loads"] += cost.load_bytes * active
        sums["stores"] += cost.store_bytes * active
        sums["requests"] += cost.global_requests * issues
        sums["shared"] += cost.shared_requests * issues
        sums["atomics"] += cost.atomics * issues
        sums["barriers"] += cost.barriers * issues
        sums["branches"] += cost.branches * issues
        sums["parted"] += parted
    total = sums
    ctas = config.grid.size
    return Counters(
        cta_count=ctas,
        warp_count=ctas * config.warps_per_cta,
        warp_instructions=dict(pipes),
        opcode_instructions=dict(opcodes),
        thread_instructions=total["threads"],
        global_load_bytes=total["loads"],
        global_store_bytes=total["stores"],
        global_requests=total["requests"],
        global_sectors=(total["loads"] + total["stores"]) / 32,
        shared_requests=total["shared"],
        shared_wavefronts=total["shared"],
        atomic_requests=total["atomics"],
        barrier_instructions=total["barriers"],
        branches=total["branches"],
        divergent_branches=total["parted"],
    )
