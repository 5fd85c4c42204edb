"""PTX text to the tree of :mod:`va100.ptx.program`.

Module scope is read here, bodies in :mod:`va100.ptx.body`, declarations that occur in both in
:mod:`va100.ptx.directives`.  Only form is checked; the rules of the language are
:mod:`va100.ptx.verify`'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from va100.ptx.body import BodyReader, UnreadBody
from va100.ptx.directives import LINKAGES, VARIABLE_SPACES, DirectiveReader
from va100.ptx.operands import OperandReader
from va100.ptx.program import (
    Alias,
    Function,
    PtxModule,
    Section,
    SourceFile,
    Span,
    Statement,
    TopLevel,
)
from va100.ptx.text import Cursor
from va100.ptx.types import Space

_SECTION_END: Final = re.compile(r'(?:[^"{}]|"[^"\n]*")*+')
_SOURCES_END: Final = re.compile(r"[{}]|\.source_begin\b.*?\.source_end\b", re.DOTALL)
_REST_OF_LINE: Final = re.compile(r"[^\n]*")
_DWARF: Final = re.compile(r"@@DWARF[^\n]*")
_VERSION: Final = re.compile(r"\s*(\d{1,4})\.(\d{1,4})(?![\w.])")

DEFAULT_ADDRESS_SIZE: Final = 64
"""What a 64-bit assembler takes when the text does not say."""


def parse(text: str, name: str = "<ptx>", ends: Mapping[int, int] | None = None) -> PtxModule:
    """Parse a whole PTX text.

    Parameters
    ----------
    text : str
    name : str
        The file's name, for messages.
    ends : mapping of int to int, optional
        What :func:`function_ends` told of the same text when it was read before: bodies are then
        passed over, and read when somebody asks for their statements.

    Raises
    ------
    PtxSyntaxError
        With place, line and caret, when the text is not PTX.
    """
    return _ModuleReader(text.rstrip("\0"), name, ends or {}).read()


def function_ends(module: PtxModule) -> dict[int, int]:
    """Where each function that has a body ends, by where it begins."""
    return {f.span.start: f.span.end for f in module.functions if f.body is not None}


class _ModuleReader:
    """Module scope: header, variables, functions, files, sections."""

    def __init__(self, text: str, name: str, ends: Mapping[int, int]) -> None:
        self.cursor = Cursor(text, name)
        self.ends = ends
        self.directives = DirectiveReader(self.cursor)
        self.operands = OperandReader(self.cursor)
        self.version: tuple[int, int] | None = None
        self.target: tuple[str, ...] | None = None
        self.address_size: int | None = None
        self.items: list[TopLevel] = []

    def read(self) -> PtxModule:
        """Read everything."""
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
        del start  # a later .target adds to an earlier one
        targets = self.directives.names("a target such as sm_80")
        self.target = tuple(dict.fromkeys((self.target or ()) + targets))

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

    def _embedded_sources(self, start: int) -> None:
        """Keep ``{ … }`` with nested braces, sources between their marks passed over."""
        cursor = self.cursor
        begin = cursor.position
        cursor.expect("{")
        depth = 1
        position = cursor.position
        while depth:
            match = _SOURCES_END.search(cursor.code, position)
            if match is None:
                raise cursor.error(start, "expected '}' to end the sources")
            depth += {"{": 1, "}": -1}.get(match.group(), 0)
            position = match.end()
        cursor.jump(position)
        name = ".nv_intermediate_source_section"
        text = cursor.source[begin:position]
        self.items.append(Section(name, text, Span(start, position)))

    def _language(self, start: int) -> None:
        end = _REST_OF_LINE.match(self.cursor.code, self.cursor.position)
        position = end.end() if end else self.cursor.position
        text = self.cursor.source[start + len(".language") : position].rstrip()
        self.cursor.jump(position)
        self.items.append(Section(".language", text, Span(start, position)))

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
        body: Sequence[Statement] | None = None
        if cursor.peek() == "{":
            registers = [v.name for v in (*returns, *params) if v.space is Space.REG]
            if start in self.ends:
                body = UnreadBody(cursor, registers)
                cursor.jump(self.ends[start])
            else:
                body = BodyReader(cursor, directives, self.operands).read(registers)
        elif not cursor.accept(";"):
            cursor.fail_expected("'{' to begin the body or ';' to end the declaration")
        return Function(
            name=name, is_kernel=is_kernel, params=params, span=Span(start, cursor.position),
            returns=returns, linkage=linkage, directives=tuning, body=body, attributes=attributes,
            pragmas=pragmas,
        )  # fmt: skip


_HEADERS: Final = {
    ".version": _ModuleReader._version,
    ".target": _ModuleReader._target,
    ".address_size": _ModuleReader._address_size,
    ".file": _ModuleReader._file,
    ".section": _ModuleReader._section,
    ".pragma": _ModuleReader._pragma,
    ".language": _ModuleReader._language,
    ".nv_intermediate_source_section": _ModuleReader._embedded_sources,
}
