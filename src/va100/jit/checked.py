"""What a kernel compiled for checking tells the checker before it does something.

One call for each access of memory, each barrier, each ``*.sync`` and each fence, ahead of the
lowering, which stays as it is: so results and counters do not change.  What is right and wrong is
decided by the native checker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit import abi
from va100.jit.access import address_value, effective_space
from va100.jit.checked_matrix import tell_matrix
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.lattice import Shape, uniform
from va100.ptx.effects import is_barrier, is_warp_sync, needs_whole_warp
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import Address, Immediate, Operand, Symbol, Vector
from va100.ptx.types import PtxType, Space
from va100.work import WARP_SIZE

PARTED: Final = 3
"""How lanes of a warp wait at a barrier that wants them in one place, and come in several."""
_LOAD, _STORE, _ATOMIC, _REDUCTION = range(4)
_ORDERS: Final[Mapping[str, int]] = {
    "": 0, "weak": 0, "volatile": 1, "relaxed": 2, "mmio": 2, "acquire": 3, "release": 4,
    "acq_rel": 5, "sc": 6,
}  # fmt: skip
_SCOPES: Final[Mapping[str, int]] = {"": 0, "cta": 1, "cluster": 2, "gpu": 3, "gl": 3, "sys": 4}
_SAME_BIT, _GROUP_BIT = 52, 53
_DEFAULT_ORDER: Final = {_ATOMIC: "relaxed", _REDUCTION: "relaxed"}


def tell(c: Context, op: Operation) -> None:
    """Call the checker about the instruction at hand, where there is something to tell."""
    if is_barrier(op):
        _tell_barrier(c, op)
    elif needs_whole_warp(op):
        tell_matrix(c, op)
    elif is_warp_sync(op):
        _tell_sync(c, op)
    else:
        teller = _TELLERS.get(op.opcode)
        if teller is not None:
            teller(c, op)


# ------------------------------------------------------------------ accesses


def elements(operand: Operand | None) -> tuple[Operand | None, ...]:
    """The parts of a vector, or the one that is none."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _tell_load(c: Context, op: Operation) -> None:
    if op.space is not Space.PARAM or not names_parameter(c.instruction.operands[1]):
        count = len(elements(c.instruction.operands[0]))
        _tell_access(c, op, c.instruction.operands[1], _LOAD, count, ())


def _tell_store(c: Context, op: Operation) -> None:
    if op.space is Space.PARAM:
        return
    sources = elements(c.instruction.operands[1])
    _tell_access(c, op, c.instruction.operands[0], _STORE, len(sources), sources)


def _tell_atomic(c: Context, op: Operation) -> None:
    returns = op.opcode == "atom"
    where = c.instruction.operands[1 if returns else 0]
    _tell_access(c, op, where, _ATOMIC if returns else _REDUCTION, op.vector, ())


def names_parameter(operand: Operand | None) -> bool:
    """Whether a ``.param`` access is of the parameter block itself."""
    return isinstance(operand, Address) and isinstance(operand.base, Symbol)


def _tell_access(
    c: Context,
    op: Operation,
    where: Operand | None,
    kind: int,
    count: int,
    sources: tuple[Operand | None, ...],
) -> None:
    space = effective_space(op)
    address = address_value(c, where, space)
    form = form_bits(address.shape, op.type.bits // 8 * count)
    addresses = _spilled(c, address, "i64")
    values = _stored(c, op, sources) if sources else "null"
    c.declare("va_h_check_access", "declare void {}(ptr, i64, i32, ptr, ptr, i64)")
    c.line(
        f"call void @va_h_check_access(ptr %w, i64 {_info(c, op, space, kind, count) | form}, "
        f"i32 {c.lanes}, ptr {addresses}, ptr {values}, i64 {_local_limit(c, space)})"
    )


def _info(c: Context, op: Operation, space: Space, kind: int, count: int) -> int:
    """What stays constant at a site, as the native checker takes it apart."""
    order = _ORDERS[op.semantics or _DEFAULT_ORDER.get(kind, "")]
    size = (op.type.bits // 8).bit_length() - 1
    return (
        c.site
        | count << 32
        | abi.SPACE_CODES[space.value] << 36
        | size << 40
        | kind << 43
        | order << 46
        | _SCOPES.get(op.scope, 0) << 49
    )


def form_bits(shape: Shape, lane_bytes: int) -> int:
    """How a warp's addresses lie, as far as the compiler knows: for the native ``Form``.

    Groups of lanes that follow one another go to one place, or to places in a row.
    """
    if shape.varying:
        return 0
    offsets = shape.offsets or (0,) * WARP_SIZE
    for size in (32, 16, 8, 4):
        groups = [offsets[i : i + size] for i in range(0, WARP_SIZE, size)]
        if all(v == group[0] for group in groups for v in group):
            return 1 << _SAME_BIT | size << _GROUP_BIT
        if all(v == group[0] + k * lane_bytes for group in groups for k, v in enumerate(group)):
            return size << _GROUP_BIT
    return 0


def _local_limit(c: Context, space: Space) -> int:
    """Bytes of the kernel's own frame, to the byte; 0 where frames stack up."""
    if space is not Space.LOCAL or not c.is_kernel:
        return 0
    if any(operation.opcode == "call" for operation in c.flow.operations):
        return 0
    ends = [
        c.frame[name] + variable.size_bytes
        for name, variable in c.flow.variables.items()
        if variable.space is Space.LOCAL
    ]
    return max(ends, default=0)


def _stored(c: Context, op: Operation, sources: tuple[Operand | None, ...]) -> str:
    """The values to be stored, 32 lanes an element."""
    bits = op.type.bits
    if bits > 64 or any(s is None for s in sources):
        return "null"
    where = c.array(f"i{bits}", 32 * len(sources))
    for k, source in enumerate(sources):
        at = where
        if k:
            at = c.op(f"getelementptr i8, ptr {where}, i64 {k * 32 * bits // 8}")
        vector = c.vector(c.clean(c.read_sized(source, op.type)))
        c.line(f"store <32 x i{bits}> {vector}, ptr {at}")
    return where


def _spilled(c: Context, value: Value, kind: str) -> str:
    where = c.array(kind)
    c.line(f"store <32 x {kind}> {c.vector(value)}, ptr {where}, align 64")
    return where


# ------------------------------------------------------------------ synchronisation


def _tell_barrier(c: Context, op: Operation) -> None:
    operands = c.instruction.operands
    if "red" in op.modifiers:
        operands = operands[1:-1]
    number = _leading(c, operands[0]) if operands else "0"
    threads = _leading(c, operands[1]) if len(operands) > 1 else "0"
    here = c.block_mask or "-1"
    waits = 0 if "arrive" in op.modifiers else 1
    c.declare("va_h_check_bar", "declare void {}(ptr, i32, i32, i32, i32, i32, i32)")
    c.line(
        f"call void @va_h_check_bar(ptr %w, i32 {c.site}, i32 {c.lanes}, i32 {here}, "
        f"i32 {number}, i32 {threads}, i32 {waits})"
    )


def _leading(c: Context, operand: Operand | None) -> str:
    """An operand as the first lane that acts has it."""
    value = c.read_sized(operand, PtxType.U32)
    if value.shape.uniform:
        return c.base(value)
    c.declare("llvm.cttz.i32", "declare i32 {}(i32, i1)")
    leader = c.op(f"call i32 @llvm.cttz.i32(i32 {c.lanes}, i1 false)")
    leader = c.op(f"and i32 {leader}, 31")
    return c.op(f"extractelement <32 x i32> {c.vector(value)}, i32 {leader}")


def _tell_sync(c: Context, op: Operation) -> None:
    members = c.read_sized(c.instruction.operands[-1], PtxType.B32)
    orders = int(op.form.family is not Family.WARP)
    where = _spilled(c, members, "i32")
    c.declare("va_h_check_sync", "declare void {}(ptr, i32, i32, ptr, i32)")
    c.line(
        f"call void @va_h_check_sync(ptr %w, i32 {c.site}, i32 {c.lanes}, ptr {where}, "
        f"i32 {orders})"
    )


def _tell_fence(c: Context, op: Operation) -> None:
    scope = op.scope or next((m for m in ("cta", "cluster", "gl", "sys") if m in op.modifiers), "")
    c.declare("va_h_check_fence", "declare void {}(ptr, i32, i32, i32)")
    c.line(
        f"call void @va_h_check_fence(ptr %w, i32 {c.site}, i32 {c.lanes}, "
        f"i32 {_SCOPES.get(scope, 0)})"
    )


# ------------------------------------------------------------------ asynchronous copies


def _tell_copy(c: Context, op: Operation) -> None:
    """``cp.async`` and what ends it."""
    if "commit_group" in op.modifiers:
        c.declare("va_h_check_commit", "declare void {}(ptr, i32)")
        c.line(f"call void @va_h_check_commit(ptr %w, i32 {c.lanes})")
    elif "wait_group" in op.modifiers:
        left = c.instruction.operands[0]
        _tell_wait(c, left.value if isinstance(left, Immediate) else 0, everything=False)
    elif "wait_all" in op.modifiers:
        _tell_wait(c, 0, everything=True)
    elif "mbarrier" in op.modifiers:
        _tell_wait(c, 0, everything=True)
        _tell_object(c, op, c.instruction.operands[0], "release")
    else:
        _tell_issue(c, op)


def _tell_wait(c: Context, left: int, *, everything: bool) -> None:
    c.declare("va_h_check_wait", "declare void {}(ptr, i32, i32, i32)")
    c.line(f"call void @va_h_check_wait(ptr %w, i32 {c.lanes}, i32 {left}, i32 {int(everything)})")


def _tell_issue(c: Context, op: Operation) -> None:
    operands = c.instruction.operands
    size = operands[2].value if isinstance(operands[2], Immediate) else 16
    taken = Value(uniform(32), base=str(size))
    if len(operands) > 3 and op.text.find("cache_hint") < 0:
        taken = c.read_sized(operands[3], PtxType.U32)
    to = _spilled(c, address_value(c, operands[0], Space.SHARED), "i64")
    source = _spilled(c, address_value(c, operands[1], Space.GLOBAL), "i64")
    sizes = _spilled(c, taken, "i32")
    info = c.site | 1 << 32 | (size.bit_length() - 1) << 40
    c.declare("va_h_check_copy", "declare void {}(ptr, i64, i32, ptr, ptr, ptr)")
    c.line(
        f"call void @va_h_check_copy(ptr %w, i64 {info}, i32 {c.lanes}, ptr {to}, ptr {source}, "
        f"ptr {sizes})"
    )


def _tell_mbarrier(c: Context, op: Operation) -> None:
    """``mbarrier``: arrivals release, tests acquire."""
    operands = c.instruction.operands
    if "pending_count" in op.modifiers:
        return
    if not op.modifiers.isdisjoint(("init", "inval")):
        _tell_object(c, op, operands[0], "relaxed", _STORE)
    elif not op.modifiers.isdisjoint(("test_wait", "try_wait")):
        _tell_object(c, op, operands[1], "acquire", _LOAD)
    else:
        _tell_object(c, op, operands[1], "release")


def _tell_object(
    c: Context, op: Operation, where: Operand | None, order: str, kind: int = _REDUCTION
) -> None:
    """One atomic access of an ``mbarrier`` object."""
    space = op.space or Space.GENERIC
    addresses = _spilled(c, address_value(c, where, space), "i64")
    info = (
        c.site | 1 << 32 | abi.SPACE_CODES[space.value] << 36 | 3 << 40 | kind << 43
        | _ORDERS[order] << 46 | 1 << 49
    )  # fmt: skip
    c.declare("va_h_check_access", "declare void {}(ptr, i64, i32, ptr, ptr, i64)")
    c.line(
        f"call void @va_h_check_access(ptr %w, i64 {info}, i32 {c.lanes}, ptr {addresses}, "
        "ptr null, i64 0)"
    )


_TELLERS: Final[Mapping[str, Callable[[Context, Operation], None]]] = {
    "ld": _tell_load,
    "ldu": _tell_load,
    "st": _tell_store,
    "atom": _tell_atomic,
    "red": _tell_atomic,
    "membar": _tell_fence,
    "fence": _tell_fence,
    "cp": _tell_copy,
    "mbarrier": _tell_mbarrier,
}
