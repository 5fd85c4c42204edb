"""LLVM itself: text in, an object file out.  The only module that imports llvmlite.

It is imported when something is compiled: a program whose kernels are all in the cache starts
without it.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from llvmlite import binding

_CPU_FACTS: Final = Path("/proc/cpuinfo")
QUICK_CHARACTERS: Final = 1_000_000
"""Text from which, at level 0, instructions are chosen and registers given out in one pass: a scan
of cub's with 1.3 million took 2.8 s to be written as machine code, and takes 1.1 s."""
_TELLING: Final = ("vendor_id", "cpu family", "model", "flags")


@functools.cache
def _target_machine(level: int) -> binding.TargetMachine:
    from llvmlite import binding  # noqa: PLC0415  see above

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=level,
        reloc="pic",  # the loader puts code, constants and far addresses side by side
        codemodel="small",
    )


@functools.cache
def identity() -> str:
    """What machine code depends on besides the text: LLVM's release and the host processor."""
    return f"{_release()} {_processor()}"


def _release() -> str:
    """The installed llvmlite, by its version file: reading that is not worth an import."""
    for folder in sys.path:
        file = Path(folder) / "llvmlite" / "_version.py"
        if file.is_file():
            facts = file.stat()
            return f"{file} {facts.st_size} {facts.st_mtime_ns}"
    return ""


def _processor() -> str:
    if _CPU_FACTS.exists():
        first = _CPU_FACTS.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
        return " ".join(line for line in first if line.partition("\t")[0].strip() in _TELLING)
    from llvmlite import binding  # noqa: PLC0415  see above

    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def optimised(
    text: str, level: int, *, quickly: bool = False
) -> tuple[binding.ModuleRef, binding.TargetMachine]:
    """A module after LLVM's passes, and the machine to write it for; as :func:`compile_object`."""
    from llvmlite import binding  # noqa: PLC0415  see above

    module = binding.parse_assembly(text)
    module.verify()  # where a text is not well formed, LLVM aborts the process or does not notice
    quickly = quickly or (level == 0 and len(text) >= QUICK_CHARACTERS)
    machine = _target_machine(0 if quickly else max(level, 1))
    tuning = binding.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    builder = binding.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    return module, machine


def compile_object(text: str, level: int, *, quickly: bool = False) -> bytes:
    """Optimise LLVM text and compile it to an object file.

    ``level`` 0 to 3 trades compile time for speed; at level 0 large texts are compiled as quickly
    as LLVM can, others when asked to.  Raises ``RuntimeError`` when the text is not well formed,
    which is a defect of the compiler, never of the PTX.
    """
    module, machine = optimised(text, level, quickly=quickly)
    return bytes(machine.emit_object(module))
