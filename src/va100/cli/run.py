"""``va100 run``: a CUDA program on virtual GPUs, then its kernels and their A100 times.

The program keeps its standard input, output and status; the table goes to standard error.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO, cast

from va100.cli import environment, target
from va100.cli.options import add_gpu_options, add_program, chosen_settings
from va100.cli.process import execute
from va100.cli.terminal import columns
from va100.config import MOST_SHUFFLE
from va100.errors import SetupError
from va100.profile.chrome_trace import trace_json
from va100.profile.report_schema import LaunchReport, read_report
from va100.profile.table import report_json, table_text

STANDARD_OUTPUT: Final = "-"
_VALUED_OPTIONS: Final = (
    "--model", "--gpus", "--timeline", "--dump", "--shuffle", "--nvcc-flags",
)  # fmt: skip
_OWN_OPTIONS: Final = (*_VALUED_OPTIONS, "--json", "--quiet")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "run",
        allow_abbrev=False,  # words after the target are the program's
        usage="va100 run [OPTIONS] TARGET [ARGS ...]\n"
        "       va100 run TARGET [OPTIONS] -- [ARGS ...]",
        help="run a CUDA program on virtual GPUs and show its kernels",
        description="Run a .cu file with a main(), a Python script or an executable on virtual "
        "GPUs, then print its kernels and the time an A100 would take for them.",
        epilog="Options stand before TARGET; what follows TARGET goes to the program. With -- "
        "after TARGET, what stands between them is for va100 too.",
    )
    add_gpu_options(parser)
    parser.add_argument(
        "--timeline", metavar="FILE", help="write a trace for chrome://tracing and Perfetto"
    )
    parser.add_argument(
        "--dump",
        metavar="FILE",
        help="write a core dump of the first kernel that faults, for `va100 debug --core FILE`; "
        "every kernel is interpreted, which is slow",
    )
    parser.add_argument(
        "--shuffle",
        metavar="SEED",
        type=_seed,
        help="run CTAs and warps in another order, one for each number from 1: what depends on an "
        "order that the program does not ask for, such as sums of floats by atomics, may differ",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=STANDARD_OUTPUT,
        help="write the report as JSON, with --json=FILE to a file; with --json alone it is all "
        "of standard output, and what the program prints goes to standard error",
    )
    parser.add_argument("--quiet", action="store_true", help="print no table")
    add_program(parser, ".cu file, .py file or executable")


def _seed(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= MOST_SHUFFLE:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {MOST_SHUFFLE}")
    return number


def spelled_out(words: Sequence[str]) -> list[str]:
    """Rewrite what argparse would misread: a bare ``--json``, and options after the target.

    ``--json FILE`` can't be told from ``--json TARGET``, so a file needs ``=``.
    """
    if not words or words[0] != "run":
        return list(words)
    rest = list(words[1:])
    place = _target_place(rest)
    if place is None:
        return ["run", *_joined(rest)]
    before, chosen, after = rest[:place], rest[place], rest[place + 1 :]
    if "--" in after:
        cut = after.index("--")
        if _target_place(after[:cut]) is None:
            before, after = before + after[:cut], after[cut + 1 :]
    return ["run", *_joined(before), chosen, *after]


def run(args: argparse.Namespace) -> int:
    """Run the target; the result is its status."""
    settings = chosen_settings(args)
    if not environment.is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    if args.target is None:
        raise SetupError("no TARGET was named", remedy=target.HINT)
    for name in (args.timeline, args.json, args.dump):
        _require_writable(name)
    if args.dump is not None:
        Path(args.dump).unlink()  # one of an earlier run would look like this one's
        settings = replace(settings, dump=Path(args.dump).resolve())
    if args.shuffle is not None:
        settings = replace(settings, shuffle=args.shuffle)
    _require_legible(settings.trace)
    started = target.command(args.target, args.arguments, args.nvcc_flags, settings)
    _warn(started, args)
    with tempfile.TemporaryDirectory(prefix="va100-") as scratch:
        report_path = settings.report or Path(scratch, "report")
        settings = replace(settings, report=report_path)
        status = execute(started, settings, verb="run", output_is_json=args.json == STANDARD_OUTPUT)
        report = _read(report_path)
    report = replace(
        report,
        model=report.model or settings.model,
        gpu_count=settings.gpu_count,
        program=args.target,
    )
    _show(report, args)
    return status


def _read(path: Path) -> LaunchReport:
    """Read the report; a broken one must not hide what the program did."""
    try:
        return read_report(path)
    except ValueError as error:
        return LaunchReport(notes=(f"the launch report could not be read: {error}",))


def _show(report: LaunchReport, args: argparse.Namespace) -> None:
    if args.timeline is not None:
        _write(args.timeline, trace_json(report))
    if args.json == STANDARD_OUTPUT:
        print(report_json(report))
    elif args.json is not None:
        _write(args.json, report_json(report))
    if not args.quiet and args.json != STANDARD_OUTPUT:
        sys.stderr.write("\n" + table_text(report, width=columns()) + "\n")


def _require_writable(name: str | None) -> None:
    """Find out before a program runs for long that what it leaves could not be kept."""
    if name not in (None, STANDARD_OUTPUT):
        _opened(name, "a").close()


def _require_legible(trace: str) -> None:
    """Say what is wrong with what is to be traced before the program starts."""
    if trace:
        # Only imported when asked for: most runs have no trace.
        from va100.debug.trace import read_options  # noqa: PLC0415

        read_options(trace)


def _write(name: str, text: str) -> None:
    with _opened(name, "w") as file:
        file.write(text + "\n")


def _opened(name: str, mode: str) -> TextIO:
    try:
        return cast("TextIO", Path(name).open(mode, encoding="utf-8"))
    except OSError as error:
        raise SetupError(
            f"{name}: {error.strerror}", remedy="name a file that can be written"
        ) from error


def _warn(started: Sequence[str], args: argparse.Namespace) -> None:
    """Say what will surprise: a static runtime, and our options given to the program."""
    if target.links_static_runtime(Path(started[0])):
        sys.stderr.write(
            f"va100 run: {started[0]} has NVIDIA's static CUDA runtime linked in, which refuses "
            "any driver but NVIDIA's (error 103).\n"
            "  to fix: link it with `nvcc -cudart shared`\n"
        )
    astray = [word for word in args.arguments if word.partition("=")[0] in _OWN_OPTIONS]
    if astray and not args.quiet:
        sys.stderr.write(
            f"va100 run: {astray[0]} stands after {args.target}, so the program gets it; "
            "va100's own options stand before\n"
        )


def _target_place(words: Sequence[str]) -> int | None:
    """Index of the first word that is neither an option nor an option's value."""
    skip = False
    for place, word in enumerate(words):
        if skip:
            skip = False
        elif word in _VALUED_OPTIONS:
            skip = True
        elif not word.startswith("-"):
            return place
    return None


def _joined(options: Sequence[str]) -> list[str]:
    """Tie options to their values by ``=``, since a value may begin with a dash."""
    tied: list[str] = []
    words = iter(options)
    for word in words:
        if word in _VALUED_OPTIONS:
            value = next(words, None)
            tied.append(word if value is None else f"{word}={value}")
        elif word == "--json":
            tied.append(f"--json={STANDARD_OUTPUT}")
        elif word != "--":
            tied.append(word)
    return tied
