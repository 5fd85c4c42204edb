"""NVML's library as its clients see it: opened, initialised, called; failures raised by code.

What the calls mean is in :mod:`va100.nvml.readings` and :mod:`va100.nvml.instances`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from va100.errors import NvmlError, SetupError

LIBRARY: Final = Path(__file__).resolve().parent.parent / "_native" / "libnvidia-ml.so.1"
INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 2, 3, 4, 6
INSUFFICIENT_SIZE, GPU_IS_LOST, IN_USE, DEPRECATED, UNKNOWN = 7, 15, 19, 26, 999
_DOOR_IN_USE: Final = 3
"""Of the door to nodes' state: a process uses the GPU."""

Struct = TypeVar("Struct", bound=ctypes.Structure)
Item = TypeVar("Item", bound=ctypes.Structure)


class Nvml:
    """The library between ``nvmlInit`` and ``nvmlShutdown``.

    Raises
    ------
    SetupError
        It is not built.
    NvmlError
        It does not start.
    """

    def __init__(self, path: Path = LIBRARY) -> None:
        if not path.exists():
            raise SetupError("the native core is not built", remedy="make setup")
        self._library = ctypes.CDLL(str(path))
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self.call("nvmlInit_v2")

    def close(self) -> None:
        """Let go of the node."""
        self.call("nvmlShutdown")

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises
        ------
        NvmlError
            Its result is not success.
        """
        code: int = getattr(self._library, name)(*arguments)
        if code:
            raise NvmlError(code=code, function=name, text=self.error_text(code))

    def reset(self, index: int) -> None:
        """Reset a GPU by the door that ``va100 node reset`` uses: NVML itself has none.

        Raises
        ------
        NvmlError
            It is used.
        """
        reason = ctypes.create_string_buffer(4096)
        door = self._library.va100_node_reset
        code: int = door(b"", ctypes.c_int(index), reason, ctypes.c_long(len(reason)))
        if code:
            code = IN_USE if code == _DOOR_IN_USE else UNKNOWN
            raise NvmlError(code=code, function="reset", text=reason.value.decode())

    def error_text(self, code: int) -> str:
        """What a result code means."""
        text: bytes = self._library.nvmlErrorString(code)
        return text.decode()

    def number(self, name: str, *arguments: Any) -> int:
        """Call a function whose last parameter points to an ``unsigned int``."""
        out = ctypes.c_uint()
        self.call(name, *arguments, ctypes.byref(out))
        return out.value

    def long_number(self, name: str, *arguments: Any) -> int:
        """Call a function whose last parameter points to an ``unsigned long long``."""
        out = ctypes.c_ulonglong()
        self.call(name, *arguments, ctypes.byref(out))
        return out.value

    def numbers(self, name: str, count: int, *arguments: Any) -> tuple[int, ...]:
        """Call a function whose last parameters point to so many ``unsigned int``."""
        out = [ctypes.c_uint() for _ in range(count)]
        self.call(name, *arguments, *(ctypes.byref(one) for one in out))
        return tuple(one.value for one in out)

    def text(self, name: str, *arguments: Any) -> str:
        """Call a function whose last parameters are a buffer and its length."""
        room = 96
        buffer = ctypes.create_string_buffer(room)
        self.call(name, *arguments, buffer, ctypes.c_uint(room))
        return buffer.value.decode(errors="replace")

    def filled(self, name: str, kind: type[Struct], *arguments: Any) -> Struct:
        """Call a function whose last parameter points to a structure."""
        out = kind()
        number = getattr(kind, "VERSION", 0)
        if number:
            out.version = ctypes.sizeof(kind) | number << 24
        self.call(name, *arguments, ctypes.byref(out))
        return out

    def handle(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Call a function whose last parameter points to a handle."""
        out = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(out))
        return out

    def listed(self, name: str, kind: type[Item], *arguments: Any) -> list[Item]:
        """Call a function that takes a count and an array, which is NULL to ask for the count."""

        def ask(count: Any, items: Any) -> None:
            self.call(name, *arguments, count, items)

        return _listed(ask, kind)

    def numbers_listed(self, name: str, *arguments: Any) -> list[int]:
        """As :meth:`listed`, of ``unsigned int``."""

        def ask(count: Any, items: Any) -> None:
            self.call(name, *arguments, count, items)

        return [item.value for item in _listed(ask, _Number)]


class _Number(ctypes.Structure):
    _fields_ = (("value", ctypes.c_uint),)


def _listed(ask: Callable[[Any, Any], None], kind: type[Item]) -> list[Item]:
    """Ask with more room until all fits: there may be more by then."""
    count = ctypes.c_uint(0)
    room = 32
    while True:
        items = (kind * room)()
        count.value = room
        try:
            ask(ctypes.byref(count), items)
        except NvmlError as error:
            if error.code != INSUFFICIENT_SIZE or room > 1 << 20:
                raise
            room = max(2 * room, count.value)
            continue
        return list(items[: count.value])
