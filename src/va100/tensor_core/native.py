"""Products of stacks of matrices of raw bits by the native core, by NumPy where it is not built.

Both give the same bits; the native function is ``va_mma_multiply`` of ``native/exec/mma.h``.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.errors import SetupError
from va100.gpu.native import library
from va100.numerics import mma as numpy_mma
from va100.numerics import sparsity
from va100.numerics.formats import Bits
from va100.numerics.mma_rules import MmaRule, Procedure

Index = npt.NDArray[np.uint32]

_KINDS: Final = {
    "f16.f32": 0,
    "f16.f16": 1,
    "bf16.f32": 2,
    "tf32.f32": 3,
    "f64": 4,
    "b1.xor": 7,
    "b1.and": 8,
    "m8n8k4.f16.f32": 9,
    "m8n8k4.f16.f16": 10,
}
_INTEGER_KINDS: Final = {8: 5, 4: 6}
_A_SIGNED, _B_SIGNED, _SATFINITE, _PORTABLE = 1, 2, 4, 64
_SPARSE_STEP: Final = 8
"""The native function takes compressed rows of a multiple of this."""
_MODES: Final = {"rn": 0, "rz": 8, "rm": 16, "rp": 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Modifiers:
    """What an instruction adds to its kind.

    ``mode`` is f64's rounding; ``portable`` chooses the code that any processor runs, for
    comparison.
    """

    mode: str = "rn"
    satfinite: bool = False
    portable: bool = False

    @property
    def flags(self) -> int:
        """As the native function takes them."""
        return _MODES[self.mode] | _SATFINITE * self.satfinite | _PORTABLE * self.portable


PLAIN: Final = Modifiers()


class _Product(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("batch", ctypes.c_uint64),
        ("m", ctypes.c_uint64),
        ("n", ctypes.c_uint64),
        ("k", ctypes.c_uint64),
        ("a_stride", ctypes.c_uint64),
        ("b_stride", ctypes.c_uint64),
        ("c_stride", ctypes.c_uint64),
        ("a", ctypes.c_void_p),
        ("b", ctypes.c_void_p),
        ("c", ctypes.c_void_p),
        ("d", ctypes.c_void_p),
        ("index", ctypes.c_void_p),
    )


def multiply(row: MmaRule, a: Bits, b: Bits, c: Bits, modifiers: Modifiers = PLAIN) -> Bits:
    """D = A B + C on raw bits, as :func:`va100.numerics.mma.mma` takes and gives them."""
    if _function() is None or a.shape[-1] == 0:
        return numpy_mma.mma(
            a, b, c, kind=row.kind, mode=modifiers.mode, satfinite=modifiers.satfinite
        )
    return _multiply(row, (a, b, c), modifiers, None)


def multiply_sparse(
    row: MmaRule, a: Bits, b: Bits, c: Bits, index: Index, modifiers: Modifiers = PLAIN
) -> Bits:
    """D = A B + C where element kk of row i of a compressed A meets row ``index[i, kk]`` of B."""
    if _function() is None or a.shape[-1] == 0:
        return sparsity.multiply(row, a, b, c, index, satfinite=modifiers.satfinite)
    more = -a.shape[1] % _SPARSE_STEP
    a = np.pad(a, [(0, 0), (0, more)])
    b = np.pad(b, [(0, 0)] * (b.ndim - 2) + [(0, 2 * a.shape[1] - b.shape[-2]), (0, 0)])
    # What was added meets the last row, a zero one.
    index = np.pad(index, [(0, 0), (0, more)], constant_values=b.shape[-2] - 1)
    return _multiply(row, (a, b, c), modifiers, np.ascontiguousarray(index, np.uint32))


@functools.cache
def _function() -> Any:
    """``va_mma_multiply``, or None where the native core is not built."""
    try:
        function = library().va_mma_multiply
    except (SetupError, OSError, AttributeError):
        return None
    function.argtypes = (ctypes.POINTER(_Product),)
    function.restype = ctypes.c_int
    return function


def _multiply(
    row: MmaRule, operands: tuple[Bits, Bits, Bits], modifiers: Modifiers, index: Index | None
) -> Bits:
    a, b, c = operands
    flags = modifiers.flags
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    kind = _KINDS[row.kind] if row.kind in _KINDS else _INTEGER_KINDS[row.element_bits]
    if row.procedure is Procedure.INTEGER:
        flags |= _A_SIGNED * row.a_signed | _B_SIGNED * row.b_signed
    a, a_stride = _stack(a, batch)
    b, b_stride = _stack(b, batch)
    c, c_stride = _stack(np.broadcast_to(c, (*c.shape[:-2], m, n)), batch)
    d = np.empty((*batch, m, n), c.dtype)
    product = _Product(
        kind=kind,
        flags=flags,
        batch=int(np.prod(batch)),
        m=m,
        n=n,
        k=k,
        a_stride=a_stride,
        b_stride=b_stride,
        c_stride=c_stride,
        a=a.ctypes.data,
        b=b.ctypes.data,
        c=c.ctypes.data,
        d=d.ctypes.data,
        index=None if index is None else index.ctypes.data,
    )
    if _function()(ctypes.byref(product)) != 0:
        raise MemoryError(f"no room for a product of {m} x {k} and {k} x {n}")
    return d


def _stack(x: Bits, batch: tuple[int, ...]) -> tuple[Bits, int]:
    """Matrices without gaps and the elements from one to the next, 0 where one serves all."""
    if all(extent == 1 for extent in x.shape[:-2]):
        return np.ascontiguousarray(x.reshape(x.shape[-2:])), 0
    whole = np.ascontiguousarray(np.broadcast_to(x, (*batch, *x.shape[-2:])))
    return whole, x.shape[-2] * x.shape[-1]
