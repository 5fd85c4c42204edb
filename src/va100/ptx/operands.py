"""Operands and constant expressions, from text to the tuples of :mod:`va100.ptx.program`.

Operand texts repeat a great deal, so they are remembered: once for texts whose meaning is fixed
(``%r1``, ``[%rd2+8]``, ``17``), and apart for texts with bare names, which mean a register or a
symbol depending on what is declared at that point.
"""

from __future__ import annotations

import re
import struct
from typing import Final, NoReturn

from va100.ptx.program import (
    Address,
    CallArguments,
    Immediate,
    Negative,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    TextureAddress,
    Vector,
)
from va100.ptx.text import Cursor, is_name

MAX_DEPTH: Final = 64
"""Nesting of parentheses and braces beyond which a text is refused."""

_WARP_SIZE_NAME: Final = "WARP_SZ"
_COMPONENT: Final = re.compile(r"\.(?:[xyzwrgba]|[bh]\d{1,4})$")
_REGISTER_TEXT: Final = re.compile(r"[%$\w]+(?:\.[a-z]\w*)?")
_PLAIN_REGISTER: Final = re.compile(r"%[\w$]+(?:\.(?:[xyzwrgba]|[bh]\d{1,4}))?")
_PLAIN_INTEGER: Final = re.compile(r"-?[1-9]\d{0,18}|0")
_PLAIN_ADDRESS: Final = re.compile(r"\[(%[\w$]+)(?:\+(-?(?:[1-9]\d{0,9}|0)))?\]")
_BARE_NAME: Final = re.compile(r"(?<![%\w$.])[A-Za-z_$]")
_BITS: Final = re.compile(r"0[fF]([0-9A-Fa-f]{8})|0[dD][0-9A-Fa-f]{16}")
_INTEGER: Final = re.compile(r"(?:0[xX]([0-9A-Fa-f]+)|0[bB]([01]+)|(0[0-7]*)|([1-9]\d*))U?")
_DECIMAL: Final = re.compile(r"(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?")
_MAX_DIGITS: Final = 64
_BINARY: Final[tuple[tuple[str, ...], ...]] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_MASK64: Final = (1 << 64) - 1

Operands = tuple[Operand | None, ...]


class OperandReader:
    """Reads operand lists; knows which bare names are registers at the moment."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self._fixed: dict[str, Operand | None] = {"_": None}
        self._named: dict[str, Operand | None] = {}
        self._scopes: list[frozenset[str]] = []
        self._registers: frozenset[str] = frozenset()

    # -- scopes

    def enter(self) -> None:
        """Open a scope."""
        self._scopes.append(self._registers)

    def leave(self) -> None:
        """Close a scope: registers declared in it are forgotten."""
        registers = self._scopes.pop()
        if registers is not self._registers:
            self._registers = registers
            self._named.clear()

    def declare(self, name: str, count: int | None) -> None:
        """Note a register; only names without ``%`` matter here."""
        if name[0] == "%":
            return
        names = {name} if count is None else {f"{name}{i}" for i in range(count)}
        self._registers = self._registers | names
        self._named.clear()

    # -- lists

    def read_list(self, text: str, offset: int) -> Operands:
        """Read comma-separated operands, ``offset`` being where the text starts."""
        if "{" in text or "(" in text:
            return self._read_bracketed(text, offset)
        operands = []
        fixed = self._fixed
        start = offset
        for part in text.split(","):
            key = part.strip()
            operand = fixed.get(key)
            if operand is None and key != "_":
                if "[" in key and "]" not in key:
                    return self._read_bracketed(text, start)
                operand = self.read(part, offset)
            operands.append(operand)
            offset += len(part) + 1
        return tuple(operands)

    def _read_bracketed(self, text: str, offset: int) -> Operands:
        return tuple(self.read(part, offset + at) for part, at in self._split(text, offset))

    def read_call(self, text: str, offset: int) -> Operands:
        """Read a call's list into its four places; see :class:`Instruction`."""
        parts = self._split(text, offset)
        place = 0
        returns: Operand | None = None
        if parts[0][0].lstrip().startswith("("):
            returns = self._arguments(parts[0][0], offset + parts[0][1])
            place = 1
        if place >= len(parts):
            raise self.cursor.error(offset, "expected the name of the function to call")
        target = self.read(parts[place][0], offset + parts[place][1])
        if not isinstance(target, Symbol | Register):
            raise self.cursor.error(
                _visible(*parts[place], offset), "expected a function name or a register to call"
            )
        rest = parts[place + 1 :]
        arguments = CallArguments(())
        table: Operand | None = None
        if rest and rest[0][0].lstrip().startswith("("):
            arguments = self._arguments(rest[0][0], offset + rest[0][1])
            rest = rest[1:]
        if rest:
            table = self.read(rest[0][0], offset + rest[0][1])
            if not isinstance(table, Symbol):
                raise self.cursor.error(
                    _visible(*rest[0], offset), "expected the name of a prototype or target list"
                )
        if len(rest) > 1:
            raise self.cursor.error(_visible(*rest[1], offset), "expected ';' after the call")
        return (returns, target, arguments, table)

    def _arguments(self, text: str, offset: int) -> CallArguments:
        start = text.index("(")
        end = text.rstrip()
        if end[-1] != ")":
            raise self.cursor.error(offset + len(end), "expected ')' to end the list")
        inner = end[start + 1 : -1]
        if not inner.strip():
            return CallArguments(())
        return CallArguments(self.read_list(inner, offset + start + 1))

    def _split(self, text: str, offset: int) -> list[tuple[str, int]]:
        """Split at commas outside all brackets."""
        parts = []
        start = 0
        closers: list[str] = []
        for index, char in enumerate(text):
            if char in "([{":
                closers.append(")]}"["([{".index(char)])
            elif char in ")]}":
                if not closers or closers.pop() != char:
                    raise self.cursor.error(offset + index, f"{char!r} without its opening one")
            elif char == "," and not closers:
                parts.append((text[start:index], start))
                start = index + 1
        if closers:
            raise self.cursor.error(
                offset + len(text.rstrip()), f"expected {closers[-1]!r} before the statement's end"
            )
        parts.append((text[start:], start))
        return parts

    # -- one operand

    def read(self, text: str, offset: int) -> Operand | None:
        """Read one operand; ``None`` is the sink ``_``."""
        key = text.strip()
        if key in self._fixed:
            return self._fixed[key]
        if key in self._named:
            return self._named[key]
        operand = self._parse(key, offset + len(text) - len(text.lstrip()))
        named = _BARE_NAME.search(key) is not None
        (self._named if named else self._fixed)[key] = operand
        return operand

    def _parse(self, text: str, offset: int) -> Operand | None:
        if _PLAIN_REGISTER.fullmatch(text):
            return Register(text)
        if _PLAIN_INTEGER.fullmatch(text):
            return Immediate(int(text), "int")
        if plain := _PLAIN_ADDRESS.fullmatch(text):
            return Address(Register(plain[1]), int(plain[2] or 0))
        if not text:
            raise self.cursor.error(offset, "expected an operand")
        return self._composite(text, offset)

    def _composite(self, text: str, offset: int) -> Operand | None:
        if text[0] == "[" and text[-1] == "]":
            return self._bracket(text[1:-1], offset + 1)
        if (pair := self._pair(text, offset)) is not None:
            return pair
        if text[0] == "{" and text[-1] == "}":
            inner = text[1:-1]
            elements = self.read_list(inner, offset + 1)
            for element in elements:
                if isinstance(element, Vector | Address | Pair | TextureAddress | CallArguments):
                    raise self.cursor.error(offset, "a vector holds registers and constants only")
            return Vector(elements)
        if text[0] == "!":
            inner_operand = self.read(text[1:], offset + 1)
            if isinstance(inner_operand, Register):
                return Not(inner_operand)
        if text[0] == "-":
            name = text[1:].strip()
            if self._is_register(name):
                return Negative(Register(name))
        return self._name_or_constant(text, offset)

    def _pair(self, text: str, offset: int) -> Pair | None:
        head, bar, tail = text.rpartition("|")
        if not bar or not head or head[-1] == "|":
            return None
        first, second = head.strip(), tail.strip()
        if not (second == "_" or self._is_register(second)):
            return None
        if not (first == "_" or self._is_register(first) or first[:1] == "{"):
            return None
        return Pair(self.read(head, offset), self.read(tail, offset + len(head) + 1))

    def _is_register(self, text: str) -> bool:
        if not _REGISTER_TEXT.fullmatch(text):
            return False
        if text[0] == "%":
            return True
        return _COMPONENT.sub("", text) in self._registers

    def _name_or_constant(self, text: str, offset: int) -> Operand:
        if self._is_register(text):
            if "." in text and text[0] != "%" and not _COMPONENT.search(text):
                raise self.cursor.error(offset, f"{text!r} names no part of a register")
            return Register(text)
        reader = ExpressionReader(self.cursor, offset, offset + len(text))
        operand: Immediate | Symbol
        if is_name(reader.peek()) and reader.peek() != _WARP_SIZE_NAME:
            operand = reader.symbol()
            if reader.peek() == "[":
                hint = "write [name+bytes], or mov the name's address and add to it"
                raise self.cursor.error(offset, "array indexing is not taken", hint)
        else:
            operand = reader.constant()
        reader.finish("operand")
        return operand

    def _bracket(self, text: str, offset: int) -> Operand:
        if "," in text or "{" in text:
            parts = [self.read(part, offset + at) for part, at in self._split(text, offset)]
            if any(isinstance(part, Pair | Not | CallArguments | None) for part in parts):
                raise self.cursor.error(offset, "expected names, registers and vectors in [ ]")
            return TextureAddress(tuple(part for part in parts if part is not None))
        reader = ExpressionReader(self.cursor, offset, offset + len(text))
        token = reader.peek()
        base: Register | Symbol | None = None
        if is_name(token) and token != _WARP_SIZE_NAME:
            reader.take()
            base = Register(token) if self._is_register(token) else Symbol(token)
            value = reader.trailing_offset()
        else:
            immediate = reader.constant()
            value = immediate.value
            if immediate.kind != "int":
                raise self.cursor.error(offset, "an address is an integer")
        reader.finish("address")
        return Address(base, value)


def _visible(part: str, at: int, offset: int) -> int:
    return offset + at + len(part) - len(part.lstrip())


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
        if self._depth > MAX_DEPTH:
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

    def _binary(self, level: int) -> Immediate:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self.peek()) in _BINARY[level]:
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
        elif token == _WARP_SIZE_NAME:
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
            if self._depth > MAX_DEPTH:
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
