"""The composition root: the only place that names engines and joins them to the driver.

``connect`` makes this process's CUDA driver able to compile; :func:`enable` is the same for a
person in a Python program.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys
from functools import partial
from typing import TYPE_CHECKING

from va100.config import (
    CHECK_MANNERS,
    STRICT_WARP,
    Settings,
    find_program,
    program_name,
)
from va100.driver.compile import Backend, Compiler
from va100.driver.names import short_name
from va100.driver.report import begin_report, finish_report
from va100.gpu.launch import Engine
from va100.gpu.native import companions
from va100.jit.compiler import JitCompiler
from va100.jit.engine import Assembler, JitEngine
from va100.jit.native import Fault

if TYPE_CHECKING:
    from va100.check.explain import CheckedKernel
    from va100.check.session import Session
    from va100.debug.interpreted import Choosing


def engine(settings: Settings) -> Engine:
    """The engine the settings ask for, to launch kernels without a driver."""
    if settings.engine == "reference":
        # Only imported when asked for: a program's start should not pay for the oracle.
        from va100.reference.engine import ReferenceEngine  # noqa: PLC0415

        return ReferenceEngine()
    return _jit(settings)


def compiler(settings: Settings) -> Compiler:
    """What the driver compiles with."""
    return JitCompiler(_jit(settings))


def _jit(settings: Settings) -> JitEngine:
    """The JIT, which compiles for the checker what is to be checked."""
    wanted, excluded = (
        re.compile(pattern) if pattern is not None else None
        for pattern in (*settings.check_kernels.split("\n", 1), None)[:2]
    )

    def fits(pattern: re.Pattern[str] | None, kernel: str) -> bool:
        return pattern is not None and any(map(pattern.search, (kernel, short_name(kernel))))

    def checked(kernel: str) -> bool:
        return fits(wanted, kernel) and not fits(excluded, kernel)

    return JitEngine(
        settings.cache_dir / "objects",
        workers=settings.workers,
        shuffle=settings.shuffle,
        observe_ctas=settings.observe_ctas,
        assembler=_assembler(settings),
        checked=checked if settings.check else None,
    )


def _assembler(settings: Settings) -> Assembler | None:
    """What tells a profile's registers; runs without one take an estimate, which is quick."""
    path = find_program("ptxas", settings) if settings.profile else None
    if path is None:
        return None
    from va100.profile.assembled import Assembler as Found  # noqa: PLC0415

    return Found(path)


def check_session(settings: Settings, jit: JitEngine) -> Session | None:
    """The checker the settings ask for, for kernels of one engine."""
    if not settings.check:
        return None
    # Only imported when asked for, as the oracle is.
    from va100.check.findings import Tool  # noqa: PLC0415
    from va100.check.session import Session  # noqa: PLC0415

    tools = [Tool(name) for name in settings.check if name not in CHECK_MANNERS]
    session = Session(
        tools, partial(_checked_kernel, jit), strict_warp=STRICT_WARP in settings.check
    )
    if settings.check_report is not None:
        session.write_to(settings.check_report)
    return session


def _checked_kernel(jit: JitEngine, number: int) -> CheckedKernel | None:
    if not 0 < number <= len(jit.checked_kernels):
        return None
    from va100.check.explain import CheckedKernel  # noqa: PLC0415
    from va100.check.flow import VariantFlow  # noqa: PLC0415

    name, compiled = jit.checked_kernels[number - 1]
    layout = compiled.lay_out()
    return CheckedKernel(
        name, compiled.sites, VariantFlow(layout.functions, layout.flows, compiled.ptx.files)
    )


def watched(settings: Settings, compiler: Compiler) -> Compiler:
    """The compiler, or one whose launches can be watched, if the settings ask for that."""
    interpreted = settings.engine == "reference"
    if not (interpreted or settings.trace or settings.debug or settings.dump is not None):
        return compiler
    # Only imported when asked for, as the oracle is.
    from va100.debug.interpreted import Relay, Structures, WatchedCompiler  # noqa: PLC0415
    from va100.debug.trace import Tracer, open_trace, read_options  # noqa: PLC0415
    from va100.jit.native import Launch, Variant  # noqa: PLC0415
    from va100.reference.engine import ReferenceEngine  # noqa: PLC0415

    def tell(text: str) -> None:
        sys.stderr.write(f"va100: {text}\n")

    watchers: list[Choosing] = []
    if settings.trace:
        options = read_options(settings.trace)
        watchers.append(Tracer(options, open_trace(options, sys.stderr).write))
    if settings.dump is not None:
        from va100.debug.core import Dumper  # noqa: PLC0415

        watchers.append(Dumper(settings.dump, tell))
    if settings.debug:
        from va100.debug.session import Session as Debugging  # noqa: PLC0415

        debugging = Debugging(settings.debug)
        debugging.begin()
        atexit.register(debugging.finish)
        watchers.append(debugging.prompt.debugger)
    relay = Relay(watchers, always=interpreted)
    structures = Structures(variant=Variant, launch=Launch)
    return WatchedCompiler(compiler, ReferenceEngine(watcher=relay), relay, structures, tell)


@functools.cache
def connect() -> Backend:
    """Register the compiler with the native driver of this process, once."""
    settings = Settings.from_environment()
    jit = _jit(settings)
    backend = Backend(
        compiler=watched(settings, JitCompiler(jit)), chip=settings.chip, fault_type=Fault,
        keep=jit.keep_facts,
    )  # fmt: skip
    backend.register()
    if settings.report is not None:
        begin_report(
            settings.report,
            model=settings.model,
            gpu_count=settings.gpu_count,
            program=program_name(sys.argv),
        )
    session = check_session(settings, jit)
    atexit.register(_finish, backend, settings, session, os.getpid())
    return backend


def enable() -> None:
    """Let CUDA libraries imported from now on find the virtual GPUs."""
    companions()
    connect()


def _finish(backend: Backend, settings: Settings, session: Session | None, process: int) -> None:
    """At exit: the reports, then the driver goes on alone.

    A child that the process left by ``fork`` has launched nothing, and what it has of its parent's
    launches is the parent's to tell.
    """
    if os.getpid() != process:
        return
    if session is not None:
        session.finish()
    if settings.report is not None:
        finish_report(settings.report, backend, in_full=settings.profile)
    backend.unregister()
