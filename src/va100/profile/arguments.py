"""A kernel's arguments as Python has them, packed as the kernel takes them.

Arrays get device memory with their contents; numbers take the type of the parameter.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100.gpu.arena import Arena
from va100.ptx.program import Function, Variable
from va100.ptx.types import PtxType

_FLOATS: Final = {PtxType.F32: "<f", PtxType.F64: "<d", PtxType.F16: "<e"}


@dataclass(frozen=True, slots=True)
class Buffer:
    """Device memory whose contents do not matter, to be passed as an argument."""

    size_bytes: int

    def __post_init__(self) -> None:
        """Refuse a size that is none."""
        if self.size_bytes < 1:
            raise ValueError(f"a buffer of {self.size_bytes} bytes")


@dataclass(slots=True)
class Arguments:
    """Packed arguments, and the memory that was made for them."""

    arena: Arena
    packed: bytes = b""
    held: list[tuple[int, int, npt.NDArray[Any] | None]] = field(default_factory=list)
    """Address, bytes, and the array whose contents they began with."""

    @property
    def footprint_bytes(self) -> int:
        """Device memory behind the arguments."""
        return sum(size for _, size, _ in self.held)

    def copy_back(self) -> None:
        """Let writable arrays hold what the kernel left in their memory."""
        for address, size, array in self.held:
            if array is not None and array.flags.writeable:
                raw = self.arena.download(address, size)
                array[...] = np.frombuffer(raw, array.dtype).reshape(array.shape)

    def free(self) -> None:
        """Give the memory back."""
        for address, _, _ in self.held:
            self.arena.free(address)
        self.held.clear()


def packed_arguments(function: Function, given: Sequence[Any], arena: Arena) -> Arguments:
    """Pack arguments for a kernel, and give arrays and buffers memory.

    Raises
    ------
    TypeError
        There are too many or too few, or one is of a kind that the parameter does not take.
    ValueError
        A number does not fit its parameter.
    OutOfMemory
    """
    if len(given) != len(function.params):
        raise TypeError(
            f"kernel {function.name} takes {len(function.params)} arguments, got {len(given)}"
        )
    arguments = Arguments(arena)
    try:
        for number, (param, value) in enumerate(zip(function.params, given, strict=True)):
            raw = _packed(param, value, arguments, f"argument {number}")
            alignment = param.alignment_bytes
            gap = -len(arguments.packed) % alignment
            arguments.packed += b"\0" * gap + raw
    except BaseException:
        arguments.free()
        raise
    return arguments


def _packed(param: Variable, value: Any, arguments: Arguments, who: str) -> bytes:
    """One argument's bytes."""
    if isinstance(value, Buffer):
        return _pointer(param, _held(arguments, value.size_bytes, None), who)
    if isinstance(value, np.ndarray) and value.ndim:
        if value.dtype.hasobject:
            raise TypeError(f"{who} is an array of Python objects")
        if not value.flags.c_contiguous:
            raise TypeError(f"{who} is no contiguous array; np.ascontiguousarray makes one of it")
        return _pointer(param, _held(arguments, value.nbytes, value), who)
    if isinstance(value, (bytes, bytearray)):
        return _exact(param, bytes(value), who)
    if isinstance(value, (np.generic, np.ndarray)) and not value.dtype.hasobject:
        return _exact(param, value.tobytes(), who)
    if isinstance(value, (bool, int, float)):
        return _number(param, value, who)
    raise TypeError(
        f"{who} is a {type(value).__name__}; arguments are NumPy arrays and scalars, numbers, "
        "bytes and va100.Buffer"
    )


def _held(arguments: Arguments, size_bytes: int, array: npt.NDArray[Any] | None) -> int:
    address = arguments.arena.allocate(max(size_bytes, 1))
    arguments.held.append((address, max(size_bytes, 1), array))
    if array is not None:
        arguments.arena.write(address, array.tobytes())
    return address


def _pointer(param: Variable, address: int, who: str) -> bytes:
    if param.size_bytes != 8:
        raise TypeError(f"{who} is memory, and the parameter takes {_kind(param)}")
    return struct.pack("<Q", address)


def _exact(param: Variable, raw: bytes, who: str) -> bytes:
    """A value that has bytes of its own: as many as the parameter."""
    if len(raw) != param.size_bytes:
        raise TypeError(f"{who} has {len(raw)} bytes, and the parameter takes {_kind(param)}")
    return raw


def _number(param: Variable, value: int | float, who: str) -> bytes:
    """A Python number, in the parameter's type."""
    if param.shape:
        raise TypeError(f"{who} is a number, and the parameter takes {_kind(param)}")
    form = _FLOATS.get(param.type)
    try:
        if form is not None:
            return struct.pack(form, value)
        if isinstance(value, float):
            return _float_bits(param, value, who)
        return _integer(param, int(value))
    except (OverflowError, struct.error) as error:
        raise ValueError(f"{who}, {value}, does not fit in {_kind(param)}") from error


def _float_bits(param: Variable, value: float, who: str) -> bytes:
    """A float for a parameter of untyped bits, as some compilers declare them."""
    form = {4: "<f", 8: "<d"}.get(param.size_bytes) if param.type.is_bits else None
    if form is None:
        raise TypeError(f"{who} is a float, and the parameter takes {_kind(param)}")
    return struct.pack(form, value)


def _integer(param: Variable, value: int) -> bytes:
    """Signed where it is negative, else unsigned: PTX types of integers say little of either."""
    return value.to_bytes(param.size_bytes, "little", signed=value < 0)


def _kind(param: Variable) -> str:
    if param.shape:
        return f"{param.size_bytes} bytes of a structure"
    return f"a .{param.type.value}"
