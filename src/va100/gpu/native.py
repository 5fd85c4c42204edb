"""The native core, loaded once a process.

Where the shared library is and how it is opened; the signatures of the driver's own symbols are
in :mod:`va100.driver.api`, those of device memory in :mod:`va100.gpu.arena`.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from va100.errors import SetupError

NATIVE_DIR: Final = Path(__file__).resolve().parent.parent / "_native"
LIBRARY_NAME: Final = "libcuda.so.1"
COMPANIONS: Final = ("libnvJitLink.so.12", "libnvJitLink.so.13")
"""Linkers that stand where NVIDIA's would, whose machine code cannot be run."""
RUNTIMES: Final = ("libcudart.so.12", "libcudart.so.13")
"""The CUDA runtimes, under the names that programs linked with ``-cudart shared`` ask for."""
PTXAS: Final = NATIVE_DIR / "bin" / "ptxas"
"""A ptxas that passes PTX on."""
NVML: Final = NATIVE_DIR / "libnvidia-ml.so.1"
"""What tells of the cards, under the name that monitors and frameworks ask for."""
XLA_DIR: Final = NATIVE_DIR / "xla"
"""Folder of what XLA asks for at its start and goes without after that."""
NVCC_DIR: Final = NATIVE_DIR / "nvcc"
"""Folder of an nvcc that gives PTX where machine code alone is asked for."""
SMI_DIR: Final = NATIVE_DIR / "smi"
"""Folder of our own nvidia-smi."""
_NVRTC_DIR: Final = NATIVE_DIR / "nvrtc"
_NVRTC: Final = {
    "libnvrtc.so.12": Path("nvidia", "cuda_nvrtc", "lib"),
    "libnvrtc.so.13": Path("nvidia", "cu13", "lib"),
}
"""Where NVIDIA's packages keep NVRTC below a folder of packages."""
_NVJITLINK: Final = {
    "libnvJitLink.so.13": Path("nvidia", "cu13", "lib"),
    "libnvJitLink.so.12": Path("nvidia", "nvjitlink", "lib"),
}
"""Where they keep nvJitLink, the newest first."""


@functools.cache
def library() -> ctypes.CDLL:
    """Open the native core and keep it.

    It is opened with ``RTLD_GLOBAL`` under its SONAME, so a client that later asks for
    ``libcuda.so.1`` gets this very copy.

    Raises
    ------
    SetupError
        The library was not built.
    """
    path = NATIVE_DIR / LIBRARY_NAME
    if not path.exists():
        raise SetupError("the native core is not built", remedy="make setup")
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


@functools.cache
def companions() -> tuple[ctypes.CDLL, ...]:
    """Open the companions and keep them, so that clients find them under NVIDIA's names.

    Those that were not built are left out, and the NVRTCs that NVIDIA's packages do not bring.
    """
    paths = [NATIVE_DIR / name for name in COMPANIONS]
    opened = [ctypes.CDLL(str(path)) for path in paths if path.exists()]
    return (*opened, *_compilers())


@functools.cache
def runtimes() -> tuple[ctypes.CDLL, ...]:
    """Open the CUDA runtimes and keep them, for extension modules that link one.

    They are opened without ``RTLD_GLOBAL``: both have the same symbols.
    """
    paths = [NATIVE_DIR / name for name in RUNTIMES]
    return tuple(ctypes.CDLL(str(path)) for path in paths if path.exists())


@functools.cache
def management() -> ctypes.CDLL | None:
    """Open NVML's library and keep it; none where it was not built."""
    return ctypes.CDLL(str(NVML)) if NVML.exists() else None


@functools.cache
def xla_companions() -> tuple[ctypes.CDLL, ...]:
    """Open what XLA asks for at its start, under the names it asks by, and keep it."""
    return tuple(ctypes.CDLL(str(path)) for path in sorted(XLA_DIR.glob("libcudnn.so.*")))


def _compilers() -> Iterator[ctypes.CDLL]:
    """Open an NVRTC that gives PTX for each of NVIDIA's that is installed.

    They are opened without ``RTLD_GLOBAL``: their names are looked up in them alone.
    """
    for theirs in nvrtcs():
        ours = _NVRTC_DIR / theirs.name
        if not ours.exists():
            continue
        proxy = ctypes.CDLL(str(ours))
        if proxy.va100_nvrtc_open(str(theirs).encode()):
            yield proxy


def nvrtcs() -> Iterator[Path]:
    """NVIDIA's NVRTCs, one a major version, where this Python finds its packages."""
    yield from _installed(_NVRTC)


def nvjitlinks() -> Iterator[Path]:
    """NVIDIA's nvJitLinks, the newest first; ours has them turn LTO-IR into PTX."""
    yield from _installed(_NVJITLINK)


def _installed(libraries: Mapping[str, Path]) -> Iterator[Path]:
    for name, folder in libraries.items():
        places = (Path(entry or ".", folder, name) for entry in sys.path)
        found = next((place for place in places if place.exists()), None)
        if found is not None:
            yield found.absolute()
