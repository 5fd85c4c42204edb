"""``va100 debug``: a CUDA program on virtual GPUs, stopped and looked into as a debugger does.

The debugger itself runs inside the program (:mod:`va100.debug.session`); here it is started.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

from va100.cli import environment, target
from va100.cli.options import add_gpu_options, add_program, chosen_settings
from va100.cli.process import execute
from va100.debug.core import read_core
from va100.debug.session import TERMINAL, Session
from va100.errors import SetupError

_EPILOG: Final = (
    "Options stand before TARGET; what follows TARGET goes to the program. The program runs until "
    "it first loads a kernel, then takes commands: break, run, continue, step, next, stepi, print, "
    "x, info, thread, backtrace, quit; `help` explains each. .cu files are compiled with -G, so "
    "that variables have names; --optimised leaves that out. Commands from --command or a pipe "
    "are obeyed one after another, then the program runs on."
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "debug",
        allow_abbrev=False,  # words after the target are the program's
        usage="va100 debug [OPTIONS] TARGET [ARGS ...]\n"
        "       va100 debug [--command FILE] --core FILE",
        help="stop a CUDA program at breakpoints and look at its threads, registers and memory",
        description="Run a .cu file with a main(), a Python script or an executable on virtual "
        "GPUs under a debugger for its kernels.",
        epilog=_EPILOG,
    )
    add_gpu_options(parser)
    parser.add_argument(
        "--command", "-x", metavar="FILE", help="obey the commands of a file, a line each"
    )
    parser.add_argument(
        "--optimised",
        action="store_true",
        help="compile a .cu file as `va100 run` does: lines are known, variables are not",
    )
    parser.add_argument(
        "--core", metavar="FILE", help="look at a core dump that `va100 run --dump FILE` wrote"
    )
    add_program(parser, ".cu file, .py file or executable")


def run(args: argparse.Namespace) -> int:
    """Run the target under the debugger; the result is its status."""
    if args.command is not None:
        _require_readable(Path(args.command))
    commands = str(Path(args.command).resolve()) if args.command is not None else TERMINAL
    if args.core is not None:
        Session(commands).look(read_core(Path(args.core)))
        return 0
    if args.target is None:
        raise SetupError("no TARGET was named", remedy=target.HINT)
    settings = chosen_settings(args)
    if not environment.is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    flags = args.nvcc_flags if args.optimised else ["-G", *args.nvcc_flags]
    started = target.command(args.target, args.arguments, flags, settings)
    if target.links_static_runtime(Path(started[0])):
        raise SetupError(
            f"{started[0]} has NVIDIA's static CUDA runtime linked in, which refuses any driver "
            "but NVIDIA's",
            remedy="link it with `nvcc -cudart shared`",
        )
    return execute(started, replace(settings, debug=commands), verb="debug")


def _require_readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise SetupError(
            f"{path}: {error.strerror}", remedy="name a file of commands that can be read"
        ) from error
