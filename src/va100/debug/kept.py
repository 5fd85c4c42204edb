"""What is worked out of a module once and kept, by the module's identity: hashing one is slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from va100.ptx.program import PtxModule

T = TypeVar("T")
_MOST: Final = 16


def kept(make: Callable[[PtxModule], T]) -> Callable[[PtxModule], T]:
    """Let a function of a module work once for each of the last few."""
    known: dict[int, tuple[PtxModule, T]] = {}

    def find(module: PtxModule) -> T:
        found = known.get(id(module))
        if found is None or found[0] is not module:
            if len(known) >= _MOST:
                del known[next(iter(known))]
            found = known[id(module)] = (module, make(module))
        return found[1]

    return find
