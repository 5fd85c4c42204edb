"""``va100 smi``: our own ``nvidia-smi``, on a node's GPUs; :func:`program` is that name's program.

Only what the tool needs is imported, since scripts start it again and again.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from va100.errors import NvmlError, SetupError
from va100.nvml.client import Nvml
from va100.nvml.smi import command
from va100.nvml.smi.look import Look

if TYPE_CHECKING:
    import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "smi",
        help="nvidia-smi on a node's GPUs",
        description="Run nvidia-smi on the GPUs of the node that VA100_NODE names.",
        add_help=False,
        prefix_chars="\0",
    )
    parser.add_argument("words", nargs="*", metavar="ARG", help="as nvidia-smi takes them")


def run(args: argparse.Namespace) -> int:
    """Run the tool; the result is its exit status."""
    return start(args.words)


def start(words: Sequence[str]) -> int:
    """Bring NVML up and run a command line.

    Raises
    ------
    SetupError
        The library is not built.
    """
    try:
        nvml = Nvml()
    except NvmlError as error:
        sys.stdout.write(
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver: "
            f"{error.text}\n"
        )
        return error.code
    look = Look(
        nvml=nvml,
        write=sys.stdout.write,
        now_s=lambda: time.time_ns() * 1e-9,
        wait=_wait,
        is_terminal=sys.stdout.isatty(),
    )
    try:
        return command.run(words, look)
    finally:
        nvml.close()


def program() -> NoReturn:
    """Be ``nvidia-smi``: interrupted and cut off as programs are that are no Python."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        status = start(sys.argv[1:])
    except SetupError as error:
        sys.stderr.write(f"nvidia-smi: {error}\n")
        status = 1
    sys.stdout.flush()
    sys.exit(status)


def _wait(pause_s: float) -> None:
    sys.stdout.flush()
    time.sleep(pause_s)
