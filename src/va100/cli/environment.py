"""The environment in which a program finds the virtual GPUs instead of real ones."""

from __future__ import annotations

import sys
from typing import Final

from va100 import config
from va100.config import Settings
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR, PTXAS

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
ASSEMBLER: Final = "TRITON_PTXAS_PATH"
"""Where Triton looks for its assembler."""


def child_environment(settings: Settings) -> dict[str, str]:
    """Build the environment of a program that is to run on virtual GPUs."""
    environment = config.inherited()
    environment.update(additions(settings))
    others = environment.get(LIBRARY_PATH)
    environment[LIBRARY_PATH] = f"{NATIVE_DIR}:{others}" if others else str(NATIVE_DIR)
    return environment


def additions(settings: Settings) -> dict[str, str]:
    """Variables to set, all but the library path, which is to be extended.

    A program without Python in it loads one to compile its kernels: this one.
    """
    added = settings.variables()
    added["VA100_PYTHON"] = sys.executable
    library = config.python_library()
    if library is not None:
        added["VA100_LIBPYTHON"] = str(library)
    if PTXAS.exists():
        added[ASSEMBLER] = str(PTXAS)
    return added


def is_built() -> bool:
    """Whether the native core is there."""
    return (NATIVE_DIR / LIBRARY_NAME).exists()
