"""Debug information of a PTX module: the sections ``.debug_*`` that ``nvcc -G`` writes, read.

DWARF 2 as far as variables, their types and their places go.  Lines come from ``.loc`` instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from va100.ptx.program import PtxModule, Section

TAG_ARRAY, TAG_CLASS, TAG_ENUM, TAG_PARAMETER = 0x01, 0x02, 0x04, 0x05
TAG_LEXICAL_BLOCK, TAG_MEMBER, TAG_POINTER, TAG_REFERENCE = 0x0B, 0x0D, 0x0F, 0x10
TAG_UNIT, TAG_STRUCTURE, TAG_TYPEDEF, TAG_UNION = 0x11, 0x13, 0x16, 0x17
TAG_INLINED, TAG_SUBRANGE, TAG_BASE, TAG_CONST = 0x1D, 0x21, 0x24, 0x26
TAG_SUBPROGRAM, TAG_VARIABLE, TAG_VOLATILE = 0x2E, 0x34, 0x35

AT_LOCATION, AT_NAME, AT_BYTE_SIZE, AT_LOW_PC, AT_HIGH_PC = 0x02, 0x03, 0x0B, 0x11, 0x12
AT_UPPER_BOUND, AT_COUNT, AT_MEMBER_LOCATION, AT_ENCODING = 0x2F, 0x37, 0x38, 0x3E
AT_SPECIFICATION, AT_TYPE, AT_LINKAGE, AT_LINKAGE_OLD = 0x47, 0x49, 0x6E, 0x2007
AT_ORIGIN: Final = 0x31

_ITEM: Final = re.compile(r"\.b(8|16|32|64)\s+([^\n;]*)|([.$\w]+):")
_OP_ADDR, _OP_PLUS, _OP_REGX, _OP_BREGX, _OP_FBREG = 0x03, 0x23, 0x90, 0x92, 0x91


class Block(NamedTuple):
    """A block of bytes in ``.debug_info``: a location."""

    start: int
    end: int


class Symbol(NamedTuple):
    """A name with an offset where an address stands."""

    name: str
    offset: int


class Where(NamedTuple):
    """A variable's place: in a register, or at an offset from a symbol or from what one holds."""

    register: str
    symbol: str
    offset: int


AttributeValue = int | str | Block | Symbol


@dataclass(slots=True)
class Entry:
    """A debugging information entry."""

    offset: int
    tag: int
    values: dict[int, AttributeValue] = field(default_factory=dict)
    children: list[Entry] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name; empty when it has none."""
        value = self.values.get(AT_NAME, "")
        return value if isinstance(value, str) else ""

    def number(self, attribute: int, fallback: int = 0) -> int:
        """A numeric attribute."""
        value = self.values.get(attribute)
        return value if isinstance(value, int) else fallback

    def symbol(self, attribute: int) -> str:
        """Name that an address attribute gives; empty when it is no name."""
        value = self.values.get(attribute)
        return value.name if isinstance(value, Symbol) else ""


@dataclass(slots=True)
class _Image:
    """A section's bytes, the names in them and the labels."""

    raw: bytearray = field(default_factory=bytearray)
    names: dict[int, Symbol] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)


class DebugInfo:
    """What a module says of its source's variables; empty when it says nothing."""

    def __init__(self, module: PtxModule) -> None:
        sections = {i.name: i.text for i in module.items if isinstance(i, Section)}
        self._info = _image(sections.get(".debug_info", ""))
        self._strings = _image(sections.get(".debug_str", ""))
        self.entries: dict[int, Entry] = {}
        self.units: list[Entry] = []
        if self._info.raw:
            abbreviations = _abbreviations(bytes(_image(sections.get(".debug_abbrev", "")).raw))
            reader = _Reader(self._info, self._strings, abbreviations)
            self.units = reader.units()
            self.entries = reader.entries

    def subprogram(self, function: str) -> Entry | None:
        """The entry of a function, by its name in the PTX."""
        for unit in self.units:
            for entry in unit.children:
                if entry.tag == TAG_SUBPROGRAM and function in _names(entry):
                    return entry
        return None

    def global_variables(self) -> Iterator[Entry]:
        """Entries of variables outside functions."""
        for unit in self.units:
            yield from (e for e in unit.children if e.tag == TAG_VARIABLE)

    def refer(self, entry: Entry, attribute: int) -> Entry | None:
        """The entry that an attribute refers to."""
        value = entry.values.get(attribute)
        return self.entries.get(value) if isinstance(value, int) else None

    def where(self, entry: Entry) -> Where | None:
        """A variable's place; None when it has none, or one that is not read here."""
        value = entry.values.get(AT_LOCATION)
        return _location(self._info, value) if isinstance(value, Block) else None

    def member_offset(self, entry: Entry) -> int:
        """Offset of a member in bytes."""
        value = entry.values.get(AT_MEMBER_LOCATION, 0)
        if isinstance(value, Block) and self._info.raw[value.start] == _OP_PLUS:
            return _uleb(self._info.raw, value.start + 1)[0]
        return value if isinstance(value, int) else 0


def _names(entry: Entry) -> tuple[object, ...]:
    return entry.values.get(AT_LINKAGE), entry.values.get(AT_LINKAGE_OLD), entry.name


def _image(text: str) -> _Image:
    image = _Image()
    for match in _ITEM.finditer(text):
        if match[3]:
            image.labels[match[3]] = len(image.raw)
            continue
        size = int(match[1]) // 8
        for word in match[2].split(","):
            item = word.strip()
            if not item:
                continue
            value = _literal(item)
            if value is None:
                name, _, offset = item.partition("+")
                image.names[len(image.raw)] = Symbol(name.strip(), _literal(offset.strip()) or 0)
            image.raw += ((value or 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    return image


def _literal(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _uleb(raw: bytes | bytearray, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and the place after it."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _sleb(raw: bytes | bytearray, at: int) -> tuple[int, int]:
    start = at
    value, at = _uleb(raw, at)
    bits = 7 * (at - start)
    return value - (1 << bits) if value >> (bits - 1) & 1 else value, at


def _location(image: _Image, block: Block) -> Where | None:
    """Decode the few operations that compilers for GPUs write."""
    at, register, symbol, offset = block.start, "", "", 0
    while at < block.end:
        operation = image.raw[at]
        at += 1
        if operation == _OP_ADDR:
            named = image.names.get(at)
            if named is None:
                return None
            symbol, offset = named.name, offset + named.offset
            at += 8
        elif operation in (_OP_REGX, _OP_BREGX):
            code, at = _uleb(image.raw, at)
            register = code.to_bytes((code.bit_length() + 7) // 8, "big").decode("latin-1")
            if operation == _OP_BREGX:
                more, at = _sleb(image.raw, at)
                symbol, register, offset = register, "", offset + more
        elif operation == _OP_PLUS:
            more, at = _uleb(image.raw, at)
            offset += more
        else:
            return None
    return Where(register, symbol, offset)


_Abbreviation = tuple[int, bool, tuple[tuple[int, int], ...]]


def _abbreviations(raw: bytes) -> dict[int, _Abbreviation]:
    """Code to tag, whether there are children, and attributes with their forms."""
    found: dict[int, _Abbreviation] = {}
    at = 0
    while at < len(raw):
        code, at = _uleb(raw, at)
        if not code:
            continue
        tag, at = _uleb(raw, at)
        has_children = bool(raw[at])
        at += 1
        attributes = []
        while True:
            name, at = _uleb(raw, at)
            form, at = _uleb(raw, at)
            if not name and not form:
                break
            attributes.append((name, form))
        found[code] = (tag, has_children, tuple(attributes))
    return found


_FIXED: Final[Mapping[int, int]] = {
    0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x17: 4,
}  # fmt: skip
"""Form to bytes, of forms that are plain numbers."""
_REFERENCES: Final = frozenset({0x11, 0x12, 0x13, 0x14, 0x15})
_HEADER_BYTES: Final = 11


class _Reader:
    """Reads the tree of entries."""

    def __init__(
        self, info: _Image, strings: _Image, abbreviations: Mapping[int, _Abbreviation]
    ) -> None:
        self._info = info
        self._raw = info.raw
        self._strings = strings
        self._abbreviations = abbreviations
        self._unit = 0
        self.entries: dict[int, Entry] = {}

    def units(self) -> list[Entry]:
        """Every compilation unit."""
        found: list[Entry] = []
        at = 0
        while at + _HEADER_BYTES < len(self._raw):
            end = at + 4 + int.from_bytes(self._raw[at : at + 4], "little")
            self._unit = at
            self._siblings(at + _HEADER_BYTES, min(end, len(self._raw)), found)
            if end <= at:
                break
            at = end
        return found

    def _siblings(self, at: int, end: int, into: list[Entry]) -> int:
        """Read entries up to the null one that ends them; returns the place after it."""
        while at < end:
            offset = at
            code, at = _uleb(self._raw, at)
            if code not in self._abbreviations:
                return at
            tag, has_children, attributes = self._abbreviations[code]
            entry = Entry(offset, tag)
            for name, form in attributes:
                entry.values[name], at = self._value(form, at)
            into.append(entry)
            self.entries[offset] = entry
            if has_children:
                at = self._siblings(at, end, entry.children)
        return at

    def _value(self, form: int, at: int) -> tuple[AttributeValue, int]:
        size = _FIXED.get(form)
        if size is not None:
            number = int.from_bytes(self._raw[at : at + size], "little")
            return number + (self._unit if form in _REFERENCES else 0), at + size
        reader = _FORMS.get(form)
        if reader is None:
            raise LookupError(f"debug information has form 0x{form:x}, which is not read")
        return reader(self, at)

    def _address(self, at: int) -> tuple[AttributeValue, int]:
        named = self._info.names.get(at)
        return (named if named is not None else 0), at + 8

    def _string(self, at: int) -> tuple[AttributeValue, int]:
        end = self._raw.index(0, at)
        return self._raw[at:end].decode("utf-8", "replace"), end + 1

    def _far_string(self, at: int) -> tuple[AttributeValue, int]:
        named = self._info.names.get(at)
        start = int.from_bytes(self._raw[at : at + 4], "little")
        if named is not None:
            start = self._strings.labels.get(named.name, 0) + named.offset
        end = self._strings.raw.find(0, start)
        return self._strings.raw[start:end].decode("utf-8", "replace"), at + 4

    def _block(self, at: int) -> tuple[AttributeValue, int]:
        size = self._raw[at]
        return Block(at + 1, at + 1 + size), at + 1 + size

    def _long_block(self, at: int) -> tuple[AttributeValue, int]:
        size, at = _uleb(self._raw, at)
        return Block(at, at + size), at + size

    def _unsigned(self, at: int) -> tuple[AttributeValue, int]:
        return _uleb(self._raw, at)

    def _signed(self, at: int) -> tuple[AttributeValue, int]:
        return _sleb(self._raw, at)

    def _present(self, at: int) -> tuple[AttributeValue, int]:
        return 1, at


_FORMS: Final[Mapping[int, Callable[[_Reader, int], tuple[AttributeValue, int]]]] = {
    0x01: _Reader._address,
    0x08: _Reader._string,
    0x09: _Reader._long_block,
    0x0A: _Reader._block,
    0x0D: _Reader._signed,
    0x0E: _Reader._far_string,
    0x0F: _Reader._unsigned,
    0x18: _Reader._long_block,
    0x19: _Reader._present,
}
"""Form to its reader."""
