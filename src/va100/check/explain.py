"""Native findings in the terms of the program: which line, which thread, how bad.

The words are here; layout and suppression are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from va100.check.findings import Access, Finding, Severity, Tool
from va100.check.flow import VariantFlow
from va100.check.native import NO_SITE, RawAccess, RawFinding
from va100.driver.names import short_name


class Place(Protocol):
    """An instruction of a compiled kernel."""

    @property
    def function(self) -> str:
        """The PTX function it is in."""
        ...

    @property
    def line(self) -> int:
        """Its line of PTX."""
        ...

    @property
    def file(self) -> str:
        """Source file; empty where the PTX does not say."""
        ...

    @property
    def source_line(self) -> int:
        """Source line; 0 where the PTX does not say."""
        ...

    @property
    def text(self) -> str:
        """The instruction."""
        ...


@dataclass(frozen=True)
class CheckedKernel:
    """What is known of a kernel that was compiled for checking."""

    name: str
    sites: Sequence[Place]
    flow: VariantFlow


_SPACES: Final = {0: "generic", 1: "global", 2: "shared", 3: "local"}
_WHAT: Final = {
    0: "read", 1: "write", 2: "atomic", 3: "asynchronous copy", 4: "copy from it",
    5: "copy to it", 6: "fill",
}  # fmt: skip
_READ = 0
_OUT_OF_BOUNDS, _MISALIGNED, _FREED, _FOREIGN = 1, 2, 3, 4
_INVALID_FREE, _DOUBLE_FREE, _LEAK, _FAULT, _BAD_RANGE = 5, 6, 7, 8, 9
_UNINITIALISED, _UNDEFINED_COPY = 16, 17
_DIVERGED_WARP, _DIVERGED_BLOCK, _SKIPPED, _COUNTS = 32, 33, 34, 35
_WITHOUT_CALLER, _MASKS_DIFFER, _MISSING_LANE, _PARTED = 36, 37, 38, 39
_RACE, _STALE = 64, 65
_STREAMS = 3
_BY_FLOW: Final = frozenset({_DIVERGED_WARP, _DIVERGED_BLOCK, _MISSING_LANE})
_FAULTS: Final = {
    1: (Tool.MEMCHECK, "Invalid access"),
    2: (Tool.MEMCHECK, "Misaligned access"),
    3: (Tool.MEMCHECK, "Trap"),
    4: (Tool.MEMCHECK, "Assertion failed"),
    5: (Tool.SYNCCHECK, "Illegal instruction"),
    6: (Tool.SYNCCHECK, "Deadlock"),
    7: (Tool.MEMCHECK, "Stack overflow"),
    8: (Tool.SYNCCHECK, "Timeout"),
    9: (Tool.MEMCHECK, "Out of memory for the launch"),
}


def explain(
    raw: RawFinding, kernel: CheckedKernel | None, second: CheckedKernel | None = None
) -> Finding | None:
    """Make a finding of a native one; ``None`` when the flow graph acquits it.

    ``second`` is the kernel of the other access, in a race of two streams.
    """
    if raw.kind in _BY_FLOW and (
        kernel is None or not kernel.flow.behind(raw.first.site, raw.second.site)
    ):
        return None
    if raw.kind == _RACE and raw.relaxed == _STREAMS:
        return _stream_race(raw, kernel, second)
    if raw.kind == _RACE:
        return _race(raw, kernel)
    if raw.kind == _STALE:
        return _stale_texel(raw, kernel)
    if raw.kind >= _DIVERGED_WARP:
        return _synchronisation(raw, kernel)
    if raw.kind == _FAULT:
        return _fault(raw, kernel)
    if raw.kind == _UNDEFINED_COPY:
        return _undefined_copy(raw)
    return _memory(raw, kernel)


def _access(raw: RawAccess, kernel: CheckedKernel | None) -> Access | None:
    if kernel is None:
        return None
    x, y, z = raw.ctaid
    i, j, k = raw.tid
    site = kernel.sites[raw.site] if raw.site < len(kernel.sites) else None
    file, line = kernel.flow.source_of(raw.site) or ("", 0)
    if site is not None and not line:
        file, line = site.file, site.source_line or site.line
    return Access(
        what=_WHAT.get(raw.kind, "read"),
        function=short_name(site.function) if site else "",
        file=file,
        line=line,
        instruction=site.text if site else "",
        cta=(x, y, z),
        thread=(i, j, k),
    )


def _name(kernel: CheckedKernel | None) -> str:
    return short_name(kernel.name) if kernel else ""


# ------------------------------------------------------------------ memory


def _memory(raw: RawFinding, kernel: CheckedKernel | None) -> Finding:
    tool = Tool.INITCHECK if raw.kind == _UNINITIALISED else Tool.MEMCHECK
    space = _SPACES[raw.space]
    kind, title = _MEMORY[raw.kind](raw, space)
    return Finding(
        tool=tool.value,
        kind=kind,
        severity=Severity.ERROR.value,
        title=title,
        kernel=_name(kernel),
        count=raw.count,
        first=_access(raw.first, kernel),
        space=space,
        address=raw.address,
        size_bytes=raw.near.bytes if raw.kind == _LEAK else raw.size,
        details=_near(raw, space),
    )


def _undefined_copy(raw: RawFinding) -> Finding:
    """What the host copies and nobody wrote; where some bytes are defined it may know which."""
    base, size = raw.near.base, raw.near.bytes
    return Finding(
        tool=Tool.INITCHECK.value,
        kind="undefined-copy",
        severity=(Severity.INFO if raw.harmless else Severity.ERROR).value,
        title=f"Uninitialized: copy of {raw.size} bytes to the host"
        + (", some of them written by nobody" if raw.harmless else " that nobody wrote"),
        count=raw.count,
        space="global",
        address=base,
        size_bytes=raw.size,
        details=(
            f"first such byte 0x{raw.address:x} is {raw.address - base} bytes inside 0x{base:x}, "
            f"{size} bytes",
        ),
    )


def _access_title(problem: str) -> Callable[[RawFinding, str], tuple[str, str]]:
    kind, start = problem.split("|")

    def title(raw: RawFinding, space: str) -> tuple[str, str]:
        what = _WHAT[raw.first.kind]
        return kind, f"{start} __{space}__ {what} of size {raw.size} bytes"

    return title


def _plain_title(kind: str, text: str) -> Callable[[RawFinding, str], tuple[str, str]]:
    return lambda raw, _: (kind, text.format(address=f"0x{raw.address:x}", size=raw.size))


_MEMORY: Final[dict[int, Callable[[RawFinding, str], tuple[str, str]]]] = {
    _OUT_OF_BOUNDS: _access_title("out-of-bounds|Invalid"),
    _MISALIGNED: _access_title("misaligned|Misaligned"),
    _FREED: _access_title("use-after-free|Use after free:"),
    _FOREIGN: _access_title("foreign|Access to another thread's memory:"),
    _UNINITIALISED: _access_title("uninitialised|Uninitialized"),
    _INVALID_FREE: _plain_title("invalid-free", "Invalid free of {address}"),
    _DOUBLE_FREE: _plain_title("double-free", "Double free of {address}"),
    _BAD_RANGE: _plain_title(
        "bad-range", "Copy or fill of {size} bytes at {address} leaves its allocation"
    ),
    _LEAK: lambda raw, _: ("leak", f"Leaked {raw.near.bytes} bytes at 0x{raw.address:x}"),
}


def _near(raw: RawFinding, space: str) -> tuple[str, ...]:
    """Where the address lies."""
    if raw.kind in (_LEAK, _INVALID_FREE, _DOUBLE_FREE):
        return ()
    lines = [f"address 0x{raw.address:x}"]
    if raw.kind == _MISALIGNED:
        lines[0] += f" is no multiple of {raw.size}"
    if not raw.has_near:
        return tuple(lines)
    base, size = raw.near.base, raw.near.bytes
    if space in ("shared", "local"):
        owner = "the block" if space == "shared" else "the thread"
        lines[0] += f" in the {size} bytes that {owner} has"
    elif raw.kind == _FREED:
        lines.append(
            f"is {raw.address - base} bytes inside 0x{base:x}, {size} bytes that were freed"
        )
    elif raw.address < base:
        lines.append(
            f"is {base - raw.address} bytes before the nearest allocation, 0x{base:x} of "
            f"{size} bytes"
        )
    elif raw.address + max(raw.size, 1) > base + size:
        past = raw.address - (base + size)
        where = f"{past} bytes past the end of" if past >= 0 else "across the end of"
        lines.append(f"is {where} the nearest allocation, 0x{base:x} of {size} bytes")
    else:
        lines.append(f"is {raw.address - base} bytes inside 0x{base:x}, {size} bytes")
    return tuple(lines)


def _fault(raw: RawFinding, kernel: CheckedKernel | None) -> Finding:
    tool, title = _FAULTS.get(raw.size, (Tool.MEMCHECK, "Fault"))
    text = raw.text.decode(errors="replace")
    if raw.size == 4:
        title, text = f"Assertion failed: {text.split('|')[0]}", ""
    return Finding(
        tool=tool.value,
        kind=title.split(":", maxsplit=1)[0].lower().replace(" ", "-"),
        severity=Severity.ERROR.value,
        title=title,
        kernel=_name(kernel),
        count=raw.count,
        first=_access(raw.first, kernel),
        space=_SPACES.get(raw.space, ""),
        address=raw.address,
        details=(text,) if text else (),
    )


# ------------------------------------------------------------------ synchronisation


def _synchronisation(raw: RawFinding, kernel: CheckedKernel | None) -> Finding:
    kind, title, second = _SYNCHRONISATION[raw.kind]
    details: tuple[str, ...] = ()
    if raw.kind == _COUNTS:
        details = (f"one warp expects {raw.address or 'all'} threads, another {raw.size or 'all'}",)
    elif raw.kind in (_WITHOUT_CALLER, _MASKS_DIFFER):
        details = (f"mask 0x{raw.address:08x}",)
        if raw.kind == _MASKS_DIFFER:
            details = (f"mask 0x{raw.address:08x}, another lane's 0x{raw.size:08x}",)
    return Finding(
        tool=Tool.SYNCCHECK.value,
        kind=kind,
        severity=Severity.ERROR.value,
        title=title,
        kernel=_name(kernel),
        count=raw.count,
        first=_access(raw.first, kernel),
        second=_access(raw.second, kernel) if second else None,
        details=details,
    )


_SYNCHRONISATION: Final = {
    _DIVERGED_WARP: ("divergent-warp", "Barrier error: divergent threads in a warp", True),
    _DIVERGED_BLOCK: ("divergent-block", "Barrier error: divergent threads in a block", True),
    _SKIPPED: ("divergent-warp", "Barrier error: its guard is false in some lanes", False),
    _PARTED: ("divergent-warp", "Barrier error: a warp comes to it in different places", False),
    _COUNTS: ("barrier-count", "Barrier error: warps expect different counts of threads", False),
    _WITHOUT_CALLER: ("mask-without-caller", "Invalid mask: it lacks a lane that executes", False),
    _MASKS_DIFFER: ("masks-differ", "Invalid mask: lanes that it names give another", False),
    _MISSING_LANE: ("missing-lane", "Invalid mask: a lane that it names does not come", True),
}


# ------------------------------------------------------------------ races


def _race(raw: RawFinding, kernel: CheckedKernel | None) -> Finding:
    severity = Severity.ERROR
    details = [f"address 0x{raw.address:x}"]
    if raw.harmless:
        severity = Severity.INFO
        details.append("both write the same value")
    elif raw.relaxed:
        severity = Severity.WARN
        details.append(_RELAXED[raw.relaxed])
    elif kernel is not None and _guarded_by_swap(raw, kernel):
        severity = Severity.INFO
        details.append("the value read is only what a compare-and-swap expects")
    space = _SPACES[raw.space]
    if raw.has_near and space == "global":
        base, size = raw.near.base, raw.near.bytes
        details[0] += f" is {raw.address - base} bytes inside 0x{base:x}, {size} bytes"
    first, second = _access(raw.first, kernel), _access(raw.second, kernel)
    names = [_WHAT[raw.first.kind], _WHAT[raw.second.kind]]
    earlier_first = False
    if raw.first.site != NO_SITE and first and second and _later(first, second):
        earlier_first = True
        first, second = second, first
        names.reverse()
    return Finding(
        tool=Tool.RACECHECK.value,
        kind="race",
        severity=severity.value,
        title=f"Race on __{space}__ memory between a {names[0]} and a {names[1]}",
        kernel=_name(kernel),
        count=raw.count,
        first=first,
        second=second,
        space=space,
        address=raw.address,
        size_bytes=raw.size,
        details=tuple(details),
        hazard=_hazard(raw.first.kind, raw.second.kind),
        reversed=not earlier_first,
    )


def _hazard(now: int, before: int) -> str:
    """The later access after the earlier one; whatever writes is a write."""
    letters = ["R" if kind == _READ else "W" for kind in (now, before)]
    return f"{letters[0]}A{letters[1]}"


_RELAXED: Final = {
    1: "volatile accesses of one warp: nothing keeps its lanes in step",
    2: "only a relaxed read stands between them: a fence after it is missing",
}


def _stale_texel(raw: RawFinding, kernel: CheckedKernel | None) -> Finding:
    """A fetch may see an old value whatever is ordered: only the next launch sees this one's."""
    return Finding(
        tool=Tool.RACECHECK.value,
        kind="stale-texel",
        severity=Severity.WARN.value,
        title="Fetch of a texel that the same launch wrote",
        kernel=_name(kernel),
        count=raw.count,
        first=_access(raw.first, kernel),
        space="global",
        address=raw.address,
        size_bytes=raw.size,
        details=(*_near(raw, "global"), "the texture cache need not know of it"),
    )


def _stream_race(
    raw: RawFinding, kernel: CheckedKernel | None, second: CheckedKernel | None
) -> Finding:
    """Work of two streams; copies and fills have no place in the program."""
    sides = [
        (_WHAT[access.kind], _access(access, where), stream, _name(where) or "the host's")
        for access, where, stream in (
            (raw.first, kernel, raw.streams[0]),
            (raw.second, second, raw.streams[1]),
        )
    ]
    if not sides[0][1] or (sides[1][1] and _later(sides[0][1], sides[1][1])):
        sides.reverse()
    details = [f"address 0x{raw.address:x}"]
    if raw.has_near:
        base, size = raw.near.base, raw.near.bytes
        details[0] += f" is {raw.address - base} bytes inside 0x{base:x}, {size} bytes"
    details += [f"{what}: {who} in stream {stream}" for what, _, stream, who in sides]
    details.append("nothing orders the two streams: no event, no wait of the host")
    return Finding(
        tool=Tool.RACECHECK.value,
        kind="stream-race",
        severity=Severity.ERROR.value,
        title=f"Race on __global__ memory between streams: a {sides[0][0]} and a {sides[1][0]}",
        kernel=_name(kernel) or _name(second),
        count=raw.count,
        first=sides[0][1],
        second=sides[1][1],
        space="global",
        address=raw.address,
        size_bytes=raw.size,
        details=tuple(details),
    )


def _guarded_by_swap(raw: RawFinding, kernel: CheckedKernel) -> bool:
    """The plain read that begins a loop of compare-and-swap."""
    for access, other in ((raw.first, raw.second), (raw.second, raw.first)):
        if _WHAT[access.kind] == "read" and _WHAT[other.kind] == "atomic":
            return kernel.flow.feeds_swap(access.site)
    return False


def _later(first: Access, second: Access) -> bool:
    """One order for a pair of places, whichever came first when it ran."""
    a = (first.file, first.line, first.instruction, first.what)
    return a > (second.file, second.line, second.instruction, second.what)
