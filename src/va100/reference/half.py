"""Half precision and bfloat16 arithmetic; packed types work on each half alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.numerics import approx, formats, rounding
from va100.numerics.formats import BF16, F16, Bits, FloatFormat
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.reference.issue import Issue
from va100.reference.lanes import U16, U32, join, words

_BF16_TYPES: Final = (PtxType.BF16, PtxType.BF16X2)
_PACKED: Final = (PtxType.F16X2, PtxType.BF16X2)


def evaluate_half(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    destination, *operands = issue.step.operands
    fmt = BF16 if operation.type in _BF16_TYPES else F16
    packed = operation.type in _PACKED
    sources = [issue.read(operand, operation.type) for operand in operands]
    if packed:
        sources = [words(source, U16).reshape(-1) for source in sources]
    if operation.ftz:
        sources = [formats.flush(fmt, source) for source in sources]
    result = HALF[operation.opcode](operation, fmt, *sources)
    result = _finished(operation, fmt, result)
    issue.write(destination, join(result.reshape(-1, 2), U32) if packed else result)


def _finished(operation: Operation, fmt: FloatFormat, result: Bits) -> Bits:
    if operation.ftz:
        result = formats.flush(fmt, result)
    if operation.saturate:
        result = formats.saturate(fmt, result)
    return formats.relu(fmt, result) if "relu" in operation.modifiers else result


def add(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Add."""
    del operation
    return rounding.add(fmt, "rn", a, b)


def sub(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Subtract."""
    del operation
    return rounding.sub(fmt, "rn", a, b)


def mul(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Multiply."""
    del operation
    return rounding.mul(fmt, "rn", a, b)


def fma(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits, c: Bits) -> Bits:
    """Multiply and add with one rounding."""
    del operation
    return rounding.fma(fmt, "rn", a, b, c)


def neg(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Negative; sm_80 adds -0 to it, so a NaN becomes canonical."""
    del operation
    return formats.canonical(fmt, a ^ fmt.dtype.type(fmt.sign_bit))


def absolute(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Absolute value; a NaN becomes canonical."""
    del operation
    return formats.canonical(fmt, formats.magnitude(fmt, a))


def minimum(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Smaller."""
    return formats.minimum(fmt, a, b, propagate_nan="NaN" in operation.modifiers)


def maximum(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Larger."""
    return formats.maximum(fmt, a, b, propagate_nan="NaN" in operation.modifiers)


def tanh(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Hyperbolic tangent, f16."""
    del operation, fmt
    return approx.tanh_f16(np.ascontiguousarray(a))


def ex2(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Two to the power a, f16."""
    del operation, fmt
    return approx.ex2_f16(np.ascontiguousarray(a))


HALF: Final[Mapping[str, Callable[..., Bits]]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "fma": fma,
    "neg": neg,
    "abs": absolute,
    "min": minimum,
    "max": maximum,
    "tanh": tanh,
    "ex2": ex2,
}
"""Opcode to its function."""
