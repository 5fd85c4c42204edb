"""The C baselines: compiled once a run by the machine's C compiler, called in place."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.kernels.cases import Argument, Case
from benchmarks.kernels.ours import FOLDER, Buffers
from va100.gpu.arena import Arena

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


def compiler() -> str | None:
    """The C compiler, gcc first: its flags are the ones the tables name."""
    return shutil.which("gcc") or shutil.which("cc")


def build(source: str, folder: Path) -> ctypes.CDLL:
    """Compile ``plain.c`` or ``tuned.c``."""
    found = compiler()
    if found is None:
        raise RuntimeError("no C compiler found: install gcc to measure the C baselines")
    target = folder / f"{source}.so"
    subprocess.run([found, *FLAGS, str(FOLDER / f"{source}.c"), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


class NativeC:
    """A case as a C function over arrays in the same kind of memory; call it to run it once."""

    def __init__(self, case: Case, library: ctypes.CDLL, arena: Arena) -> None:
        self.case = case
        self.buffers = Buffers(case, arena)
        function = getattr(library, case.c_function)
        arguments = [self._argument(a) for a in case.c_arguments]
        self._run: Callable[[], object] = lambda: function(*arguments)

    def _argument(self, argument: Argument) -> ctypes._SimpleCData[object]:
        if isinstance(argument, str):
            return ctypes.c_void_p(self.buffers.addresses[argument])
        if isinstance(argument, np.floating):
            return ctypes.c_float(float(argument))
        return ctypes.c_int(int(argument))

    def __call__(self) -> None:
        """Run the function."""
        self._run()

    def free(self) -> None:
        """Give the memory back."""
        self.buffers.free()
