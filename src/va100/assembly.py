"""The composition root: the only place that names engines and joins them to the driver.

``connect`` makes this process's CUDA driver able to compile; :func:`enable` is the same for a
person in a Python program.
"""

from __future__ import annotations

import atexit
import functools
import sys

from va100.config import Settings, program_name
from va100.driver.compile import Backend, Compiler
from va100.driver.report import write_report
from va100.gpu.launch import Engine
from va100.jit.compiler import JitCompiler
from va100.jit.engine import JitEngine
from va100.jit.native import Fault


def engine(settings: Settings) -> Engine:
    """The engine the settings ask for, to launch kernels without a driver."""
    if settings.engine == "reference":
        # Only imported when asked for: a program's start should not pay for the oracle.
        from va100.reference.engine import ReferenceEngine  # noqa: PLC0415

        return ReferenceEngine()
    return JitEngine(settings.cache_dir / "objects", workers=settings.workers)


def compiler(settings: Settings) -> Compiler:
    """What the driver compiles with."""
    return JitCompiler(JitEngine(settings.cache_dir / "objects", workers=settings.workers))


@functools.cache
def connect() -> Backend:
    """Register the compiler with the native driver of this process, once."""
    settings = Settings.from_environment()
    backend = Backend(compiler=compiler(settings), chip=settings.chip, fault_type=Fault)
    backend.register()
    atexit.register(_finish, backend, settings)
    return backend


def enable() -> None:
    """Let CUDA libraries imported from now on find the virtual GPUs."""
    connect()


def _finish(backend: Backend, settings: Settings) -> None:
    """At exit: the report, then the driver goes on alone."""
    if settings.report is not None:
        write_report(
            settings.report,
            backend,
            model=settings.model,
            gpu_count=settings.gpu_count,
            program=program_name(sys.argv),
        )
    backend.unregister()
