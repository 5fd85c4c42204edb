"""Options that several verbs take."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace

from va100.config import MOST_GPUS, Settings, cards_of, model_name
from va100.errors import SetupError


def add_gpu_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--model``, ``--gpus`` and ``--node``."""
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="A100 model of the virtual GPUs, such as sxm80 or A100-PCIE-40GB "
        "(default: VA100_MODEL, else A100-SXM4-80GB)",
    )
    parser.add_argument(
        "--gpus",
        metavar="N",
        type=_gpu_count,
        help=f"count of virtual GPUs, 1 to {MOST_GPUS} (default: VA100_GPUS, else 1)",
    )
    parser.add_argument(
        "--node",
        metavar="NAME",
        help="the cards of this node, which all processes share (default: VA100_NODE)",
    )


def add_program(parser: argparse.ArgumentParser, target: str) -> None:
    """Add the program that is run, its arguments, and what it is compiled with."""
    parser.add_argument(
        "--nvcc-flags",
        metavar="FLAGS",
        type=_shell_words,
        default=[],
        help="more flags for nvcc, in one word",
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", help=target)
    parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="for the program"
    )


def chosen_settings(args: argparse.Namespace) -> Settings:
    """Read the environment, then what the command line says instead.

    Raises
    ------
    SetupError
        Either holds what it cannot.
    """
    settings = Settings.from_environment()
    if args.node is not None:
        if args.model is not None or args.gpus is not None:
            raise SetupError(
                "--node brings its own cards", remedy="leave out --model and --gpus, or --node"
            )
        model, count = cards_of(args.node)
        return replace(settings, node=args.node, model=model, gpu_count=count)
    if settings.node and (args.model is not None or args.gpus is not None):
        settings = replace(settings, node="")  # asked for here, it goes before the environment
    if args.model is not None:
        settings = replace(settings, model=model_name(args.model, origin="--model"))
    if args.gpus is not None:
        settings = replace(settings, gpu_count=args.gpus)
    return settings


def _gpu_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_GPUS:
        raise argparse.ArgumentTypeError(f"{text} is no count from 1 to {MOST_GPUS}")
    return int(text)


def _shell_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
