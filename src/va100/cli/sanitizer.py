"""Options of compute-sanitizer that need no doing here, and those that are refused by name.

What ``va100 check`` does about an option is its own module's business; here is why it may be taken
without doing anything, or what to use in its stead.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_NUMBER: Final = "N"
YES_NO: Final = ("yes", "no")

NEEDLESS: Final[Mapping[str, tuple[str | tuple[str, ...], str]]] = {
    "--backtrace-short": (YES_NO, "callers are not told"),
    "--check-bulk-copy": (YES_NO, "the A100 has no bulk copies"),
    "--check-warpgroup-mma": (YES_NO, "the A100 has no warpgroup instructions"),
    "--force-blocking-launches": ("", "checked launches run one after another"),
    "--force-synchronization-limit": (_NUMBER, "findings are told after each launch"),
    "--ignore-getprocaddress-notfound": ("", "what calls answer is not told"),
    "--kill": ("", "the program is started, not connected to"),
    "--launch-timeout": (_NUMBER, "the program is started, not connected to"),
    "--max-connections": (_NUMBER, "the program is started, not connected to"),
    "--mode": (("launch-and-attach", "launch"), "the program is started, not connected to"),
    "--num-cuda-barriers": (_NUMBER, "all barriers are followed"),
    "--port": (_NUMBER, "the program is started, not connected to"),
    "--racecheck-num-workers": (_NUMBER, "a checked launch runs on one worker"),
}
"""Option to its values (a number, some words, or none) and why nothing has to be done."""

ONE_VALUE: Final[Mapping[str, tuple[str, str]]] = {
    "--check-device-heap": ("yes", "what device code allocates is memory like any other; "
                            "--suppressions leaves findings out"),
    "--demangle": ("full", "names are told as they are written in the source"),
    "--language": ("c", "extents are told as CUDA C++ has them"),
    "--nvtx": ("false", "names that NVTX gives are not used"),
    "--racecheck-trace-sync": ("no", "`va100 debug` and VA100_TRACE show instructions"),
    "--report-api-errors": ("no", "VA100_LOG=1 tells of calls that are refused"),
    "--report-device-side-allocation-failure": ("no", "device malloc gives null when it fails"),
    "--show-backtrace": ("no", "the place of each access is told, not its callers"),
    "--track-stream-ordered-races": ("no", "racecheck tells of streams that nothing orders"),
}  # fmt: skip
"""Option to the one value that is what is done here, and the reason."""

REFUSED: Final[Mapping[str, tuple[bool, str]]] = {
    "--check-cache-control": (False, "prefetches and the like touch no data"),
    "--check-optix": (False, "there is no OptiX here"),
    "--check-optix-leaks": (False, "there is no OptiX here"),
    "--coredump-behavior": (True, "set CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1"),
    "--coredump-name": (True, "set CUDA_COREDUMP_FILE"),
    "--detect-missing-module-unload": (False, "--leak-check full tells of memory"),
    "--dump-kernel-launches": (False, "`va100 profile` tells of every launch"),
    "--generate-coredump": (False, "set CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1"),
    "--injection-path": (True, "nothing is injected"),
    "--injection-path32": (True, "nothing is injected"),
    "--missing-barrier-init-is-fatal": (True, "initcheck tells of a barrier that nobody began"),
    "--num-callers-device": (True, "callers are not told"),
    "--num-callers-host": (True, "callers are not told"),
    "--padding": (True, "accesses are checked to the byte of the nearest allocation"),
    "--preload-library": (True, "set LD_PRELOAD"),
    "--print-session-details": (False, "--json holds what is known of the run"),
    "--racecheck-continue-on-deadlock": (True, "a deadlock ends its kernel, and is told"),
    "--racecheck-deadlock-timeout": (True, "--tool synccheck tells of deadlocks at once"),
    "--racecheck-filter-cluster-id": (True, "the A100 has no clusters"),
    "--racecheck-indirect-barrier-dependency": (False, "all barriers are followed"),
    "--racecheck-num-hazards": (True, "hazards of two lines are one finding; see --print-limit"),
    "--save-session-details": (False, "--save keeps what is known of the run"),
    "--support-32bit": (False, "programs have 64 bits here"),
    "--target-processes-filter": (True, "--target-processes application-only, or --kernel-name"),
    "--track-unused-memory": (False, "memory that is never used is no error"),
    "--unused-memory-threshold": (True, "memory that is never used is no error"),
    "--unused-shared-memory-report-limit": (True, "memory that is never used is no error"),
}
"""Option to whether a value follows it, and what to do instead or why not."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add them all; ``--help`` leaves them to the documents."""
    for option, (values, _) in NEEDLESS.items():
        if not values:
            parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
        elif isinstance(values, str):
            parser.add_argument(option, type=int, help=argparse.SUPPRESS)
        else:
            parser.add_argument(option, choices=values, help=argparse.SUPPRESS)
    for option, (value, reason) in ONE_VALUE.items():
        parser.add_argument(option, type=_only(value, reason), help=argparse.SUPPRESS)
    for option, (valued, instead) in REFUSED.items():
        parser.add_argument(
            option, action=_Refused, nargs=None if valued else 0, metavar=instead,
            help=argparse.SUPPRESS,
        )  # fmt: skip


def valued_options() -> tuple[str, ...]:
    """Those whose value is the word after them."""
    return (
        *(option for option, (values, _) in NEEDLESS.items() if values),
        *ONE_VALUE,
        *(option for option, (valued, _) in REFUSED.items() if valued),
    )


def _only(value: str, reason: str) -> Callable[[str], str]:
    def accepted(text: str) -> str:
        if text != value:
            raise argparse.ArgumentTypeError(f"{text} is not done here, only {value}: {reason}")
        return text

    return accepted


class _Refused(argparse.Action):
    """An option that is not taken; its ``metavar`` says what to do instead."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del namespace, values
        parser.error(f"{option_string} is not taken here: {self.metavar}")
