"""``va100 profile``: a CUDA program on virtual GPUs, and why its kernels take as long as they do.

The program keeps its standard input and output; the report goes to standard error, or to files in
the formats that other profilers write.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from va100.cli import environment, target
from va100.cli.options import add_gpu_options, add_program, chosen_settings
from va100.cli.process import execute
from va100.cli.terminal import columns
from va100.config import Settings
from va100.errors import SetupError
from va100.profile.chrome_trace import trace_json
from va100.profile.compare import comparison_text, paired
from va100.profile.criteria import Criterion, CriterionError, offences, parse_criterion
from va100.profile.details import details_text
from va100.profile.html.page import page
from va100.profile.launch import Launch, launches_of, read_records, records_json, selected
from va100.profile.metrics import METRICS, Metric, chosen, help_text, values
from va100.profile.ncu_csv import PAGES, Program, details_csv, raw_csv, source_csv
from va100.profile.nsys_sqlite import database
from va100.profile.quantities import quantities
from va100.profile.report_schema import LaunchReport, read_report
from va100.profile.whatif import Variation, variations, whatif_json, whatif_text
from va100.spec.model import ChipSpec

STANDARD_OUTPUT: Final = "-"
HELP: Final = "help"
_FAILED: Final = 1
_VALUED: Final = (
    "--model", "--gpus", "--kernel", "--metrics", "--launch-skip", "--launch-count", "--page",
    "--trace", "--sqlite", "--html", "--compare", "--fail-if", "--nvcc-flags",
)  # fmt: skip
"""Options whose value is the word after them."""
_BARE: Final = {"--json": STANDARD_OUTPUT, "--csv": STANDARD_OUTPUT, "--what-if": ""}
"""Options that may stand alone, and what they mean then."""
_FILES_TO_WRITE: Final = ("json", "csv", "trace", "sqlite", "html")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of the program, and the launches of it that were asked for."""

    status: int
    report: LaunchReport
    launches: tuple[Launch, ...]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "profile",
        allow_abbrev=False,  # words after the target are the program's
        usage="va100 profile [OPTIONS] TARGET [ARGS ...]\n"
        "       va100 profile --compare BASE.json [--fail-if EXPR] RUN.json\n"
        "       va100 profile --what-if[=LIST] [--json] RUN.json",
        help="run a CUDA program and say why its kernels take as long as they do",
        description="Run a .cu file with a main(), a Python script or an executable on virtual "
        "GPUs and tell what each kernel did, what an A100 would take for it, and why.",
        epilog="Options stand before TARGET; what follows TARGET goes to the program.",
    )
    add_gpu_options(parser)
    _add_selection(parser)
    _add_formats(parser)
    _add_judgement(parser)
    _add_whatif(parser)
    parser.add_argument("--quiet", action="store_true", help="print no report")
    add_program(parser, ".cu file, .py file, executable or saved run")


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel",
        metavar="REGEX",
        type=_expression,
        default="",
        help="only kernels whose name a regular expression is found in",
    )
    parser.add_argument(
        "--launch-skip",
        metavar="N",
        type=_count,
        default=0,
        help="pass over their first N launches",
    )
    parser.add_argument(
        "--launch-count",
        metavar="N",
        type=_count,
        default=0,
        help="then take N launches only; 0: all (default: 0)",
    )
    parser.add_argument(
        "--metrics",
        metavar="LIST",
        default="",
        help="metrics by their Nsight Compute names or regex:EXPR, with commas between; help: list "
        "them",
    )


def _add_formats(parser: argparse.ArgumentParser) -> None:
    for option, what in (
        ("--json", "the launches as JSON"),
        ("--csv", "their metrics as Nsight Compute's CSV"),
    ):
        parser.add_argument(
            option,
            metavar="FILE",
            nargs="?",
            const=STANDARD_OUTPUT,
            help=f"write {what}, with {option}=FILE to a file; with {option} alone it is all of "
            "standard output, and what the program prints goes to standard error",
        )
    parser.add_argument(
        "--page",
        choices=PAGES,
        default=PAGES[0],
        help="of --csv: a row a metric, a row a launch, or a row a source line (default: details)",
    )
    for option, what in (
        ("--trace", "a timeline for Perfetto and chrome://tracing"),
        ("--sqlite", "the timeline as a database with Nsight Systems' tables"),
        ("--html", "a page with charts, which needs nothing else"),
    ):
        parser.add_argument(option, metavar="FILE", help=f"write {what}")


def _add_judgement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compare",
        metavar="BASE",
        help="a run saved with --json=BASE: show how times differ from its",
    )
    parser.add_argument(
        "--fail-if",
        metavar="EXPR",
        action="append",
        type=_criterion,
        default=[],
        help="status 1 if a kernel is so: 'time > 1.1x' of BASE, 'registers > 64', 'time > 10us', "
        "'dram__bytes.sum > 1.05x'; may be repeated",
    )


def _add_whatif(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--what-if",
        metavar="LIST",
        nargs="?",
        const="",
        help="what the launches would take elsewhere: models (sxm40), MIG profiles (1g.10gb), "
        "clocks (1095MHz), warm (data in L2), with commas between; --what-if alone: all of them",
    )


def spelled_out(words: Sequence[str]) -> list[str]:
    """Rewrite a bare ``--json``, ``--csv`` or ``--what-if``, which would take the target."""
    rewritten: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _BARE:
            rewritten.append(f"{word}={_BARE[word]}")
        elif word in _VALUED:
            value = next(rest, None)  # tied to it, since a value may begin with a dash
            rewritten.append(word if value is None else f"{word}={value}")
        else:
            rewritten.append(word)
            if word != "profile" and not word.startswith("-"):
                break  # the target: what follows is the program's
    return [*rewritten, *rest]


def run(args: argparse.Namespace) -> int:
    """Profile the target, or compare what was saved."""
    if args.metrics == HELP:
        print(help_text())
        return 0
    metrics = chosen(name.strip() for name in args.metrics.split(",") if name.strip())
    if args.target is None:
        raise SetupError("no TARGET was named", remedy=target.HINT)
    settings = chosen_settings(args)
    base = selected(read_records(Path(args.compare)), kernel=args.kernel) if args.compare else None
    _require_base(args.fail_if, base)
    places = _places(args, settings)
    if places and base is None and Path(args.target).suffix == ".json":
        launches = _chosen_launches(read_records(Path(args.target)), args)
        spell = whatif_text if args.json is None else whatif_json
        print(spell(launches, places))
        return 0
    if base is not None and Path(args.target).suffix == ".json":
        launches = _chosen_launches(read_records(Path(args.target)), args)
        print(comparison_text(launches, base))
        return _judged(0, launches, base, args, settings)
    outcome = _profiled(args, settings)
    _write_files(outcome, metrics, args, settings)
    if not args.quiet and STANDARD_OUTPUT not in (args.json, args.csv):
        text = details_text(
            outcome.report, outcome.launches, metrics, settings.chip, width=columns()
        )
        sys.stderr.write("\n" + text + "\n")
    if base is not None:
        sys.stderr.write("\n" + comparison_text(outcome.launches, base) + "\n")
    if places:
        sys.stderr.write("\n" + whatif_text(outcome.launches, places) + "\n")
    return _judged(outcome.status, outcome.launches, base, args, settings)


def _places(args: argparse.Namespace, settings: Settings) -> list[Variation]:
    """Where else launches are to be predicted; nothing unless it was asked for."""
    if args.what_if is None:
        return []
    words = [word for word in args.what_if.split(",") if word.strip()]
    return variations(words, settings.chip)


def _profiled(args: argparse.Namespace, settings: Settings) -> _Outcome:
    """Run the program; its status and its launches."""
    if not environment.is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    for name in _FILES_TO_WRITE:
        _require_writable(getattr(args, name))
    started = target.command(args.target, args.arguments, args.nvcc_flags, settings)
    to_stdout = STANDARD_OUTPUT in (args.json, args.csv)
    with tempfile.TemporaryDirectory(prefix="va100-") as scratch:
        path = Path(scratch, "report")
        told = replace(settings, report=path, profile=True)
        status = execute(started, told, verb="profile", output_is_json=to_stdout)
        report = _read(path)
    report = replace(
        report,
        model=report.model or settings.model,
        gpu_count=settings.gpu_count,
        program=args.target,
    )
    return _Outcome(
        status=status, report=report, launches=_chosen_launches(launches_of(report), args)
    )


def _read(path: Path) -> LaunchReport:
    """Read the report; a broken one must not hide what the program did."""
    try:
        return read_report(path)
    except ValueError as error:
        return LaunchReport(notes=(f"the launch report could not be read: {error}",))


def _chosen_launches(launches: Sequence[Launch], args: argparse.Namespace) -> tuple[Launch, ...]:
    return selected(launches, kernel=args.kernel, skip=args.launch_skip, count=args.launch_count)


def _write_files(
    outcome: _Outcome, metrics: Sequence[Metric], args: argparse.Namespace, settings: Settings
) -> None:
    launches, chip = outcome.launches, settings.chip
    if args.trace is not None:
        _write(args.trace, trace_json(outcome.report))
    if args.sqlite is not None:
        _write_bytes(args.sqlite, database(outcome.report, chip))
    if args.html is not None:
        _write(args.html, page(outcome.report, launches, metrics, chip))
    if args.json is not None:
        asked = launches if metrics else ()
        extra = [values(metrics, quantities(launch, chip)) for launch in asked]
        _write(args.json, records_json(launches, extra))
    if args.csv is not None:
        _write(args.csv, _csv(outcome, metrics or tuple(METRICS.values()), args, chip))


def _csv(
    outcome: _Outcome, metrics: Sequence[Metric], args: argparse.Namespace, chip: ChipSpec
) -> str:
    """The page that was asked for."""
    if args.page == "source":
        return source_csv(outcome.launches)
    spell = raw_csv if args.page == "raw" else details_csv
    program = Program(name=args.target, process=outcome.report.process)
    return spell(outcome.launches, metrics, program, chip)


def _judged(
    status: int,
    launches: Sequence[Launch],
    base: Sequence[Launch] | None,
    args: argparse.Namespace,
    settings: Settings,
) -> int:
    """The program's status, or 1 where it is 0 and a kernel is what the run is failed for."""
    pairs = paired(launches, base or ()) if args.fail_if else []
    found = offences(args.fail_if, pairs, settings.chip)
    for offence in found:
        sys.stderr.write(f"va100 profile: {offence}\n")
    return status or (_FAILED if found else 0)


def _require_base(criteria: Sequence[Criterion], base: Sequence[Launch] | None) -> None:
    for criterion in criteria:
        if criterion.relative and base is None:
            raise SetupError(
                f"{criterion.text!r} is relative to a base, and none is named",
                remedy="add --compare BASE.json, saved before with va100 profile --json=BASE.json",
            )


def _require_writable(name: str | None) -> None:
    """Find out before a program runs for long that what it leaves could not be kept."""
    if name not in (None, STANDARD_OUTPUT):
        try:
            Path(str(name)).open("a", encoding="utf-8").close()
        except OSError as error:
            raise _unwritable(str(name), error) from error


def _write(name: str, text: str) -> None:
    if name == STANDARD_OUTPUT:
        print(text)
    else:
        _write_bytes(name, text.encode() + b"\n")


def _write_bytes(name: str, data: bytes) -> None:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise _unwritable(name, error) from error


def _unwritable(name: str, error: OSError) -> SetupError:
    return SetupError(f"{name}: {error.strerror}", remedy="name a file that can be written")


def _criterion(text: str) -> Criterion:
    try:
        return parse_criterion(text)
    except CriterionError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error
    return text


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no count")
    return int(text)
