"""Expressions of the debugger: C's, over names, registers and memory of one thread.

Written down here: what they look like and what they yield.  Nothing is assigned, nothing called.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from va100.debug.types import (
    C_TYPES,
    Kind,
    Type,
    Value,
    of_number,
    of_type,
    part,
    pointer_to,
)


class Context(Protocol):
    """What names, registers and addresses mean; each raises ``LookupError`` when nothing."""

    def lookup(self, name: str) -> Value:
        """A variable."""
        ...

    def register(self, name: str) -> Value:
        """A register, with its ``%``."""
        ...

    def memory(self, address: int, size_bytes: int) -> bytes:
        """Device memory."""
        ...


_TOKEN: Final = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+|\d+)[uUlLfF]*"
    r"|([A-Za-z_]\w*)|(->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^!~<>()\[\].$]))"
)
_VECTORS: Final = frozenset({"tid", "ntid", "ctaid", "nctaid"})
_TYPE_WORDS: Final = frozenset(
    {"unsigned", "signed", "long", "short", "const", *(w for t in C_TYPES for w in t.split())}
)
Number = int | float


def _logical_and(a: Number, b: Number) -> int:
    return int(bool(a) and bool(b))


def _logical_or(a: Number, b: Number) -> int:
    return int(bool(a) or bool(b))


def _divide(a: Number, b: Number) -> Number:
    """As C does: towards zero."""
    if not b:
        raise ValueError("division by zero")
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - b * int(_divide(a, b))


def _shift_left(a: int, b: int) -> int:
    return a << (b & 63) & 0xFFFF_FFFF_FFFF_FFFF


def _shift_right(a: int, b: int) -> int:
    return a >> (b & 63)


_BINARY: Final[Mapping[str, tuple[int, Callable[..., Number]]]] = {
    "||": (1, _logical_or),
    "&&": (2, _logical_and),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    "<=": (7, operator.le),
    ">": (7, operator.gt),
    ">=": (7, operator.ge),
    "<<": (8, _shift_left),
    ">>": (8, _shift_right),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, _remainder),
}
"""Operator to how tightly it binds and what it does."""


def evaluate(text: str, context: Context) -> Value:
    """Evaluate an expression.

    Raises
    ------
    ValueError
        It is none, or its parts do not go together.
    LookupError
        A name means nothing here, or memory may not be read.
    """
    reader = _Reader(text, context)
    value = reader.expression(0)
    reader.expect_end()
    return value


def truth(text: str, context: Context) -> bool:
    """Whether a condition holds."""
    return bool(evaluate(text, context).number())


class _Reader:
    """Reads and evaluates in one go."""

    def __init__(self, text: str, context: Context) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._context = context

    def expression(self, least: int) -> Value:
        """Evaluate operators that bind at least so tightly."""
        left = self._unary()
        while True:
            found = _BINARY.get(self._peek())
            if found is None or found[0] < least or found[0] == 0:
                return left
            name = self._take()
            right = self.expression(found[0] + 1)
            left = self._combine(name, found[1], left, right)

    def expect_end(self) -> None:
        """Refuse what is left over."""
        if self._peek():
            raise ValueError(f"{self._peek()!r} is not expected there")

    # ------------------------------------------------------------ parts

    def _unary(self) -> Value:
        token = self._take()
        if token == "-":
            return of_number(-self._unary().number())
        if token == "!":
            return of_number(int(not self._unary().number()))
        if token == "~":
            return of_number(~int(self._unary().number()))
        if token == "*":
            return self._read(self._unary())
        if token == "&":
            return self._address(self._unary())
        if token in ("%", "$"):
            return self._postfix(self._register())
        if token == "(":
            kind = self._cast()
            if kind is not None:
                return self._converted(self._unary(), kind)
            value = self.expression(0)
            self._expect(")")
            return self._postfix(value)
        return self._postfix(self._primary(token))

    def _primary(self, token: str) -> Value:
        if token[:1].isdigit() or token[:1] == ".":
            if token[:2].lower() != "0x" and ("." in token or "e" in token.lower()):
                return of_number(float(token))
            return of_number(int(token, 0) if token[:2].lower() == "0x" else int(token))
        if token[:1].isalpha() or token[:1] == "_":
            return self._context.lookup(token)
        raise ValueError(f"{token!r} is not expected there" if token else "it ends too early")

    def _register(self) -> Value:
        name = self._take()
        if name in _VECTORS and self._peek() == ".":
            self._take()
            name += f".{self._take()}"
        return self._context.register(f"%{name}")

    def _postfix(self, value: Value) -> Value:
        while self._peek() in (".", "->", "["):
            token = self._take()
            if token == "[":
                index = int(self.expression(0).number())
                self._expect("]")
                value = self._element(value, index)
                continue
            if token == "->":
                value = self._read(value)
            value = self._member(value, self._take())
        return value

    def _cast(self) -> Type | None:
        """The type in parentheses, or None when it is an expression."""
        start, words = self._at, []
        while self._peek() in _TYPE_WORDS:
            words.append(self._take())
        kind = C_TYPES.get(" ".join(w for w in words if w != "const"))
        if kind is None:
            self._at = start
            return None
        while self._peek() == "*":
            self._take()
            kind = pointer_to(kind)
        self._expect(")")
        return kind

    # ------------------------------------------------------------ values

    def _combine(
        self, name: str, function: Callable[..., Number], left: Value, right: Value
    ) -> Value:
        a, b = left.number(), right.number()
        if left.type.kind in (Kind.POINTER, Kind.ARRAY) and name in "+-":
            size = max(left.type.element.size_bytes, 1)
            return of_type(function(a, b * size), pointer_to(left.type.element))
        whole = name in ("|", "^", "&", "<<", ">>", "%")
        if whole and (isinstance(a, float) or isinstance(b, float)):
            raise ValueError(f"{name} takes no floating-point number")
        result = function(a, b)
        return of_number(int(result) if isinstance(result, bool) else result)

    def _converted(self, value: Value, kind: Type) -> Value:
        return of_type(value.number(), kind)

    def _read(self, pointer: Value) -> Value:
        if pointer.type.kind not in (Kind.POINTER, Kind.ARRAY):
            raise ValueError(f"{pointer.type.name} is no pointer; cast it, as *(float *)$rd1")
        kind, address = pointer.type.element, int(pointer.number())
        return Value(kind, self._context.memory(address, kind.size_bytes), address)

    def _address(self, value: Value) -> Value:
        if value.address is None:
            raise ValueError("it lies in a register, which has no address")
        return of_type(value.address, pointer_to(value.type))

    def _element(self, value: Value, index: int) -> Value:
        element = value.type.element
        offset = index * element.size_bytes
        if value.type.kind is Kind.ARRAY and 0 <= index < value.type.count:
            return part(value, offset, element)
        if value.type.kind not in (Kind.ARRAY, Kind.POINTER):
            raise ValueError(f"{value.type.name} has no elements")
        address = int(value.number()) + offset
        return Value(element, self._context.memory(address, element.size_bytes), address)

    def _member(self, value: Value, name: str) -> Value:
        members = value.type.members() if value.type.members is not None else ()
        for member in members:
            if member.name == name:
                return part(value, member.offset_bytes, member.type)
        raise LookupError(f"{value.type.name} has no member {name}")

    # ------------------------------------------------------------ tokens

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise ValueError(f"{token!r} is missing")


def _tokens(text: str) -> list[str]:
    found = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"{text[at:].strip()!r} cannot be read")
        found.append(match[1] or match[2] or match[3])
        at = match.end()
    return found
