"""Operands, from text to the tuples of :mod:`va100.ptx.program`.

Operand texts repeat a great deal, so they are remembered: once for texts whose meaning is fixed
(``%r1``, ``[%rd2+8]``, ``17``), and apart for texts with bare names, which mean a register or a
symbol depending on what is declared at that point.
"""

from __future__ import annotations

import re
from typing import Final

from va100.ptx.expressions import WARP_SIZE_NAME, ExpressionReader
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

_COMPONENT: Final = re.compile(r"\.(?:[xyzwrgba]|[bh]\d{1,4})$")
_REGISTER_TEXT: Final = re.compile(r"[%$\w]+(?:\.[a-z]\w*)?")
_PLAIN_REGISTER: Final = re.compile(r"%[\w$]+(?:\.(?:[xyzwrgba]|[bh]\d{1,4}))?")
_PLAIN_INTEGER: Final = re.compile(r"-?[1-9]\d{0,18}|0")
_PLAIN_FLOAT: Final = re.compile(r"0[fF]([0-9A-Fa-f]{8})")
_PLAIN_ADDRESS: Final = re.compile(
    r"\[((?!WARP_SZ\b)[%$A-Za-z_][\w$]+)(?:\+(-?(?:[1-9]\d{0,9}|0)))?\]"
)
_BARE_NAME: Final = re.compile(r"(?<![%\w$.])[A-Za-z_$]")

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
            name = plain[1]
            base = Register(name) if self._is_register(name) else Symbol(name)
            return Address(base, int(plain[2] or 0))
        if plain := _PLAIN_FLOAT.fullmatch(text):
            return Immediate(int(plain[1], 16), "f32")
        if not text:
            raise self.cursor.error(offset, "expected an operand")
        return self._composite(text, offset)

    def _composite(self, text: str, offset: int) -> Operand | None:
        if text[0] == "[" and text[-1] == "]":
            return self._bracket(text[1:-1], offset + 1)
        if text[0] == "[" and text.endswith("].unified"):
            hint = "the A100 is sm_80"
            raise self.cursor.error(offset, "'.unified' on an address needs sm_90", hint)
        if (pair := self._pair(text, offset)) is not None:
            return pair
        if text[0] == "{" and text[-1] == "}":
            return self._vector(text, offset)
        return self._signed(text, offset)

    def _vector(self, text: str, offset: int) -> Vector:
        elements = self.read_list(text[1:-1], offset + 1)
        for element in elements:
            if isinstance(element, Vector | Address | Pair | TextureAddress | CallArguments):
                raise self.cursor.error(offset, "a vector holds registers and constants only")
        return Vector(elements)

    def _signed(self, text: str, offset: int) -> Operand:
        """Read what may begin with ``!`` or ``-``."""
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
        if is_name(reader.peek()) and reader.peek() != WARP_SIZE_NAME:
            operand = reader.symbol()
            if reader.peek() == "[":
                self._first_element(reader, offset)
        else:
            operand = reader.constant()
        reader.finish("operand")
        return operand

    def _first_element(self, reader: ExpressionReader, offset: int) -> None:
        """Step over ``[0]`` after an array's name: what the name alone means.

        How far other elements lie is not known here.
        """
        taken = [reader.take() for _ in range(3)]
        if taken != ["[", "0", "]"]:
            hint = "write [name+bytes], or mov the name's address and add to it"
            raise self.cursor.error(offset, "array indexing is not taken but for [0]", hint)

    def _bracket(self, text: str, offset: int) -> Operand:
        if "," in text or "{" in text:
            parts = [self.read(part, offset + at) for part, at in self._split(text, offset)]
            if any(isinstance(part, Pair | Not | CallArguments | None) for part in parts):
                raise self.cursor.error(offset, "expected names, registers and vectors in [ ]")
            return TextureAddress(tuple(part for part in parts if part is not None))
        reader = ExpressionReader(self.cursor, offset, offset + len(text))
        token = reader.peek()
        base: Register | Symbol | None = None
        if is_name(token) and token != WARP_SIZE_NAME:
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
