"""The JIT as the driver uses it: kernels described, compiled, their counters and faults read."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from va100.errors import Va100Error
from va100.gpu.arena import Arena
from va100.gpu.launch import KernelDescription, LoadedModule
from va100.jit.compile import param_layout
from va100.jit.compiled import CompiledKernel
from va100.jit.engine import JitEngine, max_threads
from va100.jit.faults import describe_fault
from va100.jit.native import Fault
from va100.jit.registers import estimate_registers
from va100.ptx.program import PtxModule
from va100.ptx.types import Space
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, SourceLine


@dataclass(frozen=True, slots=True)
class JitVariant:
    """A compiled kernel, as the driver keeps it."""

    compiled: CompiledKernel

    @property
    def native(self) -> ctypes.Structure:
        """``va_variant``."""
        return self.compiled.variant

    @property
    def resources(self) -> KernelResources:
        """What the kernel needs of an SM."""
        return self.compiled.resources

    def counters(self, counts: Sequence[int], config: LaunchConfig) -> Counters:
        """What the launch's block counters amount to."""
        return self.compiled.counters(counts, config)

    def lines(self, counts: Sequence[int], config: LaunchConfig) -> Mapping[SourceLine, Counters]:
        """What of the launch's counters each source line is answerable for."""
        return self.compiled.lines(counts, config)

    def explain(self, kernel: str, fault: ctypes.Structure, arena: Arena) -> Va100Error:
        """The exception a fault stands for."""
        return describe_fault(self.compiled.sites, arena, kernel, cast("Fault", fault))


class JitCompiler:
    """Compiles for the driver."""

    def __init__(self, engine: JitEngine) -> None:
        self.engine = engine

    def variant(self, module: LoadedModule, kernel: str, block: Dim3) -> JitVariant:
        """Compile a kernel for a block shape."""
        return JitVariant(self.engine.compiled(module, kernel, block))

    def describe(self, module: PtxModule, kernel: str) -> KernelDescription:
        """Say what a kernel needs before it is compiled."""
        known = json.loads(
            self.engine.remembered(module, lambda: json.dumps(self._needs(module)).encode())
        )
        shared_bytes, local_bytes, registers = known[kernel]
        function = next(f for f in module.kernels if f.name == kernel)
        offsets, size = param_layout(function)
        required = function.directive("reqntid") or ()
        return KernelDescription(
            params=tuple((offsets[p.name], p.size_bytes) for p in function.params),
            param_bytes=size,
            static_shared_bytes=shared_bytes,
            local_bytes=local_bytes,
            const_bytes=sum(v.size_bytes for v in module.variables if v.space is Space.CONST),
            registers=registers,
            max_threads=max_threads(function),
            required_block=Dim3(*required) if required else (0, 0, 0),
        )

    def _needs(self, module: PtxModule) -> dict[str, tuple[int, int, int]]:
        """Shared bytes, local bytes and registers of every kernel."""
        found = {}
        for kernel in module.kernels:
            layout = self.engine.layout(module, kernel.name)
            registers = estimate_registers(layout, kernel.name)
            declared = layout.symbols.shared_bytes - layout.symbols.reserved_bytes
            found[kernel.name] = (declared, layout.local_bytes, registers)
        return found
