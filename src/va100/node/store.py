"""The door to nodes' state: make, show, reset, break, delete; the state itself is ``native/node``.

Where nodes are kept (``VA100_HOME``) and which one is meant where no name is given (``VA100_NODE``)
is read by the native library, as it is in every process that uses a card.
"""

from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from va100.errors import NodeError, SetupError
from va100.gpu.native import NATIVE_DIR
from va100.node.kinds import Board, NodeKind, Seat
from va100.spec.model import ChipSpec

LIBRARY: Final = "libnvidia-ml.so.1"
_ROOM: Final = 1 << 16


class Why(IntEnum):
    """Why the native side refuses."""

    NONE = 0
    NO_SUCH_NODE = 1
    EXISTS = 2
    IN_USE = 3
    BAD_LAYOUT = 4
    SYSTEM = 5
    BAD_NAME = 6
    BAD_KIND = 7


Card = tuple[ChipSpec, Seat]


@functools.cache
def library() -> ctypes.CDLL:
    """Open NVML's library, whose door this is, and keep it.

    Raises
    ------
    SetupError
        It was not built.
    """
    path = NATIVE_DIR / LIBRARY
    if not path.exists():
        raise SetupError("the native core is not built", remedy="make setup")
    found = ctypes.CDLL(str(path))
    text, room, number = ctypes.c_char_p, ctypes.c_long, ctypes.c_int
    out = ctypes.POINTER(ctypes.c_long)
    found.va100_node_folder.argtypes = [text, room]
    found.va100_node_folder.restype = ctypes.c_long
    found.va100_node_describe.argtypes = [text, text, room, out]
    found.va100_node_create.argtypes = [text, text, number, text, text, room]
    found.va100_node_delete.argtypes = [text, number, text, room]
    found.va100_node_reset.argtypes = [text, number, text, room]
    found.va100_node_inject.argtypes = [
        text, number, number, ctypes.c_uint, text, text, ctypes.c_long, text, room,
    ]  # fmt: skip
    found.va100_node_work.argtypes = [
        text, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32),
    ]  # fmt: skip
    return found


def folder() -> Path:
    """Where nodes' files are."""
    buffer = ctypes.create_string_buffer(_ROOM)
    library().va100_node_folder(buffer, _ROOM)
    return Path(buffer.value.decode())


def names() -> list[str]:
    """Nodes that were made, and the ones that everybody has, by name."""
    return sorted(path.stem for path in folder().glob("*.node"))


def describe(name: str = "") -> dict[str, Any]:
    """Tell what a node is and does just now, in base units.

    Parameters
    ----------
    name : str
        Empty: the one of the environment, which is made when it is not there.

    Raises
    ------
    NodeError
    """
    room = _ROOM
    while True:
        buffer, length = ctypes.create_string_buffer(room), ctypes.c_long()
        code = library().va100_node_describe(name.encode(), buffer, room, ctypes.byref(length))
        if length.value < room:
            break
        room = length.value + _ROOM
    _require(code, buffer, name)
    told: dict[str, Any] = json.loads(buffer.value)
    return told


def create(name: str, kind: str, board: Board, cards: Sequence[Card]) -> None:
    """Make a node.

    Raises
    ------
    NodeError
        There is one of this name, or the name or the cards will not do.
    """
    lines = "\n".join(
        f"{chip.name}\t{seat.domain}\t{seat.bus}\t{seat.slot}\t{seat.numa}" for chip, seat in cards
    )
    buffer = ctypes.create_string_buffer(_ROOM)
    code = library().va100_node_create(
        name.encode(), kind.encode(), int(board), lines.encode(), buffer, _ROOM
    )
    _require(code, buffer, name)


def create_kind(name: str, kind: NodeKind) -> None:
    """Make a node of a kind that has a name."""
    create(name, kind.name, kind.board, [(kind.chip, seat) for seat in kind.seats])


def delete(name: str, *, even_used: bool = False) -> None:
    """Delete a node; refused while a process uses it, unless told otherwise.

    Raises
    ------
    NodeError
    """
    buffer = ctypes.create_string_buffer(_ROOM)
    code = library().va100_node_delete(name.encode(), int(even_used), buffer, _ROOM)
    _require(code, buffer, name)


def reset(name: str, device: int | None) -> None:
    """Reset one GPU, or all; refused while a process uses it.

    Raises
    ------
    NodeError
    """
    buffer = ctypes.create_string_buffer(_ROOM)
    index = -1 if device is None else device
    code = library().va100_node_reset(name.encode(), index, buffer, _ROOM)
    _require(code, buffer, name)


def inject(  # noqa: PLR0913  where, what, how much
    name: str,
    device: int | None,
    what: str,
    detail: str = "",
    count: int = 1,
    *,
    gpu_instance: int | None = None,
    pid: int = 0,
) -> None:
    """Break something of a GPU; ``clear`` mends all, without a GPU on the whole node.

    Parameters
    ----------
    gpu_instance : int, optional
        Only processes on it meet the fault.
    pid : int
        Only this process does; 0: all do.

    Raises
    ------
    NodeError
    """
    buffer = ctypes.create_string_buffer(_ROOM)
    index = -1 if device is None else device
    code = library().va100_node_inject(
        name.encode(), index, -1 if gpu_instance is None else gpu_instance, pid,
        what.encode(), detail.encode(), count, buffer, _ROOM,
    )  # fmt: skip
    _require(code, buffer, name)


def busy_ns(path: Path) -> int | None:
    """How long the GPUs of the node in a file were at work ever, all together.

    The file may belong to somebody who is not trusted: it is only read, and whatever is wrong with
    it makes it no node, for which the answer is none.
    """
    busy, running = ctypes.c_uint64(), ctypes.c_uint32()
    found = library().va100_node_work(str(path).encode(), ctypes.byref(busy), ctypes.byref(running))
    return busy.value if found else None


def _require(code: int, buffer: ctypes.Array[ctypes.c_char], name: str) -> None:
    if code == Why.NONE:
        return
    why = Why(code)
    text = buffer.value.decode(errors="replace")
    raise NodeError(name=name, why=why.name.lower().replace("_", "-"), problem=text)
