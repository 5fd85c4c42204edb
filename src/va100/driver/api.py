"""The driver's C symbols as Python sees them: bound once, with their parameter types.

For tests, diagnosis and reports; programs reach the driver through their own CUDA bindings.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Final

from va100.driver.signatures import SIGNATURES
from va100.gpu.native import library

SUCCESS: Final = 0


@functools.cache
def driver() -> ctypes.CDLL:
    """The native driver with every implemented call's signature set.

    Raises
    ------
    SetupError
        The library was not built.
    """
    lib = library()
    for name, types in SIGNATURES.items():
        function = getattr(lib, name)
        function.argtypes = types
        function.restype = ctypes.c_int
    return lib


def result_name(code: int) -> str:
    """Name of a ``CUresult``, its number when it has none."""
    text = ctypes.c_char_p()
    if driver().cuGetErrorName(code, ctypes.addressof(text)) or text.value is None:
        return str(code)
    return text.value.decode()
