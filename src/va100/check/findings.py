"""What the checker found, in the terms of the program: kinds, places, severity.

A finding as plain data, to and from JSON; how it is told to people is in
:mod:`va100.check.report`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Final


class Tool(Enum):
    """The checks a person may ask for."""

    MEMCHECK = "memcheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"
    RACECHECK = "racecheck"


TOOL_BITS: Final = {Tool.MEMCHECK: 1, Tool.INITCHECK: 2, Tool.SYNCCHECK: 4, Tool.RACECHECK: 8}
"""As the native core knows them."""
STRICT_WARP_BIT: Final = 16


class Severity(Enum):
    """How bad a finding is, mildest first."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One thread at one place of the program."""

    what: str
    """read, write, atomic, asynchronous copy."""
    function: str
    file: str
    line: int
    """Of the source where it is known, else of the PTX."""
    instruction: str
    cta: tuple[int, int, int]
    thread: tuple[int, int, int]

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}" if self.file else f"PTX line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, as often as it was seen."""

    tool: str
    kind: str
    severity: str
    title: str
    """What is wrong, in one line."""
    kernel: str = ""
    count: int = 1
    first: Access | None = None
    second: Access | None = None
    """The other access of a race, or where a thread was that did not come."""
    space: str = ""
    address: int = 0
    size_bytes: int = 0
    details: tuple[str, ...] = ()
    """More to know, one line each."""
    hazard: str = ""
    """Of a race, in the order of this run: RAW, WAR or WAW."""
    reversed: bool = False
    """Whether ``second`` came first in this run."""
    launch: int = 0
    """Of checked launches, the one it was first seen in, from 1; 0: the host's."""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two findings one."""
        places = (_place(self.first), _place(self.second))
        where = () if self.first else (self.address, self.title)
        return (self.tool, self.kind, self.severity, self.space, self.kernel, places, where)

    def again(self, other: Finding) -> Finding:
        """Give the finding as often as both were seen."""
        return replace(self, count=self.count + other.count)

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Finding:
        """Reverse of :meth:`as_json`."""
        facts = dict(data)
        for name in ("first", "second"):
            facts[name] = _access(facts.get(name))
        facts["details"] = tuple(facts.get("details", ()))
        return cls(**facts)


def _place(access: Access | None) -> tuple[object, ...]:
    if access is None:
        return ()
    return (access.file, access.line)


def _access(data: dict[str, Any] | None) -> Access | None:
    if data is None:
        return None
    return Access(**{**data, "cta": _three(data["cta"]), "thread": _three(data["thread"])})


def _three(values: Any) -> tuple[int, int, int]:
    x, y, z = values
    return (int(x), int(y), int(z))


def merged(findings: list[Finding]) -> list[Finding]:
    """Equal findings as one, in order of first sight."""
    known: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        before = known.get(finding.key)
        known[finding.key] = finding if before is None else before.again(finding)
    return list(known.values())
