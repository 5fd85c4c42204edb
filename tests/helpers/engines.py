"""Loading PTX for tests and running it on an engine, without a driver."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from va100.gpu.arena import Arena
from va100.gpu.launch import Engine, LaunchOutcome, LoadedModule
from va100.ptx.parser import parse
from va100.ptx.program import Immediate, Initializer, Symbol, Variable
from va100.ptx.types import PtxType, Space
from va100.work import Dim3, LaunchConfig

FUNCTION_BASE = 0x7F00_0000_0000
"""Function k of a module has address FUNCTION_BASE + 16 k, in both engines."""


@dataclass
class Loaded:
    """A module in memory, and the buffers a test made."""

    module: LoadedModule
    buffers: list[int] = field(default_factory=list)

    def buffer(self, array: np.ndarray) -> int:
        """Upload an array; freed by :meth:`close`."""
        address = self.module.arena.upload(array)
        self.buffers.append(address)
        return address

    def read(self, address: int, dtype: object, count: int) -> np.ndarray:
        """Download an array."""
        kind = np.dtype(dtype)
        return np.frombuffer(
            self.module.arena.download(address, kind.itemsize * count), kind
        ).copy()

    def run(
        self,
        engine: Engine,
        kernel: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        params: bytes,
        *,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> LaunchOutcome:
        """Prepare and launch."""
        config = LaunchConfig(
            grid=Dim3(*grid),
            block=Dim3(*block),
            dynamic_shared_bytes=shared_bytes,
            cooperative=cooperative,
        )
        engine.prepare(self.module, kernel, config.block)
        return engine.launch(self.module, kernel, config, params)

    def close(self) -> None:
        """Free the buffers and the module's variables."""
        for address in (*self.buffers, *self.module.addresses.values()):
            self.module.arena.free(address)
        self.buffers.clear()


def load(text: str, arena: Arena, name: str = "test.ptx") -> Loaded:
    """Parse a text, give its variables memory and fill them."""
    ptx = parse(text, name)
    addresses: dict[str, int] = {}
    variables = [v for v in ptx.variables if v.space in (Space.GLOBAL, Space.CONST)]
    for variable in variables:
        addresses[variable.name] = arena.allocate(max(variable.size_bytes, 1))
    functions = {f.name: FUNCTION_BASE + 16 * i for i, f in enumerate(_unique(ptx.functions))}
    for variable in variables:
        image = _image(variable, addresses | functions)
        if image:
            arena.view(addresses[variable.name], len(image))[:] = np.frombuffer(image, np.uint8)
    return Loaded(LoadedModule(ptx=ptx, addresses=addresses, arena=arena))


def _unique(functions: Sequence) -> list:
    found = {}
    for function in functions:
        found.setdefault(function.name, function)
    return list(found.values())


def _image(variable: Variable, symbols: dict[str, int]) -> bytes:
    initializer = variable.initializer or Initializer(())
    size = variable.type.size_bytes
    image = b""
    for element in initializer.elements:
        if isinstance(element, Immediate):
            value = element.value
            if element.kind == "f64" and variable.type is PtxType.F32:
                number = struct.unpack("<d", struct.pack("<Q", value))[0]
                value = struct.unpack("<I", struct.pack("<f", number))[0]
        elif isinstance(element, Symbol):
            value = symbols[element.name] + element.offset
        else:
            value = symbols[element[1].name] + element[1].offset
        image += (value % (1 << 8 * size)).to_bytes(size, "little")
    return image.ljust(variable.size_bytes, b"\0")


def pack(*values: int | float | np.generic) -> bytes:
    """Pack kernel parameters, each aligned to its size: int is u64, float f32, NumPy as is."""
    block = b""
    for value in values:
        if isinstance(value, np.generic):
            raw = value.tobytes()
        elif isinstance(value, float):
            raw = np.float32(value).tobytes()
        else:
            raw = int(value).to_bytes(8, "little", signed=value < 0)
        block += b"\0" * (-len(block) % len(raw)) + raw
    return block
