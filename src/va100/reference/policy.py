"""Cache policies: ``createpolicy``.

There are no caches here, and PTX leaves a policy's 64 bits opaque: they say, from the top, how the
policy was made (4 bits), its priority (4), the share of accesses it is for in sixteenths less one
(4), its second priority (4), and for a range its two sizes in units of 256 bytes (24 each).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType
from va100.reference.issue import Issue
from va100.reference.lanes import U64, Lanes, full

PRIORITIES: Final[Mapping[str, int]] = {
    "L2::evict_normal": 0,
    "L2::evict_first": 2,
    "L2::evict_last": 4,
    "L2::evict_unchanged": 6,
}
"""Priority to its code."""
_FRACTION, _RANGE = 1, 2


def createpolicy(issue: Issue) -> None:
    """Make a policy from a fraction, from a range of addresses, or from a property's bits."""
    modifiers = issue.step.operation.modifiers
    make = next(make for name, make in MAKERS.items() if name in modifiers)
    issue.write(issue.step.operands[0], make(issue))


def _priorities(operation: Operation, how: int) -> np.uint64:
    named = [PRIORITIES[m] for m in operation.sequence if m in PRIORITIES]
    second = named[1] if len(named) > 1 else PRIORITIES["L2::evict_unchanged"]
    return np.uint64(how << 60 | named[0] << 56 | second << 48)


def fractional(issue: Issue) -> Lanes:
    """For a share of the accesses, all of them when none is given."""
    base = _priorities(issue.step.operation, _FRACTION)
    if len(issue.step.operands) == 1:
        return full(int(base) | 15 << 52, U64)
    share = issue.read(issue.step.operands[1], PtxType.F32).view(np.float32)
    sixteenths = np.fmax(np.fmin(np.ceil(share * np.float32(16)), np.float32(16)), np.float32(1))
    policy: Lanes = base | (sixteenths.astype(np.uint64) - np.uint64(1)) << np.uint64(52)
    return policy


def ranged(issue: Issue) -> Lanes:
    """For a range of addresses: the first part by one priority, the rest by the other."""
    first, whole = (
        (issue.read(operand, PtxType.U32) >> np.uint32(8)).astype(np.uint64)
        for operand in issue.step.operands[2:4]
    )
    return _priorities(issue.step.operation, _RANGE) | first << np.uint64(24) | whole


def converted(issue: Issue) -> Lanes:
    """From the access property of CUDA C++, which holds a policy already."""
    return issue.read(issue.step.operands[1], PtxType.B64)


MAKERS: Final[Mapping[str, Callable[[Issue], Lanes]]] = {
    "fractional": fractional,
    "range": ranged,
    "cvt": converted,
}
"""Modifier to its function."""
