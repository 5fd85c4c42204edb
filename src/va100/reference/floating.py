"""Single and double precision floating point.  The arithmetic is :mod:`va100.numerics`'.

``.ftz`` flushes operands and results, ``.sat`` clamps the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.numerics import approx, formats, rounding
from va100.numerics.formats import DOUBLE, F32, Bits, FloatFormat
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.reference.issue import Issue
from va100.reference.lanes import Lanes


def evaluate_floating(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    destination, *operands = issue.step.operands
    fmt = F32 if operation.type is PtxType.F32 else DOUBLE
    sources = [issue.read(operand, operation.type) for operand in operands]
    if operation.ftz and operation.type is PtxType.F32:
        sources = [formats.flush(fmt, source) for source in sources]
    result = FLOATING[operation.opcode](operation, fmt, *sources)
    if operation.opcode != "testp":
        if operation.ftz and operation.type is PtxType.F32:
            result = formats.flush(fmt, result)
        if operation.saturate:
            result = formats.saturate(fmt, result)
    issue.write(destination, result)


def testp(operation: Operation, fmt: FloatFormat, a: Bits) -> Lanes:
    """Test a property; zero counts as normal."""
    nan, infinite = formats.is_nan(fmt, a), formats.is_infinite(fmt, a)
    tests = {
        "finite": ~nan & ~infinite,
        "infinite": infinite,
        "number": ~nan,
        "notanumber": nan,
        "normal": ~nan & ~infinite & ~formats.is_subnormal(fmt, a),
        "subnormal": formats.is_subnormal(fmt, a),
    }
    return tests[operation.combine]


def copysign(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Magnitude of b with the sign of a."""
    del operation
    result: Bits = formats.magnitude(fmt, b) | (a & fmt.dtype.type(fmt.sign_bit))
    return result


def add(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Add."""
    return rounding.add(fmt, operation.rounding or "rn", a, b)


def sub(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Subtract."""
    return rounding.sub(fmt, operation.rounding or "rn", a, b)


def mul(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Multiply."""
    return rounding.mul(fmt, operation.rounding or "rn", a, b)


def fma(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits, c: Bits) -> Bits:
    """Multiply and add with one rounding; ``mad`` is the same since sm_20."""
    return rounding.fma(fmt, operation.rounding or "rn", a, b, c)


def div(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Divide, rounded or approximately."""
    if operation.approximate == "approx":
        return approx.div(a, b, ftz=operation.ftz)
    if operation.approximate == "full":
        return approx.div_full(a, b, ftz=operation.ftz)
    return rounding.div(fmt, operation.rounding, a, b)


def absolute(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Clear the sign; what happens to a NaN's is not documented."""
    del operation
    return formats.magnitude(fmt, a)


def neg(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Flip the sign, of a NaN too."""
    del operation
    result: Bits = a ^ fmt.dtype.type(fmt.sign_bit)
    return result


def minimum(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Smaller."""
    return formats.minimum(fmt, a, b, propagate_nan="NaN" in operation.modifiers)


def maximum(operation: Operation, fmt: FloatFormat, a: Bits, b: Bits) -> Bits:
    """Larger."""
    return formats.maximum(fmt, a, b, propagate_nan="NaN" in operation.modifiers)


def rcp(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """One over a."""
    if operation.approximate:
        return approx.rcp_f64(a) if fmt is DOUBLE else approx.rcp(a, ftz=operation.ftz)
    return rounding.rcp(fmt, operation.rounding, a)


def sqrt(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """Square root."""
    if operation.approximate:
        return approx.sqrt(a, ftz=operation.ftz)
    return rounding.sqrt(fmt, operation.rounding, a)


def rsqrt(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """One over the square root; f64 without ``.ftz`` is full precision here, as allowed."""
    if fmt is F32:
        return approx.rsqrt(a, ftz=operation.ftz)
    if operation.ftz:
        return approx.rsqrt_f64(a)
    return np.asarray(1.0 / np.sqrt(a.view(np.float64))).view(np.uint64)


def transcendental(operation: Operation, fmt: FloatFormat, a: Bits) -> Bits:
    """``sin``, ``cos``, ``lg2``, ``ex2``, ``tanh``: approximate, f32."""
    del fmt
    if "2pi" in operation.modifiers:
        return approx.sin_turns(a) if operation.opcode == "sin" else approx.cos_turns(a)
    return approx.UNARY[operation.opcode](a, ftz=operation.ftz)


FLOATING: Final[Mapping[str, Callable[..., Lanes]]] = {
    "testp": testp,
    "copysign": copysign,
    "add": add,
    "sub": sub,
    "mul": mul,
    "fma": fma,
    "mad": fma,
    "div": div,
    "abs": absolute,
    "neg": neg,
    "min": minimum,
    "max": maximum,
    "rcp": rcp,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "sin": transcendental,
    "cos": transcendental,
    "lg2": transcendental,
    "ex2": transcendental,
    "tanh": transcendental,
}
"""Opcode to its function."""
