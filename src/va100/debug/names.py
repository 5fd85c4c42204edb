"""What names mean where a thread stands: variables of the source, of PTX, registers, indices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from va100.debug import dwarf
from va100.debug.dwarf import DebugInfo, Entry
from va100.debug.types import (
    BOOL,
    C_TYPES,
    UINT,
    ULONG,
    VOID,
    Kind,
    Member,
    Type,
    Value,
    of_type,
    pointer_to,
    ptx_type,
    text_of,
)
from va100.gpu.watch import Moment
from va100.ptx.program import PtxModule
from va100.ptx.types import Space
from va100.work import WARP_SIZE, Dim3

_LABEL: Final = re.compile(r"(?m)^\s*([$\w]+):")
_QUALIFIERS: Final = (dwarf.TAG_CONST, dwarf.TAG_VOLATILE, dwarf.TAG_TYPEDEF)
_BASE: Final = {
    2: Kind.BOOL, 4: Kind.FLOAT, 5: Kind.SIGNED, 6: Kind.CHAR, 7: Kind.UNSIGNED,
    8: Kind.UNSIGNED, 0x10: Kind.UNSIGNED,
}  # fmt: skip
_DEEPEST: Final = 64
NO_INFO: Final = (
    "the code has no names of variables: compile with -G (`va100 debug --nvcc-flags=-G`), or "
    "print registers"
)


@lru_cache(maxsize=16)
def debug_info(module: PtxModule) -> DebugInfo:
    """The debug information of a module, read once."""
    return DebugInfo(module)


@lru_cache(maxsize=16)
def _label_places(module: PtxModule) -> dict[str, int]:
    return {m[1]: m.start() for m in _LABEL.finditer(module.source)}


class Names:
    """Names as one thread sees them."""

    def __init__(self, moment: Moment, lane: int) -> None:
        self.moment = moment
        self.lane = lane

    # ------------------------------------------------------------ any name

    def lookup(self, name: str) -> Value:
        """The value behind a name; ``LookupError`` says why there is none."""
        for entry in self._visible():
            if entry.name == name:
                return self.value(entry)
        built_in = self._built_in(name)
        if built_in is not None:
            return built_in
        found = [n for n in self.moment.variables() if _is_called(n, name)]
        if found:
            return self.ptx_variable(found[0])
        if not self.has_source_names:
            raise LookupError(f"no variable {name} here; {NO_INFO}")
        raise LookupError(f"no variable {name} here; `info locals` lists them")

    def register(self, name: str) -> Value:
        """The value of a register or special register."""
        declared = self.moment.registers().get(name)
        raw = self.moment.register(name, self.lane)
        kind = UINT if raw < 1 << 32 else ULONG
        if declared is not None:
            kind = ptx_type(declared)
        if kind is BOOL:
            return of_type(raw, BOOL)
        return Value(kind, raw.to_bytes(max(kind.size_bytes, 1), "little"))

    def memory(self, address: int, size_bytes: int) -> bytes:
        """Device memory."""
        return self.moment.memory(address, size_bytes)

    def ptx_variable(self, name: str) -> Value:
        """A PTX variable by its full name, arrays whole."""
        place = self.moment.variable(name, self.lane)
        element = ptx_type(place.type)
        count = place.size_bytes // max(element.size_bytes, 1)
        kind = element
        if place.size_bytes != element.size_bytes:
            kind = Type(f"{element.name}[{count}]", Kind.ARRAY, place.size_bytes,
                        lambda: element, count)  # fmt: skip
        return Value(kind, self.memory(place.address, place.size_bytes), place.address)

    def _built_in(self, name: str) -> Value | None:
        moment = self.moment
        if name in ("shared", "local"):
            base, _ = moment.window(Space(name), self.lane)
            return of_type(base, pointer_to(C_TYPES["unsigned char"]))
        found: dict[str, Dim3] = {
            "threadIdx": moment.thread(self.lane),
            "blockIdx": moment.cta,
            "blockDim": moment.config.block,
            "gridDim": moment.config.grid,
        }
        counted = {"warp": moment.warp, "lane": self.lane, "warpSize": WARP_SIZE}
        if name in counted:
            return of_type(counted[name], UINT)
        if name not in found:
            return None
        raw = b"".join(i.to_bytes(4, "little") for i in found[name])
        return Value(DIM3, raw)

    # ------------------------------------------------------------ the source's variables

    @property
    def has_source_names(self) -> bool:
        """Whether there is debug information of the function."""
        return self._subprogram is not None

    def locals(self, *, parameters: bool) -> Iterator[tuple[str, str]]:
        """Names and values of a function's parameters, or of its other variables."""
        for entry in self._own():
            if (entry.tag == dwarf.TAG_PARAMETER) is parameters and entry.name:
                try:
                    yield entry.name, text_of(self.value(entry))
                except LookupError as error:
                    yield entry.name, f"<{error}>"

    def value(self, entry: Entry) -> Value:
        """The value of a variable."""
        info = debug_info(self.moment.module)
        where = info.where(entry)
        if where is None:
            raise LookupError("it is optimised away, or its place is not read")
        kind = type_of(self.moment.module, info.refer(entry, dwarf.AT_TYPE))
        if where.register:
            raw = self.moment.register(where.register, self.lane)
            return Value(kind, raw.to_bytes(16, "little")[: kind.size_bytes])
        if where.symbol.startswith("%"):
            address = self.moment.register(where.symbol, self.lane) + where.offset
        else:
            address = self.moment.variable(where.symbol, self.lane).address + where.offset
        return Value(kind, self.memory(address, kind.size_bytes), address)

    @property
    def _subprogram(self) -> Entry | None:
        return debug_info(self.moment.module).subprogram(self.moment.function)

    def _visible(self) -> Iterator[Entry]:
        """Variables that can be named here, innermost first."""
        yield from reversed(list(self._own()))
        yield from debug_info(self.moment.module).global_variables()

    def _own(self) -> Iterator[Entry]:
        found = self._subprogram
        if found is not None:
            yield from self._inside(found)

    def _inside(self, entry: Entry) -> Iterator[Entry]:
        for child in entry.children:
            if child.tag in (dwarf.TAG_PARAMETER, dwarf.TAG_VARIABLE):
                yield child
        for child in entry.children:
            scope = child.tag in (dwarf.TAG_LEXICAL_BLOCK, dwarf.TAG_INLINED)
            if scope and self._is_in(child):
                yield from self._inside(child)

    def _is_in(self, scope: Entry) -> bool:
        """Whether the instruction lies between a scope's labels."""
        places = _label_places(self.moment.module)
        low = places.get(scope.symbol(dwarf.AT_LOW_PC))
        high = places.get(scope.symbol(dwarf.AT_HIGH_PC))
        at = self.moment.spot.instruction.span.start
        return low is None or high is None or low <= at < high


def _dim3_members() -> tuple[Member, ...]:
    return tuple(Member(axis, 4 * i, UINT) for i, axis in enumerate("xyz"))


DIM3: Final = Type("dim3", Kind.STRUCT, 12, members=_dim3_members)


def _is_called(full: str, name: str) -> bool:
    """Whether a PTX variable is what a source calls so: mangled, or a parameter by number."""
    if full == name or full.endswith(f"{len(name)}{name}"):
        return True
    return name.startswith("param_") and full.endswith(f"_{name}")


def type_of(module: PtxModule, entry: Entry | None, depth: int = 0) -> Type:
    """The type that an entry describes."""
    if entry is None or depth > _DEEPEST:
        return VOID
    info = debug_info(module)
    inner = info.refer(entry, dwarf.AT_TYPE)
    if entry.tag in _QUALIFIERS:
        return type_of(module, inner, depth + 1)
    if entry.tag == dwarf.TAG_BASE:
        kind = _BASE.get(entry.number(dwarf.AT_ENCODING), Kind.UNSIGNED)
        return Type(entry.name, kind, entry.number(dwarf.AT_BYTE_SIZE))
    if entry.tag == dwarf.TAG_ENUM:
        return Type(entry.name, Kind.SIGNED, entry.number(dwarf.AT_BYTE_SIZE, 4))
    if entry.tag in (dwarf.TAG_POINTER, dwarf.TAG_REFERENCE):
        name = f"{_name_of(module, inner)} {'*' if entry.tag == dwarf.TAG_POINTER else '&'}"
        return Type(name, Kind.POINTER, 8, lambda: type_of(module, inner))
    if entry.tag == dwarf.TAG_ARRAY:
        return _array(entry, type_of(module, inner, depth + 1))
    if entry.tag in (dwarf.TAG_STRUCTURE, dwarf.TAG_CLASS, dwarf.TAG_UNION):
        size = entry.number(dwarf.AT_BYTE_SIZE)
        return Type(entry.name, Kind.STRUCT, size, members=lambda: _members(module, entry))
    return VOID


def _name_of(module: PtxModule, entry: Entry | None, depth: int = 0) -> str:
    """A type's name, without its insides."""
    if entry is None or depth > _DEEPEST:
        return "void"
    inner = debug_info(module).refer(entry, dwarf.AT_TYPE)
    if entry.tag == dwarf.TAG_CONST:
        return f"const {_name_of(module, inner, depth + 1)}"
    if entry.tag == dwarf.TAG_POINTER:
        return f"{_name_of(module, inner, depth + 1)} *"
    return entry.name or _name_of(module, inner, depth + 1)


def _array(entry: Entry, element: Type) -> Type:
    counts = [
        c.number(dwarf.AT_COUNT) or c.number(dwarf.AT_UPPER_BOUND, -1) + 1
        for c in entry.children
        if c.tag == dwarf.TAG_SUBRANGE
    ]
    for count in reversed(counts):
        element = _of_count(element, count)
    return element


def _of_count(element: Type, count: int) -> Type:
    return Type(
        f"{element.name}[{count}]", Kind.ARRAY, count * element.size_bytes, lambda: element, count
    )


def _members(module: PtxModule, entry: Entry) -> tuple[Member, ...]:
    info = debug_info(module)
    return tuple(
        Member(c.name, info.member_offset(c), type_of(module, info.refer(c, dwarf.AT_TYPE)))
        for c in entry.children
        if c.tag == dwarf.TAG_MEMBER
    )
