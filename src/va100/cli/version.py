"""``va100 version``: the version of the package."""

from __future__ import annotations

import argparse
import platform
from typing import Final

from va100 import __version__

VERSION: Final = __version__


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    subparsers.add_parser("version", help="print the version", description="Print the version.")


def run(args: argparse.Namespace) -> int:
    """Print the version, and the Python that runs it."""
    del args
    print(f"va100 {VERSION}, Python {platform.python_version()}, {platform.machine()}")
    return 0
