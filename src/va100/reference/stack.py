"""Memory on a thread's stack: ``alloca``, ``stacksave``, ``stackrestore``.

The stack grows up in local memory from the end of the function's frame, in each lane by itself.
What does not fit is found out when it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from va100.ptx.program import Immediate
from va100.reference.issue import Issue
from va100.reference.lanes import U64, Lanes

_ALIGNMENT: Final = 8


def evaluate_stack(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    STACK[issue.step.operation.opcode](issue)


def alloca(issue: Issue) -> None:
    """Take bytes from the stack; gives their address in local memory."""
    destination, size, *alignment = issue.step.operands
    at_least = alignment[0].value if alignment and isinstance(alignment[0], Immediate) else 1
    unit = np.uint64(max(at_least, _ALIGNMENT))
    start = (issue.frame.top + unit - np.uint64(1)) // unit * unit
    bytes_ = issue.read(size, issue.step.operation.type).astype(np.uint64)
    _move(issue, start + bytes_)
    issue.write(destination, start)


def stacksave(issue: Issue) -> None:
    """Where the stack ends."""
    issue.write(issue.step.operands[0], issue.frame.top)


def stackrestore(issue: Issue) -> None:
    """Give back what was taken since the end was saved."""
    _move(issue, issue.read_raw(issue.step.operands[0], U64))


def _move(issue: Issue, end: Lanes) -> None:
    issue.frame.top = np.where(issue.mask, end, issue.frame.top)


STACK: Final[Mapping[str, Callable[[Issue], None]]] = {
    "alloca": alloca,
    "stacksave": stacksave,
    "stackrestore": stackrestore,
}
"""Opcode to its function."""
