"""Measuring one kernel: every contender checked first, then raced."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.kernels.cases import Case
from benchmarks.kernels.native_c import NativeC
from benchmarks.kernels.ours import Ours, load
from benchmarks.kernels.timing import Best, Race
from va100.errors import UnsupportedInstruction
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine
from va100.work import Dim3

LOADS = 8


@dataclass(slots=True, kw_only=True)
class Row:
    """What was measured of a kernel; seconds."""

    kernel: str
    shape: str
    work: float
    note: str = ""
    thread_instructions: float | None = None
    best: dict[str, Best] = field(default_factory=dict)
    compile_s: float | None = None
    cached_load_s: float | None = None
    parse_s: float | None = None

    def cpu_s(self, contender: str) -> float | None:
        """CPU time of a contender, one core."""
        return self.best[contender].cpu_s if contender in self.best else None

    def wall_s(self, contender: str) -> float | None:
        """Wall-clock time of a contender."""
        return self.best[contender].wall_s if contender in self.best else None


@dataclass(slots=True, kw_only=True)
class Bench:
    """What all kernels are measured with."""

    arena: Arena
    plain: ctypes.CDLL
    tuned: ctypes.CDLL
    counted: JitEngine
    uncounted: JitEngine
    folder: Path
    """For object caches; new and empty."""
    seconds: float

    def small(self, case: Case) -> Row:
        """A row of the main table."""
        return self._row(case, {"ours": 1, "two": 2}, uncounted=True)

    def large(self, case: Case) -> Row:
        """A row of the two-core table."""
        return self._row(case, {"ours": 1, "two": 2}, uncounted=False)

    def _row(self, case: Case, workers: dict[str, int], *, uncounted: bool) -> Row:
        row = Row(kernel=case.name, shape=case.shape, work=case.work)
        contenders: dict[str, NativeC | Ours] = {
            "plain": NativeC(case, self.plain, self.arena),
            "tuned": NativeC(case, self.tuned, self.arena),
        }
        try:
            for name, count in workers.items():
                contenders[name] = Ours(case, self.counted, self.arena, count)
            if uncounted:
                contenders["uncounted"] = Ours(case, self.uncounted, self.arena, 1)
        except UnsupportedInstruction as refused:
            row.note = f"not executed: {refused.problem}"
        try:
            for name, contender in contenders.items():
                _check(name, contender)
            runs: dict[str, Callable[[], None]] = dict(contenders)
            row.best = Race(runs).run(self.seconds)
            ours = contenders.get("ours")
            if isinstance(ours, Ours):
                row.thread_instructions = ours.thread_instructions()
        finally:
            for contender in contenders.values():
                contender.free()
        return row

    def loading(self, case: Case, row: Row) -> None:
        """Add what it takes to compile the kernel, and to load it compiled."""
        if row.note:
            return
        folder = self.folder / case.name
        row.compile_s, _ = self._load(case, folder)
        again = [self._load(case, folder) for _ in range(LOADS)]
        row.cached_load_s = min(compiled for compiled, _ in again)
        row.parse_s = min(parsed for _, parsed in again)

    def _load(self, case: Case, folder: Path) -> tuple[float, float]:
        """CPU seconds from a parsed module to machine code in a new engine, and for parsing."""
        engine = JitEngine(folder)
        blocks = {Dim3(*call.block) for call in case.launches}
        start = time.thread_time()
        module = load(case.name, self.arena)
        parsed = time.thread_time()
        for block in blocks:
            engine.compiled(module, case.name, block)
        return time.thread_time() - parsed, parsed - start


def _check(name: str, contender: NativeC | Ours) -> None:
    """Run once from fresh data and compare with NumPy."""
    contender()
    wrong = contender.case.wrong(contender.buffers.result())
    if wrong:
        raise RuntimeError(f"{name} is not worth timing: {wrong}")
