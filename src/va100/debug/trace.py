"""The trace: one line for each instruction that a chosen thread executes.

What ``VA100_TRACE`` may say is read here, and what a line holds is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from va100.debug.operands import Access, roles
from va100.debug.values import spelled
from va100.driver.names import short_name
from va100.errors import SetupError
from va100.gpu.watch import Moment, Spot
from va100.ptx.program import PtxModule
from va100.ptx.types import PtxType, Space
from va100.work import WARP_SIZE, Dim3

SYNTAX: Final = (
    "kernel=PART,cta=0+2-5,thread=0-3,limit=LINES,out=FILE; x:y:z instead of a number names an "
    "index in three dimensions, with * for any"
)
_KEYS: Final = ("kernel", "cta", "thread", "limit", "out")
_EXAMPLE: Final = "export VA100_TRACE='kernel=saxpy,cta=0,thread=0-3'"

Range = tuple[int, int]
"""First and last."""


@dataclass(frozen=True, slots=True)
class Indices:
    """Chosen indices of CTAs or threads; all when nothing is listed."""

    linear: tuple[Range, ...] = ()
    cubes: tuple[tuple[Range, Range, Range], ...] = ()

    def has(self, index: Dim3, extent: Dim3) -> bool:
        """Whether an index in an extent is chosen."""
        if not self.linear and not self.cubes:
            return True
        flat = index.x + extent.x * (index.y + extent.y * index.z)
        return any(a <= flat <= b for a, b in self.linear) or any(
            all(a <= i <= b for i, (a, b) in zip(index, cube, strict=True)) for cube in self.cubes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """What is traced, and where to."""

    kernel: str = ""
    """Part of the kernel's name; empty: all kernels."""
    ctas: Indices = Indices()
    threads: Indices = Indices()
    limit: int = 0
    """Lines at most; 0: no limit."""
    out: Path | None = None
    """Nothing: standard error."""

    def wants(self, kernel: str) -> bool:
        """Whether a kernel is traced, by its name in the module."""
        return self.kernel in kernel or self.kernel in short_name(kernel)


def read_options(text: str) -> TraceOptions:
    """Read what ``VA100_TRACE`` says; ``1`` and ``all`` trace everything.

    Raises
    ------
    SetupError
        It says something else than the syntax has.
    """
    words = {} if text in ("1", "all") else dict(_pair(text, part) for part in text.split(","))
    limit = words.get("limit", "0")
    if not limit.isdecimal():
        raise _wrong(text, f"limit={limit} is no count")
    return TraceOptions(
        kernel=words.get("kernel", ""),
        ctas=_indices(text, words.get("cta", "")),
        threads=_indices(text, words.get("thread", "")),
        limit=int(limit),
        out=Path(words["out"]) if words.get("out") else None,
    )


def _pair(text: str, part: str) -> tuple[str, str]:
    key, equals, value = (word.strip() for word in part.partition("="))
    if not equals or key not in _KEYS:
        raise _wrong(text, f"{part.strip()!r} is none of {', '.join(f'{k}=' for k in _KEYS)}")
    return key, value


def _indices(text: str, value: str) -> Indices:
    linear: list[Range] = []
    cubes: list[tuple[Range, Range, Range]] = []
    for item in value.split("+") if value and value != "*" else ():
        axes = [_range(text, axis) for axis in item.split(":")]
        if len(axes) == 1:
            linear.append(axes[0])
        elif len(axes) <= 3:
            x, y, z = (*axes, (0, 0))[:3]
            cubes.append((x, y, z))
        else:
            raise _wrong(text, f"{item} has more than three dimensions")
    return Indices(tuple(linear), tuple(cubes))


def _range(text: str, item: str) -> Range:
    if item == "*":
        return 0, 1 << 31
    first, dash, last = item.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise _wrong(text, f"{item!r} is neither a number, a range such as 0-3, nor *")
    return int(first), int(last or first)


def _wrong(text: str, problem: str) -> SetupError:
    return SetupError(f"VA100_TRACE={text}: {problem}", remedy=f"{_EXAMPLE} ({SYNTAX})")


# ---------------------------------------------------------------- the watcher


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a thread's registers and memory were before an instruction."""

    moment: Moment
    lane: int
    place: str
    read: str
    old: tuple[str, ...]
    memory: tuple[str, ...]


class Tracer:
    """Writes the trace; a :class:`va100.gpu.watch.Watcher`."""

    def __init__(self, options: TraceOptions, write: Callable[[str], object]) -> None:
        self._options = options
        self._write = write
        self._count = 0
        self._known: dict[str, bool] = {}
        self._seen: list[_Seen] = []
        self._held: list[_Seen] = []
        """Of lanes that wait in their instruction for others."""

    def wants(self, kernel: str, module: PtxModule) -> bool:
        """Whether a kernel's launches are to be watched."""
        del module
        return self._options.wants(kernel) and not self._is_full()

    def _is_traced(self, kernel: str) -> bool:
        if kernel not in self._known:
            self._known[kernel] = self._options.wants(kernel)
        return self._known[kernel]

    def _is_full(self) -> bool:
        return 0 < self._options.limit <= self._count

    def before(self, moment: Moment) -> None:
        """Remember what the instruction may change."""
        self._release(moment)
        self._seen = []
        if not self._is_traced(moment.kernel):
            return  # a grid that the traced one has launched
        if not self._options.ctas.has(moment.cta, moment.config.grid):
            return
        for lane in range(WARP_SIZE):
            if moment.arrived >> lane & 1 and self._is_chosen(moment, lane):
                self._seen.append(_seen(moment, lane))

    def after(self, moment: Moment) -> None:
        """Tell what it has changed, unless lanes still wait in it."""
        waiting = moment.waiting() & moment.lanes if self._seen else 0
        for seen in self._seen:
            if waiting >> seen.lane & 1:
                self._held.append(seen)
            else:
                self._tell(seen)
        self._seen = []

    def faulted(self, moment: Moment, error: Exception) -> None:
        """Tell of the instruction that was wrong."""
        del moment
        for seen in self._seen:
            self._line(f"{seen.place} | {seen.read} | faulted: {str(error).splitlines()[0]}")
        self._seen = []

    def ended(self) -> None:
        """Tell what was held back, and that these waited to the end."""
        for seen in self._held:
            self._tell(seen)
        self._held = []

    def _is_chosen(self, moment: Moment, lane: int) -> bool:
        return self._options.threads.has(moment.thread(lane), moment.config.block)

    def _release(self, moment: Moment) -> None:
        """Lanes that go on have what they waited for."""
        if not self._held:
            return
        kept = []
        for seen in self._held:
            then = seen.moment
            same = (then.launch_id, then.cta, then.warp) == (
                moment.launch_id, moment.cta, moment.warp,
            )  # fmt: skip
            if same and moment.arrived >> seen.lane & 1:
                self._tell(seen)
            else:
                kept.append(seen)
        self._held = kept

    def _tell(self, seen: _Seen) -> None:
        spot = seen.moment.spot
        if not seen.moment.lanes >> seen.lane & 1:
            self._line(f"{seen.place} | {seen.read} | not executed")
            return
        parts = [
            f"{name}: {old} -> {new}"
            for (name, _), old, new in zip(
                roles(spot.instruction, spot.operation).written,
                seen.old,
                _written(seen.moment, spot, seen.lane),
                strict=True,
            )
        ]
        changed = _stored(seen.moment, spot, seen.lane)
        parts += [
            f"{old.replace('=', ': ', 1)} -> {new.partition('=')[2]}"
            for old, new in zip(seen.memory, changed, strict=True)
        ]
        columns = (seen.place, seen.read, ", ".join(parts))
        self._line(" | ".join(c for c in columns if c))

    def _line(self, text: str) -> None:
        if self._is_full():
            return
        self._count += 1
        self._write(text + "\n")
        if self._is_full():
            self._write(f"va100 trace: the limit of {self._options.limit} lines is reached\n")


def _seen(moment: Moment, lane: int) -> _Seen:
    spot = moment.spot
    executes = bool(moment.lanes >> lane & 1)
    return _Seen(
        moment,
        lane,
        f"{_where(moment, spot, lane)} | {spot.text}",
        _read(moment, spot, lane, executes=executes),
        _written(moment, spot, lane),
        _stored(moment, spot, lane) if executes else (),
    )


def _where(moment: Moment, spot: Spot, lane: int) -> str:
    source = f"{Path(spot.file).name}:{spot.line} " if spot.line else ""
    cta, thread = _index(moment.cta), _index(moment.thread(lane))
    return f"{short_name(moment.kernel)} cta{cta} thread{thread} {source}ptx:{spot.ptx_line}"


def _index(index: Dim3) -> str:
    return f"({index.x},{index.y},{index.z})"


def _read(moment: Moment, spot: Spot, lane: int, *, executes: bool) -> str:
    """Predicate, registers and addresses that the instruction uses."""
    parts = []
    guard = spot.instruction.guard
    if guard is not None:
        parts.append(f"{guard.register}={_value(moment, guard.register, None, lane)}")
    used = roles(spot.instruction, spot.operation)
    parts += [f"{name}={_value(moment, name, kind, lane)}" for name, kind in used.read]
    if executes:
        parts += [address_text(moment, access, lane) for access in used.accesses]
    return " ".join(parts)


def _written(moment: Moment, spot: Spot, lane: int) -> tuple[str, ...]:
    used = roles(spot.instruction, spot.operation)
    return tuple(_value(moment, name, kind, lane) for name, kind in used.written)


def _value(moment: Moment, name: str, kind: PtxType | None, lane: int) -> str:
    declared = moment.registers().get(name)
    try:
        raw = moment.register(name, lane)
    except LookupError:
        return "?"
    if declared is None:
        return spelled(raw, PtxType.U64)
    # A type of another width says how the value is widened or cut, not what the register holds.
    fits = kind is not None and kind.bits == declared.bits and not declared.is_float
    return spelled(raw, kind if fits and kind is not None else declared)


def address_text(moment: Moment, access: Access, lane: int) -> str:
    """``[shared+0x10]``, ``[0x200000000100]``."""
    try:
        address = moment.address(access.operand, access.space, lane)
    except LookupError:
        return "[?]"
    if access.space in (Space.SHARED, Space.LOCAL):
        base, _ = moment.window(access.space, lane)
        return f"[{access.space.value}+0x{address - base:x}]"
    return f"[0x{address:x}]"


def _stored(moment: Moment, spot: Spot, lane: int) -> tuple[str, ...]:
    """What lies in memory that the instruction writes, as ``[address]=value``."""
    operation = spot.operation
    if not operation.types or operation.form.family.value not in ("memory", "atomic"):
        return ()
    kind = operation.type
    found = []
    for access in roles(spot.instruction, operation).accesses:
        if access.written:
            place = address_text(moment, access, lane)
            found.append(f"{place}={_memory_text(moment, access, lane, kind, operation.vector)}")
    return tuple(found)


def _memory_text(moment: Moment, access: Access, lane: int, kind: PtxType, count: int) -> str:
    try:
        start = moment.address(access.operand, access.space, lane)
        raw = moment.memory(start, kind.size_bytes * count)
    except LookupError:
        return "?"
    size = kind.size_bytes
    values = [
        spelled(int.from_bytes(raw[i : i + size], "little"), kind) for i in range(0, len(raw), size)
    ]
    return values[0] if count == 1 else "{" + ", ".join(values) + "}"


def open_trace(options: TraceOptions, standard: TextIO) -> TextIO:
    """Open the file that the trace goes to.

    Raises
    ------
    SetupError
        It cannot be written.
    """
    if options.out is None:
        return standard
    try:
        return options.out.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise SetupError(
            f"VA100_TRACE: {options.out}: {error.strerror}",
            remedy="name a file that can be written after out=",
        ) from error
