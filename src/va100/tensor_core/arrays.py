"""People's arrays to raw bits and back: what each kind takes, and a clear refusal of the rest.

ml_dtypes is not imported: its types are known by name, and their bytes are the raw bits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.numerics import rounding
from va100.numerics.formats import BF16, DOUBLE, F16, F32, Bits, FloatFormat, tf32_nearest_away
from va100.numerics.mma_rules import MmaRule, Procedure

Array = npt.NDArray[Any]

_FLOAT_TYPES: Final = {
    F16.name: ("float16",),
    BF16.name: ("bfloat16", "uint16"),
    F32.name: ("float32",),
    DOUBLE.name: ("float64",),
}
_NUMPY_FLOATS: Final = {F16.name: np.float16, F32.name: np.float32, DOUBLE.name: np.float64}
TF32_ROUNDINGS: Final = ("raw", "rna")


def operand_bits(row: MmaRule, side: str, given: Any, tf32_round: str) -> Bits:
    """Raw bits or integers of operand ``"a"`` or ``"b"``.

    Raises
    ------
    ValueError
        The array's type, a value or the number of dimensions is not what the kind takes.
    """
    if tf32_round not in TF32_ROUNDINGS:
        raise ValueError(f"tf32_round is 'raw' or 'rna', not {tf32_round!r}")
    if tf32_round == "rna" and not row.dropped_bits:
        raise ValueError(f"tf32_round is for tf32.f32, not {row.kind}")
    x = given if isinstance(given, np.ndarray) else np.asarray(given)
    if x.ndim < 2:
        raise ValueError(f"{side} has {x.ndim} dimensions; a matrix has two, a stack more")
    exact = isinstance(given, np.ndarray) or hasattr(given, "__array__")
    if row.operand is None:
        return _integers(row, side, x)
    bits = _float_bits(row.operand, f"{side} of {row.kind}", x, convert=not exact)
    return tf32_nearest_away(bits) if tf32_round == "rna" else bits


def accumulator_bits(row: MmaRule, given: Any, shape: tuple[int, ...]) -> Bits:
    """Raw bits or 32-bit integers of C, zeros where there is none."""
    if row.accumulator is None:
        c = np.zeros((), np.int32) if given is None else np.asarray(given)
        if isinstance(given, np.ndarray) and c.dtype != np.int32:
            raise ValueError(f"c of {row.kind} is int32, not {c.dtype.name}")
        if not np.issubdtype(c.dtype, np.integer):
            raise ValueError(f"c of {row.kind} is int32, not {c.dtype.name}")
        c = c.astype(np.int32)
    elif given is None:
        c = np.zeros((), row.accumulator.dtype)
    else:
        exact = isinstance(given, np.ndarray)
        c = _float_bits(row.accumulator, f"c of {row.kind}", np.asarray(given), convert=not exact)
    try:
        return np.broadcast_to(c, shape)
    except ValueError:
        raise ValueError(f"c of shape {c.shape} does not fit a result of {shape}") from None


def result_array(row: MmaRule, bits: Bits) -> Array:
    """What people get: NumPy's type of the accumulator, int32 of integers."""
    if row.accumulator is None:
        return bits
    return bits.view(_NUMPY_FLOATS[row.accumulator.name])


def result_shape(a: Bits, b: Bits) -> tuple[int, ...]:
    """Shape of A B.

    Raises
    ------
    ValueError
        They do not fit.
    """
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"no product of {a.shape} and {b.shape}: k is {a.shape[-1]} and {b.shape[-2]}"
        )
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(f"stacks of {a.shape} and {b.shape} do not fit") from None
    return (*batch, a.shape[-2], b.shape[-1])


def _float_bits(fmt: FloatFormat, what: str, x: Array, *, convert: bool) -> Bits:
    names = _FLOAT_TYPES[fmt.name]
    if x.dtype.name in names:
        return np.ascontiguousarray(x).view(fmt.dtype)
    if convert and x.dtype.kind in "fiu":
        # Numbers in lists have no type of their own yet.
        with np.errstate(all="ignore"):
            return rounding.round_f64(fmt, "rn", np.asarray(x, np.float64)).astype(fmt.dtype)
    expected = names[0]
    also = " (ml_dtypes) or uint16 holding its bits" if fmt is BF16 else ""
    raise ValueError(f"{what} is {expected}{also}, not {x.dtype.name}; convert it first")


def _integers(row: MmaRule, side: str, x: Array) -> Bits:
    what = f"{side} of {row.kind}"
    names: tuple[str, ...]
    if row.procedure is Procedure.BITS:
        low, high, names = 0, 1, ("bool", "uint8", "int8", "uint1")
    else:
        low, high = row.integer_range(side)
        signed = low < 0
        names = (f"{'' if signed else 'u'}int{row.element_bits}", "int8" if signed else "uint8")
    if x.dtype.name not in (*names, "int64"):
        raise ValueError(f"{what} is {' or '.join(dict.fromkeys(names))}, not {x.dtype.name}")
    wide = x.astype(np.int8 if low < 0 else np.uint8) if x.dtype.itemsize == 1 else x
    if wide.size and (int(wide.min()) < low or int(wide.max()) > high):
        raise ValueError(
            f"{what} holds {int(wide.min())} to {int(wide.max())}; it takes {low} to {high}"
        )
    return np.ascontiguousarray(wide, np.int8 if low < 0 else np.uint8)
