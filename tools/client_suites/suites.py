"""Which suites there are, how their files are run, and why tests fail where that is known.

A row of reasons is read against the text of a failure, the first that fits counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One library's suite, as its checkout holds it."""

    folder: str
    """Where pytest is started, below the checkout."""
    patterns: tuple[str, ...]
    """Test files, below the folder."""
    arguments: tuple[str, ...] = ()
    """For pytest."""
    gpus: int = 1
    """How many virtual GPUs the tests find."""
    modules: str = ""
    """The installed package whose tests are run by name; the files are then looked for in it."""
    reasons: tuple[tuple[str, str], ...] = ()
    """Pattern in the text of a failure, and the reason that it stands for."""


SUITES: Final = {
    "cuda-core": Suite(
        folder="cuda_core",
        patterns=("tests/**/test_*.py",),
        arguments=("-p", "client_suites.cuda_core_paths"),
        gpus=3,
    ),
    "cuda-bindings": Suite(
        folder="cuda_bindings",
        patterns=("tests/**/test_*.py",),
    ),
    "numba-cuda": Suite(
        folder="testing",
        patterns=("../numba_cuda/numba/cuda/tests/**/test_*.py",),
        arguments=("-o", "addopts=--benchmark-disable"),
        modules="numba.cuda.tests",
    ),
    "triton-language": Suite(
        folder="python/test/unit/language",
        patterns=("test_*.py",),
        arguments=("-p", "client_suites.torch_device"),
    ),
}


def files_of(suite: Suite, checkout: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Each file's name in reports, and the words that name it to pytest."""
    folder = (checkout / suite.folder).resolve()
    found = sorted(path for pattern in suite.patterns for path in folder.glob(pattern))
    if suite.modules:
        return [_module(path.resolve(), suite.modules) for path in found]
    return [(str(p.relative_to(folder)), (str(p.relative_to(folder)),)) for p in found]


def _module(path: Path, package: str) -> tuple[str, tuple[str, ...]]:
    place = path.parts.index("tests")
    name = ".".join((*path.parts[place + 1 : -1], path.stem))
    return name, ("--pyargs", f"{package}.{name}")


def reason_of(suite: Suite, text: str) -> str:
    """The reason of a failure; the last line of its text where none is known."""
    for pattern, reason in suite.reasons:
        if re.search(pattern, text):
            return reason
    lines = [line for line in text.splitlines() if line.startswith("E ")] or text.splitlines()
    return (lines[-1] if lines else "").removeprefix("E").strip()[:160]
