"""The environment in which a program finds the virtual GPUs instead of real ones."""

from __future__ import annotations

import sys
from typing import Final

from va100 import config
from va100.config import Settings
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR, PTXAS, library, nvrtcs, runtimes

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
ASSEMBLER: Final = "TRITON_PTXAS_PATH"
"""Where Triton looks for its assembler."""
COMPILERS: Final = "VA100_NVRTC"
"""Where the native core finds the NVRTCs that its own compile with, in processes started later."""


def child_environment(settings: Settings) -> dict[str, str]:
    """Build the environment of a program that is to run on virtual GPUs."""
    environment = config.inherited()
    environment.update(additions(settings))
    environment[LIBRARY_PATH] = _library_path(environment.get(LIBRARY_PATH, ""))
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
    """Variables to set, all but the library path, which is to be extended.

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
    return added


def is_built() -> bool:
    """Whether the native core is there."""
    return (NATIVE_DIR / LIBRARY_NAME).exists()


def _library_path(others: str) -> str:
    folders = [folder for folder in others.split(":") if folder != str(NATIVE_DIR)]
    return ":".join([str(NATIVE_DIR), *folders]) if any(folders) else str(NATIVE_DIR)
