"""PTX text to the tree of :mod:`va100.ptx.program`.

Bodies are read statement by statement with one regular expression (most of a text is
instructions); everything else token by token in :mod:`va100.ptx.directives`.  Only form is
checked here; the rules of the language are :mod:`va100.ptx.verify`'s.
"""

from __future__ import annotations

import re
from typing import Final

from va100.ptx.directives import LINKAGES, VARIABLE_SPACES, DirectiveReader
from va100.ptx.operands import MAX_DEPTH, OperandReader
from va100.ptx.program import (
    Alias,
    Function,
    Guard,
    Instruction,
    Label,
    Location,
    Pragma,
    PtxModule,
    Scope,
    Section,
    SourceFile,
    Span,
    Statement,
    TopLevel,
    Variable,
)
from va100.ptx.text import Cursor

_STATEMENT: Final = re.compile(
    r"""\s*+(?:
      (?:@\s*+(!?+)\s*+([%$\w]++)\s++)?+       # 1 negation, 2 guard
      ([a-z]\w*+(?:\s*+\.[\w:]++)*+)           # 3 operation
      (?![$%]|\s*+:)
      \s*+([^;]*+);                            # 4 operands
    | ([{}])                                   # 5 scope
    | ([A-Za-z_$%][\w$]*+)\s*+:(?!:)           # 6 label
    | (\.[a-z_]\w*(?:::\w+)?)                  # 7 directive
    )""",
    re.VERBOSE,
)
_LOC: Final = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?=\s*\n)(?!\s*,)")
_SECTION_END: Final = re.compile(r'(?:[^"{}]|"[^"\n]*")*+')
_DWARF: Final = re.compile(r"@@DWARF[^\n]*")
_VERSION: Final = re.compile(r"\s*(\d{1,4})\.(\d{1,4})(?![\w.])")

DEFAULT_ADDRESS_SIZE: Final = 64
"""What a 64-bit assembler takes when the text does not say."""


def parse(text: str, name: str = "<ptx>") -> PtxModule:
    """Parse a whole PTX text.

    Parameters
    ----------
    text : str
    name : str
        The file's name, for messages.

    Raises
    ------
    PtxSyntaxError
        With place, line and caret, when the text is not PTX.
    """
    return _ModuleReader(text.rstrip("\0"), name).read()


class _ModuleReader:
    """Module scope: header, variables, functions, files, sections."""

    def __init__(self, text: str, name: str) -> None:
        self.cursor = Cursor(text, name)
        self.directives = DirectiveReader(self.cursor)
        self.operands = OperandReader(self.cursor)
        self.version: tuple[int, int] | None = None
        self.target: tuple[str, ...] | None = None
        self.address_size: int | None = None
        self.items: list[TopLevel] = []

    def read(self) -> PtxModule:
        cursor = self.cursor
        while cursor.peek():
            self._item()
        version = self.version
        if version is None:
            raise cursor.error(0, "expected .version before anything else")
        if self.target is None:
            raise cursor.error(0, "expected .target after .version")
        return PtxModule(
            version=version,
            target=self.target,
            address_size=self.address_size or DEFAULT_ADDRESS_SIZE,
            items=tuple(self.items),
            source=cursor.source,
            name=cursor.name,
        )

    def _item(self) -> None:
        cursor = self.cursor
        token = cursor.peek()
        start = cursor.position
        if token == ";":
            cursor.take()
        elif token == "@":
            self._dwarf_line(start)
        elif self.version is None and token != ".version":
            cursor.fail_expected(".version before anything else")
        elif (reader := _HEADERS.get(token)) is not None:
            cursor.take()
            reader(self, start)
        elif self.target is None:
            cursor.fail_expected(".target after .version")
        elif token in LINKAGES or token in VARIABLE_SPACES or token in (".entry", ".func"):
            self._declaration(start)
        elif token == ".alias":
            cursor.take()
            self._alias(start)
        else:
            cursor.fail_expected("a directive such as .entry, .func or .global")

    # -- header and small directives

    def _version(self, start: int) -> None:
        match = _VERSION.match(self.cursor.code, self.cursor.position)
        if match is None:
            self.cursor.fail_expected("a version such as 9.0")
        if self.version is not None:
            raise self.cursor.error(start, ".version is given twice")
        self.version = (int(match[1]), int(match[2]))
        self.cursor.jump(match.end())

    def _target(self, start: int) -> None:
        targets = self.directives.names("a target such as sm_80")
        if self.target is not None and self.target != targets:
            raise self.cursor.error(start, ".target is given twice")
        self.target = targets

    def _address_size(self, start: int) -> None:
        size = self.directives.literal("32 or 64")
        if size not in (32, 64):
            raise self.cursor.error(start, f"address size {size} is neither 32 nor 64")
        self.address_size = size

    def _file(self, start: int) -> None:
        cursor = self.cursor
        index = self.directives.literal("a file index")
        path = cursor.take_string("a file name in quotes")
        trailer: tuple[int, ...] = ()
        while cursor.accept(","):
            trailer += (self.directives.literal("a time stamp or size"),)
        cursor.accept(";")
        self.items.append(SourceFile(index, path, Span(start, cursor.position), trailer))

    def _section(self, start: int) -> None:
        cursor = self.cursor
        name = cursor.peek()
        if name[:1] != "." and not name[:1].isalpha():
            cursor.fail_expected("a section name")
        cursor.take()
        cursor.expect("{")
        begin = cursor.position
        match = _SECTION_END.match(cursor.code, begin)
        end = match.end() if match else begin
        if cursor.code[end : end + 1] != "}":
            raise cursor.error(end, f"expected '}}' to end section {name}")
        cursor.jump(end + 1)
        self.items.append(Section(name, cursor.source[begin:end], Span(start, end + 1)))

    def _dwarf_line(self, start: int) -> None:
        match = _DWARF.match(self.cursor.source, start)
        if match is None:
            self.cursor.fail_expected("a directive such as .entry, .func or .global")
        self.cursor.jump(match.end())
        text = match.group().removeprefix("@@DWARF")
        self.items.append(Section("@@DWARF", text, Span(start, match.end())))

    def _pragma(self, start: int) -> None:
        self.items.append(self.directives.pragma(start))

    def _alias(self, start: int) -> None:
        cursor = self.cursor
        name = cursor.take_name("a function name")
        cursor.expect(",")
        aliasee = cursor.take_name("a function name")
        cursor.expect(";", " after .alias")
        self.items.append(Alias(name, aliasee, Span(start, cursor.position)))

    # -- declarations

    def _declaration(self, start: int) -> None:
        cursor = self.cursor
        linkage = ""
        while cursor.peek() in LINKAGES:
            if linkage:
                cursor.fail("only one linking directive is allowed")
            linkage = cursor.take()[1:]
        if cursor.peek() in (".entry", ".func"):
            self.items.append(self._function(start, linkage))
        else:
            self.items += self.directives.variables(start, linkage)

    def _function(self, start: int, linkage: str) -> Function:
        cursor, directives = self.cursor, self.directives
        is_kernel = cursor.take() == ".entry"
        attributes = directives.function_attributes()
        returns = directives.parameters() if not is_kernel else ()
        name = cursor.take_name("a function name")
        params = directives.parameters()
        tuning, pragmas = directives.tuning()
        body: tuple[Statement, ...] | None = None
        if cursor.peek() == "{":
            self.operands.enter()
            for variable in (*returns, *params):
                if variable.space.value == "reg":
                    self.operands.declare(variable.name, None)
            body = _BodyReader(cursor, directives, self.operands).read()
            self.operands.leave()
        elif not cursor.accept(";"):
            cursor.fail_expected("'{' to begin the body or ';' to end the declaration")
        return Function(
            name=name, is_kernel=is_kernel, params=params, span=Span(start, cursor.position),
            returns=returns, linkage=linkage, directives=tuning, body=body, attributes=attributes,
            pragmas=pragmas,
        )  # fmt: skip


_HEADERS: Final = {
    ".version": _ModuleReader._version,  # noqa: SLF001
    ".target": _ModuleReader._target,  # noqa: SLF001
    ".address_size": _ModuleReader._address_size,  # noqa: SLF001
    ".file": _ModuleReader._file,  # noqa: SLF001
    ".section": _ModuleReader._section,  # noqa: SLF001
    ".pragma": _ModuleReader._pragma,  # noqa: SLF001
}


class _BodyReader:
    """The statements of one function."""

    def __init__(
        self, cursor: Cursor, directives: DirectiveReader, operands: OperandReader
    ) -> None:
        self.cursor = cursor
        self.directives = directives
        self.operands = operands
        self._stack: list[tuple[list[Statement], int]] = []
        self._statements: list[Statement] = []

    def read(self) -> tuple[Statement, ...]:
        """Read from the opening brace to its closing one."""
        cursor = self.cursor
        cursor.expect("{")
        code = cursor.code
        position = cursor.position
        match_statement = _STATEMENT.match
        read_list = self.operands.read_list
        guards: dict[tuple[str, str], Guard] = {}
        while True:
            match = match_statement(code, position)
            if match is None:
                self._fail(position)
            negated, register, op, text, brace, label, directive = match.groups()
            if op is not None:
                guard = None
                if register is not None:
                    guard = guards.get((negated, register))
                    if guard is None:
                        guard = guards[negated, register] = Guard(register, negated == "!")
                if not op.startswith("call"):
                    operands = read_list(text, match.start(4)) if text else ()
                else:
                    op = "".join(op.split())
                    operands = self._call(op, text, match.start(4))
                start = match.start(3) if register is None else code.index("@", position)
                position = match.end()
                if not op.isalnum() and len(op.split()) > 1:
                    op = "".join(op.split())
                self._statements.append(Instruction(op, operands, guard, Span(start, position)))
            elif brace == "{":
                self._open(match.start(5))
                position = match.end()
            elif brace == "}":
                position = match.end()
                if not self._stack:
                    cursor.jump(position)
                    return tuple(self._statements)
                self._close(position)
            elif label is not None:
                position = self._label(label, match.start(6), match.end())
            else:
                position = self._directive(directive, match.start(7), match.end())

    def _fail(self, position: int) -> None:
        cursor = self.cursor
        cursor.jump(position)
        token = cursor.peek()
        if not token:
            cursor.fail("expected '}' to end the function before the end of the text")
        if token == ";":
            cursor.fail("expected a statement, found ';'")
        if token == "@" or (token[0].islower() and token.isalnum()):
            cursor.fail(f"expected an instruction that ends in ';', found {token!r}")
        cursor.fail_expected("an instruction, a label, a directive or '}'")

    def _call(self, op: str, text: str, offset: int) -> tuple[object, ...]:
        if op.partition(".")[0] == "call":
            return self.operands.read_call(text, offset)
        return self.operands.read_list(text, offset) if text else ()

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
        if directive == ".loc" and (plain := _LOC.match(cursor.code, start)):
            file, line, column = (int(n) for n in plain.groups())
            self._statements.append(Location(file, line, column, Span(start, plain.end())))
            return plain.end()
        cursor.jump(end)
        if directive == ".reg":
            declaration = self.directives.registers(start)
            for name, count in declaration.names:
                if name[0] != "%":
                    self._declare(name, count, start)
            self._statements.append(declaration)
        elif directive == ".loc":
            self._statements.append(self.directives.location(start))
            return self._statements[-1].span.end
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

    def _declare(self, name: str, count: int | None, start: int) -> None:
        if count is not None and count > 1 << 16:
            raise self.cursor.error(start, f"{count} registers in one declaration are too many")
        self.operands.declare(name, count)


__all__ = ["Pragma", "Variable", "parse"]
