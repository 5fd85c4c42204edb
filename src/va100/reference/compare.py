"""Comparison and selection: ``setp``, ``set``, ``selp``, ``slct``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.numerics.formats import BF16, DOUBLE, F16, F32, FloatFormat, flush, is_nan, to_f64
from va100.ptx.isa.form import Operation
from va100.ptx.program import Operand, Pair
from va100.ptx.types import PtxType
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, U16, Lanes, join, typed, words

FORMATS: Final[Mapping[PtxType, FloatFormat]] = {
    PtxType.F16: F16,
    PtxType.F16X2: F16,
    PtxType.BF16: BF16,
    PtxType.BF16X2: BF16,
    PtxType.F32: F32,
    PtxType.F64: DOUBLE,
}
_PACKED: Final = (PtxType.F16X2, PtxType.BF16X2)


def evaluate_compare(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    COMPARE[issue.step.operation.opcode](issue)


def setp(issue: Issue) -> None:
    """Compare into one predicate, or two: the second is the complement, or the upper half's."""
    operation = issue.step.operation
    destination, *sources = issue.step.operands
    true = _compared(issue, sources[0], sources[1])
    first, second = destination, None
    if isinstance(destination, Pair):
        first, second = destination.first, destination.second
    flag = issue.predicate(sources[2]) if operation.combine else None
    if operation.source_type in _PACKED:
        issue.write(first, _combined(operation, true[:, 0], flag))
        issue.write(second, _combined(operation, true[:, 1], flag))
        return
    issue.write(first, _combined(operation, true, flag))
    issue.write(second, _combined(operation, ~true, flag))


def set_(issue: Issue) -> None:
    """Compare into a number: 1.0 or all ones if true, zero if not."""
    operation = issue.step.operation
    destination, *sources = issue.step.operands
    true = _compared(issue, sources[0], sources[1])
    flag = issue.predicate(sources[2]) if operation.combine else None
    if operation.source_type in _PACKED:
        halves = np.stack([_combined(operation, true[:, i], flag) for i in (0, 1)], axis=1)
        one = FORMATS[operation.type].one if operation.type in _PACKED else 0xFFFF
        result = join(np.where(halves, np.uint16(one), np.uint16(0)), RAW[PtxType.B32])
        issue.write(destination, result)
        return
    dtype = RAW[operation.type]
    one = dtype.type(FORMATS[operation.type].one) if operation.type.is_float else ~dtype.type(0)
    issue.write(destination, np.where(_combined(operation, true, flag), one, dtype.type(0)))


def selp(issue: Issue) -> None:
    """Select by a predicate."""
    destination, a, b, flag = issue.step.operands
    kind = issue.step.operation.type
    issue.write(
        destination, np.where(issue.predicate(flag), issue.read(a, kind), issue.read(b, kind))
    )


def slct(issue: Issue) -> None:
    """Select by the sign of a number; a NaN selects the second."""
    destination, a, b, c = issue.step.operands
    operation = issue.step.operation
    value = issue.read(c, operation.source_type)
    if operation.source_type is PtxType.F32:
        value = flush(F32, value) if operation.ftz else value
        first = value.view(np.float32) >= 0
    else:
        first = typed(value, operation.source_type) >= 0
    kind = operation.type
    issue.write(destination, np.where(first, issue.read(a, kind), issue.read(b, kind)))


COMPARE: Final[Mapping[str, Callable[[Issue], None]]] = {
    "setp": setp,
    "set": set_,
    "selp": selp,
    "slct": slct,
}
"""Opcode to its function."""


# ---------------------------------------------------------------- comparisons


COMPARISONS: Final[Mapping[str, Callable[[Lanes, Lanes], Lanes]]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
"""Comparison to its function of typed values; NaN is :func:`_float_compared`'s."""


def _compared(issue: Issue, a: Operand | None, b: Operand | None) -> Lanes:
    """Compare two operands; packed types give shape (32, 2)."""
    operation = issue.step.operation
    kind = operation.source_type
    x, y = issue.read(a, kind), issue.read(b, kind)
    if kind in _PACKED:
        x, y = words(x, U16), words(y, U16)
    if kind in FORMATS:
        return _float_compared(operation, FORMATS[kind], x, y)
    true: Lanes = COMPARISONS[operation.compare](typed(x, kind), typed(y, kind))
    return true


def _float_compared(operation: Operation, fmt: FloatFormat, a: Lanes, b: Lanes) -> Lanes:
    """Ordered comparisons are false with a NaN, those that end in u true."""
    nan = is_nan(fmt, a) | is_nan(fmt, b)
    name = operation.compare
    if name in ("num", "nan"):
        return nan if name == "nan" else ~nan
    if operation.ftz:
        a, b = flush(fmt, a), flush(fmt, b)
    unordered = len(name) == 3
    true = COMPARISONS[name[:2]](to_f64(fmt, a), to_f64(fmt, b))
    return np.where(nan, unordered, true)


def _combined(operation: Operation, true: Lanes, flag: Lanes | None) -> Lanes:
    if flag is None:
        return true
    if operation.combine == "and":
        return true & flag
    return (true | flag) if operation.combine == "or" else (true ^ flag)
