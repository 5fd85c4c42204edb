"""From block counters to what happened: instructions by pipe, bytes, barriers.

The machine code counts how often each block ran, and with how many lanes; everything that is
constant within a block follows by multiplication.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from va100.jit.block_counts import COUNTERS_PER_BLOCK
from va100.jit.compile import CompiledBlock, Layout
from va100.jit.lattice import Shape
from va100.jit.patterns import (
    SECTOR_BYTES,
    Pattern,
    pattern_at,
    pattern_of,
    rows_pattern,
    tile_pattern,
)
from va100.jit.shapes import converged_shapes
from va100.jit.tiles import walk_of
from va100.ptx.isa.form import Family, Operation
from va100.ptx.isa.tiles import moved_of, tiles_of
from va100.ptx.program import Immediate, Instruction, Operand, Register, Vector
from va100.ptx.types import Space
from va100.ptx.waits import constant_waits, load_waits
from va100.work import WARP_SIZE, Counters, Dim3, LaunchConfig, Pipe

_ROW_BYTES = 16
"""A row of a matrix of ``ldmatrix``."""
_OBSERVED = (
    "local_sectors", "l1_lines", "l1_load_sectors", "l1_hit_sectors", "l2_sectors",
    "l2_store_sectors", "l2_hit_sectors", "dram_read_sectors",
)  # fmt: skip
"""Counters that only observed launches have."""


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
    sectors: int = 0
    store_requests: int = 0
    store_sectors: int = 0
    shared_requests: int = 0
    wavefronts: int = 0
    shared_store_requests: int = 0
    store_wavefronts: int = 0
    unknown: int = 0
    """Accesses whose sectors or wavefronts nothing is known of; taken as the best case."""
    atomics: int = 0
    barriers: int = 0
    branches: int = 0
    load_waits: float = 0.0
    constant_waits: float = 0.0
    guarded: int = 0
    """Instructions that not every execution of the block executes."""
    seen: Counter[str] = field(default_factory=Counter)
    """What accesses amounted to where they were observed, by name, in the mean; these accesses are
    not among the sectors and wavefronts above."""
    seen_shared: int = 0
    """Requests of shared memory among them, and those that store."""
    seen_shared_stores: int = 0


def pack_costs(costs: Sequence[BlockCost]) -> bytes:
    """Costs as text, to be kept."""
    rows = [
        {f.name: getattr(c, f.name) for f in fields(c)}
        | {"pipes": {pipe.value: n for pipe, n in c.pipes.items()}}
        for c in costs
    ]
    return json.dumps(rows).encode()


def unpack_costs(data: bytes) -> list[BlockCost]:
    """Reverse of :func:`pack_costs`."""
    costs = []
    for row in json.loads(data):
        row["pipes"] = Counter({Pipe(name): n for name, n in row["pipes"].items()})
        row["opcodes"] = Counter(row["opcodes"])
        row["seen"] = Counter(row["seen"])
        costs.append(BlockCost(**row))
    return costs


def block_costs(layout: Layout, blocks: Sequence[CompiledBlock], block: Dim3) -> list[BlockCost]:
    """Cost of each block of a variant compiled for a block shape."""
    steps = list(_steps(layout, block))
    costs = []
    for compiled in blocks:
        cost = BlockCost()
        for step in steps[compiled.first_site : compiled.end_site]:
            _add(cost, step)
        costs.append(cost)
    return costs


def instruction_costs(layout: Layout, block: Dim3) -> list[BlockCost]:
    """Cost of each instruction of a variant by itself, in the order of its sites."""
    costs = []
    for step in _steps(layout, block):
        cost = BlockCost()
        _add(cost, step)
        costs.append(cost)
    return costs


class _Step(NamedTuple):
    instruction: Instruction
    operation: Operation
    shapes: Mapping[str, Shape]
    waits: float
    constant_waits: float


def _steps(layout: Layout, block: Dim3) -> Iterator[_Step]:
    """Every instruction, with what is known of registers where its warp is whole."""
    for name in layout.functions:
        flow = layout.flows[name]
        shapes, _ = converged_shapes(flow, block, is_kernel=flow.function.is_kernel)
        waits = zip(load_waits(flow), constant_waits(flow), strict=True)
        rows = zip(flow.instructions, flow.operations, waits, strict=True)
        for instruction, operation, (loads, constants) in rows:
            yield _Step(instruction, operation, shapes, loads, constants)


def _add(cost: BlockCost, step: _Step) -> None:
    instruction, operation, shapes, waits, constants = step
    cost.load_waits += waits
    cost.constant_waits += constants
    family = operation.form.family
    cost.pipes[operation.form.pipe] += 1
    cost.opcodes[operation.text] += 1
    cost.instructions += 1
    cost.guarded += instruction.guard is not None
    if operation.opcode in ("bra", "brx"):
        cost.branches += 1
    elif family is Family.BARRIER:
        cost.barriers += 1
    elif family is Family.ATOMIC:
        cost.atomics += 1
    elif operation.opcode in ("ld", "ldu", "st"):
        _add_access(cost, instruction, operation, shapes)
    elif family is Family.ASYNC and "global" in operation.modifiers:
        _add_copy(cost, instruction, shapes)
    elif operation.opcode == "ldmatrix":
        _add_rows(cost, instruction, operation, shapes)
    elif operation.opcode == "wmma" and "mma" not in operation.modifiers:
        _add_tile(cost, instruction, operation, shapes)


def _add_access(
    cost: BlockCost, instruction: Instruction, operation: Operation, shapes: Mapping[str, Shape]
) -> None:
    space = operation.space
    if space not in (Space.SHARED, Space.GLOBAL, Space.GENERIC):
        return
    elements = max(
        (len(o.elements) for o in instruction.operands if isinstance(o, Vector)), default=1
    )
    size = operation.type.size_bytes * elements
    pattern = pattern_of(instruction, operation, shapes, size)
    if pattern is None:
        cost.unknown += 1
        pattern = Pattern(-(-size * WARP_SIZE // SECTOR_BYTES), 1)
    store = operation.opcode == "st"
    if space is Space.SHARED:
        _add_shared(cost, 1, pattern.wavefronts, store=store)
    else:
        _add_global(cost, 1, pattern.sectors, size, store=store)


def _add_shared(cost: BlockCost, requests: int, wavefronts: int, *, store: bool) -> None:
    cost.shared_requests += requests
    cost.wavefronts += wavefronts
    if store:
        cost.shared_store_requests += requests
        cost.store_wavefronts += wavefronts


def _add_global(
    cost: BlockCost, requests: int, sectors: int, lane_bytes: int, *, store: bool
) -> None:
    cost.global_requests += requests
    cost.sectors += sectors
    if store:
        cost.store_requests += requests
        cost.store_sectors += sectors
        cost.store_bytes += lane_bytes
    else:
        cost.load_bytes += lane_bytes


def _add_copy(cost: BlockCost, instruction: Instruction, shapes: Mapping[str, Shape]) -> None:
    """``cp.async``: a read of global memory and a write of shared memory."""
    target, source, size = instruction.operands[:3]
    lane_bytes = size.value if isinstance(size, Immediate) else 0
    read = _known(cost, source, shapes, lane_bytes)
    written = _known(cost, target, shapes, lane_bytes)
    _add_global(cost, 1, read.sectors, lane_bytes, store=False)
    _add_shared(cost, 1, written.wavefronts, store=True)


def _add_rows(
    cost: BlockCost, instruction: Instruction, operation: Operation, shapes: Mapping[str, Shape]
) -> None:
    """``ldmatrix``: one request, a turn or more for each matrix."""
    matrices = tiles_of(operation)[0].registers
    pattern = rows_pattern(instruction.operands[1], shapes, matrices, _ROW_BYTES)
    cost.unknown += pattern is None
    cost.shared_requests += 1
    cost.wavefronts += pattern.wavefronts if pattern is not None else matrices


def _add_tile(
    cost: BlockCost, instruction: Instruction, operation: Operation, shapes: Mapping[str, Shape]
) -> None:
    """``wmma.load`` and ``wmma.store``: a request for every word of a lane."""
    tile, walk = moved_of(operation), walk_of(operation)
    pitch: int | None = walk.line_elements
    if len(instruction.operands) > 2:
        pitch = _constant(instruction.operands[2], shapes)
    pitch_bytes = None if pitch is None else pitch * tile.type.bits // 8
    pattern = tile_pattern(walk, tile.type.bits, pitch_bytes)
    words = len(walk.line)
    store = "store" in operation.modifiers
    if operation.space is Space.SHARED:
        cost.unknown += pitch is None
        _add_shared(cost, words, pattern.wavefronts, store=store)
    else:
        _add_global(cost, words, pattern.sectors, words * walk.bits // 8, store=store)


def _constant(operand: Operand | None, shapes: Mapping[str, Shape]) -> int | None:
    if isinstance(operand, Immediate):
        return operand.value
    shape = shapes.get(operand.name) if isinstance(operand, Register) else None
    return shape.constant if shape is not None else None


def _known(
    cost: BlockCost, address: Operand | None, shapes: Mapping[str, Shape], lane_bytes: int
) -> Pattern:
    pattern = pattern_at(address, shapes, lane_bytes)
    if pattern is None:
        cost.unknown += 1
        return Pattern(-(-lane_bytes * WARP_SIZE // SECTOR_BYTES), 1)
    return pattern


def counters_from(
    costs: Sequence[BlockCost], counts: Sequence[float], config: LaunchConfig
) -> Counters:
    """Sum over the blocks of a finished launch."""
    pipes: dict[Pipe, float] = defaultdict(float)
    opcodes: dict[str, float] = defaultdict(float)
    lanes: dict[str, float] = defaultdict(float)
    total: Mapping[str, float]
    sums: dict[str, float] = defaultdict(float)
    for index, cost in enumerate(costs):
        first = index * COUNTERS_PER_BLOCK
        whole, parted, masked = counts[first : first + COUNTERS_PER_BLOCK]
        issues, active = whole + parted, whole * WARP_SIZE + masked
        if not issues:
            continue
        for pipe, n in cost.pipes.items():
            pipes[pipe] += n * issues
        for opcode, n in cost.opcodes.items():
            opcodes[opcode] += n * issues
            lanes[opcode] += n * active
        _add_block(sums, cost, issues, active)
        sums["parted"] += parted
    total = sums
    ctas = config.grid.size
    return Counters(
        cta_count=ctas,
        warp_count=ctas * config.warps_per_cta,
        warp_instructions=dict(pipes),
        opcode_instructions=dict(opcodes),
        opcode_threads=dict(lanes),
        thread_instructions=total["threads"],
        global_load_bytes=total["loads"],
        global_store_bytes=total["stores"],
        global_requests=total["requests"],
        global_sectors=total["sectors"] + total["seen sectors"],
        global_store_requests=total["store requests"],
        global_store_sectors=total["store sectors"] + total["seen store_sectors"],
        shared_requests=total["shared"],
        shared_wavefronts=total["wavefronts"] + total["seen wavefronts"],
        shared_store_requests=total["shared stores"],
        shared_store_wavefronts=total["store wavefronts"] + total["seen store_wavefronts"],
        atomic_requests=total["atomics"],
        barrier_instructions=total["barriers"],
        branches=total["branches"],
        load_waits=total["load waits"],
        constant_waits=total["constant waits"],
        divergent_branches=total["parted"],
        sampled_fraction=0.0 if total["unknown"] else 1.0,
        **{name: total[f"seen {name}"] for name in _OBSERVED},
    )


def _add_block(sums: dict[str, float], cost: BlockCost, issues: float, active: float) -> None:
    """Add a block that so many warps ran, with so many lanes in all."""
    sums["threads"] += cost.instructions * active
    sums["loads"] += cost.load_bytes * active
    sums["stores"] += cost.store_bytes * active
    sums["requests"] += cost.global_requests * issues
    share = active / WARP_SIZE
    sums["sectors"] += cost.sectors * share
    sums["shared"] += cost.shared_requests * issues
    requests = (cost.shared_requests - cost.seen_shared) * issues
    sums["wavefronts"] += max(cost.wavefronts * share, requests)
    sums["store requests"] += cost.store_requests * issues
    sums["store sectors"] += cost.store_sectors * share
    sums["shared stores"] += cost.shared_store_requests * issues
    stores = (cost.shared_store_requests - cost.seen_shared_stores) * issues
    sums["store wavefronts"] += max(cost.store_wavefronts * share, stores)
    for name, amount in cost.seen.items():
        sums[f"seen {name}"] += amount * issues
    sums["unknown"] += cost.unknown * issues
    sums["atomics"] += cost.atomics * issues
    sums["barriers"] += cost.barriers * issues
    sums["branches"] += cost.branches * issues
    sums["load waits"] += cost.load_waits * issues
    sums["constant waits"] += cost.constant_waits * issues
