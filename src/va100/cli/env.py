"""``va100 env``: shell commands that put a whole shell on virtual GPUs."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace

from va100.cli.cmake import toolchain_file
from va100.cli.environment import additions, folders
from va100.cli.options import add_gpu_options, chosen_settings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "env",
        help="print shell commands that put this shell on virtual GPUs",
        description="Print shell commands that make every program started from this shell find "
        'virtual GPUs: eval "$(va100 env)".',
    )
    add_gpu_options(parser)
    parser.add_argument(
        "--cmake",
        action="store_true",
        help="print the path of a CMake toolchain file instead, with which an unchanged CUDA "
        "project builds and its tests run",
    )


def run(args: argparse.Namespace) -> int:
    """Print one ``export`` a line, or the toolchain file's path."""
    settings = replace(chosen_settings(args), report=None)
    if args.cmake:
        asked = {"VA100_MODEL": args.model, "VA100_GPUS": args.gpus}
        spelled = settings.variables()
        chosen = {name: spelled[name] for name, value in asked.items() if value is not None}
        print(toolchain_file(settings, chosen))
        return 0
    for name, value in additions(settings).items():
        print(f"export {name}={shlex.quote(value)}")
    for name, folder in folders(settings).items():
        print(f'export {name}={shlex.quote(folder)}"${{{name}:+:${name}}}"')
    return 0
