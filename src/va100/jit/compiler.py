"""The JIT as the driver uses it: kernels described, compiled, their counters and faults read."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from va100.errors import DeviceFault
from va100.gpu.arena import Arena
from va100.gpu.launch import KernelDescription, LoadedModule
from va100.jit.count import counters_from
from va100.jit.engine import CompiledKernel, JitEngine, describe_fault
from va100.jit.native import Fault
from va100.jit.registers import estimate_registers
from va100.ptx.program import PtxModule
from va100.ptx.types import Space
from va100.work import Counters, Dim3, KernelResources, LaunchConfig


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
        return counters_from(self.compiled.costs, counts, config)

    def explain(self, kernel: str, fault: Fault, arena: Arena) -> DeviceFault:
        """The exception a fault stands for."""
        return describe_fault(self.compiled.sites, arena, kernel, fault)


class JitCompiler:
    """Compiles for the driver."""

    def __init__(self, engine: JitEngine) -> None:
        self.engine = engine

    def variant(self, module: LoadedModule, kernel: str, block: Dim3) -> JitVariant:
        """Compile a kernel for a block shape."""
        return JitVariant(self.engine.compiled(module, kernel, block))

    def describe(self, module: PtxModule, kernel: str) -> KernelDescription:
        """Say what a kernel needs before it is compiled."""
        layout = self.engine.layout(module, kernel)
        function = layout.flows[kernel].function
        limit = function.directive("maxntid") or function.directive("reqntid")
        required = function.directive("reqntid") or ()
        sizes = {p.name: p.size_bytes for p in function.params}
        return KernelDescription(
            params=tuple((o, sizes[n]) for n, o in layout.param_offsets.items()),
            param_bytes=layout.param_bytes,
            static_shared_bytes=layout.symbols.shared_bytes,
            local_bytes=layout.local_bytes,
            const_bytes=sum(v.size_bytes for v in module.variables if v.space is Space.CONST),
            registers=estimate_registers(layout, kernel),
            max_threads=Dim3(*limit).size if limit else 1024,
            required_block=Dim3(*required) if required else (0, 0, 0),
        )
