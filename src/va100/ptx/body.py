"""Function bodies: statements read with one regular expression each.

Most of a PTX text is instructions, so this is where parsing time goes: opcode texts, guards and
operand texts repeat and are remembered, and offsets are kept instead of line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NoReturn, overload

from va100.ptx.directives import LINKAGES, MAX_EXPANSION, VARIABLE_SPACES, DirectiveReader
from va100.ptx.expressions import MAX_DEPTH
from va100.ptx.operands import OperandReader, Operands
from va100.ptx.program import Guard, Instruction, Label, Location, Scope, Span, Statement
from va100.ptx.text import Cursor

_STATEMENT: Final = re.compile(
    r"""\s*+(?:
      (?:(@)\s*+(!?+)\s*+([%$\w]++)\s++)?+     # 1 guarded, 2 negation, 3 guard
      ([a-z]\w*+(?:\s*+\.[\w:]++)*+)           # 4 operation
      (?![$%]|\s*+:)
      \s*+([^;]*+);                            # 5 operands
    | ([{}])                                   # 6 scope
    | ([A-Za-z_$%][\w$]*+)\s*+:(?!:)           # 7 label
    | (\.[a-z_]\w*(?:::\w+)?)                  # 8 directive
    )""",
    re.VERBOSE,
)
_OPERATION, _TEXT = 4, 5
_LOC: Final = re.compile(
    r"\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    r"(?:\s*+,\s*+function_name\s++([$A-Za-z][\w$]++)(?!\s*+\+)"
    r"\s*+,\s*+inlined_at\s++(\d{1,9})\s++(\d{1,9})\s++(\d{1,9}))?+"
    r"(?=\s*\n)(?!\s*,)"
)
"""``.loc`` as compilers write it; other spellings are read token by token."""


class BodyReader:
    """The statements of one function."""

    def __init__(
        self, cursor: Cursor, directives: DirectiveReader, operands: OperandReader
    ) -> None:
        self.cursor = cursor
        self.directives = directives
        self.operands = operands
        self._stack: list[tuple[list[Statement], int]] = []
        self._statements: list[Statement] = []
        self._guards: dict[tuple[str, str], Guard] = {}
        self._operations: dict[str, str] = {}

    def read(self, registers: Iterable[str] = ()) -> tuple[Statement, ...]:
        """Read from the opening brace to its closing one; ``registers`` are the parameters'."""
        self.operands.enter()
        for name in registers:
            self.operands.declare(name, None)
        body = self._statements_to_end()
        self.operands.leave()
        return body

    def _statements_to_end(self) -> tuple[Statement, ...]:
        cursor = self.cursor
        cursor.expect("{")
        position = cursor.position
        match_statement = _STATEMENT.match
        while True:
            match = match_statement(cursor.code, position)
            if match is None:
                self._fail(position)
            if match[_OPERATION] is not None:
                self._instruction(match)
                position = match.end()
                continue
            position = self._other(match)
            if position < 0:
                cursor.jump(match.end())
                return tuple(self._statements)

    def _instruction(self, match: re.Match[str]) -> None:
        guarded, negation, register, text, operands_text, *_ = match.groups()
        op = self._operations.get(text)
        if op is None:
            op = self._operations[text] = "".join(text.split())
        operands: Operands
        if op[:4] == "call" and op[4:5] in ("", "."):
            operands = self.operands.read_call(operands_text, match.start(_TEXT))
        elif operands_text:
            operands = self.operands.read_list(operands_text, match.start(_TEXT))
        else:
            operands = ()
        guard = None
        start = match.start(_OPERATION)
        if guarded is not None:
            start = match.start(1)
            guard = self._guards.get((negation, register))
            if guard is None:
                guard = self._guards[negation, register] = Guard(register, negation == "!")
        self._statements.append(Instruction(op, operands, guard, Span(start, match.end())))

    def _other(self, match: re.Match[str]) -> int:
        """Take what is no instruction; return where to go on, -1 at the body's end."""
        *_, brace, label, directive = match.groups()
        if brace == "{":
            self._open(match.start(6))
        elif brace == "}":
            if not self._stack:
                return -1
            self._close(match.end())
        elif label is not None:
            return self._label(label, match.start(7), match.end())
        else:
            return self._directive(directive, match.start(8), match.end())
        return match.end()

    def _fail(self, position: int) -> NoReturn:
        cursor = self.cursor
        cursor.jump(position)
        token = cursor.peek()
        if not token:
            cursor.fail("expected '}' to end the function before the end of the text")
        if token == "@" or (token[0].islower() and token.isalnum()):
            cursor.fail(f"expected an instruction that ends in ';', found {token!r}")
        cursor.fail_expected("an instruction, a label, a directive or '}'")

    def _open(self, start: int) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise self.cursor.error(start, "scopes nested too deep")
        self._stack.append((self._statements, start))
        self._statements = []
        self.operands.enter()

    def _close(self, end: int) -> None:
        inner = tuple(self._statements)
        self._statements, start = self._stack.pop()
        self._statements.append(Scope(inner, Span(start, end)))
        self.operands.leave()

    def _label(self, name: str, start: int, end: int) -> int:
        cursor = self.cursor
        cursor.jump(end)
        token = cursor.peek()
        if token == ".callprototype":
            cursor.take()
            self._statements.append(self.directives.prototype(name, start))
            return cursor.position
        if token in (".branchtargets", ".calltargets"):
            cursor.take()
            self._statements.append(self.directives.targets(name, token[1:], start))
            return cursor.position
        self._statements.append(Label(name, Span(start, end)))
        return end

    def _directive(self, directive: str, start: int, end: int) -> int:
        cursor = self.cursor
        cursor.jump(end)
        if directive == ".loc":
            return self._location(start)
        if directive == ".loc_intermediate":
            found = self.directives.location(start)
            self._statements.append(replace(found, intermediate=True))
            return found.span.end
        if directive == ".reg":
            self._registers(start)
        elif directive == ".pragma":
            self._statements.append(self.directives.pragma(start))
        elif directive in VARIABLE_SPACES or directive in LINKAGES:
            linkage = directive[1:] if directive in LINKAGES else ""
            if not linkage:
                cursor.jump(start)
            self._statements += self.directives.variables(start, linkage)
        else:
            raise cursor.error(
                start, f"expected a statement, found {directive!r}, which has no place in a body"
            )
        return cursor.position

    def _location(self, start: int) -> int:
        plain = _LOC.match(self.cursor.code, start)
        location = self._plain_location(plain) if plain else self.directives.location(start)
        self._statements.append(location)
        return location.span.end

    @staticmethod
    def _plain_location(found: re.Match[str]) -> Location:
        file, line, column, name, *at = found.groups()
        numbers = int(file), int(line), int(column)
        if name is None:
            return Location(*numbers, Span(*found.span()))
        inlined_at = int(at[0]), int(at[1]), int(at[2])
        return Location(*numbers, Span(*found.span()), name, inlined_at)

    def _registers(self, start: int) -> None:
        declaration = self.directives.registers(start)
        for name, count in declaration.names:
            if name[0] != "%" and count is not None and count > MAX_EXPANSION:
                raise self.cursor.error(start, f"{count} registers in one declaration are too many")
            self.operands.declare(name, count)
        self._statements.append(declaration)


class UnreadBody(Sequence[Statement]):
    """The statements of a function that an earlier reading accepted, read when first looked at.

    Parameters
    ----------
    cursor : Cursor
        Stands on the opening brace; not moved.
    registers : sequence of str
        Parameters in registers.
    """

    __slots__ = ("_cursor", "_place", "_registers", "_statements")

    def __init__(self, cursor: Cursor, registers: Sequence[str]) -> None:
        self._cursor = cursor
        self._place = cursor.position
        self._registers = registers
        self._statements: tuple[Statement, ...] | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All of them."""
        if self._statements is None:
            cursor = self._cursor.at(self._place)
            reader = BodyReader(cursor, DirectiveReader(cursor), OperandReader(cursor))
            self._statements = reader.read(self._registers)
        return self._statements

    @overload
    def __getitem__(self, index: int) -> Statement: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Statement, ...]: ...
    def __getitem__(self, index: int | slice) -> Statement | tuple[Statement, ...]:
        return self.statements[index]

    def __len__(self) -> int:
        return len(self.statements)

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, UnreadBody):
            return self.statements == other.statements
        return self.statements == other

    def __hash__(self) -> int:
        return hash(self.statements)
