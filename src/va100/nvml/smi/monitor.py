"""``nvidia-smi dmon`` and ``pmon``: one line a GPU or a process, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import NOT_SUPPORTED
from va100.nvml.readings import CORRECTED, MEMORY, SM, UNCORRECTED, VOLATILE, Gpu
from va100.nvml.smi.look import Look
from va100.nvml.smi.options import FLAG, VALUE, Given, Option, help_text, misuse, number, parse
from va100.nvml.smi.text import mebibytes

_HEADER_EVERY: Final = 26
"""Lines after which the titles stand again on a terminal."""
_COMMON: Final = (
    Option(("-h", "--help"), FLAG, "print this"),
    Option(("-i", "--id"), VALUE, "only these GPUs", "ID,..."),
    Option(("-d", "--delay"), VALUE, "seconds from one time to the next (1)", "SECONDS"),
    Option(("-c", "--count"), VALUE, "how often; without it, until interrupted", "COUNT"),
    Option(("-o", "--options"), VALUE, "D, T or DT: put date and time before each line", "WHAT"),
    Option(("-f", "--filename"), VALUE, "write to a file", "FILE"),
)
DEVICE_OPTIONS: Final = (
    *_COMMON,
    Option(("-s", "--select"), VALUE, "groups: p u c v m e t (puc)", "GROUPS"),
    Option(("--format",), VALUE, "csv[,nounit][,noheader]", "FORMAT"),
)
PROCESS_OPTIONS: Final = (*_COMMON, Option(("-s", "--select"), VALUE, "u, m or um (u)", "GROUPS"))


class Column(NamedTuple):
    """One column of ``dmon``."""

    title: str
    unit: str
    read: Callable[[Gpu], int | float]


def _busy(engine: str) -> Callable[[Gpu], int]:
    return lambda gpu: gpu.busy(engine)


_MHZ, _KIB = 1_000_000, 1024
GROUPS: Final[dict[str, tuple[Column, ...]]] = {
    "p": (
        Column("pwr", "W", lambda gpu: gpu.power_w),
        Column("gtemp", "C", lambda gpu: gpu.temperature_c),
        Column("mtemp", "C", lambda gpu: gpu.memory_temperature_c),
    ),
    "u": (
        Column("sm", "%", lambda gpu: gpu.utilization.gpu),
        Column("mem", "%", lambda gpu: gpu.utilization.memory),
        Column("enc", "%", _busy("Encoder")),
        Column("dec", "%", _busy("Decoder")),
        Column("jpg", "%", _busy("Jpg")),
        Column("ofa", "%", _busy("Ofa")),
    ),
    "c": (
        Column("mclk", "MHz", lambda gpu: gpu.clock_hz(MEMORY) // _MHZ),
        Column("pclk", "MHz", lambda gpu: gpu.clock_hz(SM) // _MHZ),
    ),
    "v": (
        Column("pviol", "%", lambda gpu: 100 * (gpu.reasons & 0x4 != 0)),
        Column("tviol", "bool", lambda gpu: int(gpu.reasons & 0x60 != 0)),
    ),
    "m": (
        Column("fb", "MB", lambda gpu: int(mebibytes(gpu.memory.used))),
        Column("bar1", "MB", lambda gpu: int(mebibytes(gpu.bar1.used))),
        Column("ccpm", "MB", lambda _gpu: 0),
    ),
    "e": (
        Column("sbecc", "errs", lambda gpu: gpu.total_errors(CORRECTED, VOLATILE)),
        Column("dbecc", "errs", lambda gpu: gpu.total_errors(UNCORRECTED, VOLATILE)),
        Column("pci", "errs", lambda gpu: gpu.number("GetPcieReplayCounter")),
    ),
    "t": (
        Column("rxpci", "MB/s", lambda gpu: gpu.throughput_bytes_per_s(1) // _KIB // _KIB),
        Column("txpci", "MB/s", lambda gpu: gpu.throughput_bytes_per_s(0) // _KIB // _KIB),
    ),
}
"""Groups of columns of ``dmon``, in the order they are printed."""


def run_devices(look: Look, words: Sequence[str]) -> int:
    """Watch GPUs."""
    program = "nvidia-smi dmon"
    given = parse(words, DEVICE_OPTIONS, program)
    if "-h" in given:
        look.write(help_text(f"{program} [OPTION [VALUE]]...", DEVICE_OPTIONS))
        return 0
    chosen = _groups(given, "puc", "".join(GROUPS), program)
    columns = [column for name, group in GROUPS.items() if name in chosen for column in group]
    stamps = _stamps(given, program)
    shape = _shape(given, program)
    titles = ["gpu", *(column.title for column in columns)]
    units = ["Idx", *(column.unit for column in columns)]

    def rows() -> Iterator[list[str]]:
        for gpu in look.gpus():
            yield [str(gpu.index), *(_cell(column, gpu) for column in columns)]

    if shape is not None:
        return _watch(look, given, program, _comma_lines(look, titles, units, rows, stamps, shape))
    heads = [
        f"#{_head_stamp(stamps, 0)} {titles[0]:>3}" + "".join(f"{t:>7}" for t in titles[1:]),
        f"#{_head_stamp(stamps, 1)} {units[0]:>3}" + "".join(f"{u:>7}" for u in units[1:]),
    ]

    def lines() -> Iterator[str]:
        for first, *rest in rows():
            yield f"{first:>5}" + "".join(f"{cell:>7}" for cell in rest)

    return _watch(look, given, program, _spaced_lines(look, heads, lines, stamps))


def run_processes(look: Look, words: Sequence[str]) -> int:
    """Watch processes."""
    program = "nvidia-smi pmon"
    given = parse(words, PROCESS_OPTIONS, program)
    if "-h" in given:
        look.write(help_text(f"{program} [OPTION [VALUE]]...", PROCESS_OPTIONS))
        return 0
    groups = _groups(given, "u", "um", program)
    stamps = _stamps(given, program)
    engines = ("sm", "mem", "enc", "dec", "jpg", "ofa") if "u" in groups else ()
    amounts = ("fb", "ccpm") if "m" in groups else ()
    heads = [
        f"#{_head_stamp(stamps, 0)} gpu         pid   type"
        + "".join(f"{name:>7}" for name in (*engines, *amounts))
        + "    command",
        f"#{_head_stamp(stamps, 1)} Idx           #    C/G"
        + "      %" * len(engines)
        + "     MB" * len(amounts)
        + "    name",
    ]

    def lines() -> Iterator[str]:
        for gpu in look.gpus():
            yield from _process_lines(gpu, groups)

    return _watch(look, given, program, _spaced_lines(look, heads, lines, stamps))


def _process_lines(gpu: Gpu, groups: str) -> Iterator[str]:
    try:
        processes = gpu.processes
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        processes = []
    if not processes:
        cells = ["-"] * ((6 if "u" in groups else 0) + (2 if "m" in groups else 0))
        yield _process_line(gpu, "-", "-", cells, "-")
        return
    uses = _uses(gpu)
    for process in processes:
        cells = []
        if "u" in groups:
            cells += _use_cells(uses.get(process.pid))
        if "m" in groups:
            cells += [mebibytes(process.used_bytes), "0"]
        yield _process_line(gpu, str(process.pid), "C", cells, _name(gpu, process.pid))


def _process_line(gpu: Gpu, pid: str, kind: str, cells: Sequence[str], name: str) -> str:
    body = "".join(f"{cell:>7}" for cell in cells)
    return f"{gpu.index:5d}{pid:>11}{kind:>6}{body}    {name[:15]:<15}"


def _uses(gpu: Gpu) -> dict[int, structs.ProcessUse]:
    try:
        return gpu.process_use()
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return {}


def _use_cells(use: structs.ProcessUse | None) -> list[str]:
    if use is None:
        return ["-"] * 6
    return [str(use.sm), str(use.memory), "-", "-", "-", "-"]


def _name(gpu: Gpu, pid: int) -> str:
    try:
        return Path(gpu.process_name(pid)).name
    except NvmlError:
        return "-"


def _cell(column: Column, gpu: Gpu) -> str:
    try:
        return f"{column.read(gpu):.0f}"
    except NvmlError:
        return "-"


def _groups(given: Given, usual: str, legal: str, program: str) -> str:
    chosen = given.get("-s", usual)
    wrong = [letter for letter in chosen if letter not in legal]
    if wrong or not chosen:
        raise misuse(f'"{chosen}" of option "-s" is no set of {legal}.', program)
    return chosen


def _stamps(given: Given, program: str) -> str:
    chosen = given.get("-o", "").upper()
    if chosen not in ("", "D", "T", "DT", "TD"):
        raise misuse(f'"{given["-o"]}" of option "-o" is none of D, T, DT.', program)
    return chosen


def _shape(given: Given, program: str) -> frozenset[str] | None:
    """What ``--format`` asks for; none: columns of spaces."""
    if "--format" not in given:
        return None
    words = frozenset(word.strip() for word in given["--format"].split(","))
    if "csv" not in words or words - {"csv", "nounit", "noheader"}:
        raise misuse(f'"{given["--format"]}" is no format: csv[,nounit][,noheader].', program)
    return words


def _head_stamp(stamps: str, line: int) -> str:
    words = (("Date", "YYYYMMDD"), ("Time", "HH:MM:SS"))
    chosen = [words["DT".index(letter)] for letter in sorted(stamps)]
    return "".join(f"{word[line]:<9}" for word in chosen)


def _stamp(look: Look, stamps: str) -> str:
    local = time.localtime(look.now_s())
    forms = {"D": "%Y%m%d ", "T": "%H:%M:%S "}
    return " " * bool(stamps) + "".join(time.strftime(forms[one], local) for one in sorted(stamps))


def _spaced_lines(
    look: Look, heads: Sequence[str], lines: Callable[[], Iterator[str]], stamps: str
) -> Callable[[bool], int]:
    def act(with_heads: bool) -> int:  # noqa: FBT001 -- one call, in _watch
        if with_heads:
            for head in heads:
                look.line(f"{head} ")
        count = 0
        for line in lines():
            look.line(f"{_stamp(look, stamps)}{line} ")
            count += 1
        return count

    return act


def _comma_lines(
    look: Look,
    titles: Sequence[str],
    units: Sequence[str],
    rows: Callable[[], Iterator[list[str]]],
    stamps: str,
    shape: frozenset[str],
) -> Callable[[bool], int]:
    is_begun = False

    def act(_with_heads: bool) -> int:  # noqa: FBT001 -- one call, in _watch
        nonlocal is_begun
        if not is_begun and "noheader" not in shape:
            look.line(f"#{', '.join(titles)}")
            if "nounit" not in shape:
                look.line(f"#{', '.join(units)}")
        is_begun = True
        for row in rows():
            look.line(f"{_stamp(look, stamps).lstrip()}{', '.join(row)}")
        return 0

    return act


def _watch(look: Look, given: Given, program: str, act: Callable[[bool], int]) -> int:
    """Print again and again, titles now and then."""
    look.chosen = tuple(filter(None, given.get("-i", "").split(",")))
    delay_s = number(given, "-d", program, least=1) if "-d" in given else 1
    left = number(given, "-c", program, least=1) if "-c" in given else None
    if "-f" in given:
        return look.into_file(given["-f"], lambda flush: _watch_on(look, act, delay_s, left, flush))
    return _watch_on(look, act, delay_s, left)


def _watch_on(
    look: Look,
    act: Callable[[bool], int],
    delay_s: float,
    left: int | None,
    flush: Callable[[], object] | None = None,
) -> int:
    since_heads = _HEADER_EVERY
    while left is None or left > 0:
        with_heads = since_heads >= _HEADER_EVERY
        since_heads = act(with_heads) + (0 if with_heads else since_heads)
        if flush is not None:
            flush()
        if left is not None:
            left -= 1
        if left != 0:
            look.wait(delay_s)
    return look.status
