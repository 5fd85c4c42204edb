"""LLVM itself: text in, machine code out.  The only module that imports llvmlite."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import llvmlite
import llvmlite.binding as llvm

VERSION = llvmlite.__version__


@functools.cache
def _target_machine(level: int) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc="static",
        codemodel="large",
        jit=True,
    )


@functools.cache
def host() -> str:
    """Name and features of the host processor: part of every cache key."""
    return f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


def triple() -> str:
    """Target triple of the host."""
    return str(llvm.get_process_triple())


def compile_object(text: str, level: int) -> bytes:
    """Optimise LLVM text and compile it to an object file.

    ``level`` 0 to 3 trades compile time for speed.  Raises ``RuntimeError`` when the text is not
    well formed, which is a defect of the compiler, never of the PTX.
    """
    module = llvm.parse_assembly(text)
    machine = _target_machine(max(level, 1))
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, tuning)
    manager = builder.getModulePassManager()
    manager.run(module, builder)
    return bytes(machine.emit_object(module))


@dataclass
class LoadedCode:
    """An object file in memory, kept alive by the engine that holds it."""

    engine: llvm.ExecutionEngine
    keep: list[object] = field(default_factory=list)

    def address(self, symbol: str) -> int:
        """Address of a function."""
        return int(self.engine.get_function_address(symbol))


def load_object(data: bytes, symbols: dict[str, int]) -> LoadedCode:
    """Link an object file into the process; ``symbols`` are the functions it may call."""
    for name, address in symbols.items():
        llvm.add_symbol(name, address)
    _target_machine(1)  # sets LLVM up
    # A machine of its own: the engine owns what it is given, and frees it when it goes.
    machine = llvm.Target.from_default_triple().create_target_machine(
        reloc="static", codemodel="large", jit=True
    )
    holder = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(holder, machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return LoadedCode(engine, [holder])
