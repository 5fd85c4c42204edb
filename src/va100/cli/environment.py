"""The environment in which a program finds the virtual GPUs instead of real ones."""

from __future__ import annotations

import sys
from typing import Final

from va100 import config
from va100.config import Settings, find_program
from va100.gpu.native import (
    LIBRARY_NAME,
    NATIVE_DIR,
    NVCC_DIR,
    PTXAS,
    library,
    nvrtcs,
    runtimes,
)

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
PROGRAM_PATH: Final = "PATH"
ASSEMBLER: Final = "TRITON_PTXAS_PATH"
"""Where Triton looks for its assembler."""
COMPILERS: Final = "VA100_NVRTC"
"""Where the native core finds the NVRTCs that its own compile with, in processes started later."""


def child_environment(settings: Settings) -> dict[str, str]:
    """Build the environment of a program that is to run on virtual GPUs."""
    environment = config.inherited()
    environment.update(additions(settings))
    for name, folder in folders(settings).items():
        environment[name] = _prepended(folder, environment.get(name, ""))
    return environment


def enable(settings: Settings) -> None:
    """Put this process and those that it will start on virtual GPUs.

    Whatever is imported from now on finds the native core under the name of NVIDIA's driver
    library.  The search path of libraries is for the processes that this one starts: the loader
    reads it once, at a process's start.

    Raises
    ------
    SetupError
        The native core is not built.
    """
    library()
    config.adopt(child_environment(settings))
    runtimes()
    # Only imported here: most verbs start programs and compile nothing themselves.
    from va100 import assembly  # noqa: PLC0415

    assembly.enable()


def additions(settings: Settings) -> dict[str, str]:
    """Variables to set, all but search paths, which are to be extended.

    A program without Python in it loads one to compile its kernels: this one.
    """
    added = settings.variables()
    added["VA100_PYTHON"] = sys.executable
    python = config.python_library()
    if python is not None:
        added["VA100_LIBPYTHON"] = str(python)
    if PTXAS.exists():
        added[ASSEMBLER] = str(PTXAS)
    added[COMPILERS] = ":".join(str(path) for path in nvrtcs())
    nvcc = find_program("nvcc", settings)
    if nvcc is not None:
        added["VA100_NVCC"] = str(nvcc.absolute())
    return added


def folders(settings: Settings) -> dict[str, str]:
    """Search paths to extend, each with the folder that goes first.

    Where there is no nvcc, none is to be found.
    """
    first = {LIBRARY_PATH: str(NATIVE_DIR)}
    if NVCC_DIR.is_dir() and find_program("nvcc", settings) is not None:
        first[PROGRAM_PATH] = str(NVCC_DIR)
    return first


def is_built() -> bool:
    """Whether the native core is there."""
    return (NATIVE_DIR / LIBRARY_NAME).exists()


def _prepended(first: str, others: str) -> str:
    rest = [folder for folder in others.split(":") if folder != first]
    return ":".join([first, *rest]) if any(rest) else first
