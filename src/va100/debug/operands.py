"""What an instruction reads, writes and addresses, by its row in the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from va100.ptx.isa.form import Family, Operation
from va100.ptx.isa.signature import places
from va100.ptx.program import (
    Address,
    CallArguments,
    Instruction,
    Negative,
    Not,
    Operand,
    Pair,
    Register,
    TextureAddress,
    Vector,
)
from va100.ptx.types import PtxType, Space

_DESTINATIONS = frozenset("dqv")
_STORING = frozenset({"st", "red", "atom", "stmatrix"})


@dataclass(frozen=True, slots=True)
class Access:
    """A memory operand with the space it is in."""

    operand: Address
    space: Space
    written: bool


@dataclass(frozen=True, slots=True)
class Roles:
    """Registers and memory operands of an instruction, each with the type it is used as."""

    read: tuple[tuple[str, PtxType | None], ...]
    written: tuple[tuple[str, PtxType | None], ...]
    accesses: tuple[Access, ...]


@lru_cache(maxsize=8192)
def roles(instruction: Instruction, operation: Operation) -> Roles:
    """Tell an instruction's operands apart."""
    read: dict[str, PtxType | None] = {}
    written: dict[str, PtxType | None] = {}
    accesses: list[Access] = []
    found = places(operation, len(instruction.operands))
    kinds = {place: _kind(operation, p.type) for place, p in enumerate(found)}
    for place, operand in enumerate(instruction.operands):
        letter = found[place].letter if place < len(found) else ""
        is_result = place == 0 and letter in _DESTINATIONS
        for register in _registers(operand):
            (written if is_result else read).setdefault(register, kinds.get(place))
        if isinstance(operand, Address):
            space = _space(operation, len(accesses))
            is_store = operation.opcode in _STORING or (
                operation.form.family is Family.ASYNC and not accesses
            )
            accesses.append(Access(operand, space, is_store))
    return Roles(tuple(read.items()), tuple(written.items()), tuple(accesses))


def _kind(operation: Operation, kind: PtxType | None) -> PtxType | None:
    """Untyped bits take no side: the register's own type tells more."""
    if kind is not None and (kind.is_bits or operation.form.family is Family.MATRIX):
        return None
    return kind


def _space(operation: Operation, position: int) -> Space:
    """State space of a memory operand; copies that are asynchronous go from global to shared."""
    if operation.opcode == "cp":
        return Space.GLOBAL if position else Space.SHARED
    return operation.space or Space.GENERIC


def _registers(operand: Operand | None) -> Iterator[str]:
    match operand:
        case Register(name):
            yield name
        case Not(inner) | Negative(inner):
            yield inner.name
        case Address(Register(name), _):
            yield name
        case Pair(first, second):
            yield from _registers(first)
            yield from _registers(second)
        case Vector(elements) | CallArguments(elements) | TextureAddress(elements):
            for element in elements:
                yield from _registers(element)
        case _:
            return
