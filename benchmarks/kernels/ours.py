"""Running a case on the JIT engine, launched natively: no Python inside what is timed."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from benchmarks.kernels.cases import Argument, Array, Case, GridCall
from va100.gpu.arena import Arena
from va100.gpu.launch import LoadedModule
from va100.gpu.native import library
from va100.jit.engine import JitEngine
from va100.jit.native import Launch
from va100.ptx.parser import parse
from va100.ptx.types import Space
from va100.work import Dim3, LaunchConfig

FOLDER = Path(__file__).resolve().parent


def load(name: str, arena: Arena) -> LoadedModule:
    """A kernel's module; none of the ten has variables with initial values."""
    path = FOLDER / f"{name}.ptx"
    ptx = parse(path.read_text(encoding="utf-8"), path.name)
    spaces = (Space.GLOBAL, Space.CONST)
    if any(v.space in spaces for v in ptx.variables):
        raise ValueError(f"{path.name} has module variables; this loader gives them no memory")
    return LoadedModule(ptx=ptx, addresses={}, arena=arena)


def pack(arguments: tuple[Argument, ...], addresses: dict[str, int]) -> bytes:
    """The parameter block: every argument aligned to its size."""
    block = b""
    for argument in arguments:
        value = np.uint64(addresses[argument]) if isinstance(argument, str) else argument
        raw = value.tobytes()
        block += b"\0" * (-len(block) % len(raw)) + raw
    return block


class Buffers:
    """A case's arrays in device memory."""

    def __init__(self, case: Case, arena: Arena) -> None:
        self.case, self.arena = case, arena
        self.addresses = {k: arena.upload(v) for k, v in case.arrays.items()}

    def result(self) -> Array:
        """The output array as it is now."""
        like = self.case.arrays[self.case.output]
        raw = self.arena.download(self.addresses[self.case.output], like.nbytes)
        return np.frombuffer(raw, like.dtype).reshape(like.shape)

    def free(self) -> None:
        """Give the memory back."""
        for address in self.addresses.values():
            self.arena.free(address)


class Ours:
    """A case ready to be launched; call it to run it once.

    Raises
    ------
    UnsupportedInstruction
    """

    def __init__(self, case: Case, engine: JitEngine, arena: Arena, workers: int) -> None:
        self.case = case
        self.buffers = Buffers(case, arena)
        self.module = load(case.name, arena)
        self.engine = engine
        self._call = library().va_exec_launch
        self._keep: list[object] = []
        self.launches = [self._prepare(launch, workers) for launch in case.launches]

    def _prepare(self, call: GridCall, workers: int) -> Launch:
        compiled = self.engine.compiled(self.module, self.case.name, Dim3(*call.block))
        params = pack(call.arguments, self.buffers.addresses)
        buffer = ctypes.create_string_buffer(params, len(params))
        counts = (ctypes.c_uint64 * max(compiled.variant.counter_count, 1))()
        self._keep += [compiled, buffer, counts]
        return Launch(
            variant=ctypes.pointer(compiled.variant),
            params=ctypes.cast(buffer, ctypes.c_void_p),
            grid=(ctypes.c_uint32 * 3)(*Dim3(*call.grid)),
            block=(ctypes.c_uint32 * 3)(*Dim3(*call.block)),
            workers=workers,
            sm_count=108,
            counters=counts,
        )

    def __call__(self) -> None:
        """Run the case's launches."""
        for launch in self.launches:
            if self._call(ctypes.byref(launch)):
                raise RuntimeError(f"{self.case.name}: fault {launch.fault.kind}")

    def thread_instructions(self) -> float:
        """Dynamic PTX instructions of all threads, counted by one more run."""
        total = 0.0
        for call in self.case.launches:
            config = LaunchConfig(grid=Dim3(*call.grid), block=Dim3(*call.block))
            params = pack(call.arguments, self.buffers.addresses)
            outcome = self.engine.launch(self.module, self.case.name, config, params)
            total += outcome.counters.thread_instructions
        return total

    def free(self) -> None:
        """Give the memory back."""
        self.buffers.free()
