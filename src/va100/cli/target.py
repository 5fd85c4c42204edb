"""What ``va100 run`` was given: which kind of program it is, and the command that starts it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Final

from va100.cli.toolchain import INSTALL_LIBPYTHON, compiled
from va100.config import Settings, python_library
from va100.errors import SetupError

_ELF: Final = b"\x7fELF"
_STATIC_RUNTIME: Final = b"cudaErrorCudartUnloading"
"""An error's name that the static CUDA runtime carries even when symbols are stripped."""
_SHARED_RUNTIME: Final = b"libcudart.so."
HINT: Final = (
    "give a .cu file with a main(), a Python script, or an executable; `va100 ptx FILE` shows PTX"
)


class Kind(Enum):
    """Kinds of programs that can be run."""

    CUDA = "CUDA C++ source"
    PYTHON = "Python script"
    EXECUTABLE = "executable"


def command(
    target: str, arguments: Sequence[str], nvcc_flags: Sequence[str], settings: Settings
) -> list[str]:
    """Make the command line that starts a target, compiling it first where it is source.

    Raises
    ------
    SetupError
        There is no such program, it is of no kind that can be run, or it cannot be compiled.
    """
    path = located(target, settings)
    kind = kind_of(path)
    if kind is Kind.CUDA:
        if python_library() is None:
            raise SetupError(
                f"{sys.executable} has no shared library, which a program without Python loads "
                "to compile its kernels",
                remedy=INSTALL_LIBPYTHON,
            )
        return [str(compiled(path, nvcc_flags, settings)), *arguments]
    if kind is Kind.PYTHON:
        return [sys.executable, "-m", "va100.cli.boot", str(path), *arguments]
    return [str(path.absolute()), *arguments]


def located(target: str, settings: Settings) -> Path:
    """Find a target: a path, or the name of a program in ``PATH``."""
    path = Path(target)
    if _is_file(path):
        return path
    found = None if os.sep in target else shutil.which(target, path=settings.search_path)
    if found is None:
        problem = "is a directory" if os.path.isdir(path) else "does not exist"
        raise SetupError(f"{target} {problem}", remedy=HINT)
    return Path(found)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise SetupError(
            f"{path} cannot be looked at: {error.strerror}", remedy="name a file you may read"
        ) from error


def kind_of(path: Path) -> Kind:
    """Tell the kind of a program by its name, else by whether it may be executed."""
    if path.suffix in (".cu", ".cuda", ".py") and not os.access(path, os.R_OK):
        raise SetupError(f"{path} may not be read", remedy=f"chmod +r {path}")
    if path.suffix in (".cu", ".cuda"):
        return Kind.CUDA
    if path.suffix == ".py":
        return Kind.PYTHON
    if not os.access(path, os.X_OK):
        raise SetupError(f"{path} is no program", remedy=HINT)
    return Kind.EXECUTABLE


def links_static_runtime(path: Path) -> bool:
    """Whether an executable carries NVIDIA's static runtime, which only drives its own driver."""
    try:
        content = path.read_bytes()
    except OSError:
        return False  # it may be executed without being read
    if not content.startswith(_ELF):
        return False
    return _STATIC_RUNTIME in content and _SHARED_RUNTIME not in content
