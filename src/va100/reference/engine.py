"""The reference engine: makes kernels ready and runs grids, one instruction at a time.

CTAs run in order; when one does not end within its turn, the next is let in beside it, so that
CTAs which wait for each other make progress.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from va100.errors import Deadlock, LaunchError, OutOfResources
from va100.gpu import child
from va100.gpu.arena import WINDOW_DEVICE
from va100.gpu.launch import LaunchOutcome, LoadedModule
from va100.gpu.watch import Watcher
from va100.ptx.waits import constant_bytes
from va100.reference.code import KernelCode, link_kernel
from va100.reference.cta import Cta, Launch
from va100.reference.evaluate import EVALUATE
from va100.reference.storage import Storage
from va100.work import Dim3, KernelResources, LaunchConfig

MAX_THREADS: Final = 1024
WORKSPACE_BYTES: Final = 4096
RESIDENT: Final = 64
"""CTAs let in beside each other, unless the launch is cooperative: then all."""
KEPT_KERNELS: Final = 256
"""Kernels kept ready; the oldest goes first."""
PATIENT_ROUNDS: Final = 4
"""Turns a CTA gets before another is let in beside it."""


class ReferenceEngine:
    """An :class:`va100.gpu.launch.Engine` that interprets.

    ``step_limit`` ends a launch that takes more warp instructions with :class:`Deadlock`; there
    is none by default.  ``watcher`` is told of every instruction.
    """

    def __init__(
        self,
        *,
        sm_count: int = 108,
        step_limit: int | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self._watcher = watcher
        self._sm_count = sm_count
        self._step_limit = step_limit
        self._codes: dict[tuple[int, str], tuple[LoadedModule, KernelCode]] = {}
        self._grid_ids = itertools.count(1)
        self._storage: Storage | None = None

    def prepare(self, module: LoadedModule, kernel: str, block: Dim3) -> KernelResources:
        """Build the kernel; the block shape only has to be legal."""
        code = self._code(module, kernel)
        _check_block(code, block)
        return KernelResources(
            registers_per_thread=min(max(len(code.entry.flow.registers), 16), 255),
            static_shared_bytes=code.static_shared_bytes - code.reserved_shared_bytes,
            local_bytes=code.local_bytes,
        )

    def launch(
        self, module: LoadedModule, kernel: str, config: LaunchConfig, params: bytes
    ) -> LaunchOutcome:
        """Run a grid to its end, and then the grids that it launched.

        Raises
        ------
        DeviceFault
            The kernel did wrong.
        """
        outcome, children = self._grid(module, kernel, config, params)
        output = bytearray(outcome.output)

        def run(record: int) -> Sequence[int]:
            grid = child.read(module.arena, record)
            name = child.kernel_of(module.ptx, grid)
            size = self._code(module, name).param_bytes
            block = child.parameters(module.arena, record, size)
            ended, more = self._grid(module, name, child.config_of(grid), block)
            output.extend(ended.output)
            return more

        child.run_descendants(children, run, module.arena.free)
        return replace(outcome, output=bytes(output))

    def _grid(
        self, module: LoadedModule, kernel: str, config: LaunchConfig, params: bytes
    ) -> tuple[LaunchOutcome, Sequence[int]]:
        """Run one grid; the second result is what it launched, in turn."""
        code = self._code(module, kernel)
        _check_block(code, config.block)
        if len(params) < code.param_bytes:
            raise LaunchError(
                f"{len(params)} bytes of parameters, it takes {code.param_bytes}", kernel=kernel
            )
        arena = module.arena
        address = arena.allocate(max(len(params), 1), device=WINDOW_DEVICE)
        workspace = arena.allocate(WORKSPACE_BYTES, device=WINDOW_DEVICE)
        arena.view(workspace, WORKSPACE_BYTES)[:] = 0
        if params:
            arena.view(address, len(params))[:] = np.frombuffer(params, np.uint8)
        launch = Launch(
            module,
            code,
            config,
            self._flat(module),
            address,
            workspace,
            self._sm_count,
            next(self._grid_ids),
            watcher=self._watcher,
        )
        try:
            with np.errstate(all="ignore"):
                self._run(launch)
        finally:
            if self._watcher is not None:
                self._watcher.ended()
            arena.free(address)
            arena.free(workspace)
        grid = config.grid.size
        counters = launch.tally.counters(ctas=grid, warps=grid * config.warps_per_cta)
        if counters.constant_waits:
            counters = replace(counters, constant_bytes=float(constant_bytes(module.ptx)))
        outcome = LaunchOutcome(counters=counters, output=bytes(launch.output))
        return outcome, child.in_turn(arena, launch.children)

    def _run(self, launch: Launch) -> None:
        indices = _indices(launch.config.grid)
        resident = launch.config.grid.size if launch.config.cooperative else 1
        running = launch.running
        rounds = steps = 0
        try:
            while True:
                running += [
                    Cta(launch, i) for i in itertools.islice(indices, resident - len(running))
                ]
                if not running:
                    return
                steps += self._turn(running)
                if self._step_limit is not None and steps > self._step_limit:
                    raise Deadlock(
                        f"no end after {steps} warp instructions",
                        kernel=launch.code.entry.function.name,
                    )
                ended = [cta for cta in running if cta.finished]
                for cta in ended:
                    cta.release()
                    running.remove(cta)
                rounds = 0 if ended else rounds + 1
                if rounds >= PATIENT_ROUNDS and resident < RESIDENT:
                    resident, rounds = resident + 1, 0
        finally:
            for cta in running:
                cta.release()

    def _turn(self, running: list[Cta]) -> int:
        return sum(cta.run() for cta in running)

    def _code(self, module: LoadedModule, kernel: str) -> KernelCode:
        key = (id(module), kernel)
        found = self._codes.get(key)
        if found is None or found[0] is not module:
            if len(self._codes) >= KEPT_KERNELS:
                del self._codes[next(iter(self._codes))]
            found = self._codes[key] = (module, link_kernel(module, kernel, EVALUATE))
        return found[1]

    def _flat(self, module: LoadedModule) -> Storage:
        if self._storage is None or self._storage.arena is not module.arena:
            self._storage = Storage(module.arena)
        return self._storage


def _indices(grid: Dim3) -> Iterator[Dim3]:
    for z, y, x in itertools.product(range(grid.z), range(grid.y), range(grid.x)):
        yield Dim3(x, y, z)


def _check_block(code: KernelCode, block: Dim3) -> None:
    function = code.entry.function
    required = function.directive("reqntid")
    if required and Dim3(*required) != block:
        raise LaunchError(
            f"it requires blocks of {Dim3(*required)} threads, not {block}", kernel=function.name
        )
    most = function.directive("maxntid")
    limit = min(MAX_THREADS, Dim3(*most).size) if most else MAX_THREADS
    if block.size > limit:
        raise OutOfResources(
            kernel=function.name, resource="threads per block", required=block.size, limit=limit
        )
