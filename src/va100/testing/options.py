"""The options of the pytest plugin, and whether any asks for virtual GPUs.

Loaded in every run of pytest, so nothing of va100 is imported here.
"""

from __future__ import annotations

import argparse
from typing import Final

import pytest

ALL_TOOLS: Final = "all"
TOOLS: Final = ("memcheck", "initcheck", "synccheck", "racecheck")
"""The same as :class:`va100.check.findings.Tool` has them."""
TERMINAL: Final = ""
"""Value of ``--va100-report`` without a file."""


def add_options(parser: pytest.Parser) -> None:
    """Add them to pytest's."""
    group = parser.getgroup("va100", "virtual A100 GPUs (va100)")
    group.addoption(
        "--va100", action="store_true", help="run CUDA code on virtual GPUs; no GPU is needed"
    )
    group.addoption(
        "--va100-check",
        metavar="TOOLS",
        nargs="?",
        const=ALL_TOOLS,
        help="run kernels under the checker, too, and fail tests whose kernels do wrong; "
        "--va100-check=memcheck,racecheck for some of its tools",
    )
    group.addoption(
        "--va100-suppressions",
        metavar="FILE",
        help="findings of the checker that do not count, as `va100 check --suppressions` reads "
        "them",
    )
    group.addoption(
        "--va100-report",
        metavar="FILE",
        nargs="?",
        const=TERMINAL,
        help="end with the kernels and the time an A100 would take for them; with "
        "--va100-report=FILE.json for each test, too, in a file",
    )
    group.addoption("--va100-model", metavar="MODEL", help="A100 model of the virtual GPUs")
    group.addoption("--va100-gpus", metavar="N", help="count of virtual GPUs")


def untangle(arguments: list[str]) -> bool:
    """Spell options without a value so that they do not take the word after them.

    ``--va100-report tests`` means the folder of tests.  The list is changed in place, and whether
    it was is told.
    """
    changed = False
    for place, word in enumerate(arguments[:-1]):
        following = arguments[place + 1]
        if word == "--va100-report" and not following.endswith(".json"):
            arguments[place] = f"{word}={TERMINAL}"
            changed = True
        if word == "--va100-check" and not {*following.split(",")} <= {*TOOLS, ALL_TOOLS}:
            arguments[place] = f"{word}={ALL_TOOLS}"
            changed = True
    return changed


def asks_for_gpus(options: argparse.Namespace) -> bool:
    """Whether any option was given that needs virtual GPUs."""
    values = (
        options.va100_check,
        options.va100_suppressions,
        options.va100_report,
        options.va100_model,
        options.va100_gpus,
    )
    return options.va100 or any(value is not None for value in values)
