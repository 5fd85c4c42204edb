"""Asynchronous copies to shared memory, and ``mbarrier`` objects.

A copy takes place where it is issued: no program without a race can tell (see
:mod:`va100.reference.asynchronous`), so closing a group and waiting for it write nothing.  They
are functions of their own all the same: a checker has its calls to put there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.access import LANES, Access, access_info, address_value, check, host_pointer, is_run
from va100.jit.context import Context
from va100.jit.emit import Predicate, Value
from va100.jit.lattice import constant, uniform
from va100.jit.pure import select
from va100.ptx.isa.form import Operation
from va100.ptx.program import Immediate, Not, Operand, Register
from va100.ptx.types import PtxType, Space

_PENDING: Final = (1 << 20) - 1
"""Bits of an ``mbarrier`` state that hold the arrivals still pending."""
_DROP, _NO_COMPLETE = 1, 2

# ------------------------------------------------------------------ copies


def _lower_copy(c: Context, op: Operation) -> None:
    """``cp.async``: 4, 8 or 16 bytes a lane, zeros for what is not read."""
    operands = c.instruction.operands
    size = operands[2].value if isinstance(operands[2], Immediate) else 0
    if size not in (4, 8, 16):
        raise c.refuse("a copy moves 4, 8 or 16 bytes a thread")
    target = _whole(address_value(c, operands[0], Space.SHARED), Space.SHARED, size, write=True)
    source = _whole(address_value(c, operands[1]), Space.GLOBAL, size, write=False)
    amount = _bytes_read(c, op, size)
    if amount is None and c.mask is None and _is_run(target) and _is_run(source):
        _copy_run(c, target, source)
        return
    arrays = [_spill(c, v) for v in (target.address, source.address)]
    arrays.append("null" if amount is None else _spill(c, amount))
    name = f"va_h_copy_{size}"
    c.declare(name, "declare void {}(ptr, i64, i32, ptr, ptr, ptr)")
    listed = ", ".join(f"ptr {a}" for a in arrays)
    c.line(f"call void @{name}(ptr %w, i64 {access_info(c, target)}, i32 {c.lanes}, {listed})")


def _whole(address: Value, space: Space, size: int, *, write: bool) -> Access:
    return Access(address=address, space=space, bits=8 * size, count=1, write=write, volatile=False)


def _bytes_read(c: Context, op: Operation, size: int) -> Value | None:
    """How much each lane reads; ``None`` when all of it."""
    hinted = "L2::cache_hint" in op.modifiers
    operands = c.instruction.operands
    if len(operands) <= 3 + hinted:
        return None
    operand = operands[3]
    inner = operand.operand if isinstance(operand, Not) else operand
    if isinstance(inner, Register) and c.flow.registers.get(inner.name) is PtxType.PRED:
        none, whole = (c.constant(constant(32, n)) for n in (0, size))
        return select(c, c.predicate(operand), none, whole, 32)
    value = c.read_sized(operand, PtxType.U32)
    return None if value.shape.constant == size else value


def _is_run(access: Access) -> bool:
    shape = access.address.shape
    return shape.affine and is_run(shape.offsets or (), access.lane_bytes)


def _copy_run(c: Context, target: Access, source: Access) -> None:
    """Consecutive places on both sides: one move."""
    span = LANES * target.lane_bytes
    pointers = []
    for access in (target, source):
        low, first = c.base(access.address), (access.address.shape.offsets or (0,))[0]
        if first:
            low = c.op(f"add i64 {low}, {first}")
        check(c, access, low, span)
        pointers.append(host_pointer(c, access, low))
    name = "llvm.memcpy.p0.p0.i64"
    c.declare(name, "declare void {}(ptr noalias, ptr noalias readonly, i64, i1)")
    align = target.lane_bytes
    c.line(
        f"call void @{name}(ptr align {align} {pointers[0]}, ptr align {align} {pointers[1]}, "
        f"i64 {span}, i1 false)"
    )


def _commit(c: Context, op: Operation) -> None:
    """The copies since the last group are complete already."""


def _wait(c: Context, op: Operation) -> None:
    """All groups are complete already."""


def _lower_arrival_of_copies(c: Context, op: Operation) -> None:
    """``cp.async.mbarrier.arrive``: the copies are complete, so the arrival is due."""
    place = _object(c, op, c.instruction.operands[0])
    c.declare("va_h_mbarrier_copied", "declare void {}(ptr, i64, i32, ptr, i32)")
    c.line(
        f"call void @va_h_mbarrier_copied(ptr %w, i64 {access_info(c, place)}, i32 {c.lanes}, "
        f"ptr {_spill(c, place.address)}, i32 {int('noinc' in op.modifiers)})"
    )


# ------------------------------------------------------------------ mbarrier objects


def _object(c: Context, op: Operation, operand: Operand | None) -> Access:
    """Where each lane's object is."""
    space = op.space or Space.GENERIC
    return Access(
        address=address_value(c, operand, space),
        space=space,
        bits=64,
        count=1,
        write=True,
        volatile=True,
    )


def _spill(c: Context, value: Value) -> str:
    """Put 32 values where a native function reads them."""
    bits = value.shape.bits
    where = c.array(f"i{bits}")
    c.line(f"store <32 x i{bits}> {c.vector(value)}, ptr {where}, align 64")
    return where


def _lower_init(c: Context, op: Operation) -> None:
    place = _object(c, op, c.instruction.operands[0])
    counts = _spill(c, c.read_sized(c.instruction.operands[1], PtxType.U32))
    c.declare("va_h_mbarrier_init", "declare void {}(ptr, i64, i32, ptr, ptr)")
    c.line(
        f"call void @va_h_mbarrier_init(ptr %w, i64 {access_info(c, place)}, i32 {c.lanes}, "
        f"ptr {_spill(c, place.address)}, ptr {counts})"
    )


def _lower_inval(c: Context, op: Operation) -> None:
    place = _object(c, op, c.instruction.operands[0])
    c.declare("va_h_mbarrier_inval", "declare void {}(ptr, i64, i32, ptr)")
    c.line(
        f"call void @va_h_mbarrier_inval(ptr %w, i64 {access_info(c, place)}, i32 {c.lanes}, "
        f"ptr {_spill(c, place.address)})"
    )


def _lower_arrive(c: Context, op: Operation) -> None:
    """``arrive`` and ``arrive_drop``; the result is the object as it was before."""
    operands = c.instruction.operands
    place = _object(c, op, operands[1])
    how, counts = 0, "null"
    if "arrive_drop" in op.modifiers:
        how |= _DROP
    if "noComplete" in op.modifiers:
        how |= _NO_COMPLETE
        counts = _spill(c, c.read_sized(operands[2], PtxType.U32))
    addresses, out = _spill(c, place.address), c.array("i64")
    c.declare("va_h_mbarrier_arrive", "declare void {}(ptr, i64, i32, ptr, ptr, i32, ptr)")
    c.line(
        f"call void @va_h_mbarrier_arrive(ptr %w, i64 {access_info(c, place)}, i32 {c.lanes}, "
        f"ptr {addresses}, ptr {counts}, i32 {how}, ptr {out})"
    )
    if operands[0] is not None:
        c.write(operands[0], c.from_vector(c.op(f"load <32 x i64>, ptr {out}, align 64"), 64))


def _lower_test_wait(c: Context, op: Operation) -> None:
    """Whether a phase is complete; a warp that finds none complete gives up its turn early."""
    destination, address, operand = c.instruction.operands
    place = _object(c, op, address)
    by_parity = "parity" in op.modifiers
    given = c.read_sized(operand, PtxType.U32 if by_parity else PtxType.B64)
    wanted = _spill(c, c.resized(given, 64))
    c.declare("va_h_mbarrier_test", "declare i32 {}(ptr, i64, i32, ptr, ptr, i32)")
    done = c.op(
        f"call i32 @va_h_mbarrier_test(ptr %w, i64 {access_info(c, place)}, i32 {c.lanes}, "
        f"ptr {_spill(c, place.address)}, ptr {wanted}, i32 {int(by_parity)})"
    )
    if c.analysis.spin_edges:
        left = c.op("load i32, ptr %budget")
        none = c.op(f"icmp eq i32 {done}, 0")
        c.line(f"store i32 {c.op(f'select i1 {none}, i32 1, i32 {left}')}, ptr %budget")
    if isinstance(destination, Register) and c.predicate_is_scalar(destination.name):
        c.write_predicate(destination, Predicate(scalar=c.op(f"icmp ne i32 {done}, 0")))
    else:
        c.write_predicate(destination, Predicate(mask=done))


def _lower_pending_count(c: Context, op: Operation) -> None:
    destination, operand = c.instruction.operands
    state = c.read_sized(operand, PtxType.B64)
    p = c.poly(state)
    kept = p.op(f"and {p.integer(64)} {p.get(state)}, {p.const(64, _PENDING)}")
    count = p.op(f"trunc {p.integer(64)} {kept} to {p.integer(32)}")
    c.write(destination, p.result(count, uniform(32)))


_COPIES: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "mbarrier": _lower_arrival_of_copies,
    "commit_group": _commit,
    "wait_group": _wait,
    "wait_all": _wait,
    "async": _lower_copy,
}
"""Modifier of ``cp`` to its lowering; the first that is there."""
_OBJECTS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "init": _lower_init,
    "inval": _lower_inval,
    "arrive": _lower_arrive,
    "arrive_drop": _lower_arrive,
    "test_wait": _lower_test_wait,
    "pending_count": _lower_pending_count,
}


def lower_async(c: Context, op: Operation) -> None:
    """Copies and ``mbarrier`` instructions."""
    table = _OBJECTS if op.opcode == "mbarrier" else _COPIES
    next(lower for name, lower in table.items() if name in op.modifiers)(c, op)
