"""The command line of ``nvidia-smi``: which verb it means, over which GPUs, how often, to where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from va100.errors import NvmlError
from va100.nvml.smi import (
    csv_query,
    listing,
    mig,
    monitor,
    nvlink,
    report,
    settings,
    table,
)
from va100.nvml.smi.look import Look, Stop
from va100.nvml.smi.options import (
    FLAG,
    OPTIONAL,
    VALUE,
    Given,
    Option,
    help_text,
    misuse,
    number,
    parse,
)
from va100.nvml.smi.text import refusal

PROGRAM: Final = "nvidia-smi"
OPTIONS: Final = (
    Option(("-h", "--help"), FLAG, "print this"),
    Option(("--version",), FLAG, "print versions of the tool, NVML, the driver and CUDA"),
    Option(("-L", "--list-gpus"), FLAG, "list GPUs and MIG devices"),
    Option(("-B", "--list-excluded-gpus"), FLAG, "list GPUs that the driver leaves out: none"),
    Option(("-i", "--id"), VALUE, "only these: index, UUID, serial or bus address", "ID,..."),
    Option(("-f", "--filename"), VALUE, "write to a file", "FILE"),
    Option(("-l", "--loop"), OPTIONAL, "again and again, each so many seconds (5)", "SECONDS"),
    Option(("-lms", "--loop-ms"), VALUE, "again and again, each so many ms", "MS"),
    Option(("-q", "--query"), FLAG, "print all there is to know"),
    Option(("-x", "--xml-format"), FLAG, "with -q: XML"),
    Option(("--dtd",), FLAG, "with -q -x: refused, the DTD is NVIDIA's"),
    Option(("-d", "--display"), VALUE, "with -q: only these parts", "PART,..."),
    Option(("-u", "--unit"), FLAG, "units of S-class systems: there are none"),
    Option(("--format",), VALUE, "csv[,noheader][,nounits] of the queries below", "FORMAT"),
    *(Option((f"--query-{name}",), VALUE, text, "FIELD,...") for name, text in csv_query.TEXTS),
    *(Option((f"--help-query-{name}",), FLAG, "list them") for name, _ in csv_query.TEXTS),
    *settings.OPTIONS,
)
ABSENT_VERBS: Final = (
    "boost-slider",
    "c2c",
    "clocks",
    "conf-compute",
    "daemon",
    "drain",
    "encodersessions",
    "fbcsessions",
    "gpm",
    "pci",
    "power-hint",
    "power-profiles",
    "power-smoothing",
    "prm",
    "replay",
    "rusd",
    "stats",
    "vgpu",
)
"""What the real tool has besides."""
_SOURCES: Final = tuple(f"--query-{name}" for name, _ in csv_query.TEXTS)
_AFTER: Final = """
Verbs, each with its own -h: mig, topo, nvlink, dmon, pmon.
It stands for the nvidia-smi of a 580 driver, and reads a virtual node: VA100_NODE names it."""


def _topology(look: Look, words: Sequence[str]) -> int:
    # Only imported here: with the facts about nodes it takes longer to load than all the rest.
    from va100.nvml.smi import topology  # noqa: PLC0415

    return topology.run(look, words)


VERBS: Final[Mapping[str, Callable[[Look, Sequence[str]], int]]] = {
    "mig": mig.run,
    "topo": _topology,
    "nvlink": nvlink.run,
    "dmon": monitor.run_devices,
    "pmon": monitor.run_processes,
}


def run(words: Sequence[str], look: Look) -> int:
    """Do what a command line asks; the result is the exit status."""
    try:
        if words and words[0] in ABSENT_VERBS:
            raise misuse(f'"{words[0]}" is not there in this nvidia-smi.', PROGRAM)
        if words and words[0] in VERBS:
            return VERBS[words[0]](look, words[1:])
        return _run_plain(look, parse(words, OPTIONS, PROGRAM))
    except Stop as stop:
        look.write(stop.text)
        return stop.status
    except NvmlError as error:
        look.line(f"Failed to query the GPU: {refusal(error)} ({error.function})")
        return error.code if error.code < 255 else 255


def _run_plain(look: Look, given: Given) -> int:
    if "-h" in given:
        usage = f"{PROGRAM} [OPTION [VALUE]]...   or   {PROGRAM} VERB ..."
        look.write(help_text(usage, OPTIONS, _AFTER))
        return 0
    look.chosen = tuple(filter(None, given.pop("-i", "").split(",")))
    every_s = _interval(given)
    file = given.pop("-f", None)
    act = _choice(given)
    if file is None:
        return _repeat(look, act, every_s)
    return look.into_file(file, lambda flush: _repeat(look, act, every_s, flush))


def _interval(given: Given) -> float | None:
    """Seconds from one time to the next; none: once."""
    if "-l" in given and "-lms" in given:
        raise misuse("Options -l and -lms are given both.", PROGRAM)
    for name, unit_s in (("-l", 1.0), ("-lms", 1e-3)):
        if name in given:
            given[name] = given[name] or "5"
            every = number(given, name, PROGRAM, least=1)
            del given[name]
            return every * unit_s
    return None


def _repeat(
    look: Look,
    act: Callable[[Look], int],
    every_s: float | None,
    flush: Callable[[], object] | None = None,
) -> int:
    while True:
        status = act(look)
        if flush is not None:
            flush()
        if every_s is None:
            return status
        look.wait(every_s)


def _choice(given: Given) -> Callable[[Look], int]:
    """Find out what options ask for; they may ask for one thing.

    Raises
    ------
    Stop
        They do not go together.
    """
    changes = settings.changes(given)
    if changes is not None:
        return changes
    for source in _SOURCES:
        if source in given:
            return csv_query.query(source.removeprefix("--query-"), given)
    if "-q" in given:
        return report.query(given)
    single: Mapping[str, Callable[[Look], int]] = {
        "-L": listing.run,
        "-B": _no_excluded,
        "-u": _no_units,
        "--version": _version,
    } | {f"--help-query-{name}": csv_query.list_fields(name) for name, _ in csv_query.TEXTS}
    if not given:
        return table.run
    if len(given) == 1 and next(iter(given)) in single:
        return single[next(iter(given))]
    if "--format" in given:
        raise misuse('Option "--format" goes with one of the queries.', PROGRAM)
    raise misuse("Invalid combination of input arguments.", PROGRAM)


def _no_excluded(look: Look) -> int:
    look.line("No excluded devices found.")
    return 0


def _no_units(look: Look) -> int:
    raise Stop("No units were found\n", 6)


def _version(look: Look) -> int:
    driver = look.nvml.text("nvmlSystemGetDriverVersion")
    nvml = look.nvml.text("nvmlSystemGetNVMLVersion")
    cuda = look.nvml.number("nvmlSystemGetCudaDriverVersion_v2")
    look.line(f"NVIDIA-SMI version  : {driver}")
    look.line(f"NVML version        : {'.'.join(nvml.split('.')[1:3])}")
    look.line(f"DRIVER version      : {driver}")
    look.line(f"CUDA Version        : {cuda // 1000}.{cuda % 1000 // 10}")
    return 0
