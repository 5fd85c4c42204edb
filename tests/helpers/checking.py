"""Kernels under the checker, in this process: run one and read what was found."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from tests.helpers.engines import Loaded, load, pack
from va100 import errors
from va100.assembly import check_session
from va100.check.findings import Finding
from va100.check.session import Session
from va100.config import Settings
from va100.gpu.arena import Arena
from va100.gpu.native import library
from va100.jit.engine import JitEngine

ALL_TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")


class Bench:
    """One module, one session, and buffers that the checker knows."""

    def __init__(self, text: str, tools: Iterable[str], engine: JitEngine | None = None) -> None:
        settings = Settings.from_environment({"VA100_CHECK": ",".join(tools), "HOME": "/nowhere"})
        self.engine = engine or JitEngine(workers=2, checked=lambda _: True)
        session = check_session(settings, self.engine)
        assert session is not None
        self.session: Session = session
        self.loaded: Loaded = load(text, Arena())
        self.fault: errors.Va100Error | None = None

    def buffer(self, count: int, *, defined: bool = True) -> int:
        """A buffer of zero bytes, to the byte; ``defined`` as if the host had filled it."""
        address = self.loaded.buffer(np.zeros(count, np.uint8))
        library().va_check_allocated(ctypes.c_uint64(address), ctypes.c_uint64(count), int(defined))
        return address

    def free(self, address: int) -> None:
        """Free a buffer, as the driver would."""
        library().va_check_released(ctypes.c_uint64(address))
        self.loaded.buffers.remove(address)
        self.loaded.module.arena.free(address)

    def run(
        self,
        kernel: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        *values: object,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Launch; a fault is kept, not raised."""
        try:
            self.loaded.run(
                self.engine, kernel, grid, block, pack(*values),
                shared_bytes=shared_bytes, cooperative=cooperative,
            )  # fmt: skip
        except errors.DeviceFault as fault:
            self.fault = fault

    def found(self) -> list[Finding]:
        """What the checker has to say."""
        return self.session.findings()


@contextmanager
def bench(text: str, tools: Iterable[str] = ALL_TOOLS) -> Iterator[Bench]:
    """A module under check."""
    made = Bench(text, tools)
    try:
        yield made
    finally:
        for address in made.loaded.buffers:
            library().va_check_released(ctypes.c_uint64(address))
        made.loaded.close()
        made.session.close()
