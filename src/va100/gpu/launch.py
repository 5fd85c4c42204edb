"""What an execution engine is to the rest of va100, and what it is given.

No engine is named here; :mod:`va100.assembly` chooses one and passes it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from va100.gpu.arena import Arena
from va100.ptx.program import PtxModule
from va100.work import Counters, Dim3, KernelResources, LaunchConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModule:
    """A module whose ``.global`` and ``.const`` variables have addresses and initial values."""

    ptx: PtxModule
    addresses: Mapping[str, int]
    """Module-scope ``.global`` and ``.const`` variable to device address."""
    arena: Arena
    device: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOutcome:
    """What a finished launch leaves behind, besides memory."""

    counters: Counters
    output: bytes = b""
    """What device-side ``printf`` wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelDescription:
    """Facts of a kernel that ``cuFuncGetAttribute`` and launches ask for."""

    params: tuple[tuple[int, int], ...]
    """Offset and size in bytes."""
    param_bytes: int
    static_shared_bytes: int
    local_bytes: int
    const_bytes: int
    registers: int
    """Estimated: they refuse no launch."""
    max_threads: int
    required_block: tuple[int, int, int]


class Engine(Protocol):
    """Executes kernels. Faults are raised as :class:`va100.errors.DeviceFault`."""

    def prepare(self, module: LoadedModule, kernel: str, block: Dim3) -> KernelResources:
        """Make a kernel ready for a block shape.

        Raises
        ------
        UnsupportedInstruction
            The kernel, or a function it may call, uses a form this engine does not execute.
        """
        ...

    def launch(
        self, module: LoadedModule, kernel: str, config: LaunchConfig, params: bytes
    ) -> LaunchOutcome:
        """Run a grid to its end; ``params`` is the packed parameter block."""
        ...
