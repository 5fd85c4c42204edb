"""Functions that device code calls and the machine provides.

``vprintf``, ``malloc``, ``free``, ``__assertfail``.  Arguments are 64-bit lane arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from va100.errors import AssertFailed, OutOfMemory
from va100.gpu import child
from va100.ptx.program import CallArguments, Register, Symbol
from va100.reference.lanes import Lanes, lanes_of
from va100.reference.printing import Arguments, formatted

if TYPE_CHECKING:
    from va100.reference.issue import Issue

HEAP_BYTES: Final = 8 << 20
"""Device heap, CUDA's default limit."""


def vprintf(issue: Issue, arguments: list[Lanes]) -> None:
    """Format a string; the arguments lie packed in memory, each aligned to its size."""
    storage = issue.warp.cta.launch.storage
    counts = np.zeros(32, np.uint32)
    for lane in lanes_of(issue.bits):
        text = storage.text(int(arguments[0][lane]))
        packed = Arguments(storage, int(arguments[1][lane]))
        output, counts[lane] = formatted(text, packed)
        issue.warp.cta.launch.output += output
    give(issue, counts)


def malloc(issue: Issue, arguments: list[Lanes]) -> None:
    """Allocate from the device heap; a null pointer when it is full."""
    launch = issue.warp.cta.launch
    pointers = np.zeros(32, np.uint64)
    for lane in lanes_of(issue.bits):
        size = int(arguments[0][lane])
        if size and sum(launch.heap.values()) + size <= HEAP_BYTES:
            try:
                pointers[lane] = launch.module.arena.allocate(size, device=launch.module.device)
            except OutOfMemory:
                continue
            launch.heap[int(pointers[lane])] = size
    give(issue, pointers)


def free(issue: Issue, arguments: list[Lanes]) -> None:
    """Give memory of the device heap back; null is nothing."""
    launch = issue.warp.cta.launch
    for lane in lanes_of(issue.bits):
        pointer = int(arguments[0][lane])
        if not pointer:
            continue
        if pointer not in launch.heap:
            raise issue.broken(f"free of 0x{pointer:x}, which device malloc did not give")
        launch.module.arena.free(pointer)
        del launch.heap[pointer]


def assertfail(issue: Issue, arguments: list[Lanes]) -> None:
    """Report a failed assertion: message, file, line, function, character size."""
    storage = issue.warp.cta.launch.storage
    lane = issue.lane_at(0)
    message, file, line, function = (int(arguments[i][lane]) for i in range(4))
    texts = [
        storage.text(address).decode(errors="replace") for address in (message, file, function)
    ]
    place = issue.place(lane)
    place |= {"file": texts[1] or place["file"], "line": line if texts[1] else place["line"]}
    raise AssertFailed(condition=texts[0], **place)


def launch_grid(issue: Issue, arguments: list[Lanes]) -> None:
    """Remember a grid that device code launches; the engine runs it after this one."""
    launch = issue.warp.cta.launch
    codes = np.zeros(32, np.uint32)
    for lane in lanes_of(issue.bits):
        address = int(arguments[0][lane])
        if address not in launch.heap:
            codes[lane] = child.INVALID_VALUE
            continue
        del launch.heap[address]
        codes[lane] = child.problem_of(child.read(launch.module.arena, address))
        if codes[lane]:
            launch.module.arena.free(address)
        else:
            launch.children.append(address)
    give(issue, codes)


SYSTEM: Final[Mapping[str, Callable[[Issue, list[Lanes]], None]]] = {
    "vprintf": vprintf,
    "malloc": malloc,
    "free": free,
    "__assertfail": assertfail,
    "__va100_launch_grid": launch_grid,
}
"""Name to its function."""


def give(issue: Issue, value: Lanes) -> None:
    """Put a system function's result where the call wants it."""
    operand = issue.step.operands[0]
    if not isinstance(operand, CallArguments) or not operand.elements:
        return
    place = operand.elements[0]
    if isinstance(place, Register):
        issue.write(place, value)
    elif isinstance(place, Symbol):
        to = issue.symbol_value(place)
        issue.warp.cta.launch.storage.scatter(to[issue.mask], value[issue.mask])
