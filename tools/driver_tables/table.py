"""The tables of exported functions, read into rows.

What a row means is told at the head of each ``.table`` file; what is made of rows is in
:mod:`native_source`, :mod:`python_source` and :mod:`coverage_page`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
_ROW: Final = re.compile(
    r"(?P<version>\d+)\s+(?P<streams>-|ptsz|ptds)\s+(?P<status>\w+)\s+"
    r"(?:(?P<returns>[\w ]+?[ *]+))?(?P<name>\w+)\((?P<parameters>.*)\)$"
)
_SUFFIX: Final = re.compile(r"_v\d+$")


class Status(Enum):
    """What a caller of a function may expect."""

    IMPLEMENTED = "implemented"
    ANSWERED = "answered"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its C type, its name, and whether it may be NULL."""

    c_type: str
    name: str
    optional: bool

    @property
    def declaration(self) -> str:
        """As C spells it."""
        gap = "" if self.c_type.endswith("*") else " "
        return f"{self.c_type}{gap}{self.name}"

    @property
    def is_checked(self) -> bool:
        """Whether NULL is refused before the implementation is called."""
        if self.optional or not self.c_type.endswith("*"):
            return False
        return self.c_type not in {"void *", "const void *"}


@dataclass(frozen=True, slots=True)
class Row:
    """One exported function."""

    group: str
    version: int
    streams: str
    status: Status
    returns: str
    name: str
    parameters: tuple[Parameter, ...]

    @property
    def base_name(self) -> str:
        """The name without the version of its signature."""
        return _SUFFIX.sub("", self.name)

    @property
    def twin(self) -> str | None:
        """The exported name of the per-thread-stream twin."""
        return None if self.streams == "-" else f"{self.name}_{self.streams}"

    @property
    def has_body(self) -> bool:
        """Whether ``native`` holds a function for it."""
        return self.status is not Status.REFUSED

    @property
    def prototype(self) -> str:
        """The parameter list as C spells it."""
        return ", ".join(p.declaration for p in self.parameters) or "void"


def read_rows(path: Path, *, returns: str) -> tuple[Row, ...]:
    """Read a table.

    Raises
    ------
    ValueError
        A line that is no row, or a name that occurs twice.
    """
    rows = tuple(_rows(path, returns))
    names = Counter((name, row.version) for row in rows for name in (row.name, row.twin) if name)
    twice = {name for (name, _), count in names.items() if count > 1}
    if twice:
        raise ValueError(f"{path.name}: listed twice: {', '.join(sorted(twice))}")
    return rows


def _rows(path: Path, returns: str) -> Iterator[Row]:
    group = ""
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            group = line.strip("[]")
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            raise ValueError(f"{path.name}:{number}: not a row: {line}")
        yield Row(
            group=group,
            version=int(match["version"]),
            streams=match["streams"],
            status=Status(match["status"]),
            returns=(match["returns"] or returns).strip(),
            name=match["name"],
            parameters=tuple(_parameter(part) for part in _split(match["parameters"])),
        )


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _parameter(text: str) -> Parameter:
    match = re.fullmatch(r"(?P<type>.*?[\s*])(?P<optional>\??)(?P<name>\w+)", text)
    if match is None:
        raise ValueError(f"not a parameter: {text}")
    return Parameter(match["type"].strip(), match["name"], bool(match["optional"]))
