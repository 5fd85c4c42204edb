"""NVML's functions and enumerations of facts, read into rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
_ROW: Final = re.compile(r"(?P<version>\d+)\s+(?P<status>\w+)\s+(?P<name>nvml\w+)\((?P<rest>.*)\)$")
_PARAMETER: Final = re.compile(r"(?P<type>.*?[\s*])(?P<optional>\??)(?P<name>\w+)")
STATUSES: Final = ("implemented", "refused")


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
        return self.c_type.endswith("*") and not self.optional


@dataclass(frozen=True, slots=True)
class Row:
    """One exported function."""

    group: str
    version: int
    status: str
    name: str
    parameters: tuple[Parameter, ...]

    @property
    def returns(self) -> str:
        """The C type of the result."""
        return "const char *" if self.name == "nvmlErrorString" else "nvmlReturn_t "

    @property
    def is_implemented(self) -> bool:
        """Whether ``native/nvml`` holds a function for it."""
        return self.status == "implemented"

    @property
    def needs_no_start(self) -> bool:
        """Whether it may be called before nvmlInit."""
        return self.group == "start"

    @property
    def prototype(self) -> str:
        """The parameter list as C spells it."""
        return ", ".join(p.declaration for p in self.parameters)


def read_rows() -> tuple[Row, ...]:
    """Read the table.

    Raises
    ------
    ValueError
        A line that is no row, or a name that occurs twice.
    """
    rows = tuple(_rows(HERE / "nvml.table"))
    names = [row.name for row in rows]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"listed twice: {', '.join(sorted(twice))}")
    return rows


def _rows(path: Path) -> Iterator[Row]:
    group = ""
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            group = line.strip("[]")
            continue
        match = _ROW.fullmatch(line)
        if match is None or match["status"] not in STATUSES:
            raise ValueError(f"{path.name}:{number}: not a row: {line}")
        yield Row(
            group=group,
            version=int(match["version"]),
            status=match["status"],
            name=match["name"],
            parameters=tuple(_parameter(p) for p in match["rest"].split(", ") if p),
        )


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a parameter: {text}")
    return Parameter(match["type"].strip(), match["name"], bool(match["optional"]))
