"""Reading the table of NCCL's calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_ROW = re.compile(r"(yes|no) (\d+\.\d+) (const char \*|void |ncclResult_t )(\w+)\((.*)\)")


@dataclass(frozen=True, slots=True)
class Row:
    """One call."""

    implemented: bool
    since: str
    returns: str
    name: str
    parameters: str

    @property
    def names(self) -> str:
        """Of the parameters, as a call passes them on."""
        return ", ".join(
            re.sub(r".*?(\w+)$", r"\1", part) for part in self.parameters.split(", ") if part
        )


def read_rows() -> tuple[Row, ...]:
    """All rows, in the table's order; a line that is none ends the program with its number."""
    rows = []
    for number, line in enumerate((HERE / "nccl.table").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _ROW.fullmatch(line)
        if match is None:
            raise SystemExit(f"nccl.table, line {number}: not a row: {line}")
        status, since, returns, name, parameters = match.groups()
        rows.append(Row(status == "yes", since, returns.rstrip(), name, parameters))
    return tuple(rows)
