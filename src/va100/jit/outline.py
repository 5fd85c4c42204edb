"""Instructions of the masked world as functions of their own, shared by all that look alike.

A kernel's masked chunks say the same few things at many places: they differ in where registers
lie in the frame and in the numbers of their sites.  The LLVM text of one instruction is rewritten
with these as parameters; two instructions with the same text left are calls of one function,
whose name is a hash of it.  What an instruction means is none of this module's business: it reads
lines.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from va100.jit.emit import MODULE_TAIL

FEWEST_LINES: Final = 4
"""Below, a call would be as long."""
_NAME: Final = re.compile(r"%[A-Za-z][\w.]*|^[A-Za-z][\w.]*(?=:$)", re.MULTILINE)
_OWN: Final = re.compile(r"^(?:  (%[A-Za-z][\w.]*) = |([A-Za-z][\w.]*):$)", re.MULTILINE)
_CALLED: Final = re.compile(r"@([A-Za-z_][\w.]*)")
_PLACE: Final = re.compile(r"%(?:at\.|pend)\d+$")
_HELPER: Final = re.compile(r"call [a-z0-9]+ @va_h_.*\)$", re.MULTILINE)
_ARGUMENT: Final = re.compile(r"\b(i32|i64) (-?\d{2,})(?=[,)])")
_NUMBER: Final = re.compile(
    r" = (?P<op>(?:add|sub|mul|and|or|xor) (?P<kind>i32|i64) %[\w.]+), (?P<number>-?\d+)$"
    r"|(?<= = getelementptr i8, )(?P<base>ptr %[\w.]+), i64 (?P<offset>-?\d{2,})$"
    r"|splat \((?P<element>i32|i64) (?P<lane>-?\d+)\)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Body:
    """A function made of an instruction."""

    declaration: str
    text: str
    """A module of its own."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the lines of an instruction may refer to besides themselves."""

    masks: frozenset[str]
    """Names of i32 that the block defines."""
    place_of: Callable[[str], int | None]
    """Where a place in the frame lies, by its name."""
    known: Callable[[str], Sequence[str] | None]
    """Lines that define a name of the function's entry, from nothing but %w, %s and each other."""
    declared: Mapping[str, str]


@dataclass(slots=True)
class Outlines:
    """Bodies found so far, by their symbols."""

    bodies: dict[str, Body] = field(default_factory=dict)
    _symbols: dict[str, str] = field(default_factory=dict)

    def call(self, lines: Sequence[str], around: Surroundings) -> tuple[str, str] | None:
        """A body's symbol and a call of it that does what some lines do; ``None`` where none can.

        None can where lines jump elsewhere or use what only their block knows.
        """
        if len(lines) < FEWEST_LINES:
            return None
        body = _Writing(around)
        text = body.text_of("\n".join(lines))
        if text is None:
            return None
        symbol = self._symbols.get(text) or self._add(text, body, around)
        if not symbol:
            return None
        return symbol, f"  call void @{symbol}({', '.join(['ptr %w', 'ptr %s', *body.given])})"

    def _add(self, text: str, body: _Writing, around: Surroundings) -> str:
        called = dict.fromkeys(_CALLED.findall(text))
        if not called.keys() <= around.declared.keys():
            return ""
        symbol = "o." + hashlib.sha256(text.encode()).hexdigest()[:20]
        declared = [around.declared[name] for name in called]
        module = "\n".join([*declared, f"define void @{symbol}{text}"]) + MODULE_TAIL
        self.bodies[symbol] = Body(f"declare void @{symbol}({body.kinds})", module)
        self._symbols[text] = symbol
        return symbol


class _Writing:
    """One instruction being rewritten."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._names = {"%w": "%w", "%s": "%s"}
        self._known: dict[str, Sequence[str]] = {}
        self._entry: list[str] = []
        self._missing = False
        self._taken: list[str] = []
        self.given: list[str] = []
        """Arguments after %w and %s."""

    @property
    def kinds(self) -> str:
        """Types of the parameters."""
        return ", ".join(["ptr", "ptr", *(each.partition(" ")[0] for each in self._taken)])

    def text_of(self, lines: str) -> str | None:
        """The body without its name; ``None`` where it refers to what is elsewhere."""
        for number, (name, label) in enumerate(_OWN.findall(lines)):
            self._names[name or label] = f"%v{number}" if name else f"v{number}"
            if label:
                self._names["%" + label] = f"%v{number}"
        lines = _NAME.sub(self._name, lines)
        if self._missing:
            return None
        lines = _HELPER.sub(lambda call: _ARGUMENT.sub(self._argument, call[0]), lines)
        lines = _NUMBER.sub(self._number, lines)
        known = [line for each in self._known.values() for line in each]
        head = f"({', '.join(['ptr noundef %w', 'ptr noalias noundef %s', *self._taken])}) #0 {{"
        return "\n".join([head, "entry:", *known, *self._entry, lines, "  ret void", "}"])

    def _name(self, found: re.Match[str]) -> str:
        name = found[0]
        new = self._names.get(name)
        if new is None:
            new = self._names[name] = self._new_name(name)
        return new

    def _new_name(self, name: str) -> str:
        if name in self._around.masks:
            return self._parameter("i32", name)
        if _PLACE.match(name):
            return self._place(name)
        if not self._know(name):
            self._missing = True
        return name

    def _place(self, name: str) -> str:
        offset = self._parameter("i64", str(self._around.place_of(name)))
        new = f"%p{offset[2:]}"
        self._entry.append(f"  {new} = getelementptr i8, ptr %s, i64 {offset}")
        return new

    def _argument(self, found: re.Match[str]) -> str:
        return f"{found[1]} {self._parameter(found[1], found[2])}"

    def _number(self, found: re.Match[str]) -> str:
        if found["op"]:
            return f" = {found['op']}, {self._parameter(found['kind'], found['number'])}"
        if found["base"]:
            return f"{found['base']}, i64 {self._parameter('i64', found['offset'])}"
        return self._splat(found["element"], found["lane"])

    def _splat(self, kind: str, number: str) -> str:
        """A number in all lanes, which would be a literal otherwise."""
        new, vector = self._parameter(kind, number), f"<32 x {kind}>"
        self._entry += [
            f"  {new}.0 = insertelement {vector} poison, {kind} {new}, i32 0",
            f"  {new}.1 = shufflevector {vector} {new}.0, {vector} poison, "
            "<32 x i32> zeroinitializer",
        ]
        return f"{new}.1"

    def _parameter(self, kind: str, value: str) -> str:
        new = f"%a{len(self.given)}"
        self.given.append(f"{kind} {value}")
        self._taken.append(f"{kind} {new}")
        return new

    def _know(self, name: str) -> bool:
        """Take over what the entry of the function says of a name, and of names in it."""
        if name in self._known:
            return True
        lines = self._around.known(name)
        if lines is None:
            return False
        text = "\n".join(lines)
        own = {defined for defined, _ in _OWN.findall(text)}
        for used in _NAME.findall(text):
            if used not in own and used not in ("%w", "%s") and not self._know(used):
                return False
        self._known[name] = lines
        return True
