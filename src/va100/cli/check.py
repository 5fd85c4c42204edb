"""``va100 check``: a CUDA program on virtual GPUs, under compute-sanitizer's four tools.

The program keeps its standard input and output; the report goes to standard error.  Options have
the names that compute-sanitizer gave them.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from va100.check.findings import Finding, Severity, Tool
from va100.check.report import (
    ASYNCHRONOUS,
    BAR,
    RACE_FORMS,
    Outcome,
    TextForm,
    report_json,
    report_text,
)
from va100.check.saved import SavedRun, report_xml
from va100.check.session import read_findings
from va100.check.suppress import read_rules, rule_for, split
from va100.cli import environment, sanitizer, target
from va100.cli.options import add_gpu_options, add_program, chosen_settings
from va100.cli.process import execute
from va100.config import KEEP_CONTEXT, ONLY_CHILD_OF, STRICT_WARP, require_checkable
from va100.errors import SetupError

ALL: Final = "all"
STANDARD_OUTPUT: Final = "-"
_TOOLS: Final = tuple(tool.value for tool in Tool)
_LEVELS: Final = tuple(level.value for level in Severity)
_PRINT_LIMIT: Final = 100
_AUTO: Final = "auto"
_VALUED: Final = (
    "--tool", "--leak-check", "--racecheck-detect-level", "--kernel-name", "--error-exitcode",
    "--print-limit", "--print-level", "--log-file", "--suppressions", "--gen-suppressions",
    "--model", "--gpus", "--nvcc-flags", "--kernel-regex", "--launch-skip",
    "--launch-count", "--save", "--read",
    "--racecheck-report", "--destroy-on-device-error", "--target-processes", "-s", "-c",
    "--kernel-name-exclude", "--kernel-regex-exclude", "--racecheck-memcpy-async",
    "--check-api-memory-access", "--initcheck-address-space", "--strip-paths", "--prefix",
    "--check-exit-code", "--require-cuda-init", *sanitizer.valued_options(),
)  # fmt: skip
"""Options whose value is the word after them."""
_NAME_FORMS: Final = ("kns", "kernel_substring", "kne", "kernel_name", "regex")
_BETWEEN_FORMS: Final = re.compile(f",(?=(?:{'|'.join(_NAME_FORMS)})=)")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "check",
        allow_abbrev=False,  # words after the target are the program's
        usage="va100 check [OPTIONS] TARGET [ARGS ...]",
        help="run a CUDA program under memcheck, initcheck, synccheck and racecheck",
        description="Run a .cu file with a main(), a Python script or an executable on virtual "
        "GPUs and report memory errors, uninitialised reads, wrong synchronisation and races.",
        epilog="Options stand before TARGET; what follows TARGET goes to the program.",
    )
    add_gpu_options(parser)
    _add_tool_options(parser)
    _add_kernel_options(parser)
    _add_report_options(parser)
    sanitizer.add_options(parser)
    add_program(parser, ".cu file, .py file or executable")


def _add_yes_no(parser: argparse.ArgumentParser, name: str, default: str, what: str) -> None:
    parser.add_argument(name, choices=sanitizer.YES_NO, default=default, help=what)


def _add_tool_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tool",
        metavar="TOOLS",
        type=_tools,
        default=(Tool.MEMCHECK.value,),
        help=f"{', '.join(_TOOLS)}, several with commas between, or {ALL} (default: memcheck)",
    )
    parser.add_argument(
        "--leak-check", choices=("full", "no"), default="no", help="tell of memory never freed"
    )
    parser.add_argument(
        "--racecheck-detect-level",
        choices=_LEVELS,
        default=Severity.WARN.value,
        help="mildest race to tell of; info: also where both write the same value (default: warn)",
    )
    parser.add_argument(
        "--strict-warp",
        action="store_true",
        help="votes and shuffles order no memory, as the memory model has it",
    )
    _add_yes_no(parser, "--racecheck-memcpy-async", "yes", "no: leave out races with cp.async")
    _add_yes_no(
        parser, "--check-api-memory-access", "yes", "no: initcheck leaves out copies to the host"
    )
    parser.add_argument(
        "--initcheck-address-space",
        choices=("global", "shared", "all"),
        default="all",
        help="the memory that initcheck tells of; local memory is with all (default: all)",
    )
    parser.add_argument(
        "--destroy-on-device-error",
        choices=("context", "kernel"),
        default="context",
        help="what a fault ends: its context, as on the hardware, or the kernel alone, and no "
        "call tells of it (default: context)",
    )
    parser.add_argument(
        "--target-processes",
        choices=("all", "application-only"),
        default="all",
        help="whether processes that the program starts are checked, too (default: all)",
    )


def _add_kernel_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel-name",
        metavar="PATTERN",
        action="append",
        default=[],
        help="check only kernels whose name has this in it; kne=NAME: exactly that name, "
        "regex=EXPR: a regular expression; may be repeated, or several with commas between",
    )
    parser.add_argument(
        "--kernel-name-exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="do not check kernels that a pattern as of --kernel-name fits",
    )
    for option, what in (
        ("--kernel-regex", "check only kernels whose name a regular expression is found in"),
        ("--kernel-regex-exclude", "do not check those"),
    ):
        parser.add_argument(
            option, metavar="EXPR", action="append", default=[], help=f"{what}; may be repeated"
        )


def _add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--error-exitcode",
        metavar="N",
        type=int,
        default=0,
        help="status when errors are found and the program itself ended well (default: 0)",
    )
    parser.add_argument(
        "--print-limit",
        metavar="N",
        type=int,
        default=_PRINT_LIMIT,
        help=f"findings told in full; 0: all (default: {_PRINT_LIMIT})",
    )
    parser.add_argument(
        "--print-level",
        choices=(*_LEVELS, _AUTO),
        default=Severity.WARN.value,
        help="mildest finding to tell of (default: warn, and so is auto)",
    )
    for option, short, what in (
        ("--launch-skip", "-s", "do not tell of the first N launches of checked kernels"),
        ("--launch-count", "-c", "then tell of N launches only; 0: of all (default: 0)"),
    ):
        parser.add_argument(option, short, metavar="N", type=_count, default=0, help=what)
    _add_form_options(parser)
    parser.add_argument("--save", metavar="FILE", help="keep all that was found in a file")
    parser.add_argument("--read", metavar="FILE", help="report what was kept, and run nothing")
    _add_yes_no(parser, "--xml", "no", "write the report as XML (default: no; --xml alone: yes)")
    parser.add_argument("--log-file", metavar="FILE", help="write the report there instead")
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=STANDARD_OUTPUT,
        help="write the report as JSON, with --json=FILE to a file; with --json alone it is all "
        "of standard output, and what the program prints goes to standard error",
    )
    parser.add_argument("--suppressions", metavar="FILE", help="do not tell of what its rules fit")
    parser.add_argument(
        "--gen-suppressions", metavar="FILE", help="write a rule for each finding there"
    )


def _add_form_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--racecheck-report",
        choices=RACE_FORMS,
        default=RACE_FORMS[0],
        help="races by pairs of source lines, each with a count and a witness; as the hazard that "
        "the witness saw; or both ways (default: analysis)",
    )
    _add_yes_no(parser, "--strip-paths", "no", "tell of files without folders")
    parser.add_argument(
        "--prefix", metavar="TEXT", default=BAR, help=f"what lines begin with (default: {BAR})"
    )
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="say nothing where nothing was found"
    )
    _add_yes_no(
        parser,
        "--check-exit-code",
        "yes",
        "say so when the program itself ends with a status other than 0 (default: yes)",
    )
    _add_yes_no(
        parser,
        "--require-cuda-init",
        "no",
        "yes: a program that uses no CUDA is an error (default: no)",
    )


def spelled_out(words: Sequence[str]) -> list[str]:
    """Rewrite a bare ``--json`` or ``--xml``, which argparse would give the target to."""
    rewritten: list[str] = []
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word == "--json":
            rewritten.append(f"--json={STANDARD_OUTPUT}")
        elif word == "--xml":
            given = rest and rest[0] in sanitizer.YES_NO
            rewritten.append(f"--xml={rest.popleft() if given else 'yes'}")
        else:
            rewritten.append(word)
            if word in _VALUED:
                rewritten += [rest.popleft()] if rest else []
            elif word != "check" and not word.startswith("-"):
                break  # the target: what follows is the program's
    return [*rewritten, *rest]


def run(args: argparse.Namespace) -> int:
    """Run the target under check; the result is its status, or the one asked for."""
    rules = read_rules(Path(args.suppressions)) if args.suppressions else []
    if args.read:
        if args.target:
            raise SetupError(
                f"--read and {args.target}: a run that was kept is reported, or a program is run",
                remedy="leave one out",
            )
        status, saved = 0, SavedRun.read(Path(args.read))
    elif args.target:
        status, saved = _run_target(args)
    else:
        raise SetupError("nothing to run", remedy="name a .cu file, a .py file or an executable")
    if args.save:
        saved.write(Path(args.save))
    kept, suppressed = split(saved.findings, rules)
    told = [f for f in kept if _is_told(f, args)]
    outcome = Outcome(
        tools=saved.tools,
        findings=told,
        hidden=len(kept) - len(told),
        suppressed=suppressed,
        complete=saved.complete,
        status=status if args.check_exit_code == "yes" else 0,
    )
    _show(outcome, args, saved.program)
    if status == 0 and outcome.errors:
        return int(args.error_exitcode)
    return status


def _run_target(args: argparse.Namespace) -> tuple[int, SavedRun]:
    """The program's status, and all that was found."""
    settings = chosen_settings(args)
    require_checkable(settings.engine)
    if not environment.is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    started = target.command(args.target, args.arguments, args.nvcc_flags, settings)
    _refuse_static_runtime(started[0])
    with tempfile.TemporaryDirectory(prefix="va100-") as scratch:
        report = Path(scratch, "findings")
        settings = replace(
            settings,
            check=(*args.tool, *_how(args)),
            check_report=report,
            check_kernels=_chosen_kernels(args),
        )
        status = execute(
            started, settings, verb="check", output_is_json=args.json == STANDARD_OUTPUT
        )
        if args.require_cuda_init == "yes" and not report.exists():
            raise SetupError(f"{args.target} used no CUDA", remedy="--require-cuda-init no")
        found, complete = read_findings(
            report,
            first_launch=args.launch_skip + 1,
            last_launch=args.launch_skip + args.launch_count if args.launch_count else 0,
        )
    run = SavedRun(program=args.target, tools=args.tool, complete=complete, findings=found)
    return status, run


def _how(args: argparse.Namespace) -> list[str]:
    """What the program's process is told besides the tools."""
    words = []
    if args.strict_warp:
        words.append(STRICT_WARP)
    if args.destroy_on_device_error == "kernel":
        words.append(KEEP_CONTEXT)
    if args.target_processes == "application-only":
        words.append(f"{ONLY_CHILD_OF}{os.getpid()}")
    return words


def _is_told(finding: Finding, args: argparse.Namespace) -> bool:
    if finding.kind == "leak":
        return bool(args.leak_check == "full")
    if _is_left_out(finding, args):
        return False
    level = Severity.WARN.value if args.print_level == _AUTO else args.print_level
    if finding.tool == Tool.RACECHECK.value:
        level = args.racecheck_detect_level
    return _LEVELS.index(finding.severity) >= _LEVELS.index(level)


def _is_left_out(finding: Finding, args: argparse.Namespace) -> bool:
    """What options of single tools ask not to tell."""
    if finding.kind == "undefined-copy":
        return bool(args.check_api_memory_access == "no")
    if finding.tool == Tool.INITCHECK.value:
        return bool(args.initcheck_address_space not in ("all", finding.space))
    accesses = {a.what for a in (finding.first, finding.second) if a is not None}
    is_copy = finding.tool == Tool.RACECHECK.value and ASYNCHRONOUS in accesses
    return bool(is_copy and args.racecheck_memcpy_async == "no")


def _show(outcome: Outcome, args: argparse.Namespace, program: str) -> None:
    if args.gen_suppressions:
        _write(args.gen_suppressions, "\n".join(rule_for(f) for f in outcome.findings))
    if args.json == STANDARD_OUTPUT:
        print(report_json(outcome, program=program))
    elif args.json is not None:
        _write(args.json, report_json(outcome, program=program))
    form = TextForm(
        races=args.racecheck_report, prefix=args.prefix,
        strip_paths=args.strip_paths == "yes",
    )  # fmt: skip
    text = report_text(outcome, limit=args.print_limit, form=form)
    if args.xml == "yes":
        text = report_xml(outcome, program=program)
    if args.quiet and not outcome.findings:
        return
    if args.log_file:
        _write(args.log_file, text)
    elif args.json != STANDARD_OUTPUT:
        sys.stderr.write(text + "\n")


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"{name}: {error.strerror}", remedy="name a file that can be written"
        ) from error


def _refuse_static_runtime(program: str) -> None:
    if target.links_static_runtime(Path(program)):
        raise SetupError(
            f"{program} has NVIDIA's static CUDA runtime linked in, which refuses any driver but "
            "NVIDIA's",
            remedy="link it with `nvcc -cudart shared`",
        )


def _tools(text: str) -> tuple[str, ...]:
    names = tuple(word.strip() for word in text.split(","))
    if names == (ALL,):
        return _TOOLS
    for name in names:
        if name not in _TOOLS:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(_TOOLS)}, {ALL}")
    return names


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is less than 0")
    return number


def _chosen_kernels(args: argparse.Namespace) -> str:
    """One regular expression for all kernels that are to be checked, and one for those not to."""
    chosen = _kernel_pattern([*args.kernel_name, *(f"regex={e}" for e in args.kernel_regex)])
    left = [*args.kernel_name_exclude, *(f"regex={e}" for e in args.kernel_regex_exclude)]
    return f"{chosen}\n{_kernel_pattern(left)}" if left else chosen


def _kernel_pattern(forms: Sequence[str]) -> str:
    """One regular expression for kernels that any of the forms means."""
    parts = []
    for form in (part for listed in forms for part in _BETWEEN_FORMS.split(listed)):
        key, equals, text = form.partition("=")
        if not equals or key not in _NAME_FORMS:
            key, text = "kns", form
        if key == "regex":
            parts.append(f"(?:{text})")
        elif key in ("kne", "kernel_name"):
            parts.append(f"^{re.escape(text)}$")
        else:
            parts.append(re.escape(text))
    pattern = "|".join(parts)
    try:
        re.compile(pattern)
    except re.error as error:
        raise SetupError(
            f"{pattern} is no regular expression: {error}", remedy="see --kernel-name"
        ) from error
    return pattern
