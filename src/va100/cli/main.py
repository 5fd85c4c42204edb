"""The ``va100`` command: finds the verb, runs it, and turns errors into messages and statuses.

Statuses: 0 done, 1 it could not be done, 2 the command line was wrong, 130 interrupted; ``run``
and its like pass on the status of the program they ran.  Only the module of the verb that was
asked for is imported, since together they take longer to load than most commands to run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Final

from va100.cli import version
from va100.errors import Va100Error

VERBS: Final[Mapping[str, str]] = {
    "run": "run a CUDA program on virtual GPUs and show its kernels",
    "profile": "run a CUDA program and say why its kernels take as long as they do",
    "calibrate": "fit predicted times to your own measurements, and show before and after",
    "check": "run a CUDA program under memcheck, initcheck, synccheck and racecheck",
    "debug": "stop a CUDA program at breakpoints and look at its threads, registers and memory",
    "plan": "time, memory, energy and cost of training and serving on A100s",
    "doctor": "say what is installed, what works and what to do",
    "env": "print shell commands that put this shell on virtual GPUs",
    "ptx": "read PTX: what it holds, whether it keeps the rules, what is executed",
    "specs": "facts of GPUs side by side, or a check of someone's table of them",
    "sparsity": "prune, check, compress and multiply 2:4 sparse matrices",
    "node": "make, show, break and delete virtual nodes that all processes share",
    "cloud": "a multi-tenant GPU cloud on virtual nodes: serve, launch, bill, simulate",
    "smi": "nvidia-smi on a node's GPUs",
    "exporter": "metrics of a node's GPUs for Prometheus, as dcgm-exporter names them",
    "mig": "plan MIG layouts, and apply, export and check mig-parted files",
    "version": "print the version",
}
"""Every verb with the line that explains it; the same as its module gives."""
FAILED, MISUSED, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
"""The last two as a shell reports a program that SIGINT or SIGPIPE ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result is the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb = words[0] if words and words[0] in VERBS else None
    module = None if verb is None else verb_module(verb)
    if module is not None and hasattr(module, "spelled_out"):
        words = module.spelled_out(words)
    parser = build_parser(verb, module)
    args = parser.parse_args(words)
    if module is None:
        parser.print_help(sys.stderr)
        return MISUSED
    try:
        status: int = module.run(args)
        sys.stdout.flush()
    except Va100Error as error:
        sys.stderr.write(f"va100 {verb}: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    return status


def build_parser(verb: str | None, module: ModuleType | None) -> argparse.ArgumentParser:
    """Lay out the command line: all verbs by name, one in full."""
    parser = argparse.ArgumentParser(
        prog="va100",
        description="A virtual NVIDIA A100: runs CUDA programs without a GPU and says how long "
        "an A100 would take.",
        epilog="`va100 VERB --help` explains a verb. Start with `va100 doctor`.",
    )
    parser.add_argument("--version", action="version", version=f"va100 {version.VERSION}")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, text in VERBS.items():
        if name == verb and module is not None:
            module.add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=text)
    return parser


def verb_module(verb: str) -> ModuleType:
    """Import the module of one verb, which has its name; no contract forbids any of them."""
    module: ModuleType = __import__(f"va100.cli.{verb}", fromlist=("run",))
    return module


def _drop_output() -> None:
    """Let the interpreter flush into nothing, since nobody reads standard output any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
