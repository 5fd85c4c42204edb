"""Which registers an instruction reads and writes, and what kind of step it is.

Purely a reading of the table and the operands; no analysis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import (
    Address,
    CallArguments,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    TextureAddress,
    Vector,
)
from va100.ptx.video import whole_register

WITHOUT_DESTINATION: Final = frozenset(
    "st sust sured red bra brx membar fence ret exit trap brkpt prefetch prefetchu nanosleep "
    "pmevent discard applypriority fence cp stackrestore".split()
)
TERMINATORS: Final = frozenset({"bra", "brx", "ret", "exit"})


def has_destination(operation: Operation) -> bool:
    """Whether the first operand is written."""
    if operation.opcode in ("bar", "barrier"):
        return "red" in operation.modifiers
    if operation.opcode == "call":
        return True  # registers in the list of results, if any
    if operation.opcode == "wmma":
        return "store" not in operation.modifiers
    if operation.opcode == "mbarrier":
        return operation.modifiers.isdisjoint(("init", "inval"))
    return operation.opcode not in WITHOUT_DESTINATION


def registers_in(operand: Operand | None) -> Iterator[str]:
    """Names of registers an operand mentions."""
    if isinstance(operand, Register):
        yield operand.name
    elif isinstance(operand, Not):
        yield operand.operand.name
    elif isinstance(operand, Address):
        yield from registers_in(operand.base if isinstance(operand.base, Register) else None)
    elif isinstance(operand, Pair):
        yield from registers_in(operand.first)
        yield from registers_in(operand.second)
    elif isinstance(operand, (Vector, CallArguments)):
        for element in operand.elements:
            yield from registers_in(element)
    elif isinstance(operand, TextureAddress):
        for part in operand.parts:
            yield from registers_in(part)


def _names(operand: Operand | None, operation: Operation) -> Iterator[str]:
    """Registers of an operand, without what video instructions select of them."""
    is_video = operation.form.family is Family.VIDEO
    return registers_in(whole_register(operand) if is_video else operand)


def writes(instruction: Instruction, operation: Operation) -> tuple[str, ...]:
    """Registers written, in operand order."""
    if not instruction.operands or not has_destination(operation):
        return ()
    target = instruction.operands[0]
    if type(target) is Register and operation.form.family is not Family.VIDEO:
        return (target.name,)
    return tuple(_names(instruction.operands[0], operation))


def reads(instruction: Instruction, operation: Operation) -> tuple[str, ...]:
    """Registers read, the guard included."""
    skip = 1 if has_destination(operation) else 0
    names: list[str] = []
    is_plain = operation.form.family is not Family.VIDEO
    for operand in instruction.operands[skip:]:
        if is_plain and type(operand) is Register:  # most are; this runs for all, often
            names.append(operand.name)
        elif type(operand) is not Immediate and operand is not None:
            names += _names(operand, operation)
    if instruction.guard is not None:
        names.append(instruction.guard.register)
    if operation.opcode in ("addc", "subc", "madc"):
        names.append(CARRY)
    return tuple(names)


CARRY: Final = "%cc"
"""The condition-code register ``CC.CF``, handled as a predicate."""


def sets_carry(operation: Operation) -> bool:
    """Whether the instruction writes ``CC.CF``."""
    return "cc" in operation.modifiers and operation.opcode in (
        "add", "addc", "sub", "subc", "mad", "madc",
    )  # fmt: skip


def is_warp_sync(operation: Operation) -> bool:
    """A ``*.sync`` that waits for the lanes its mask names."""
    if operation.form.family in (Family.WARP, Family.MATRIX):
        return "sync" in operation.modifiers
    return operation.opcode == "bar" and "warp" in operation.modifiers


def needs_whole_warp(operation: Operation) -> bool:
    """A ``*.sync.aligned`` that names no lanes: all 32 must execute it together."""
    return operation.form.family is Family.MATRIX


def is_barrier(operation: Operation) -> bool:
    """A barrier of the CTA."""
    return operation.opcode in ("bar", "barrier") and "warp" not in operation.modifiers


def may_spin_on(operation: Operation) -> bool:
    """An access through which a loop may wait for another thread."""
    if operation.opcode == "ld":
        return operation.semantics in ("volatile", "relaxed", "acquire", "mmio")
    if operation.opcode == "mbarrier":
        return "test_wait" in operation.modifiers
    return operation.opcode == "atom"
