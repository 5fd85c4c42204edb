"""Declarations and directives that occur both at module scope and inside bodies.

Variables with their initialisers, parameters, call prototypes, target lists, ``.loc``,
``.pragma`` and the performance-tuning directives.
"""

from __future__ import annotations

from math import prod
from typing import Final

from va100.ptx.expressions import MAX_DEPTH, WARP_SIZE_NAME, ExpressionReader, literal
from va100.ptx.program import (
    CallPrototype,
    Immediate,
    InitialElement,
    Initializer,
    Location,
    PointerAttribute,
    Pragma,
    RegisterDecl,
    Span,
    Symbol,
    TargetList,
    Variable,
)
from va100.ptx.text import Cursor, is_name
from va100.ptx.types import SPACES, TYPES, PtxType, Space

LINKAGES: Final = frozenset({".extern", ".visible", ".weak", ".common"})
VARIABLE_SPACES: Final = frozenset(
    {".const", ".global", ".local", ".param", ".shared", ".tex", ".shared::cta", ".sreg"}
)
TUNING: Final = {
    ".maxnreg": (1, 1),
    ".maxntid": (1, 3),
    ".reqntid": (1, 3),
    ".minnctapersm": (1, 1),
    ".maxnctapersm": (1, 1),
    ".noreturn": (0, 0),
    ".explicitcluster": (0, 0),
    ".reqnctapercluster": (1, 3),
    ".maxclusterrank": (1, 1),
    ".blocksareclusters": (0, 0),
    ".abi_preserve": (1, 1),
    ".abi_preserve_control": (1, 1),
    ".minperctamemory": (1, 1),
}
"""Directive between a function's parameters and its body, to how many numbers it takes."""

MAX_EXPANSION: Final = 1 << 16
"""Names a ``x<N>`` declaration of memory variables, or zeros an initialiser, may stand for."""

_MASKS: Final = tuple(0xFF << shift for shift in range(0, 64, 8))
_VECTORS: Final = {".v2": 2, ".v4": 4, ".v8": 8}


class DirectiveReader:
    """Reads declarations from a cursor that stands on or after the directive's name."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    # -- numbers and names

    def integer(self, what: str) -> int:
        """Read an integer constant expression."""
        cursor = self.cursor
        cursor.peek()
        start = cursor.position
        value = ExpressionReader(cursor, start, len(cursor.code)).constant()
        if value.kind != "int":
            raise cursor.error(start, f"expected {what}, an integer")
        return value.value

    def natural(self, what: str) -> int:
        """Read an integer that is not negative."""
        self.cursor.peek()
        start = self.cursor.position
        value = self.integer(what)
        if value < 0:
            raise self.cursor.error(start, f"{what} cannot be negative")
        return value

    def literal(self, what: str) -> int:
        """Read one integer literal, no expression."""
        value = literal(token) if (token := self.cursor.peek())[:1].isdigit() else None
        if value is None or value.kind != "int":
            self.cursor.fail_expected(f"{what}, an integer")
        self.cursor.take()
        return value.value

    def integers(self, least: int, most: int, what: str) -> tuple[int, ...]:
        """Read ``least`` to ``most`` comma-separated integers."""
        if most == 0:
            return ()
        numbers = [self.natural(what)]
        while len(numbers) < most and self.cursor.accept(","):
            numbers.append(self.natural(what))
        if len(numbers) < least:
            self.cursor.fail_expected(f"{least} numbers for {what}")
        return tuple(numbers)

    def names(self, what: str) -> tuple[str, ...]:
        """Read comma-separated names; ``N<3>`` stands for ``N0, N1, N2``."""
        found = self._enumerated(what)
        while self.cursor.accept(","):
            found += self._enumerated(what)
        return tuple(found)

    def _enumerated(self, what: str) -> list[str]:
        name = self.cursor.take_name(what)
        count = self.count()
        if count is None:
            return [name]
        if count > MAX_EXPANSION:
            self.cursor.fail(f"{count} names in one list are too many")
        return [f"{name}{index}" for index in range(count)]

    def type(self) -> PtxType:
        """Read a type specifier."""
        token = self.cursor.peek()
        kind = TYPES.get(token[1:]) if token[:1] == "." else None
        if kind is None:
            self.cursor.fail_expected("a type such as .b32")
        self.cursor.take()
        return kind

    def count(self) -> int | None:
        """Read ``<N>`` after a name, if it is there."""
        if not self.cursor.accept("<"):
            return None
        number = self.literal("a register count")
        self.cursor.expect(">")
        return number

    # -- registers

    def registers(self, start: int) -> RegisterDecl:
        """Read after ``.reg``."""
        cursor = self.cursor
        self._alignment()
        vector = _VECTORS.get(cursor.peek(), 1)
        if vector > 1:
            cursor.take()
        kind = self.type()
        names = [(cursor.take_name("a register name"), self.count())]
        while cursor.accept(","):
            names.append((cursor.take_name("a register name"), self.count()))
        cursor.expect(";", " after the register declaration")
        return RegisterDecl(kind, tuple(names), Span(start, cursor.position), vector)

    # -- variables

    def variables(self, start: int, linkage: str = "") -> list[Variable]:
        """Read a variable declaration from its state space on, ``;`` included."""
        space, attributes, align, vector, kind = self._variable_head()
        found: list[Variable] = []
        while True:
            found += self._declarator(start, linkage, space, attributes, align, vector, kind)
            if not self.cursor.accept(","):
                break
        self.cursor.expect(";", " after the declaration")
        return found

    def parameter(self) -> Variable:
        """Read one parameter of a function, kernel or prototype."""
        cursor = self.cursor
        if cursor.peek() not in (".param", ".reg"):
            cursor.fail_expected(".param or .reg")
        start = cursor.position
        space = SPACES[cursor.take()[1:]]
        attributes, align, vector, pointer, kind = self._parameter_type()
        if pointer is None:
            pointer = self._pointer()
        name = cursor.take_name("a parameter name") if cursor.peek() != "_" else cursor.take()
        shape = self._shape()
        return Variable(
            name=name, space=space, type=kind, span=Span(start, cursor.position), align=align,
            vector=vector, shape=shape, attributes=attributes, pointer=pointer,
        )  # fmt: skip

    def parameters(self) -> tuple[Variable, ...]:
        """Read a parenthesised list; empty when there is no parenthesis."""
        if not self.cursor.accept("("):
            return ()
        found: list[Variable] = []
        if not self.cursor.accept(")"):
            found.append(self.parameter())
            while self.cursor.accept(","):
                found.append(self.parameter())
            self.cursor.expect(")", " after the parameters")
        return tuple(found)

    def _parameter_type(
        self,
    ) -> tuple[tuple[str, ...], int | None, int, PointerAttribute | None, PtxType]:
        attributes = self._attributes()
        align = self._alignment()
        vector = _VECTORS.get(self.cursor.peek(), 1)
        if vector > 1:
            self.cursor.take()
        kind = self.type()
        pointer = self._pointer()
        if pointer is None and align is None:
            align = self._alignment()
        return attributes, align, vector, pointer, kind

    def _pointer(self) -> PointerAttribute | None:
        if not self.cursor.accept(".ptr"):
            return None
        space = Space.GENERIC
        token = self.cursor.peek()
        if token[1:] in SPACES:
            space = SPACES[self.cursor.take()[1:]]
        elif token == ".shared::cta":
            self.cursor.take()
            space = Space.SHARED
        return PointerAttribute(space, self._alignment() or 4)

    def _variable_head(
        self,
    ) -> tuple[Space, tuple[str, ...], int | None, int, PtxType]:
        cursor = self.cursor
        if cursor.peek() not in VARIABLE_SPACES:
            cursor.fail_expected("a state space such as .global")
        space = SPACES[cursor.take()[1:].partition("::")[0]]
        attributes: tuple[str, ...] = ()
        align: int | None = None
        vector = 1
        while True:
            token = cursor.peek()
            if token == ".attribute":
                attributes += self._attributes()
            elif token == ".align":
                align = self._alignment()
            elif token in _VECTORS:
                vector = _VECTORS[cursor.take()]
            else:
                return space, attributes, align, vector, self.type()

    def _alignment(self) -> int | None:
        if not self.cursor.accept(".align"):
            return None
        self.cursor.peek()
        start = self.cursor.position
        value = self.natural("an alignment")
        if value == 0 or value & (value - 1):
            raise self.cursor.error(start, f"alignment {value} is no power of two")
        return value

    def _attributes(self) -> tuple[str, ...]:
        """Read ``.attribute(.managed, .unified(1, 2))``: texts without the dots."""
        cursor = self.cursor
        if not cursor.accept(".attribute"):
            return ()
        cursor.expect("(")
        found = []
        while True:
            token = cursor.peek()
            if token[:1] != ".":
                cursor.fail_expected("an attribute such as .managed")
            text = cursor.take()[1:]
            if cursor.accept("("):
                numbers = self.integers(1, 2, "an attribute")
                cursor.expect(")")
                text += "(" + ", ".join(str(n) for n in numbers) + ")"
            found.append(text)
            if not cursor.accept(","):
                break
        cursor.expect(")", " after the attributes")
        return tuple(found)

    def _shape(self) -> tuple[int, ...]:
        shape = []
        while self.cursor.accept("["):
            if self.cursor.accept("]"):
                shape.append(0)
                continue
            shape.append(self.natural("an array size"))
            self.cursor.expect("]")
        return tuple(shape)

    def _declarator(  # noqa: PLR0913, PLR0917  the parts of one declaration
        self, start: int, linkage: str, space: Space, attributes: tuple[str, ...],
        align: int | None, vector: int, kind: PtxType,
    ) -> list[Variable]:  # fmt: skip
        cursor = self.cursor
        name = cursor.take_name("a variable name")
        count = self.count()
        shape = self._shape()
        initializer = None
        if count is None and cursor.accept("="):
            initializer, shape = self._initializer(shape, vector)
        if count is not None and count > MAX_EXPANSION:
            cursor.fail(f"{count} variables in one declaration are too many")
        names = [name] if count is None else [f"{name}{i}" for i in range(count)]
        managed = "managed" in attributes
        rest = tuple(a for a in attributes if a != "managed")
        return [
            Variable(
                name=each, space=space, type=kind, span=Span(start, cursor.position), align=align,
                vector=vector, shape=shape, initializer=initializer, linkage=linkage,
                managed=managed, attributes=rest,
            )
            for each in names
        ]  # fmt: skip

    # -- initialisers

    def _initializer(
        self, shape: tuple[int, ...], vector: int
    ) -> tuple[Initializer, tuple[int, ...]]:
        dimensions = shape if vector == 1 else (*shape, vector)
        token, place = self.cursor.peek(), self.cursor.position
        if token != "{":
            return Initializer((self._initial_value(),)), shape
        elements = self._initial_list(dimensions[1:], 0)
        if shape and shape[0] == 0:
            inner = prod(dimensions[1:]) or 1
            shape = (-(-len(elements) // inner), *shape[1:])
            dimensions = shape if vector == 1 else (*shape, vector)
        room = prod(dimensions)
        if len(elements) > room and not is_setting(elements[0]):
            raise self.cursor.error(
                place, f"{len(elements)} values for {room} element{'s' if room != 1 else ''}"
            )
        return Initializer(tuple(elements)), shape

    def _initial_list(self, inner: tuple[int, ...], depth: int) -> list[InitialElement]:
        cursor = self.cursor
        if depth > MAX_DEPTH:
            cursor.fail("initialiser nested too deep")
        cursor.expect("{")
        elements: list[InitialElement] = []
        while cursor.peek() != "}":
            if cursor.peek() == "{":
                part = self._initial_list(inner[1:], depth + 1)
                missing = prod(inner) - len(part) if inner else 0
                if missing > MAX_EXPANSION:
                    cursor.fail(f"{missing} zeros to fill in are too many")
                elements += part + [Immediate(0, "int")] * missing
            else:
                elements.append(self._initial_value())
            if not cursor.accept(","):
                break
        cursor.expect("}", " or ',' in the initialiser")
        return elements

    def _initial_value(self) -> InitialElement:
        cursor = self.cursor
        token = cursor.peek()
        reader = ExpressionReader(cursor, cursor.position, len(cursor.code))
        if token == "generic":
            cursor.take()
            cursor.expect("(")
            symbol = self._symbol()
            cursor.expect(")")
            return ("generic", Symbol(symbol.name, symbol.offset + reader.trailing_offset()))
        if is_name(token) and token != WARP_SIZE_NAME:
            symbol = reader.symbol()
            if cursor.accept("="):
                return (symbol.name, self._setting())
            return symbol
        value = reader.constant()
        if value.kind == "int" and cursor.peek() == "(":
            if value.value not in _MASKS:
                cursor.fail(f"{value.value:#x} selects no byte; expected 0xFF, 0xFF00, …")
            cursor.take()
            element = self._masked(value.value)
            cursor.expect(")")
            return element
        return value

    def _masked(self, mask: int) -> InitialElement:
        if not is_name(self.cursor.peek()):
            value = self.integer("a name or a constant")
            return Immediate(((value & mask) >> (_MASKS.index(mask) * 8)) & 0xFF, "int")
        if self.cursor.accept("generic"):
            self.cursor.expect("(")
            symbol = self._symbol()
            self.cursor.expect(")")
            reader = ExpressionReader(self.cursor, self.cursor.position, len(self.cursor.code))
            offset = symbol.offset + reader.trailing_offset()
            return (mask, Symbol(f"generic({symbol.name})", offset))
        return (mask, self._symbol())

    def _setting(self) -> Symbol | Immediate:
        if is_name(self.cursor.peek()):
            return Symbol(self.cursor.take())
        return Immediate(self.integer("a setting"), "int")

    def _symbol(self) -> Symbol:
        cursor = self.cursor
        name = cursor.take_name("a variable or function name")
        reader = ExpressionReader(cursor, cursor.position, len(cursor.code))
        return Symbol(name, reader.trailing_offset())

    # -- other directives

    def location(self, start: int) -> Location:
        """Read after ``.loc``, or ``.loc_intermediate``, which has the three numbers only."""
        cursor = self.cursor
        file, line, column = (self.literal("a number of .loc") for _ in range(3))
        function_name = ""
        inlined_at = None
        end = cursor.position
        while cursor.accept(","):
            word = cursor.take_name("function_name or inlined_at")
            if word == "function_name":
                function_name = self._function_name()
            elif word == "inlined_at":
                inlined_at = (
                    self.literal("a number of .loc"),
                    self.literal("a number of .loc"),
                    self.literal("a number of .loc"),
                )
            else:
                cursor.fail(f"{word!r} is no part of .loc; expected function_name or inlined_at")
            end = cursor.position
        return Location(file, line, column, Span(start, end), function_name, inlined_at)

    def _function_name(self) -> str:
        """Read a label or section, perhaps with an offset: ``.debug_str+16``."""
        cursor = self.cursor
        name = cursor.peek()
        if not is_name(name.removeprefix(".")):
            cursor.fail_expected("a label in .debug_str")
        cursor.take()
        offset = ExpressionReader(cursor, cursor.position, len(cursor.code)).trailing_offset()
        return f"{name}+{offset}" if offset else name

    def pragma(self, start: int) -> Pragma:
        """Read after ``.pragma``."""
        texts = [self.cursor.take_string("a pragma in quotes")]
        while self.cursor.accept(","):
            texts.append(self.cursor.take_string("a pragma in quotes"))
        self.cursor.expect(";", " after .pragma")
        return Pragma(tuple(texts), Span(start, self.cursor.position))

    def prototype(self, name: str, start: int) -> CallPrototype:
        """Read after ``name: .callprototype``."""
        cursor = self.cursor
        returns = self.parameters()
        if not cursor.accept("_"):
            cursor.fail_expected("'_' in place of the function's name")
        params = self.parameters()
        noreturn = False
        directives = []
        while cursor.peek() != ";":
            token = cursor.peek()
            if token == ".noreturn":
                noreturn = True
            elif token not in (".abi_preserve", ".abi_preserve_control"):
                cursor.fail_expected("';' after the prototype")
            cursor.take()
            if token != ".noreturn":
                directives.append((token[1:], self.integers(*TUNING[token], token)))
        cursor.take()
        span = Span(start, cursor.position)
        return CallPrototype(name, returns, params, span, noreturn, tuple(directives))

    def targets(self, name: str, kind: str, start: int) -> TargetList:
        """Read after ``name: .branchtargets`` or ``.calltargets``."""
        found = self.names("a label" if kind == "branchtargets" else "a function name")
        self.cursor.expect(";", " after the list")
        return TargetList(name, kind, found, Span(start, self.cursor.position))

    def tuning(self) -> tuple[tuple[tuple[str, tuple[int, ...]], ...], tuple[str, ...]]:
        """Read the directives and pragmas between parameters and body."""
        cursor = self.cursor
        directives = []
        pragmas: list[str] = []
        while True:
            token = cursor.peek()
            if token == ".pragma":
                start = cursor.position
                cursor.take()
                pragmas += self.pragma(start).texts
            elif token in TUNING:
                cursor.take()
                directives.append((token[1:], self.integers(*TUNING[token], token)))
            else:
                return tuple(directives), tuple(pragmas)

    def function_attributes(self) -> tuple[str, ...]:
        """Read ``.attribute(…)`` of a function."""
        return self._attributes()


def is_setting(element: InitialElement) -> bool:
    """Tell whether an element of an initialiser is ``name = value``, of a sampler or texture."""
    if isinstance(element, Immediate | Symbol):
        return False
    return isinstance(element[0], str) and element[0] != "generic"
