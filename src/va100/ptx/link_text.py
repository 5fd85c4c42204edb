"""Joining PTX texts without moving their lines: what goes is blanked, what is renamed is spliced.

Which names win is decided in :mod:`va100.ptx.link`; here is only text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from va100.ptx.isa import FORMS_BY_OPCODE
from va100.ptx.printer import print_variable
from va100.ptx.program import (
    Function,
    Instruction,
    Location,
    PtxModule,
    Scope,
    SourceFile,
    Span,
    Statement,
    Variable,
)
from va100.ptx.text import without_comments

_VISIBLE: Final = re.compile(r"[^\n]")
_HEADER: Final = re.compile(
    r"\.version\s+\d+\.\d+|\.target\s+\w+(?:\s*,\s*\w+)*|\.address_size\s+\d+"
)
_FILE: Final = re.compile(r"\.file\s+(\d+)")
_LOCATION: Final = re.compile(r"\.loc(?:_intermediate)?\s+(\d+)")
_INLINED: Final = re.compile(r"\binlined_at\s+(\d+)")
_ARCHITECTURE: Final = re.compile(r"(?:sm|compute)_(\d+)")


class Edit(NamedTuple):
    """Text that takes the place of a stretch of a module's source."""

    start: int
    end: int
    text: str


@dataclass(slots=True, eq=False)
class Unit:
    """One module on its way into a joined text."""

    module: PtxModule
    renames: dict[str, str] = field(default_factory=dict)
    """Names of this module to what they are called in the joined text."""
    dropped: list[Span] = field(default_factory=list)
    """Items that are not in the joined text."""
    code: str = ""
    """Source without comments, of equal length."""

    def __post_init__(self) -> None:
        self.code = without_comments(self.module.source, self.module.name)


def joined(units: Sequence[Unit]) -> str:
    """Write the units' modules as one text."""
    files = _file_numbers([unit.module for unit in units])
    _drop_known_files(units)
    header = _header([unit.module for unit in units])
    parts = []
    for place, unit in enumerate(units):
        edits = [
            *_header_edits(unit, header if place == 0 else ""),
            *_file_edits(unit, files[place]),
            *_rename_edits(unit),
        ]
        text = _edited(unit, edits)
        if place:
            name = unit.module.name.replace("\n", " ")
            text = f"// from {name}\n{text}"
        parts.append(text if text.endswith("\n") else text + "\n")
    return "".join(parts)


def _edited(unit: Unit, edits: Iterable[Edit]) -> str:
    """Apply edits from the end on; what is dropped goes whole, edits inside it included."""
    source = unit.module.source
    gone = [
        Edit(start, end, text + _VISIBLE.sub(" ", source[start:end])[len(text) :])
        for start, end, text in _gone(unit)
    ]
    kept = [e for e in edits if not any(g.start <= e.start < g.end for g in gone)]
    parts, place = [], 0
    for edit in sorted(kept + gone):
        parts += [source[place : edit.start], edit.text]
        place = edit.end
    return "".join([*parts, source[place:]])


def _gone(unit: Unit) -> Iterator[Edit]:
    """What is dropped; of a statement that declares several variables, what stays is printed."""
    groups: dict[int, list[Variable]] = {}
    for variable in unit.module.variables:
        groups.setdefault(variable.span.start, []).append(variable)
    dropped, starts = set(unit.dropped), set(groups)
    for span in sorted(dropped):
        group = groups.pop(span.start, None)
        if group is not None:
            end = unit.code.index(";", group[-1].span.end) + 1
            stay = [print_variable(v) for v in group if v.span not in dropped]
            yield Edit(span.start, end, " ".join(stay))
        elif span.start not in starts:
            yield Edit(span.start, span.end, "")


# ---------------------------------------------------------------- header


def _header(modules: Sequence[PtxModule]) -> tuple[str, str, str]:
    """Newest version, newest architecture, every other target."""
    version = max(module.version for module in modules)
    targets = dict.fromkeys(target for module in modules for target in module.target)
    architectures = [t for t in targets if _ARCHITECTURE.match(t)]
    others = [t for t in targets if t not in architectures]
    newest = sorted(architectures, key=_architecture)[-1:]
    size = max(module.address_size for module in modules)
    return (
        f".version {version[0]}.{version[1]}",
        f".target {', '.join([*newest, *others])}",
        f".address_size {size}",
    )


def _architecture(target: str) -> int:
    match = _ARCHITECTURE.match(target)
    return int(match[1]) if match else 0


def _header_edits(unit: Unit, header: tuple[str, str, str] | str) -> Iterator[Edit]:
    first = min((item.span.start for item in unit.module.items), default=len(unit.code))
    wanted = list(header)
    places = list(_HEADER.finditer(unit.code, 0, first))
    for match in places:
        word = match.group().split()[0]
        text = next((line for line in wanted if line.startswith(word)), "")
        if text:
            wanted.remove(text)
        if text != match.group():
            yield Edit(match.start(), match.end(), text)


# ---------------------------------------------------------------- files and lines


def _file_numbers(modules: Sequence[PtxModule]) -> list[dict[int, int]]:
    """Old index to new of each module's files: equal paths share one, the first keep theirs."""
    known: dict[tuple[str, tuple[int, ...]], int] = {}
    numbers = []
    for module in modules:
        own: dict[int, int] = {}
        for item in module.items:
            if not isinstance(item, SourceFile):
                continue
            key = (item.path, item.trailer)
            if key not in known:
                taken = set(known.values())
                free = item.index if item.index not in taken else max(taken) + 1
                known[key] = free
            own[item.index] = known[key]
        numbers.append(own)
    return numbers


def _drop_known_files(units: Sequence[Unit]) -> None:
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for unit in units:
        for item in unit.module.items:
            if isinstance(item, SourceFile):
                if (item.path, item.trailer) in seen:
                    unit.dropped.append(item.span)
                seen.add((item.path, item.trailer))


def _file_edits(unit: Unit, numbers: Mapping[int, int]) -> Iterator[Edit]:
    if all(old == new for old, new in numbers.items()):
        return
    for item in unit.module.items:
        if isinstance(item, SourceFile):
            yield from _renumbered(unit.code, item.span, (_FILE,), numbers)
        elif isinstance(item, Function):
            for statement in statements_of(item.body or ()):
                if isinstance(statement, Location):
                    yield from _renumbered(
                        unit.code, statement.span, (_LOCATION, _INLINED), numbers
                    )


def _renumbered(
    code: str, span: Span, patterns: tuple[re.Pattern[str], ...], numbers: Mapping[int, int]
) -> Iterator[Edit]:
    for pattern in patterns:
        match = pattern.search(code, span.start, span.end)
        if match is not None:
            old = int(match[1])
            yield Edit(match.start(1), match.end(1), str(numbers.get(old, old)))


# ---------------------------------------------------------------- names


def _rename_edits(unit: Unit) -> Iterator[Edit]:
    """Every place a name stands in, strings and opcodes excepted.

    Inner names that hide it are renamed with it, which changes nothing.
    """
    if not unit.renames:
        return
    opcodes = _opcode_places(unit) if FORMS_BY_OPCODE.keys() & unit.renames.keys() else frozenset()
    for match in _occurrences(unit.code, unit.renames):
        if match.start() not in opcodes:
            yield Edit(match.start(), match.end(), unit.renames[match.group()])


def _occurrences(code: str, names: Iterable[str]) -> Iterator[re.Match[str]]:
    spelled = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf'"[^"\n]*"|(?<![\w$%.])(?:{spelled})(?![\w$])')
    return (match for match in pattern.finditer(code) if match.group()[0] != '"')


def _opcode_places(unit: Unit) -> frozenset[int]:
    bodies = (item.body or () for item in unit.module.items if isinstance(item, Function))
    return frozenset(
        unit.code.index(statement.opcode, statement.span.start)
        for body in bodies
        for statement in statements_of(body)
        if isinstance(statement, Instruction)
    )


def first_use(unit: Unit, name: str) -> int | None:
    """Offset of the first place a name is used at, its own declarations excepted."""
    own = [
        item.span
        for item in unit.module.items
        if isinstance(item, Function | Variable) and item.name == name
    ]
    for match in _occurrences(unit.code, (name,)):
        if not any(span.start <= match.start() < span.end for span in own):
            return match.start()
    return None


def statements_of(body: Sequence[Statement]) -> Iterator[Statement]:
    """Walk a body's statements, those of inner scopes too."""
    for statement in body:
        if isinstance(statement, Scope):
            yield from statements_of(statement.body)
        else:
            yield statement
