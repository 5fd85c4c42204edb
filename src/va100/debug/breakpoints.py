"""Breakpoints: where people want to stop, and which instructions that is in a module."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePath
from typing import Final

from va100.driver.names import short_name
from va100.ptx.cfg import FlowGraph, build_flow
from va100.ptx.program import Function, PtxModule

Place = tuple[str, int]
"""Function and index of an instruction in it."""
_LINE: Final = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)")
_PTX_LINE: Final = re.compile(r"(?:\*|ptx:)(?P<line>\d+)")
_OPENING: Final = frozenset({"ld", "mov", "cvta"})
WHERE: Final = "a function's name, FILE:LINE, LINE, or ptx:LINE"


@dataclass
class Breakpoint:
    """A place to stop at, if a condition holds."""

    number: int
    where: str
    condition: str = ""
    once: bool = False
    """Gone after its first stop."""
    enabled: bool = True
    hits: int = 0
    is_found: bool = False
    """Whether any code has such a place."""
    _places: dict[int, tuple[PtxModule, frozenset[Place]]] = field(default_factory=dict)

    @property
    def is_function(self) -> bool:
        """Whether it names a function."""
        return not _LINE.fullmatch(self.where) and not _PTX_LINE.fullmatch(self.where)

    def places(self, module: PtxModule) -> frozenset[Place]:
        """Instructions of a module where it stops."""
        known = self._places.get(id(module))
        if known is None or known[0] is not module:
            known = self._places[id(module)] = (module, _places(self.where, module))
            self.is_found |= bool(known[1])
        return known[1]


def read_place(text: str) -> tuple[str, str]:
    """Split ``WHERE [if CONDITION]``.

    Raises
    ------
    ValueError
        Nothing is named.
    """
    where, _, condition = re.sub(r"\s+if\s*(?=[\s(])", "\0", f" {text}", count=1).partition("\0")
    where = where.strip()
    if not where:
        raise ValueError(f"name {WHERE}")
    return where, condition.strip()


def _places(where: str, module: PtxModule) -> frozenset[Place]:
    ptx = _PTX_LINE.fullmatch(where)
    if ptx is not None:
        return _at_ptx_line(module, int(ptx["line"]))
    source = _LINE.fullmatch(where)
    if source is not None:
        return _at_line(module, source["file"] or "", int(source["line"]))
    called = [f for f in _bodies(module) if is_called(f.name, where)]
    return frozenset((f.name, _first(module, f)) for f in called)


def _first(module: PtxModule, function: Function) -> int:
    """The first instruction; in code for debuggers, the first after parameters have places."""
    if "debug" not in module.target:
        return 0
    flow = next(f for f in flows(module) if f.function is function)
    opening = flow.locations[0].line if flow.locations and flow.locations[0] else 0
    for index, location in enumerate(flow.locations):
        if location is None or location.line != opening:
            return index if location is not None else 0
        if flow.instructions[index].opcode not in _OPENING:
            return 0
    return 0


def is_called(name: str, wanted: str) -> bool:
    """Whether a function's name in the PTX is what people call so."""
    short = short_name(name)
    return wanted in (name, short, short.partition("<")[0], short.rpartition("::")[2])


def _at_line(module: PtxModule, file: str, line: int) -> frozenset[Place]:
    """The first instruction of a line in every function that has some, else of the next line."""
    exact: dict[str, int] = {}
    later: dict[str, tuple[int, int]] = {}
    wanted = {i for i, path in module.files.items() if not file or _ends_with(PurePath(path), file)}
    for flow in flows(module):
        name = flow.function.name
        for index, location in enumerate(flow.locations):
            if location is None or location.file not in wanted:
                continue
            if location.line == line:
                exact.setdefault(name, index)
            elif location.line > line:
                later[name] = min(later.get(name, (location.line, index)), (location.line, index))
    if exact or not later:
        return frozenset(exact.items())
    nearest = min(at for at, _ in later.values())
    return frozenset((name, index) for name, (at, index) in later.items() if at == nearest)


def _at_ptx_line(module: PtxModule, line: int) -> frozenset[Place]:
    """The instruction on a line of the PTX, or the next one."""
    found = [
        (at, flow.function.name, index)
        for flow in flows(module)
        for index, at in enumerate(flow.lines)
        if at >= line
    ]
    return frozenset([min(found)[1:]]) if found else frozenset()


def _ends_with(path: PurePath, file: str) -> bool:
    parts = PurePath(file).parts
    return path.parts[-len(parts) :] == parts


def _bodies(module: PtxModule) -> list[Function]:
    return [f for f in module.functions if f.body is not None]


@lru_cache(maxsize=16)
def flows(module: PtxModule) -> tuple[FlowGraph, ...]:
    """Every function of a module that has a body."""
    return tuple(build_flow(module, f) for f in _bodies(module))
