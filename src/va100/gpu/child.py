"""Grids that device code launched, as it leaves them in memory (``va100/children.h``)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from va100.errors import LaunchError
from va100.gpu.arena import Arena
from va100.gpu.place import function_addresses
from va100.ptx.program import PtxModule
from va100.work import Dim3, LaunchConfig

RECORD: Final = struct.Struct("<Q3I3II4xQ16x")
TAIL_STREAM: Final = 3
INVALID_VALUE: Final = 1
"""The runtime's error for a record that is none."""
_SUCCESS: Final = 0
_INVALID_CONFIGURATION: Final = 9
_MOST_THREADS: Final = 1024
_MOST_BLOCK_Z: Final = 64
_MOST_GRID: Final = (0x7FFFFFFF, 65535, 65535)


class ChildGrid(NamedTuple):
    """One launch."""

    function: int
    """The kernel's address."""
    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int
    stream: int


def read(arena: Arena, address: int) -> ChildGrid:
    """Read a record; its parameters lie behind it."""
    function, gx, gy, gz, bx, by, bz, shared, stream = RECORD.unpack(
        arena.download(address, RECORD.size)
    )
    return ChildGrid(function, Dim3(gx, gy, gz), Dim3(bx, by, bz), shared, stream)


def parameters(arena: Arena, address: int, size: int) -> bytes:
    """Read the parameter block of a record."""
    return arena.download(address + RECORD.size, size) if size else b""


def problem_of(child: ChildGrid) -> int:
    """The runtime's error for a shape that no A100 takes; 0 when there is none."""
    legal = (
        all(child.grid)
        and all(child.block)
        and child.block.size <= _MOST_THREADS
        and child.block.z <= _MOST_BLOCK_Z
        and all(n <= most for n, most in zip(child.grid, _MOST_GRID, strict=True))
    )
    return _SUCCESS if legal else _INVALID_CONFIGURATION


def in_turn(arena: Arena, records: Sequence[int]) -> list[int]:
    """Records in the order they run in: tail launches after all others."""
    return sorted(records, key=lambda record: read(arena, record).stream == TAIL_STREAM)


def kernel_of(module: PtxModule, child: ChildGrid) -> str:
    """Name of the kernel that a child runs.

    Raises
    ------
    LaunchError
        There is none at its address.
    """
    names = {address: name for name, address in function_addresses(module).items()}
    name = names.get(child.function, "")
    if not any(kernel.name == name for kernel in module.kernels):
        raise LaunchError(f"device code launched 0x{child.function:x}, where no kernel is")
    return name


def config_of(child: ChildGrid) -> LaunchConfig:
    """The shape of a child."""
    return LaunchConfig(
        grid=child.grid, block=child.block, dynamic_shared_bytes=child.dynamic_shared_bytes
    )


def run_descendants(
    records: Sequence[int], run: Callable[[int], Sequence[int]], release: Callable[[int], None]
) -> None:
    """Run records depth first: a grid has ended when its children have.

    ``run`` runs one and returns its children, in turn; ``release`` frees a record, be it run or
    left out after a fault.
    """
    waiting = list(reversed(records))
    try:
        while waiting:
            record = waiting.pop()
            try:
                waiting += reversed(run(record))
            finally:
                release(record)
    finally:
        for record in waiting:
            release(record)
