"""Make an installed CuPy run on va100: build anew what NVIDIA's runtime is linked into.

CuPy's wheels link ``libcudart_static.a`` into five of their modules, and that runtime works with
NVIDIA's driver only.  The sources of the same version are fetched by pip; the five are built with
the same headers, a shared runtime and PTX instead of machine code, and take the place of the
wheel's.  Everything else of the wheel stays.  Six minutes on one core; ``pip install
--force-reinstall cupy-cuda13x`` brings the wheel's own back.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from va100.gpu.native import NATIVE_DIR

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
PACKAGES: Final = {"13": "cupy-cuda13x", "12": "cupy-cuda12x"}
SUFFIX: Final = sysconfig.get_config_var("EXT_SUFFIX")
CACHE_KEY: Final = "va100"
"""CuPy keeps kernels it has compiled by this; its own modules need not agree on it."""


@dataclass(frozen=True, slots=True)
class Module:
    """An extension module that holds the runtime."""

    name: str
    device_code: str = ""
    """The CUDA source that is linked into it."""
    libraries: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Below the sources and below site-packages, without a suffix."""
        return self.name.replace(".", "/")


MODULES: Final = (
    Module("cupy_backends.cuda.api.runtime"),
    Module("cupy.cuda.cub", "cupy/cuda/cupy_cub.cu"),
    Module("cupy.cuda.thrust", "cupy/cuda/cupy_thrust.cu"),
    Module("cupy.random._generator_api", "cupy/random/cupy_distributions.cu"),
    Module("cupy.cuda.jitify", libraries=("cuda", "nvrtc")),
)

CYTHONIZE: Final = """
import sys
from Cython import __version__
from Cython.Build import cythonize
from setuptools import Extension
name, version = sys.argv[1:]
cythonize(
    [Extension(name, [name.replace(".", "/") + ".pyx"], language="c++")],
    language_level=3,
    compiler_directives={"c_api_binop_methods": True, "binding": False, "embedsignature": True,
                         "freethreading_compatible": True, "warn.deprecated.IF": False},
    compile_time_env={"CUPY_CUDA_VERSION": int(version), "CUPY_HIP_VERSION": 0,
                      "CUPY_USE_CUDA_PYTHON": False, "CUPY_CUFFT_STATIC": False,
                      "CUPY_CYTHON_VERSION": __version__},
)
"""


class Stop(Exception):
    """What is missing, and what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Plain)
    parser.add_argument("--sources", type=Path, help="CuPy's source archive, where it is at hand")
    parser.add_argument(
        "--only", action="append", choices=[m.name for m in MODULES], help="build one module anew"
    )
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            _install(Path(folder), args.sources, args.only or [m.name for m in MODULES])
    except Stop as stop:
        print(f"install_cupy: {stop}", file=sys.stderr)
        return 2
    return 0


class _Plain(argparse.RawDescriptionHelpFormatter):
    pass


def _install(folder: Path, archive: Path | None, wanted: list[str]) -> None:
    major, version = _installed()
    nvcc = _nvcc(major)
    place = Path(sysconfig.get_path("platlib"))
    headers = _packaged_headers(place, major)
    _require_header("curand_kernel.h", nvcc, headers)
    sources = _unpacked(archive or _fetched(version, folder), folder)
    cython = folder / "cython"
    _checked([*PIP, "install", "--target", str(cython), _requirement(sources), "setuptools"])
    for module in MODULES:
        if module.name not in wanted:
            continue
        print(f"building {module.name}", flush=True)
        _translate(module, sources, cython, major)
        built = _build(module, sources, nvcc, major, headers)
        os.replace(built, place / f"{module.path}{SUFFIX}")


def _installed() -> tuple[str, str]:
    for major, package in PACKAGES.items():
        try:
            return major, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    raise Stop(f"no CuPy here: {sys.executable} -m pip install {PACKAGES['13']}")


def _nvcc(major: str) -> str:
    """A compiler of the wheel's CUDA, which the headers have to be of, too."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        raise Stop(
            f"no nvcc in PATH, which builds CuPy's CUDA sources: "
            f"{sys.executable} -m pip install nvidia-cuda-nvcc nvidia-cuda-cccl, or a CUDA toolkit"
        )
    told = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"release (\d+)", told)
    if not release or release[1] != major:
        raise Stop(f"{nvcc} is not of CUDA {major}, which CuPy here was built for")
    return nvcc


def _packaged_headers(place: Path, major: str) -> tuple[Path, ...]:
    folders = (place / "nvidia" / f"cu{major}" / "include", place / "nvidia/curand/include")
    return tuple(folder for folder in folders if folder.is_dir())


def _require_header(name: str, nvcc: str, headers: tuple[Path, ...]) -> None:
    words = [nvcc, "-E", *(f"-I{h}" for h in headers), "-x", "cu", "-"]
    done = subprocess.run(
        words, input=f"#include <{name}>\n", capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Stop(
            f"{name} is missing, which random numbers want: {sys.executable} -m pip install "
            "nvidia-curand\n" + done.stderr[-500:]
        )


def _fetched(version: str, folder: Path) -> Path:
    """The source archive.  pip asks it for its requirements, for which it needs no CUDA."""
    words = [*PIP, "download", "--no-deps", "--no-binary", "cupy", f"cupy=={version}"]
    _checked([*words, "--dest", str(folder)], CUPY_INSTALL_USE_STUB="1")
    return next(folder.glob("cupy-*.tar.gz"))


def _unpacked(archive: Path, folder: Path) -> Path:
    if not archive.is_file():
        raise Stop(f"no such file: {archive}")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "sources", filter="data")
    return next((folder / "sources").glob("cupy-*"))


def _requirement(sources: Path) -> str:
    text = (sources / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'"(Cython[^"]*)"', text)
    return found[1] if found else "Cython"


def _translate(module: Module, sources: Path, cython: Path, major: str) -> None:
    words = [sys.executable, "-c", CYTHONIZE, module.name, f"{major}000"]
    _checked(words, sources, PYTHONPATH=str(cython))


def _build(module: Module, sources: Path, nvcc: str, major: str, headers: tuple[Path, ...]) -> Path:
    import numpy as np  # noqa: PLC0415  va100 needs it, a plain Python may not have it

    bundled = sources / "cupy/_core/include"
    folders = (
        *(bundled / "cupy/_cccl" / part for part in ("libcudacxx", "thrust", "cub")),
        bundled, bundled / "cupy/_jitify", sources, sources / "cupy_backends",
        sources / "cupy_backends/cuda", Path(np.get_include()),
        Path(sysconfig.get_path("include")),
    )  # fmt: skip
    options = [
        "-std=c++17", "-O1", "-w", "-Xcompiler", "-fPIC,-g0", "-cudart", "none",
        "--expt-relaxed-constexpr", "-gencode", "arch=compute_80,code=compute_80",
        *(f"-I{folder}" for folder in folders),
        # The packages' own after nvcc's: they may be of another minor version.
        *(f"-Xcompiler=-idirafter,{folder}" for folder in headers),
        "-D_FORCE_INLINES=1", "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION",
        f"-DCUPY_CACHE_KEY={CACHE_KEY}",
    ]  # fmt: skip
    files = [f"{module.path}.cpp", *filter(None, [module.device_code])]
    objects = []
    for number, file in enumerate(files):
        objects.append(f"part{number}.o")
        # Cython's declarations of C functions are C's; a CUDA source has its own.
        linkage = ['-DCYTHON_EXTERN_C=extern "C"'] if number == 0 else []
        _checked([nvcc, "-c", *options, *linkage, file, "-o", objects[-1]], sources)
    built = sources / f"built{SUFFIX}"
    libraries = [f"-l:libcudart.so.{major}", "-l:libcuda.so.1"]
    if "nvrtc" in module.libraries:
        libraries.append(str(_nvrtc(major)))
    words = ["g++", "-shared", "-o", str(built), *objects, f"-L{NATIVE_DIR}", *libraries]
    _checked(words, sources)
    return built


def _nvrtc(major: str) -> Path:
    place = Path(sysconfig.get_path("platlib"), "nvidia")
    for found in sorted(place.glob(f"*/lib/libnvrtc.so.{major}")):
        return found
    raise Stop(f"no NVRTC: {sys.executable} -m pip install nvidia-cuda-nvrtc")


def _checked(words: list[str], folder: Path | None = None, **variables: str) -> None:
    done = subprocess.run(
        words, cwd=folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        shown = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise Stop(f"{' '.join(words[:4])} … failed with status {done.returncode}:\n{shown}")


if __name__ == "__main__":
    sys.exit(main())
