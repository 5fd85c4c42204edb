"""Conversions between number formats: ``cvt``.  The rules are :mod:`va100.numerics.convert`'s."""

from __future__ import annotations

from typing import Final

import numpy as np

from va100.numerics import convert, formats
from va100.numerics.formats import F32, Bits, FloatFormat
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.reference.compare import FORMATS
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, U16, U32, Lanes, join, signed, typed, unsigned

_INTEGRAL: Final = ("rni", "rzi", "rmi", "rpi")


def evaluate_convert(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    operation = issue.step.operation
    destination, *operands = issue.step.operands
    source, target = operation.source_type, operation.type
    if "pack" in operation.modifiers:
        issue.write(destination, _packed(issue))
        return
    values = [issue.read(operand, source) for operand in operands]
    if target in (PtxType.F16X2, PtxType.BF16X2):
        upper, lower = (_to_float(operation, FORMATS[target], F32, value) for value in values)
        issue.write(destination, join(np.stack((lower, upper), axis=1).astype(U16), U32))
        return
    issue.write(destination, converted(operation, values[0]), extend_sign=target.is_signed)


def _packed(issue: Issue) -> Lanes:
    """``cvt.pack``: b lowest, a above it, and the low bits of c above both."""
    target, *operands = issue.step.operation.type, *issue.step.operands[1:]
    bits, least = target.bits, -(1 << target.bits - 1) if target.is_signed else 0
    keep = np.uint32((1 << bits) - 1)
    a, b = (
        np.clip(signed(issue.read(o, PtxType.S32)).astype(np.int64), least, least + int(keep))
        for o in operands[:2]
    )
    low: Lanes = (a.astype(np.uint32) & keep) << np.uint32(bits) | (b.astype(np.uint32) & keep)
    if len(operands) < 3:
        return low
    low |= issue.read(operands[2], PtxType.B32) << np.uint32(2 * bits)
    return low


def converted(operation: Operation, value: Lanes) -> Lanes:
    """Convert one value; the result has the destination type's width."""
    source, target = operation.source_type, operation.type
    if target is PtxType.TF32:
        return formats.tf32_nearest_away(value, finite=operation.saturate)
    if source.is_integer and target.is_integer:
        return _to_integer(operation, typed(value, source))
    if source.is_integer:
        fmt = FORMATS[target]
        return _finished(
            operation, fmt, convert.integer_to_float(fmt, operation.rounding, typed(value, source))
        )
    fmt = FORMATS[source]
    if operation.ftz and fmt is F32:
        value = formats.flush(F32, value)
    if target.is_integer:
        dtype = signed(np.zeros(1, RAW[target])).dtype if target.is_signed else RAW[target]
        return unsigned(convert.float_to_integer(fmt, operation.rounding, value, dtype))
    return _to_float(operation, FORMATS[target], fmt, value)


def _to_integer(operation: Operation, value: Lanes) -> Lanes:
    target = RAW[operation.type]
    if operation.saturate:
        limit = signed(np.zeros(1, target)).dtype if operation.type.is_signed else target
        return unsigned(convert.saturate_integer(value, limit))
    return unsigned(value.astype(target))


def _to_float(operation: Operation, target: FloatFormat, source: FloatFormat, value: Bits) -> Bits:
    """Convert between float formats, or round to an integral value in the same one."""
    if operation.ftz and source is F32:
        value = formats.flush(F32, value)
    if operation.rounding in _INTEGRAL:
        result = convert.round_to_integral(source, operation.rounding, value)
    else:
        result = convert.float_to_float(source, target, operation.rounding, value)
    return _finished(operation, target, result)


def _finished(operation: Operation, fmt: FloatFormat, result: Bits) -> Bits:
    if operation.ftz and fmt is F32:
        result = formats.flush(F32, result)
    if "satfinite" in operation.modifiers:
        over = formats.is_infinite(fmt, result)
        result = np.where(over, result - fmt.dtype.type(1), result)
    elif operation.saturate:
        result = formats.saturate(fmt, result)
    return formats.relu(fmt, result) if "relu" in operation.modifiers else result
