"""Source variables by the debug sections of a PTX text, which are put together here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.watching import TEXT, Launch
from va100.debug.dwarf import (
    AT_BYTE_SIZE,
    AT_COUNT,
    AT_ENCODING,
    AT_HIGH_PC,
    AT_LINKAGE_OLD,
    AT_LOCATION,
    AT_LOW_PC,
    AT_MEMBER_LOCATION,
    AT_NAME,
    AT_TYPE,
    TAG_ARRAY,
    TAG_BASE,
    TAG_LEXICAL_BLOCK,
    TAG_MEMBER,
    TAG_PARAMETER,
    TAG_POINTER,
    TAG_STRUCTURE,
    TAG_SUBPROGRAM,
    TAG_SUBRANGE,
    TAG_UNIT,
    TAG_VARIABLE,
)
from va100.debug.expression import evaluate
from va100.debug.names import Names, debug_info
from va100.debug.types import text_of
from va100.gpu.watch import Moment
from va100.ptx.parser import parse

ABBREVIATIONS = {
    1: (TAG_UNIT, True, [(AT_NAME, 0x08)]),
    2: (TAG_BASE, False, [(AT_NAME, 8), (AT_ENCODING, 11), (AT_BYTE_SIZE, 11)]),
    3: (TAG_POINTER, False, [(AT_TYPE, 0x13)]),
    4: (TAG_SUBPROGRAM, True, [(AT_LINKAGE_OLD, 8), (AT_NAME, 8)]),
    5: (TAG_PARAMETER, False, [(AT_NAME, 8), (AT_TYPE, 0x13), (AT_LOCATION, 10)]),
    6: (TAG_VARIABLE, False, [(AT_NAME, 8), (AT_TYPE, 0x13), (AT_LOCATION, 10)]),
    7: (TAG_ARRAY, True, [(AT_TYPE, 0x13)]),
    8: (TAG_SUBRANGE, False, [(AT_COUNT, 11)]),
    9: (TAG_STRUCTURE, True, [(AT_NAME, 8), (AT_BYTE_SIZE, 11)]),
    10: (TAG_MEMBER, False, [(AT_NAME, 8), (AT_TYPE, 0x13), (AT_MEMBER_LOCATION, 10)]),
    11: (TAG_LEXICAL_BLOCK, True, [(AT_LOW_PC, 1), (AT_HIGH_PC, 1)]),
    12: (TAG_VARIABLE, False, [(AT_NAME, 0x0E), (AT_TYPE, 0x13)]),
}  # fmt: skip


def uleb(value: int) -> list[int]:
    out = []
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return out


class Writer:
    """Writes ``.debug_info`` as compilers spell it in PTX."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.size = 11

    def bytes(self, *values: int) -> None:
        self.lines.append(".b8 " + ",".join(map(str, values)))
        self.size += len(values)

    def text(self, value: str) -> None:
        self.bytes(*value.encode(), 0)

    def word(self, value: object) -> None:
        self.lines.append(f".b32 {value}")
        self.size += 4

    def address(self, name: str) -> None:
        self.lines.append(f".b64 {name}")
        self.size += 8

    def entry(self, code: int) -> int:
        at = self.size
        self.bytes(code)
        return at

    def in_register(self, name: str) -> None:
        code = [0x90, *uleb(int.from_bytes(name.encode(), "big"))]
        self.bytes(len(code), *code)

    def at_symbol(self, name: str, offset: int = 0) -> None:
        self.bytes(9 + 1 + len(uleb(offset)), 0x03)
        self.address(name)
        self.bytes(0x23, *uleb(offset))


def sections() -> str:
    w = Writer()
    w.entry(1)
    w.text("scale.cu")
    integer = w.entry(2)
    w.text("int")
    w.bytes(5, 4)
    real = w.entry(2)
    w.text("float")
    w.bytes(4, 4)
    pointer = w.entry(3)
    w.word(real)
    row = w.entry(7)
    w.word(integer)
    w.entry(8)
    w.bytes(4)
    w.bytes(0)
    pair = w.entry(9)
    w.text("Pair")
    w.bytes(8)
    for name, kind, offset in (("first", integer, 0), ("second", real, 4)):
        w.entry(10)
        w.text(name)
        w.word(kind)
        w.bytes(2, 0x23, offset)
    w.bytes(0)
    w.entry(4)
    w.text("scale")
    w.text("scale(float*, int)")
    w.entry(5)
    w.text("values")
    w.word(pointer)
    w.at_symbol("scale_param_0")
    for name, kind, symbol, offset in (
        ("row", row, "_ZZ5scalePfiE4tile", 0),
        ("pair", pair, "_ZZ5scalePfiE4tile", 8),
    ):
        w.entry(6)
        w.text(name)
        w.word(kind)
        w.at_symbol(symbol, offset)
    w.entry(6)
    w.text("i")
    w.word(integer)
    w.in_register("%r2")
    w.entry(11)
    w.address("$L__inner")
    w.address("END")
    w.entry(6)
    w.text("i")
    w.word(integer)
    w.in_register("%r6")
    w.bytes(0)
    w.entry(12)
    w.word("$L__name0")
    w.word(integer)
    w.bytes(0, 0)
    info = "\n".join(
        [f".b32 {w.size - 4}", ".b8 2", ".b8 0", ".b32 .debug_abbrev", ".b8 8", *w.lines]
    )
    return (
        f".section .debug_abbrev {{\n{abbreviations()}\n}}\n"
        f".section .debug_info {{\n{info}\n}}\n"
        ".section .debug_str {\n$L__name0:\n.b8 103,111,110,101,0\n}\n"
    )


def abbreviations() -> str:
    out: list[int] = []
    for code, (tag, has_children, attributes) in ABBREVIATIONS.items():
        out += [*uleb(code), *uleb(tag), int(has_children)]
        for name, form in attributes:
            out += [*uleb(name), *uleb(form)]
        out += [0, 0]
    return ".b8 " + ",".join(map(str, [*out, 0]))


SOURCE = TEXT.replace("    cvt.rn.f32", "$L__inner:\n    cvt.rn.f32") + sections()


class At:
    """Evaluates expressions where thread 2 is about to execute an instruction."""

    def __init__(self, start: str, *expressions: str) -> None:
        self._start = start
        self._expressions = expressions
        self.found: list[str] = []

    def before(self, moment: Moment) -> None:
        if moment.spot.text.startswith(self._start) and moment.arrived >> 2 & 1:
            names = Names(moment, 2)
            for expression in self._expressions:
                try:
                    self.found.append(text_of(evaluate(expression, names)))
                except LookupError as error:
                    self.found.append(str(error))

    def after(self, moment: Moment) -> None:
        pass

    def faulted(self, moment: Moment, error: Exception) -> None:
        pass

    def ended(self) -> None:
        pass


def test_variables_in_registers_memory_and_parameters(launch: Launch) -> None:
    at = At("call", "i", "row", "row[1] + 1", "values[2]", "*values", "&row[1] == shared + 4")
    launch(at, SOURCE)
    assert at.found == ["2", "{0, 1, 2, 0}", "2", "0.5", "0.5", "1"]


def test_structures(launch: Launch) -> None:
    at = At("call", "pair", "pair.first", "(&pair)->second", "pair.third")
    launch(at, SOURCE)
    assert at.found[:2] == ["{first = 2, second = 0}", "2"]
    assert at.found[3] == "Pair has no member third"


def test_the_innermost_variable_of_a_name(launch: Launch) -> None:
    at = At("add.f32", "i")
    launch(at, SOURCE)
    assert at.found == ["4"]


def test_what_is_optimised_away_says_so(launch: Launch) -> None:
    at = At("call", "gone")
    launch(at, SOURCE)
    assert at.found == ["it is optimised away, or its place is not read"]


def test_lists_of_variables(launch: Launch) -> None:
    class Lists(At):
        def before(self, moment: Moment) -> None:
            if moment.spot.text.startswith("call"):
                names = Names(moment, 2)
                self.found += [n for n, _ in names.locals(parameters=True)]
                self.found += [n for n, _ in names.locals(parameters=False)]

    lists = Lists("call")
    launch(lists, SOURCE)
    assert lists.found == ["values", "row", "pair", "i", "gone"]


def test_a_module_without_sections_has_no_names() -> None:
    info = debug_info(parse(TEXT, "scale.ptx"))
    assert info.units == []
    assert info.subprogram("scale") is None
    assert list(info.global_variables()) == []


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Modules of other tests are not kept."""
    yield
    debug_info.cache_clear()
