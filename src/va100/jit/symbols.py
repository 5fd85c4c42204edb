"""Where a module's names live when its kernels run.

Module-scope ``.global`` and ``.const`` variables are reached through a table of addresses, so
that machine code does not depend on where they were put; shared variables are offsets into the
CTA's window; functions have numbers in place of code addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from va100.gpu.place import function_addresses
from va100.ptx.program import Function, PtxModule, Variable
from va100.ptx.types import Space

RESERVED_BYTES: Final = 1024
"""Shared memory of a CTA that the A100 keeps for NVIDIA's own software."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """Names of one module."""

    ordinals: Mapping[str, int]
    """``.global``/``.const`` variable to index in the table of addresses."""
    constants: Mapping[str, int]
    """``.const`` variable to its size in bytes."""
    shared: Mapping[str, int]
    """Module-scope ``.shared`` variable to offset in the window."""
    shared_bytes: int
    """Static shared memory and what is reserved; dynamic shared memory comes on top."""
    reserved_bytes: int
    """Of those, what the toolkit keeps for itself at the window's end."""
    functions: Mapping[str, Function]
    addresses: Mapping[str, int]
    """Function name to the number that stands for its address."""


def aligned(offset: int, alignment: int) -> int:
    """Round up to a multiple."""
    return -(-offset // alignment) * alignment


def collect(
    module: PtxModule, local_shared: tuple[Variable, ...] = (), reserved_bytes: int = 0
) -> Symbols:
    """Lay out a module's names.

    ``local_shared`` are the shared variables declared inside the functions of one kernel; their
    names are unique.  No variable takes the last ``reserved_bytes`` of shared memory.
    """
    ordinals = global_ordinals(module)
    shared, total = _shared_layout((*module.variables, *local_shared))
    functions: dict[str, Function] = {}
    for function in module.functions:
        if function.body is not None or function.name not in functions:
            functions[function.name] = function
    constants = {v.name: v.size_bytes for v in module.variables if v.space is Space.CONST}
    addresses = function_addresses(module)
    total += reserved_bytes
    return Symbols(ordinals, constants, shared, total, reserved_bytes, functions, addresses)


def global_ordinals(module: PtxModule) -> dict[str, int]:
    """Index of each ``.global`` and ``.const`` variable in the table of addresses."""
    names = dict.fromkeys(
        v.name for v in module.variables if v.space in (Space.GLOBAL, Space.CONST)
    )
    return {name: k for k, name in enumerate(names)}


def _shared_layout(variables: tuple[Variable, ...]) -> tuple[dict[str, int], int]:
    """Offsets, and the end of the sized ones, where the unsized ones begin."""
    offsets: dict[str, int] = {}
    total = 0
    unsized: list[Variable] = []
    for variable in variables:
        if variable.space is not Space.SHARED or variable.name in offsets:
            continue
        if variable.size_bytes == 0:
            unsized.append(variable)
            continue
        total = aligned(total, variable.alignment_bytes)
        offsets[variable.name] = total
        total += variable.size_bytes
    alignment = max((v.alignment_bytes for v in unsized), default=1)
    total = aligned(total, alignment)
    for variable in unsized:
        offsets[variable.name] = total
    return offsets, total
