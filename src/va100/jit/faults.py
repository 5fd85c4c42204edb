"""A native fault record as the exception it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from va100 import errors
from va100.gpu.arena import Arena
from va100.jit.compile import Site
from va100.jit.native import Fault

_SPACES: Final[Mapping[int, str]] = {
    0: "generic",
    1: "global",
    2: "shared",
    3: "local",
    6: "surface",
}


def describe_fault(
    known: Sequence[Site], arena: Arena, kernel: str, fault: Fault
) -> errors.Va100Error:
    """Turn a native fault record into the exception it stands for."""
    site = known[fault.site] if fault.site < len(known) else None
    place: dict[str, Any] = {
        "kernel": kernel,
        "cta": tuple(fault.ctaid),
        "thread": tuple(fault.tid),
        "file": site.file if site else "",
        "line": (site.source_line or site.line) if site else 0,
        "instruction": site.text if site else "",
    }
    text = fault.text.decode(errors="replace")
    if fault.kind in (1, 2):
        space = _SPACES.get(fault.space, "generic")
        where: dict[str, Any] = {
            "space": space,
            "address": int(fault.address),
            "size": int(fault.size),
        }
        if fault.kind == 2:
            return errors.MisalignedAddress(**where, **place)
        nearest = text or _nearest(arena, space, int(fault.address))
        return errors.IllegalAddress(**where, nearest=nearest, **place)
    if fault.kind == 3:
        return errors.TrapExecuted(**place)
    if fault.kind == 4:
        condition, file, line, _ = (*text.split("|"), "", "", "")[:4]
        if file:
            place |= {"file": file, "line": int(line or 0)}
        return errors.AssertFailed(condition=condition, **place)
    if fault.kind == 9:
        return errors.LaunchError(text, kernel=kernel)
    if fault.kind == 7:
        return errors.StackOverflow(text, **place)
    kind = errors.Deadlock if fault.kind == 6 else errors.IllegalInstruction
    return kind(text or "illegal instruction", **place)


def _nearest(arena: Arena, space: str, address: int) -> str:
    return "" if space in ("shared", "local", "surface") else arena.describe(address)
