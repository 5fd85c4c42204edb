"""What the debugger shows of a program that stands still: places, threads, registers, memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from va100.debug.expression import evaluate
from va100.debug.names import NO_INFO, Names
from va100.debug.types import C_TYPES, Kind, Type, Value, text_of
from va100.debug.values import spelled
from va100.driver.names import short_name
from va100.gpu.watch import Moment, Spot
from va100.ptx.types import Space
from va100.work import WARP_SIZE, Dim3

_AROUND: Final = 5
_MOST_ITEMS: Final = 4096
_EXAMINE: Final = re.compile(r"(?:/(\d*)([a-z]{0,2})(?:\s+|$))?(.*)", re.DOTALL)
_SIZES: Final = {"b": 1, "h": 2, "w": 4, "g": 8}
_FORMATS: Final = "xdufcts"
_ROW_BYTES: Final = 16


# ---------------------------------------------------------------- places


def place(moment: Moment, lane: int, *, has_reason: bool) -> str:
    """Where a thread stands, with the line of source or PTX."""
    lines = []
    if has_reason:
        lines.append(f"{where(moment.spot)}  [{focus(moment, lane)}]")
    lines.append(line_text(moment.spot))
    return "\n".join(lines)


def focus(moment: Moment, lane: int) -> str:
    """Which thread is looked at."""
    return (
        f"kernel {short_name(moment.kernel)}, block {moment.cta}, thread {moment.thread(lane)}, "
        f"warp {moment.warp} lane {lane}, lanes 0x{moment.arrived:08x}"
    )


def where(spot: Spot) -> str:
    """``saxpy at saxpy.cu:12``."""
    return f"{short_name(spot.function)} at {at(spot)}"


def at(spot: Spot) -> str:
    """``saxpy.cu:12``, or the line of the PTX where the source is not known."""
    return f"{Path(spot.file).name}:{spot.line}" if spot.line else f"PTX line {spot.ptx_line}"


def line_text(spot: Spot) -> str:
    """The line of source with its number, and the instruction."""
    written = _source_lines(spot.file)
    instruction = f"ptx:{spot.ptx_line}\t{spot.text}"
    if spot.line and spot.line <= len(written):
        return f"{spot.line}\t{written[spot.line - 1]}\n{instruction}"
    return instruction


@lru_cache(maxsize=64)
def _source_lines(file: str) -> tuple[str, ...]:
    """A source file, where it was compiled or in this folder; nothing when it is not there."""
    for path in (Path(file), Path(Path(file).name)) if file else ():
        try:
            return tuple(path.read_text("utf-8", "replace").splitlines())
        except OSError:
            continue
    return ()


def source(moment: Moment, line: int | None) -> Iterator[str]:
    """Lines of source around a line."""
    spot = moment.spot
    written = _source_lines(spot.file)
    if not written:
        reason = f"{spot.file} is not there" if spot.file else "its code has no line information"
        raise LookupError(f"no source: {reason}; `disassemble` shows PTX")
    middle = line or spot.line
    for number in range(max(middle - _AROUND, 1), min(middle + _AROUND, len(written)) + 1):
        mark = "=>" if number == spot.line else "  "
        yield f"{mark}{number}\t{written[number - 1]}"


def disassembly(moment: Moment) -> Iterator[str]:
    """Lines of PTX around the instruction."""
    here = moment.spot.ptx_line
    written = moment.module.source.splitlines()
    for number in range(max(here - _AROUND, 1), min(here + _AROUND, len(written)) + 1):
        mark = "=>" if number == here else "  "
        yield f"{mark}{number}\t{written[number - 1].rstrip()}"


def frames(moment: Moment) -> Iterator[str]:
    """The calls that led to an instruction."""
    for number, spot in enumerate(moment.frames()):
        yield f"#{number}  {where(spot)} (ptx:{spot.ptx_line})"


# ---------------------------------------------------------------- threads


def target(moment: Moment, lane: int, words: Mapping[str, str]) -> tuple[Dim3, Dim3]:
    """The block and thread that words name, what they leave out as it is now."""
    cta, thread = moment.cta, moment.thread(lane)
    block = moment.config.block
    if "block" in words:
        cta = _index(words["block"], moment.config.grid)
    if "thread" in words:
        thread = _index(words["thread"], block)
    warp = int(words["warp"]) if "warp" in words else moment.warp
    if "warp" in words or "lane" in words:
        chosen = int(words.get("lane", 0 if "warp" in words else lane))
        thread = _unflattened(warp * WARP_SIZE + chosen, block)
    return cta, thread


def _index(text: str, extent: Dim3) -> Dim3:
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    if not numbers or len(numbers) > 3:
        raise ValueError(f"{text} is no index such as (3,0,0)")
    if len(numbers) == 1:
        return _unflattened(numbers[0], extent)
    return Dim3(*(*numbers, 0)[:3])


def _unflattened(flat: int, extent: Dim3) -> Dim3:
    return Dim3(flat % extent.x, flat // extent.x % extent.y, flat // (extent.x * extent.y))


def kernels(moment: Moment) -> Iterator[str]:
    """The launch under way."""
    config = moment.config
    running = {s.cta for s in moment.standings()}
    yield (
        f"{short_name(moment.kernel)}  grid {config.grid} block {config.block}  "
        f"{config.dynamic_shared_bytes} bytes of dynamic shared memory  "
        f"{len(running)} of {config.grid.size} blocks under way"
    )


def threads(moment: Moment, lane: int) -> Iterator[str]:
    """Where threads are, those of a warp that are together in one line."""
    yield f"looked at: {focus(moment, lane)}"
    for standing in moment.standings():
        own = (standing.cta, standing.warp) == (moment.cta, moment.warp)
        mark = "*" if own and standing.lanes >> lane & 1 else " "
        ranges = ", ".join(
            f"{_thread_text(moment, standing.warp, a)}"
            + (f"..{_thread_text(moment, standing.warp, b)}" if b > a else "")
            for a, b in _runs(standing.lanes)
        )
        waits = f"  waits: {standing.waits}" if standing.waits else ""
        yield (
            f"{mark} block {standing.cta}  {ranges}  {standing.lanes.bit_count()} threads at "
            f"{at(standing.spot)} ptx:{standing.spot.ptx_line}{waits}"
        )


def _thread_text(moment: Moment, warp: int, lane: int) -> str:
    return str(_unflattened(warp * WARP_SIZE + lane, moment.config.block))


def _runs(lanes: int) -> Iterator[tuple[int, int]]:
    """First and last of each run of set bits."""
    first = None
    for lane in range(WARP_SIZE + 1):
        is_set = bool(lanes >> lane & 1)
        if is_set and first is None:
            first = lane
        if not is_set and first is not None:
            yield first, lane - 1
            first = None


def warps(moment: Moment) -> Iterator[str]:
    """Where warps are, a line for each group of lanes."""
    for s in moment.standings():
        mark = "*" if (s.cta, s.warp) == (moment.cta, moment.warp) else " "
        state = f"waits: {s.waits}" if s.waits else "ready"
        yield (
            f"{mark} block {s.cta} warp {s.warp:2}  lanes 0x{s.lanes:08x}  {where(s.spot)} "
            f"ptx:{s.spot.ptx_line}  {state}"
        )


# ---------------------------------------------------------------- values


def registers(names: Names, wanted: Sequence[str]) -> Iterator[str]:
    """Registers of a thread with their declared types."""
    declared = names.moment.registers()
    chosen = [w if w.startswith("%") else f"%{w.lstrip('$')}" for w in wanted] or list(declared)
    for name in chosen:
        raw = names.moment.register(name, names.lane)
        kind = declared.get(name)
        if kind is None:
            yield f"{name:10} {'':6} {raw}"
            continue
        text = spelled(raw, kind)
        more = "" if text.startswith(("0x", "true", "false")) else f"  0x{raw:x}"
        yield f"{name:10} .{kind.value:5} {text}{more}"


def variables(names: Names, *, parameters: bool) -> Iterator[str]:
    """Variables of the source, or of a kernel's PTX where there is no better."""
    if names.has_source_names:
        count = 0
        for name, text in names.locals(parameters=parameters):
            count += 1
            yield f"{name} = {text}"
        if not count:
            yield "none"
        return
    if not parameters:
        yield NO_INFO
        return
    known = [n for n in names.moment.variables() if "_param_" in n]
    for name in known or names.moment.variables():
        short = re.sub(r".*_(param_\d+)$", r"\1", name)
        try:
            yield f"{short} = {text_of(names.ptx_variable(name), 'x')}"
        except LookupError as error:
            yield f"{short} = <{error}>"


def shared(names: Names) -> Iterator[str]:
    """Shared variables of the block, by offset."""
    moment = names.moment
    base, size = moment.window(Space.SHARED, names.lane)
    yield f"{size} bytes at 0x{base:x}, {moment.config.dynamic_shared_bytes} of them dynamic"
    found = []
    for name in moment.variables():
        known = moment.variable(name, names.lane)
        if known.space is Space.SHARED:
            found.append((known.address - base, known.size_bytes, name))
    for offset, length, name in sorted(found):
        yield f"shared+0x{offset:x}  {length} bytes  {name}"


def memory(text: str, names: Names) -> Iterator[str]:
    """Answer ``x/COUNT FORMAT SIZE ADDRESS``."""
    match = _EXAMINE.fullmatch(text.strip())
    assert match is not None
    letters = match[2] or "x"
    style = next((c for c in letters if c in _FORMATS), "x")
    size = next((_SIZES[c] for c in letters if c in _SIZES), 1 if style in "cs" else 4)
    for letter in letters:
        if letter not in _FORMATS and letter not in _SIZES:
            raise ValueError(f"/{letter}: formats are {' '.join(_FORMATS)}, sizes b h w g")
    if not match[3].strip():
        raise ValueError("x needs an address, as in x/8f $rd1")
    address = _address(evaluate(match[3], names))
    count = min(int(match[1] or 1), _MOST_ITEMS)
    if style == "s":
        yield from _strings(address, count, names)
        return
    per_row = max(_ROW_BYTES // size, 1)
    for start in range(0, count, per_row):
        row = min(per_row, count - start)
        first = address + start * size
        values = [
            text_of(Value(_kind(size, style), names.memory(first + i * size, size)), style)
            for i in range(row)
        ]
        yield f"{_place(first, names)}:\t" + "\t".join(values)


def _address(value: Value) -> int:
    if value.type.kind is Kind.STRUCT:
        raise ValueError(f"a value of type {value.type.name} is no address; put & before it")
    number = value.number()
    if isinstance(number, float):
        raise ValueError(f"{number} is no address")
    return number & 0xFFFF_FFFF_FFFF_FFFF


def _kind(size: int, style: str) -> Type:
    if style == "f" and size > 1:
        return {2: C_TYPES["half"], 4: C_TYPES["float"], 8: C_TYPES["double"]}[size]
    return Type(f"{size} bytes", Kind.UNSIGNED, size)


def _place(address: int, names: Names) -> str:
    base, size = names.moment.window(Space.SHARED, names.lane)
    return f"shared+0x{address - base:x}" if 0 <= address - base < size else f"0x{address:x}"


def _strings(address: int, count: int, names: Names) -> Iterator[str]:
    for _ in range(count):
        start, raw = address, b""
        while len(raw) < _MOST_ITEMS:
            byte = names.memory(address, 1)
            address += 1
            if byte == b"\0":
                break
            raw += byte
        text = raw.decode("latin-1").encode("unicode_escape").decode()
        yield f'{_place(start, names)}:\t"{text}"'
