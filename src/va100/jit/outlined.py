"""Functions made of masked instructions, once they are machine code: shared by all kernels.

What they are made from is in :mod:`va100.jit.outline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from va100.jit.code import MachineCode, provide

_LOADED: Final[dict[str, MachineCode]] = {}
"""By symbol, which is a hash of what the function does; kept to the process's end."""
_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class MaskedObject:
    """An object and the functions it calls."""

    symbols: tuple[str, ...]
    object: bytes

    def pack(self) -> bytes:
        """As one piece."""
        names = " ".join(self.symbols).encode()
        return len(names).to_bytes(_LENGTH_BYTES, "little") + names + self.object

    @classmethod
    def unpack(cls, data: bytes) -> MaskedObject:
        """Reverse of :meth:`pack`."""
        end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
        return cls(tuple(data[_LENGTH_BYTES:end].decode().split()), data[end:])


def load_missing(symbols: Iterable[str], object_of: Callable[[str], bytes]) -> None:
    """Make functions known to code that is loaded later, those that are not yet."""
    for symbol in symbols:
        if symbol not in _LOADED:
            code = MachineCode(object_of(symbol))
            provide(symbol, code.address(symbol))
            _LOADED[symbol] = code
