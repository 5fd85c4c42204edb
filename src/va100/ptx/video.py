"""Which parts of its operands a video instruction takes: ``%r1.b2``, ``%r3.h10``, ``-%r4.h1``.

Reading of the text only; what is done with the parts is each engine's business.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from va100.ptx.isa.form import Operation
from va100.ptx.program import Negative, Operand, Register

_SELECTOR: Final = re.compile(r"(.+)\.([bh])(\d{1,4})")
_WIDTHS: Final = {"b": 8, "h": 16}


class Part(NamedTuple):
    """A register or constant with the parts of it that are meant.

    ``places`` are numbers of bytes, half-words or words, ``bits`` wide, lowest element first.
    """

    operand: Operand | None
    bits: int
    places: tuple[int, ...]
    negated: bool = False


def lanes_of(operation: Operation) -> int:
    """Elements a video instruction works on in parallel: 1, 2 or 4."""
    last = operation.opcode[-1]
    return int(last) if last in "24" else 1


def part_of(operand: Operand | None, default: tuple[int, tuple[int, ...]]) -> Part:
    """Take an operand apart; ``default`` is what stands for no selector."""
    negated = isinstance(operand, Negative)
    inner = operand.operand if isinstance(operand, Negative) else operand
    if not isinstance(inner, Register):
        return Part(inner, *default, negated)
    found = _SELECTOR.fullmatch(inner.name)
    if found is None:
        return Part(inner, *default, negated)
    places = tuple(int(digit) for digit in reversed(found[3]))
    return Part(Register(found[1]), _WIDTHS[found[2]], places, negated)


def whole_register(operand: Operand | None) -> Operand | None:
    """An operand without its selector and sign."""
    return part_of(operand, (32, (0,))).operand


def source_part(operation: Operation, operand: Operand | None, index: int) -> Part:
    """The elements of source ``index``; those of SIMD instructions count through both sources."""
    count = lanes_of(operation)
    first = index * count if count > 1 else 0
    return part_of(operand, (32 // count, tuple(range(first, first + count))))


def destination_part(operation: Operation, operand: Operand | None) -> Part:
    """Where results go; for SIMD instructions the elements that are not merged from ``c``."""
    count = lanes_of(operation)
    return part_of(operand, (32 // count, tuple(range(count))))


def selector_problem(operation: Operation, operands: tuple[Operand | None, ...]) -> str:
    """Say what is wrong with the selectors and signs of a video instruction, if anything is."""
    count = lanes_of(operation)
    parts = [destination_part(operation, operands[0])]
    parts += [source_part(operation, operand, i) for i, operand in enumerate(operands[1:3])]
    for index, part in enumerate(parts):
        if part.negated and (operation.opcode != "vmad" or "po" in operation.modifiers):
            return f"{operation.text} takes no negated operand"
        if not _is_legal(part, count, is_source=index > 0):
            return f"{operation.text} cannot select these parts of an operand"
    if len(operands) > 3:
        last = part_of(operands[3], (32, (0,)))
        if last.bits != 32:
            return f"{operation.text} takes all of its last operand"
        if last.negated and (operation.opcode != "vmad" or "po" in operation.modifiers):
            return f"{operation.text} takes no negated operand"
    return ""


def _is_legal(part: Part, count: int, *, is_source: bool) -> bool:
    if count == 1:
        return len(part.places) == 1 and part.places[0] < 32 // part.bits
    if part.bits != 32 // count:
        return False
    if is_source:
        return len(part.places) == count and max(part.places) < 2 * count
    return max(part.places) < count and list(part.places) == sorted(set(part.places))
