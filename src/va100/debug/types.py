"""Types of a source language and values of them, as a debugger prints them.

Where values come from, registers or memory, is :mod:`.names`'s matter.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from va100.debug.values import float_text
from va100.ptx.types import PtxType

Number = int | float
MOST_ELEMENTS: Final = 200
"""Elements of an array that are printed."""
MOST_TEXT: Final = 200


class Kind(Enum):
    """What the bytes of a value mean."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    BOOL = "bool"
    CHAR = "char"
    POINTER = "pointer"
    ARRAY = "array"
    STRUCT = "struct"
    VOID = "void"


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A type; ``target`` is asked for late, since types may go in circles."""

    name: str
    kind: Kind
    size_bytes: int
    target: Callable[[], Type] | None = None
    """What a pointer points to, or an array is of."""
    count: int = 0
    members: Callable[[], tuple[Member, ...]] | None = None

    @property
    def element(self) -> Type:
        """What a pointer points to, or an array is of."""
        return self.target() if self.target is not None else VOID

    @property
    def is_number(self) -> bool:
        """Whether arithmetic can be done with it."""
        return self.kind not in (Kind.ARRAY, Kind.STRUCT, Kind.VOID)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a structure."""

    name: str
    offset_bytes: int
    type: Type


@dataclass(frozen=True, slots=True)
class Value:
    """Bytes of a type, and where they lie, if they lie in memory."""

    type: Type
    raw: bytes
    address: int | None = None

    def number(self) -> Number:
        """The value as a number.

        Raises
        ------
        ValueError
            It is an array or a structure.
        """
        kind = self.type.kind
        if kind is Kind.ARRAY and self.address is not None:
            return self.address
        if not self.type.is_number:
            raise ValueError(f"a value of type {self.type.name} is no number")
        if kind is Kind.FLOAT:
            code = {2: "<e", 4: "<f", 8: "<d"}[self.type.size_bytes]
            return float(struct.unpack(code, self.raw)[0])
        return int.from_bytes(self.raw, "little", signed=kind in (Kind.SIGNED, Kind.CHAR))


VOID: Final = Type("void", Kind.VOID, 0)
INT: Final = Type("int", Kind.SIGNED, 4)
UINT: Final = Type("unsigned int", Kind.UNSIGNED, 4)
LONG: Final = Type("long", Kind.SIGNED, 8)
ULONG: Final = Type("unsigned long", Kind.UNSIGNED, 8)
FLOAT: Final = Type("float", Kind.FLOAT, 4)
DOUBLE: Final = Type("double", Kind.FLOAT, 8)
CHAR: Final = Type("char", Kind.CHAR, 1)
BOOL: Final = Type("bool", Kind.BOOL, 1)

C_TYPES: Final[Mapping[str, Type]] = {
    "void": VOID,
    "int": INT,
    "unsigned": UINT,
    "unsigned int": UINT,
    "long": LONG,
    "long long": LONG,
    "unsigned long": ULONG,
    "unsigned long long": ULONG,
    "short": Type("short", Kind.SIGNED, 2),
    "unsigned short": Type("unsigned short", Kind.UNSIGNED, 2),
    "char": CHAR,
    "unsigned char": Type("unsigned char", Kind.UNSIGNED, 1),
    "signed char": Type("signed char", Kind.SIGNED, 1),
    "bool": BOOL,
    "half": Type("half", Kind.FLOAT, 2),
    "float": FLOAT,
    "double": DOUBLE,
}
"""Types that a cast may name."""


def pointer_to(target: Type) -> Type:
    """The type of addresses of a type."""
    return Type(f"{target.name} *", Kind.POINTER, 8, lambda: target)


def ptx_type(kind: PtxType) -> Type:
    """A PTX type as one of the source language."""
    if kind is PtxType.PRED:
        return BOOL
    if kind in (PtxType.F16, PtxType.F32, PtxType.F64):
        return {2: C_TYPES["half"], 4: FLOAT, 8: DOUBLE}[kind.size_bytes]
    signed = Kind.SIGNED if kind.is_signed or kind.is_bits else Kind.UNSIGNED
    return Type(f".{kind.value}", signed, kind.size_bytes)


def of_number(number: Number) -> Value:
    """A number as a value."""
    if isinstance(number, float):
        return Value(DOUBLE, struct.pack("<d", number))
    kind = INT if -(1 << 31) <= number < 1 << 31 else ULONG
    return of_type(number, kind)


def of_type(number: Number, kind: Type) -> Value:
    """A number converted to a type, as C does.

    Raises
    ------
    ValueError
        The type is none of numbers.
    """
    if not kind.is_number:
        raise ValueError(f"nothing can be cast to {kind.name}")
    if kind.kind is Kind.FLOAT:
        code = {2: "<e", 4: "<f", 8: "<d"}[kind.size_bytes]
        return Value(kind, struct.pack(code, float(number)))
    if kind.kind is Kind.BOOL:
        return Value(kind, bytes([bool(number)]))
    if not math.isfinite(number):
        raise ValueError(f"{number} is no integer")
    bits = 8 * kind.size_bytes
    return Value(kind, (int(number) & ((1 << bits) - 1)).to_bytes(kind.size_bytes, "little"))


def text_of(value: Value, style: str = "") -> str:
    """Spell a value; ``style`` is a letter of gdb's: x d u f t c, or nothing."""
    kind = value.type.kind
    if kind is Kind.ARRAY:
        return _array_text(value, style)
    if kind is Kind.STRUCT and value.type.members is not None:
        parts = [
            f"{m.name} = {text_of(part(value, m.offset_bytes, m.type), style)}"
            for m in value.type.members()
        ]
        return "{" + ", ".join(parts) + "}"
    if not value.type.is_number:
        return "void"
    return _styled(value, style) if style else _plain(value)


def part(value: Value, offset_bytes: int, kind: Type) -> Value:
    """A part of a value: a member, an element."""
    address = None if value.address is None else value.address + offset_bytes
    return Value(kind, value.raw[offset_bytes : offset_bytes + kind.size_bytes], address)


def _array_text(value: Value, style: str) -> str:
    element = value.type.element
    if element.kind is Kind.CHAR and not style:
        text = value.raw.split(b"\0", 1)[0][:MOST_TEXT]
        return '"' + text.decode("latin-1").encode("unicode_escape").decode() + '"'
    count = min(value.type.count, MOST_ELEMENTS)
    parts = [text_of(part(value, i * element.size_bytes, element), style) for i in range(count)]
    more = ", ..." if value.type.count > count else ""
    return "{" + ", ".join(parts) + more + "}"


def _plain(value: Value) -> str:
    number = value.number()
    if value.type.kind is Kind.FLOAT:
        width = {2: PtxType.F16, 4: PtxType.F32, 8: PtxType.F64}[value.type.size_bytes]
        return float_text(float(number), width)
    if value.type.kind is Kind.BOOL:
        return "true" if number else "false"
    if value.type.kind is Kind.POINTER:
        return f"({value.type.name}) 0x{int(number):x}"
    if value.type.kind is Kind.CHAR:
        return f"{number} {chr(int(number) & 0xFF)!r}"
    return str(number)


def _styled(value: Value, style: str) -> str:
    bits = int.from_bytes(value.raw, "little")
    if style == "x":
        return f"0x{bits:x}"
    if style == "t":
        return f"{bits:b}"
    if style == "u":
        return str(bits)
    if style == "c":
        return repr(chr(bits & 0xFF))
    if style == "d":
        return str(int.from_bytes(value.raw, "little", signed=True))
    floats = {2: C_TYPES["half"], 4: FLOAT, 8: DOUBLE}
    kind = floats.get(len(value.raw))
    return str(bits) if kind is None else _plain(Value(kind, value.raw))
