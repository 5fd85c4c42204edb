"""Branches, calls, returns, exits, traps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from va100.errors import IllegalAddress, TrapExecuted
from va100.ptx.program import CallArguments, Operand, Register, Symbol, Variable
from va100.ptx.types import PtxType, Space
from va100.reference.code import Code
from va100.reference.frame import Frame, Group
from va100.reference.issue import Issue
from va100.reference.lanes import OPAQUE, RAW, U64, Lanes, lanes_of, resize
from va100.reference.special import CYCLES
from va100.reference.system import SYSTEM

if TYPE_CHECKING:
    from va100.reference.warp import Warp


def evaluate_control(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    CONTROL[issue.step.operation.opcode](issue)


def bra(issue: Issue) -> None:
    """Send the executing lanes to a label."""
    target = issue.step.operands[0]
    assert isinstance(target, Symbol)
    if issue.bits != issue.group.bits:
        issue.warp.cta.launch.tally.add("divergent_branches")
    issue.warp.split(issue.group, issue.bits, issue.frame.code.target(target.name))


def brx(issue: Issue) -> None:
    """Send each executing lane to the label its index picks."""
    index, table = issue.step.operands
    assert isinstance(table, Symbol)
    labels = issue.frame.code.flow.target_lists[table.name].targets
    values = issue.read(index, PtxType.U32)
    for picked in np.unique(values[issue.mask]).tolist():
        if picked >= len(labels):
            raise issue.broken(f"index {picked} of {len(labels)} branch targets")
        bits = sum(1 << lane for lane in lanes_of(issue.bits) if values[lane] == picked)
        issue.warp.split(issue.group, bits, issue.frame.code.target(labels[picked]))


def ret(issue: Issue) -> None:
    """Return to the caller; from a kernel, exit."""
    return_lanes(issue.warp, issue.group, issue.bits)


def exit_(issue: Issue) -> None:
    """End the executing lanes."""
    issue.warp.leave(issue.group, issue.bits)


def trap(issue: Issue) -> None:
    """Abort the launch."""
    raise TrapExecuted(**issue.place())


def nothing(issue: Issue) -> None:
    """``brkpt`` without a debugger; ``pmevent`` without a monitor."""


def nanosleep(issue: Issue) -> None:
    """Let virtual time pass: the longest that a lane asks for."""
    longest = int(issue.read(issue.step.operands[0], PtxType.U32)[issue.mask].max())
    issue.warp.slept += longest * 141 // (100 * CYCLES)


def call(issue: Issue) -> None:
    """Call a function by name, or the one whose address each lane holds."""
    target = issue.step.operands[1]
    if isinstance(target, Symbol):
        _call(issue, target.name)
        return
    addresses = issue.read_raw(target, U64)
    names = issue.warp.cta.launch.code.names
    for address in np.unique(addresses[issue.mask]).tolist():
        name = names.get(address)
        if name is None:
            raise issue.broken(f"call of 0x{address:x}, where no function is")
        bits = sum(1 << lane for lane in lanes_of(issue.bits) if addresses[lane] == address)
        _call(Issue(issue.warp, issue.group, issue.step, bits), name)


def _call(issue: Issue, name: str) -> None:
    code = issue.warp.cta.launch.code.codes.get(name)
    if code is not None:
        _enter(issue, code)
    elif name in SYSTEM:
        SYSTEM[name](issue, [argument_value(issue, a) for a in arguments(issue, 2)])
    else:
        raise issue.broken(f"call of {name}, which has no body")


CONTROL: Final[Mapping[str, Callable[[Issue], None]]] = {
    "bra": bra,
    "brx": brx,
    "call": call,
    "ret": ret,
    "exit": exit_,
    "trap": trap,
    "brkpt": nothing,
    "nanosleep": nanosleep,
    "pmevent": nothing,
}
"""Opcode to its function."""


# ---------------------------------------------------------------- frames


def arguments(issue: Issue, index: int) -> tuple[Operand | None, ...]:
    """The elements of a call's return list (0) or argument list (2)."""
    operand = issue.step.operands[index]
    return operand.elements if isinstance(operand, CallArguments) else ()


def argument_value(issue: Issue, argument: Operand | None) -> Lanes:
    """An argument of a system function, as 64 bits."""
    if not isinstance(argument, Symbol):
        return issue.read_raw(argument, U64)
    variable = issue.frame.code.flow.variables[argument.name]
    return _load(issue, issue.symbol_value(argument), variable.size_bytes)


def _load(issue: Issue, addresses: Lanes, size_bytes: int) -> Lanes:
    value = np.zeros(32, _raw(size_bytes))
    value[issue.mask] = issue.warp.cta.launch.storage.gather(addresses[issue.mask], size_bytes)
    return value if value.dtype == OPAQUE else resize(value, U64)


def _enter(issue: Issue, code: Code) -> None:
    """Move the executing lanes into a new activation."""
    warp, caller = issue.warp, issue.frame
    base = (caller.top + np.uint64(15)) & ~np.uint64(15)  # it may have taken odd amounts
    top = base + np.uint64(code.frame_bytes)
    limit = warp.cta.launch.local_bytes
    over = (top > np.uint64(limit)) & issue.mask
    if over.any():
        lane = int(np.flatnonzero(over)[0])
        raise IllegalAddress(
            space=Space.LOCAL.value,
            address=int(top[lane]),
            size=code.frame_bytes,
            nearest=f"the call stack of {limit} bytes is full",
            **issue.place(lane),
        )
    group = warp.detach(issue.group, issue.bits)
    frame = Frame(
        code,
        base,
        top,
        parent=caller,
        return_pc=group.pc,
        call=issue,
        depth=caller.depth + 1,
    )
    inside = Issue(warp, Group(frame, 0, issue.bits), issue.step, issue.bits)
    for parameter, argument in zip(code.function.params, arguments(issue, 2), strict=False):
        _pass(issue, argument, inside, _name(parameter))
    group.frame, group.pc = frame, 0
    warp.resume(group)


def return_lanes(warp: Warp, group: Group, bits: int) -> None:
    """Take lanes back to their caller; out of a kernel, end them."""
    frame = group.frame
    if frame.parent is None or frame.call is None:
        warp.leave(group, bits)
        return
    outer = Issue(warp, Group(frame.parent, 0, bits), frame.call.step, bits)
    inner = Issue(warp, Group(frame, 0, bits), frame.call.step, bits)
    for place, value in zip(arguments(outer, 0), frame.code.function.returns, strict=False):
        _pass(inner, _name(value), outer, place)
    moved = warp.detach(group, bits)
    moved.frame, moved.pc = frame.parent, frame.return_pc
    warp.resume(moved)


def _name(variable: Variable) -> Operand:
    """How a function's own text names a parameter."""
    if variable.space is Space.REG:
        return Register(variable.name)
    return Symbol(variable.name)


def _pass(source: Issue, value: Operand | None, target: Issue, place: Operand | None) -> None:
    """Copy one argument or result from one activation into another."""
    if isinstance(place, Register):
        kind = RAW[target.frame.code.flow.registers[place.name]]
        target.write(place, _value(source, value, kind.itemsize).astype(kind))
        return
    if not isinstance(place, Symbol):
        raise source.broken(f"operand {place!r} takes no value of a call")
    variable = target.frame.code.flow.variables[place.name]
    to = target.symbol_value(place)
    storage = source.warp.cta.launch.storage
    if not isinstance(value, Symbol) or value.name not in source.frame.code.flow.variables:
        bits = source.read_raw(value, _raw(variable.size_bytes))
        storage.scatter(to[source.mask], bits[source.mask])
        return
    start = source.symbol_value(value)
    for offset, size in _pieces(variable):
        word = storage.gather(start[source.mask] + np.uint64(offset), size)
        storage.scatter(to[source.mask] + np.uint64(offset), word)


def _value(source: Issue, value: Operand | None, size_bytes: int) -> Lanes:
    if isinstance(value, Symbol) and value.name in source.frame.code.flow.variables:
        return _load(source, source.symbol_value(value), size_bytes)
    return source.read_raw(value, _raw(size_bytes))


def _raw(size_bytes: int) -> np.dtype[Any]:
    return OPAQUE if size_bytes == OPAQUE.itemsize else np.dtype(f"u{size_bytes}")


def _pieces(variable: Variable) -> list[tuple[int, int]]:
    """Offsets and sizes of the words that make up a parameter."""
    word = min(variable.alignment_bytes, 8)
    whole, rest = divmod(variable.size_bytes, word)
    pieces = [(index * word, word) for index in range(whole)]
    return pieces + [(whole * word + index, 1) for index in range(rest)]
