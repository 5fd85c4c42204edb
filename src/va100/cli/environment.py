"""The environment in which a program finds the virtual GPUs instead of real ones."""

from __future__ import annotations

import sys
from typing import Final

from va100 import config
from va100.cli import xla
from va100.config import Settings, find_program
from va100.gpu.native import (
    LIBRARY_NAME,
    NATIVE_DIR,
    NVCC_DIR,
    PTXAS,
    SMI_DIR,
    XLA_DIR,
    library,
    management,
    nvjitlinks,
    nvrtcs,
    runtimes,
    xla_companions,
)

LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
PROGRAM_PATH: Final = "PATH"
ASSEMBLER: Final = "TRITON_PTXAS_PATH"
"""Where Triton looks for its assembler."""
COMPILERS: Final = "VA100_NVRTC"
"""Where the native core finds the NVRTCs that its own compile with, in processes started later."""

LINKER: Final = "VA100_NVJITLINK"
"""Where our nvJitLink finds NVIDIA's, which turns LTO-IR into PTX."""


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
    management()
    if xla.plugin() is not None:
        xla_companions()
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
    linker = next(nvjitlinks(), None)
    if linker is not None:
        added[LINKER] = str(linker)
    nvcc = find_program("nvcc", settings)
    if nvcc is not None:
        added["VA100_NVCC"] = str(nvcc.absolute())
    return added | xla.additions(config.inherited())


def folders(settings: Settings) -> dict[str, str]:
    """Search paths to extend, each with the folders that go first.

    Where there is no nvcc, none is to be found.
    """
    libraries, programs = [NATIVE_DIR], []
    if NVCC_DIR.is_dir() and find_program("nvcc", settings) is not None:
        programs.append(NVCC_DIR)
    if SMI_DIR.is_dir():
        programs.append(SMI_DIR)
    if xla.plugin() is not None:
        libraries.append(XLA_DIR)
        programs.append(PTXAS.parent)
    paths = {LIBRARY_PATH: libraries, PROGRAM_PATH: programs}
    return {name: ":".join(map(str, places)) for name, places in paths.items() if places}


def is_built() -> bool:
    """Whether the native core is there."""
    return (NATIVE_DIR / LIBRARY_NAME).exists()


def _prepended(first: str, others: str) -> str:
    rest = [folder for folder in others.split(":") if folder not in first.split(":")]
    return ":".join([first, *rest]) if any(rest) else first
