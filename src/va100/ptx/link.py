"""Linking: several PTX modules, or one with ``.weak``, ``.common`` and ``.alias``, made one.

Which definition of a name wins, which names are private and must stay apart, and what is missing
is decided here; the text is joined in :mod:`va100.ptx.link_text`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from va100.errors import LinkError
from va100.ptx.devicelib import DEVICE_LIBRARY, device_function
from va100.ptx.link_text import Unit, first_use, joined
from va100.ptx.parser import parse
from va100.ptx.program import Alias, Function, PtxModule, Symbol, Variable
from va100.ptx.provided import PROVIDED, is_declared_only
from va100.ptx.types import Space
from va100.ptx.verify import instructions_of, reachable

_MOST_TOLD: Final = 8
"""Missing names that one message lists."""


def link(modules: Sequence[PtxModule], name: str = "<linked>") -> PtxModule:
    """Join modules into one.

    Parameters
    ----------
    modules : sequence of PtxModule
        At least one; lines of the first keep their numbers.
    name : str
        The result's, for messages.

    Raises
    ------
    LinkError
        A name is defined twice, is declared in ways that do not agree, or is defined nowhere.
    """
    return parse(linked_text(modules), name)


def linked_text(modules: Sequence[PtxModule]) -> str:
    """Join modules into one text; see :func:`link`."""
    return _Linker(modules).run()


def needs_linking(module: PtxModule) -> bool:
    """Tell whether a module alone holds what only linking resolves."""
    names = [v.name for v in module.variables]
    return (
        len(names) != len(set(names))
        or any(isinstance(i, Alias) for i in module.items)
        or any(f.name in DEVICE_LIBRARY and f.body is None for f in module.functions)
    )


def require_resolved(module: PtxModule) -> None:
    """Check that nothing a module uses is missing.

    Raises
    ------
    LinkError
        Names and lines of what is.
    """
    linker = _Linker([module])
    linker.gather()
    linker.require_definitions()


def missing_functions(module: PtxModule, kernel: Function) -> list[str]:
    """Names that a kernel may call and that neither the module nor the machine has."""
    bodies = {f.name for f in module.functions if f.body is not None} | PROVIDED
    called = (
        instruction.operands[1]
        for function in reachable(module, kernel)
        for instruction in instructions_of(function.body or ())
        if instruction.opcode == "call"
    )
    names = dict.fromkeys(target.name for target in called if isinstance(target, Symbol))
    declared = {f.name for f in module.functions}
    return [name for name in names if name in declared - bodies]


class _Mention(NamedTuple):
    """A definition or declaration of a name, in one of the modules."""

    unit: Unit
    item: Function | Variable
    linkage: str
    """Strongest that the module gives the name; empty for private."""

    @property
    def is_definition(self) -> bool:
        if isinstance(self.item, Function):
            return self.item.body is not None
        return self.item.linkage != "extern"

    def __str__(self) -> str:
        module, start = self.unit.module, self.item.span.start
        return f"{module.name}:{module.line_of(start)}: {_source_line(module, start)}"


@dataclass(slots=True)
class _Entry:
    """Everything the modules say about one name that they share."""

    name: str
    mentions: list[_Mention] = field(default_factory=list)
    winner: _Mention | None = None
    alias: tuple[Unit, Alias] | None = None
    """The ``.alias`` that defines it, and its module."""

    def of(self, linkage: str) -> list[_Mention]:
        """Definitions of a linkage."""
        return [m for m in self.mentions if m.is_definition and m.linkage == linkage]


class _Linker:
    def __init__(self, modules: Sequence[PtxModule]) -> None:
        self.units = [Unit(module) for module in modules]
        self.entries: dict[str, _Entry] = {}
        self.private: dict[str, list[Unit]] = {}

    def run(self) -> str:
        """Do everything."""
        self.gather()
        self._add_device_library()
        for entry in self.entries.values():
            _elect(entry)
            _require_agreement(entry)
        self.require_definitions()
        self._separate()
        self._drop()
        self._follow_aliases()
        return joined(self.units)

    # -- gathering

    def gather(self) -> None:
        """Sort the modules' names into private and shared ones."""
        for unit in self.units:
            self._gather_from(unit)

    def _gather_from(self, unit: Unit) -> None:
        aliases = {i.name: i for i in unit.module.items if isinstance(i, Alias)}
        for name, items in _by_name(unit.module).items():
            linkage = _linkage(items)
            if linkage == "" and name not in aliases:
                self.private.setdefault(name, []).append(unit)
                continue
            entry = self.entries.setdefault(name, _Entry(name))
            entry.mentions += [_Mention(unit, item, linkage) for item in items]
        for name, alias in aliases.items():
            self._add_alias(unit, name, alias)

    def _add_device_library(self) -> None:
        """Add the functions of ours that are called and not the program's own."""
        room = max((_parameter_bytes(k) for u in self.units for k in u.module.kernels), default=0)
        for name in [n for n in DEVICE_LIBRARY if n in self.entries]:
            if not any(m.is_definition for m in self.entries[name].mentions):
                unit = Unit(parse(device_function(name, room), f"<va100's {name}>"))
                self.units.append(unit)
                self._gather_from(unit)

    def _add_alias(self, unit: Unit, name: str, alias: Alias) -> None:
        entry = self.entries.setdefault(name, _Entry(name))
        if entry.alias is not None:
            raise _twice(name, _at(*entry.alias), _at(unit, alias))
        entry.alias = (unit, alias)

    # -- what is missing

    def require_definitions(self) -> None:
        """Fail with every name that is used and defined nowhere."""
        missing = []
        for entry in self.entries.values():
            if not _is_missing(entry):
                continue
            uses = [
                f"{unit.module.name}:{unit.module.line_of(at)}: {_source_line(unit.module, at)}"
                for unit in dict.fromkeys(_units(entry))
                if (at := first_use(unit, entry.name)) is not None
            ]
            if uses:
                missing.append((entry.name, uses))
        if not missing:
            return
        lines = [f"`{name}` is used, but defined nowhere\n  {uses[0]}" for name, uses in missing]
        if len(lines) > _MOST_TOLD:
            lines[_MOST_TOLD:] = [f"and {len(lines) - _MOST_TOLD} more"]
        raise LinkError("\n".join(lines), symbol=missing[0][0])

    # -- names that must stay apart

    def _separate(self) -> None:
        taken = set(self.entries) | set(self.private)
        for name, units in self.private.items():
            keeps_it = name not in self.entries
            for unit in units[1:] if keeps_it else units:
                fresh = next(n for k in count(2) if (n := f"{name}${k}") not in taken)
                taken.add(fresh)
                unit.renames[name] = fresh

    # -- what goes

    def _drop(self) -> None:
        order = {id(unit): place for place, unit in enumerate(self.units)}
        for entry in self.entries.values():
            if entry.alias is not None:
                _drop_all(entry.mentions)
                continue
            winner = entry.winner
            declared = False
            for mention in entry.mentions:
                if mention is winner or (_may_stay(mention, winner, order) and not declared):
                    declared = True
                else:
                    mention.unit.dropped.append(mention.item.span)

    def _follow_aliases(self) -> None:
        """Call the function itself wherever an alias of it is named."""
        for entry in self.entries.values():
            if entry.alias is None:
                continue
            target = self._target(entry, frozenset())
            for unit in self.units:
                unit.renames.setdefault(entry.name, target)
        for unit in self.units:
            unit.dropped += [i.span for i in unit.module.items if isinstance(i, Alias)]

    def _target(self, entry: _Entry, seen: frozenset[str]) -> str:
        if entry.alias is None or entry.name in seen:
            return entry.name
        unit, name = entry.alias[0], entry.alias[1].aliasee
        further = self.entries.get(name)
        if further is not None and further.alias is not None:
            return self._target(further, seen | {entry.name})
        return unit.renames.get(name, name)


# ---------------------------------------------------------------- one module's names


def _by_name(module: PtxModule) -> dict[str, list[Function | Variable]]:
    found: dict[str, list[Function | Variable]] = {}
    for item in module.items:
        if isinstance(item, Function | Variable):
            found.setdefault(item.name, []).append(item)
    return found


def _linkage(items: Sequence[Function | Variable]) -> str:
    """What a module makes of a name: ``extern`` when it only declares it.

    Kernels are known by name to the host and so are never private.
    """
    defined = [i for i in items if _defines(i)]
    if not defined:
        return "extern"
    given = {i.linkage for i in items} - {"extern", ""}
    if given:
        return next(k for k in ("visible", "common", "weak") if k in given)
    return "visible" if isinstance(defined[0], Function) and defined[0].is_kernel else ""


def _defines(item: Function | Variable) -> bool:
    return item.body is not None if isinstance(item, Function) else item.linkage != "extern"


def _parameter_bytes(kernel: Function) -> int:
    total = 0
    for parameter in kernel.params:
        total = -(-total // parameter.alignment_bytes) * parameter.alignment_bytes
        total += parameter.size_bytes
    return total


# ---------------------------------------------------------------- one shared name


def _elect(entry: _Entry) -> None:
    """Choose the definition: a visible one, else the common one, else the first weak one."""
    visible = entry.of("visible")
    if entry.alias is not None and visible:
        raise _twice(entry.name, str(visible[0]), _at(*entry.alias))
    if len(visible) > 1:
        raise _twice(entry.name, str(visible[0]), str(visible[1]))
    common, weak = entry.of("common"), entry.of("weak")
    if visible:
        entry.winner = visible[0]
    elif common:
        entry.winner = _elect_common(entry.name, common)
    elif weak:
        entry.winner = weak[0]
    elif entry.mentions:
        shared = [m for m in entry.mentions if _is_dynamic_shared(m)]
        entry.winner = max(shared, key=_alignment, default=None)


def _elect_common(name: str, common: Sequence[_Mention]) -> _Mention:
    """The initialised one, which must be as large as any; else the largest."""
    largest = max(common, key=_size)
    valued = [m for m in common if isinstance(m.item, Variable) and m.item.initializer]
    if len(valued) > 1:
        raise LinkError(
            f"`{name}` has two initial values\n  {valued[0]}\n  {valued[1]}", symbol=name
        )
    if valued and _size(valued[0]) < _size(largest):
        raise LinkError(
            f"`{name}` is larger where it has no initial value\n  {valued[0]}\n  {largest}",
            symbol=name,
        )
    return valued[0] if valued else largest


def _require_agreement(entry: _Entry) -> None:
    if not entry.mentions:
        return
    first = entry.winner or entry.mentions[0]
    for mention in entry.mentions:
        problem = _disagreement(first, mention)
        if problem:
            raise LinkError(f"`{entry.name}` {problem}\n  {first}\n  {mention}", symbol=entry.name)


def _disagreement(first: _Mention, other: _Mention) -> str:
    a, b = first.item, other.item
    if isinstance(a, Function) and isinstance(b, Function):
        if a.is_kernel != b.is_kernel:
            return "is a kernel in one place and a function in another"
        same = _shape(a) == _shape(b)
        return "" if same or is_declared_only(a.name) else "has parameters that do not agree"
    if not (isinstance(a, Variable) and isinstance(b, Variable)):
        return "is a function in one place and a variable in another"
    if a.space is not b.space:
        return f"is in .{a.space.value} in one place and in .{b.space.value} in another"
    sized = 0 not in (a.size_bytes, b.size_bytes) and "common" not in (a.linkage, b.linkage)
    if sized and a.size_bytes != b.size_bytes:
        return f"has {a.size_bytes} bytes in one place and {b.size_bytes} in another"
    return ""


def _shape(function: Function) -> tuple[list[int], list[int]]:
    return [p.size_bytes for p in function.returns], [p.size_bytes for p in function.params]


def _is_missing(entry: _Entry) -> bool:
    if entry.alias is not None or any(m.is_definition for m in entry.mentions):
        return False
    if any(_is_dynamic_shared(m) for m in entry.mentions):
        return False
    return not is_declared_only(entry.name)


def _is_dynamic_shared(mention: _Mention) -> bool:
    item = mention.item
    return isinstance(item, Variable) and item.space is Space.SHARED and not item.size_bytes


def _may_stay(mention: _Mention, winner: _Mention | None, order: dict[int, int]) -> bool:
    """Tell whether a declaration is wanted: a function's, ahead of where it is defined."""
    if not isinstance(mention.item, Function) or mention.is_definition:
        return False
    return winner is None or order[id(mention.unit)] <= order[id(winner.unit)]


def _drop_all(mentions: Sequence[_Mention]) -> None:
    for mention in mentions:
        mention.unit.dropped.append(mention.item.span)


def _units(entry: _Entry) -> Iterator[Unit]:
    return (mention.unit for mention in entry.mentions)


def _size(mention: _Mention) -> int:
    return mention.item.size_bytes if isinstance(mention.item, Variable) else 0


def _alignment(mention: _Mention) -> int:
    return mention.item.alignment_bytes if isinstance(mention.item, Variable) else 0


# ---------------------------------------------------------------- places


def _source_line(module: PtxModule, offset: int) -> str:
    start = module.source.rfind("\n", 0, offset) + 1
    end = module.source.find("\n", offset)
    return " ".join(module.source[start : end if end >= 0 else None].split())


def _at(unit: Unit, item: Alias) -> str:
    module, start = unit.module, item.span.start
    return f"{module.name}:{module.line_of(start)}: {_source_line(module, start)}"


def _twice(name: str, first: str, second: str) -> LinkError:
    return LinkError(f"`{name}` is defined twice\n  {first}\n  {second}", symbol=name)
