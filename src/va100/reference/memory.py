"""Loads, stores, prefetches.

Cache operators, eviction hints and memory orders change nothing: one instruction at a time runs
here, and there are no caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from va100.ptx.program import Operand, Vector
from va100.ptx.types import PtxType, Space
from va100.reference.issue import Issue
from va100.reference.lanes import RAW, Lanes
from va100.reference.policy import createpolicy

_STORE: Final = True


def evaluate_memory(issue: Issue) -> None:
    """Evaluate one instruction of the family."""
    MEMORY[issue.step.operation.opcode](issue)


def ld(issue: Issue) -> None:
    """Load one value or a vector of values a lane."""
    operation = issue.step.operation
    destination, source = issue.step.operands[:2]
    kind = operation.type
    space = operation.space or Space.GENERIC
    addresses = access(issue, source, space, kind.size_bytes * operation.vector)
    count(issue, addresses, space, kind.size_bytes * operation.vector, store=not _STORE)
    for index, element in enumerate(_elements(destination)):
        at = addresses + np.uint64(index * kind.size_bytes)
        _load_element(issue, element, at, kind)


def _load_element(issue: Issue, element: Operand | None, addresses: Lanes, kind: PtxType) -> None:
    value = load(issue, addresses, RAW[kind])
    issue.write(element, value, extend_sign=kind.is_signed)


def st(issue: Issue) -> None:
    """Store one value or a vector of values a lane."""
    operation = issue.step.operation
    destination, source = issue.step.operands[:2]
    kind = operation.type
    space = operation.space or Space.GENERIC
    addresses = access(issue, destination, space, kind.size_bytes * operation.vector)
    count(issue, addresses, space, kind.size_bytes * operation.vector, store=_STORE)
    for index, element in enumerate(_elements(source)):
        value = issue.read(element, kind)
        store(issue, addresses + np.uint64(index * kind.size_bytes), value)


def advise(issue: Issue) -> None:
    """Nothing: there are no caches, and a bad address is no fault.

    Memory that is discarded keeps what it holds; PTX lets it hold anything until it is written.
    """


MEMORY: Final[Mapping[str, Callable[[Issue], None]]] = {
    "ld": ld,
    "ldu": ld,
    "st": st,
    "prefetch": advise,
    "prefetchu": advise,
    "applypriority": advise,
    "discard": advise,
    "createpolicy": createpolicy,
}
"""Opcode to its function."""


def access(issue: Issue, operand: Operand | None, space: Space, size_bytes: int) -> Lanes:
    """Resolve and check the addresses of an access."""
    addresses = issue.address(operand, space)
    issue.check(addresses, space, size_bytes)
    return addresses


def load(issue: Issue, addresses: Lanes, dtype: np.dtype[Any]) -> Lanes:
    """Read a word for every executing lane; the others read zero."""
    value = np.zeros(32, dtype)
    storage = issue.warp.cta.launch.storage
    value[issue.mask] = storage.gather(addresses[issue.mask], dtype.itemsize)
    return value


def store(issue: Issue, addresses: Lanes, value: Lanes) -> None:
    """Write a word for every executing lane."""
    storage = issue.warp.cta.launch.storage
    storage.scatter(addresses[issue.mask], value[issue.mask])


def count(issue: Issue, addresses: Lanes, space: Space, size_bytes: int, *, store: bool) -> None:
    """Count a request to global or shared memory."""
    cta = issue.warp.cta
    active = addresses[issue.mask]
    if space is Space.GENERIC:
        inside = active - np.uint64(cta.shared_address) < np.uint64(max(cta.shared_bytes, 1))
        space = Space.SHARED if inside.all() else Space.GLOBAL
    if space is Space.SHARED:
        cta.launch.tally.shared_access(
            active - np.uint64(cta.shared_address), size_bytes, store=store
        )
    elif space is Space.GLOBAL:
        cta.launch.tally.global_access(active, size_bytes, store=store)


def _elements(operand: Operand | None) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)
