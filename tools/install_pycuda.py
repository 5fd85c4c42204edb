"""Build and install PyCUDA, at the version that a lock pins, and what it needs.

PyCUDA comes as sources that want a configuration: where CUDA's headers lie, which NVIDIA's
packages bring, and a `libcuda.so` to link with, for which va100's does.  It is read from the home
folder, so pip gets another one while it builds; what pip keeps in the real one stays in use.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR

INCLUDE = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "include")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
LOCKED = ["--no-compile", "--no-deps", "--require-hashes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lock", type=Path, help="requirements with hashes, PyCUDA's among them")
    entries = re.split(r"^(?=\S)", parser.parse_args().lock.read_text("utf-8"), flags=re.MULTILINE)
    ours = [entry for entry in entries if entry.startswith("pycuda==")]
    if len(ours) != 1:
        parser.error("the lock pins no pycuda")
    if not (NATIVE_DIR / LIBRARY_NAME).exists():
        parser.error("the native core is not built: make setup")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        install([entry for entry in entries if entry not in ours], home)
        configure(home)
        install(ours, home, "--no-build-isolation", HOME=folder)


def install(entries: list[str], folder: Path, *options: str, **variables: str) -> None:
    lock = folder / "lock.txt"
    lock.write_text("".join(entries), encoding="utf-8")
    kept = {
        "XDG_CONFIG_HOME": os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config"),
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
    }
    done = subprocess.run(
        [*PIP, *LOCKED, *options, "-r", str(lock)], env=os.environ | kept | variables, check=False
    )
    if done.returncode != 0:
        sys.exit(done.returncode)


def configure(home: Path) -> None:
    (home / "libcuda.so").symlink_to(NATIVE_DIR / LIBRARY_NAME)
    settings = {
        "CUDA_INC_DIR": [str(INCLUDE)],
        "CUDADRV_LIB_DIR": [str(home)],
        "CUDA_ENABLE_CURAND": False,  # machine code only
        "CXXFLAGS": ["-O0", "-g0"],  # most of the time goes into Boost's templates
    }
    lines = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    (home / ".aksetup-defaults.py").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
