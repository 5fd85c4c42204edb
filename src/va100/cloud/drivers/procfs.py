"""What Linux tells of programs: who started whom, for how long they ran, what they hold."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Program:
    """One running program."""

    pid: int
    parent: int
    started: int
    """Ticks since the host booted; with the number it names a program for good."""
    cpu_s: float
    memory_bytes: int
    state: str


def program(pid: int) -> Program | None:
    """What there is to know of a program; none if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return Program(
        pid=pid,
        parent=int(fields[1]),
        started=int(fields[19]),
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        memory_bytes=int(fields[21]) * _PAGE_BYTES,
        state=fields[0],
    )


def is_alive(pid: int, started: int) -> bool:
    """Whether the program of a number is the one that began at a tick, and still runs."""
    found = program(pid)
    return found is not None and found.started == started and found.state not in "ZX"


Table = dict[int, list[Program]]
"""Programs by who started them."""


def table() -> Table:
    """All programs of this host at this moment."""
    children: Table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            found = program(int(entry))
            if found is not None:
                children.setdefault(found.parent, []).append(found)
    return children


def family(pid: int, children: Table | None = None) -> list[Program]:
    """A program and all that descend from it, parents first.

    Parameters
    ----------
    children : Table, optional
        All programs, where they were read already.
    """
    children = table() if children is None else children
    first = program(pid)
    members = [first] if first is not None else []
    for member in members:
        members.extend(children.get(member.pid, ()))
    return members


def neighbours(pid: int) -> list[Program]:
    """All programs of the process table that a program sees; itself among them."""
    own = _namespace(pid)
    found = []
    if own is not None:
        for entry in os.listdir("/proc"):
            if entry.isdigit() and _namespace(int(entry)) == own:
                one = program(int(entry))
                if one is not None:
                    found.append(one)
    return found


def _namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None
