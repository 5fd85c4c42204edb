"""Scalar and SIMD video instructions: parts of registers extended, combined, clamped, merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Poly
from va100.jit.lattice import uniform
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.ptx.video import Part, destination_part, lanes_of, part_of, source_part

_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge")
_SHIFTS: Final = {"shr7": 7, "shr15": 15}


class _Wide:
    """Text that computes in integers of one width, wide enough for every intermediate."""

    def __init__(self, p: Poly, bits: int) -> None:
        self.p = p
        self.bits = bits
        self.kind = p.integer(bits)

    def const(self, number: int) -> str:
        return self.p.const(self.bits, number)

    def op(self, verb: str, a: str, b: str) -> str:
        return self.p.op(f"{verb} {self.kind} {a}, {b}")

    def choose(self, condition: str, a: str, b: str) -> str:
        p = self.p
        test = p.op(f"icmp {condition} {self.kind} {a}, {b}")
        return p.op(f"select {p.boolean} {test}, {self.kind} {a}, {self.kind} {b}")

    def extended(self, value: str, bits: int, place: int, *, signed: bool) -> str:
        """A part of a 32-bit value."""
        p, kind = self.p, self.p.integer(32)
        if bits * place:
            value = p.op(f"lshr {kind} {value}, {p.const(32, bits * place)}")
        if bits < 32:
            value = p.op(f"trunc {kind} {value} to {p.integer(bits)}")
        how = "sext" if signed else "zext"
        return p.op(f"{how} {p.integer(bits)} {value} to {self.kind}")

    def clamped(self, value: str, bits: int, *, signed: bool) -> str:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        value = self.choose("sgt", value, self.const(low))
        return self.choose("slt", value, self.const(high))

    def cut(self, value: str, bits: int) -> str:
        """The low bits, as a signed number."""
        away = self.const(self.bits - bits)
        return self.op("ashr", self.op("shl", value, away), away)

    def low_word(self, value: str) -> str:
        return self.p.op(f"trunc {self.kind} {value} to {self.p.integer(32)}")


Primary = Callable[[_Wide, Operation, str, str], str]


def lower_video(c: Context, op: Operation) -> None:
    """Video instructions."""
    destination, *sources = c.instruction.operands
    parts = [source_part(op, operand, i) for i, operand in enumerate(sources[:2])]
    parts += [part_of(operand, (32, (0,))) for operand in sources[2:]]
    values = [c.read_sized(part.operand, PtxType.U32) for part in parts]
    values = [c.clean(v) for v in values]
    p = c.poly(*values)
    words = [p.get(v) for v in values]
    into = destination_part(op, destination)
    if op.opcode == "vmad":
        result = _vmad(p, op, parts, words)
    elif lanes_of(op) == 1:
        result = _scalar(p, op, (into, *parts), words)
    else:
        result = _simd(p, op, (into, *parts), words)
    c.write(into.operand, p.result(result, uniform(32)))


def _signs(op: Operation) -> tuple[bool, bool, bool]:
    """Of destination, a and b; a comparison gives 0 or 1."""
    signs = [kind.is_signed for kind in op.types]
    return (False, signs[0], signs[1]) if len(signs) == 2 else (signs[0], signs[1], signs[2])


# ------------------------------------------------------------------ scalar


def _scalar(p: Poly, op: Operation, parts: tuple[Part, ...], words: list[str]) -> str:
    # A word shifted by up to 32 needs 65 bits before it is clamped.
    w = _Wide(p, 128 if op.opcode == "vshl" else 64)
    into, a, b = parts[:3]
    signed, *signs = _signs(op)
    x = w.extended(words[0], a.bits, a.places[0], signed=signs[0])
    y = w.extended(words[1], b.bits, b.places[0], signed=signs[1])
    result = _PRIMARY[op.opcode](w, op, x, y)
    result = w.clamped(result, into.bits, signed=signed) if op.saturate else w.cut(result, 33)
    second = next((name for name in ("add", "min", "max") if name in op.modifiers), "")
    if second:
        third = w.extended(words[2], 32, 0, signed=signed)
        if second == "add":
            result = w.op("add", result, third)
        else:
            result = w.choose("slt" if second == "min" else "sgt", result, third)
        return w.low_word(result)
    low = w.low_word(result)
    return low if into.bits == 32 else _merged(p, words[2], low, into.bits, into.places[0])


def _merged(p: Poly, c: str, value: str, bits: int, place: int) -> str:
    """The low bits of a value in place of one part of another."""
    kind, keep, shift = p.integer(32), (1 << bits) - 1, bits * place
    kept = p.op(f"and {kind} {c}, {p.const(32, ~(keep << shift))}")
    part = p.op(f"and {kind} {value}, {p.const(32, keep)}")
    moved = p.op(f"shl {kind} {part}, {p.const(32, shift)}")
    return p.op(f"or {kind} {kept}, {moved}")


def _add(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.op("add", a, b)


def _sub(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.op("sub", a, b)


def _absdiff(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.choose("sgt", w.op("sub", a, b), w.op("sub", b, a))


def _min(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.choose("slt", a, b)


def _max(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.choose("sgt", a, b)


def _avrg(w: _Wide, op: Operation, a: str, b: str) -> str:
    """Halves are rounded away from zero for sums that are not negative."""
    total = w.op("add", a, b)
    negative = w.op("lshr", total, w.const(w.bits - 1))
    up = w.op("xor", negative, w.const(1))
    return w.op("ashr", w.op("add", total, up), w.const(1))


def _set(w: _Wide, op: Operation, a: str, b: str) -> str:
    name = next(name for name in _COMPARISONS if name in op.modifiers)
    condition = name if name in ("eq", "ne") else f"s{name}"
    found = w.p.op(f"icmp {condition} {w.kind} {a}, {b}")
    return w.p.op(f"zext {w.p.boolean} {found} to {w.kind}")


def _amount(w: _Wide, op: Operation, b: str) -> str:
    if "wrap" in op.modifiers:
        return w.op("and", b, w.const(31))
    return w.choose("slt", b, w.const(32))


def _shl(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.op("shl", a, _amount(w, op, b))


def _shr(w: _Wide, op: Operation, a: str, b: str) -> str:
    return w.op("ashr", a, _amount(w, op, b))


_PRIMARY: Final[Mapping[str, Primary]] = {
    "vadd": _add,
    "vsub": _sub,
    "vabsdiff": _absdiff,
    "vmin": _min,
    "vmax": _max,
    "vavrg": _avrg,
    "vset": _set,
    "vshl": _shl,
    "vshr": _shr,
}
"""Opcode, without a number of elements, to the text of its operation."""


def _vmad(p: Poly, op: Operation, parts: list[Part], words: list[str]) -> str:
    """The product or ``c`` is complemented and one added, which negates; ``.po`` adds one only."""
    w = _Wide(p, 128)
    _, *signs = _signs(op)
    x, y = (
        w.extended(word, part.bits, part.places[0], signed=sign)
        for word, part, sign in zip(words[:2], parts[:2], signs, strict=True)
    )
    product, c = w.op("mul", x, y), words[2]
    negates = parts[0].negated != parts[1].negated
    negates_c = parts[2].negated and not negates
    signed = any(signs) or negates or negates_c
    if negates:
        product = w.op("xor", product, w.const(-1))
    if negates_c:
        c = p.op(f"xor {p.integer(32)} {c}, {p.const(32, -1)}")
    total = w.op("add", product, w.extended(c, 32, 0, signed=signed))
    if negates or negates_c or "po" in op.modifiers:
        total = w.op("add", total, w.const(1))
    for name, amount in _SHIFTS.items():
        if name in op.modifiers:
            total = w.op("ashr", total, w.const(amount))
    return w.low_word(w.clamped(total, 32, signed=signed) if op.saturate else total)


# ------------------------------------------------------------------ SIMD


def _simd(p: Poly, op: Operation, parts: tuple[Part, ...], words: list[str]) -> str:
    w = _Wide(p, 32)
    into, a, b = parts[:3]
    signed, *signs = _signs(op)
    count = lanes_of(op)
    total = words[2]
    for element in into.places:
        x, y = (
            w.extended(words[place // count], a.bits, place % count, signed=sign)
            for place, sign in zip((a.places[element], b.places[element]), signs, strict=True)
        )
        result = _PRIMARY[op.opcode[:-1]](w, op, x, y)
        if op.saturate:
            result = w.clamped(result, into.bits, signed=signed)
        if "add" in op.modifiers:
            total = w.op("add", total, result)
        else:
            total = _merged(p, total, result, into.bits, element)
    return total
