"""Numbers and constant expressions of PTX, evaluated as they are read.

Integers are 64 bits wide, as the language says; what fits in no 64-bit type wraps.
"""

from __future__ import annotations

import re
import struct
from typing import Final, NoReturn

from va100.ptx.program import Immediate, Symbol
from va100.ptx.text import Cursor

MAX_DEPTH: Final = 64
"""Nesting of braces beyond which a text is refused."""

_MAX_NESTING: Final = 32
"""The same for parentheses."""

WARP_SIZE_NAME: Final = "WARP_SZ"
_BITS: Final = re.compile(r"0[fF]([0-9A-Fa-f]{8})|0[dD][0-9A-Fa-f]{16}")
_INTEGER: Final = re.compile(r"(?:0[xX]([0-9A-Fa-f]+)|0[bB]([01]+)|(0[0-7]*)|([1-9]\d*))U?")
_DECIMAL: Final = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_MAX_DIGITS: Final = 64
_PRECEDENCE: Final = {
    operator: level
    for level, operators in enumerate(
        (
            ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="),
            ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
        )
    )
    for operator in operators
}  # fmt: skip
_MASK64: Final = (1 << 64) - 1


class ExpressionReader:
    """Constant expressions between two offsets of the text, in PTX's 64-bit arithmetic."""

    def __init__(self, cursor: Cursor, start: int, end: int) -> None:
        self._cursor = cursor
        self._resume = cursor.position
        self._end = end
        self._depth = 0
        cursor.jump(start)

    def peek(self) -> str:
        """The next token, empty at the end of the stretch."""
        token = self._cursor.peek()
        return token if self._cursor.position < self._end else ""

    def take(self) -> str:
        """Step over the next token."""
        return self._cursor.take() if self.peek() else ""

    def finish(self, what: str) -> None:
        """Check that all was read, and give the cursor back."""
        if self.peek():
            self.fail(f"unexpected {self.peek()!r} in {what}")
        self._cursor.jump(self._resume)

    def fail(self, problem: str) -> NoReturn:
        """Raise at the next token, or at the stretch's end."""
        raise self._cursor.error(min(self._cursor.position, self._end), problem)

    def symbol(self) -> Symbol:
        """Read ``name``, ``name+4``, ``name-4``."""
        return Symbol(self.take(), self.trailing_offset())

    def trailing_offset(self) -> int:
        """Read ``+4``, ``+-4``, ``-4`` or nothing after a base."""
        sign = self.peek()
        if sign not in ("+", "-"):
            return 0
        if sign == "+":
            self.take()
        value = self.constant()
        if value.kind != "int":
            self.fail("an offset is an integer")
        return value.value

    def constant(self) -> Immediate:
        """Read a constant expression."""
        return self._ternary()

    def _ternary(self) -> Immediate:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            self.fail("expression nested too deep")
        value = self._binary(0)
        if self.peek() == "?":
            self.take()
            yes = self._ternary()
            if self.take() != ":":
                self.fail("expected ':' in a conditional expression")
            no = self._ternary()
            value = yes if _truth(value) else no
        self._depth -= 1
        return value

    def _binary(self, least: int) -> Immediate:
        """Read operators that bind at least as tightly as ``least``, left to right."""
        left = self._unary()
        while (level := _PRECEDENCE.get(operator := self.peek(), -1)) >= least:
            self.take()
            right = self._binary(level + 1)
            try:
                left = _apply(operator, left, right)
            except (ArithmeticError, ValueError) as problem:
                self.fail(f"constant expression cannot be evaluated: {problem}")
        return left

    def _unary(self) -> Immediate:
        operators = []
        while (token := self.peek()) in ("-", "+", "~", "!"):
            operators.append(token)
            self.take()
        if token == "(":
            value = self._parenthesis()
        elif token == WARP_SIZE_NAME:
            self.take()
            value = Immediate(32, "int")
        else:
            value = self._literal()
        for operator in reversed(operators):
            value = _apply_unary(operator, value)
        return value

    def _parenthesis(self) -> Immediate:
        self.take()
        if self.peek() in (".s64", ".u64"):  # a cast
            cast = self.take()
            if self.take() != ")":
                self.fail("expected ')' after a cast")
            self._depth += 1
            if self._depth > _MAX_NESTING:
                self.fail("expression nested too deep")
            value = self._unary()
            self._depth -= 1
            if value.kind != "int":
                return value
            bits = value.value & _MASK64
            return Immediate(bits if cast == ".u64" else _signed(bits), "int")
        value = self._ternary()
        if self.take() != ")":
            self.fail("expected ')'")
        return value

    def _literal(self) -> Immediate:
        token = self.peek()
        if not token.lstrip(".")[:1].isdigit():
            self.fail(f"expected an operand, found {token!r}" if token else "expected an operand")
        value = literal(token)
        if value is None:
            self.fail(f"{token!r} is no number that fits in 64 bits")
        self.take()
        return value


def literal(token: str) -> Immediate | None:
    """Turn a number's text into its value; ``None`` when it is no number or too large."""
    if match := _BITS.fullmatch(token):
        return Immediate(int(token[2:], 16), "f32" if match[1] else "f64")
    if match := _INTEGER.fullmatch(token):
        hexadecimal, binary, octal, decimal = match.groups()
        digits = hexadecimal or binary or octal or decimal
        base = 16 if hexadecimal else 2 if binary else 8 if octal else 10
        if len(digits) > _MAX_DIGITS:
            return None
        value = int(digits, base)
        return Immediate(value, "int") if value <= _MASK64 else None
    return _float64(float(token)) if _DECIMAL.fullmatch(token) else None


def _float64(value: float) -> Immediate:
    return Immediate(int.from_bytes(struct.pack(">d", value), "big"), "f64")


def _as_float(value: Immediate) -> float:
    if value.kind == "f64":
        return float(struct.unpack(">d", value.value.to_bytes(8, "big"))[0])
    if value.kind == "f32":
        return float(struct.unpack(">f", value.value.to_bytes(4, "big"))[0])
    return float(value.value)


def _truth(value: Immediate) -> bool:
    return _as_float(value) != 0.0


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _fit(value: int) -> int:
    """Keep a value that some 64-bit type holds; wrap what none does."""
    return value if -(1 << 63) <= value <= _MASK64 else _signed(value & _MASK64)


def _apply_unary(operator: str, value: Immediate) -> Immediate:
    if operator == "+":
        return value
    if operator == "!":
        return Immediate(int(not _truth(value)), "int")
    if value.kind == "int":
        return Immediate(_fit(-value.value if operator == "-" else ~value.value), "int")
    sign = 1 << (63 if value.kind == "f64" else 31)
    return Immediate(value.value ^ sign, value.kind)


def _apply(operator: str, left: Immediate, right: Immediate) -> Immediate:
    if left.kind == "int" and right.kind == "int":
        return Immediate(_fit(_integer(operator, left.value, right.value)), "int")
    a, b = _as_float(left), _as_float(right)
    arithmetic = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}
    if operator in arithmetic:
        return _float64(arithmetic[operator]())
    return Immediate(_comparison(operator, a, b), "int")


def _comparison(operator: str, a: float, b: float) -> int:
    results = {
        "==": a == b,
        "!=": a != b,
        "<": a < b,
        "<=": a <= b,
        ">": a > b,
        ">=": a >= b,
        "&&": bool(a) and bool(b),
        "||": bool(a) or bool(b),
    }
    if operator not in results:
        raise ValueError(f"{operator} wants integers")
    return int(results[operator])


def _integer(operator: str, a: int, b: int) -> int:
    if operator in ("/", "%"):
        if b == 0:
            raise ValueError("division by zero")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if operator == "/" else a - quotient * b
    if operator in ("<<", ">>"):
        amount = b & 63
        return a << amount if operator == "<<" else a >> amount
    simple = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}
    return simple[operator] if operator in simple else _comparison(operator, a, b)
