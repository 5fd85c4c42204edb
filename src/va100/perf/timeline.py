"""When each launch and copy of a program would start and end: virtual time.

Commands go in as they were submitted, events come out in integer nanoseconds.  A stream keeps its
order, kernels of different streams share the SMs while they fit side by side, each copy engine
carries one copy at a time.  How long a kernel runs is :mod:`va100.perf.kernel`'s answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from va100.spec.model import ChipSpec
from va100.spec.rates import memory_bytes_per_s
from va100.units import NS

LEGACY_STREAM: Final = 0
"""The stream that waits for all others, and that all others wait for."""
COPY_START_NS: Final = 1_500
"""What a copy costs besides its bytes.  Assumed."""
PENDING_KERNELS: Final = 128
"""Grids the chip can hold at once; a kernel starts after all but so many before it have ended."""


class Activity(Enum):
    """What a command does; the value is how reports spell it."""

    KERNEL = "kernel"
    HOST_TO_DEVICE = "HtoD"
    DEVICE_TO_HOST = "DtoH"
    DEVICE_TO_DEVICE = "DtoD"
    PEER_TO_PEER = "PtoP"
    FILL = "memset"
    RECORD = "record"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One thing a program submitted to a stream of one device."""

    activity: Activity
    stream: int = LEGACY_STREAM
    name: str = ""
    duration_s: float = 0.0
    """Of a kernel; the others take what their bytes need."""
    moved_bytes: int = 0
    sm_share: float = 1.0
    """Part of the SMs a kernel fills, above 0 to 1."""
    event: int = 0
    """Recorded or waited for."""
    submit_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """A command with its place in virtual time."""

    command: Command
    start_ns: int
    end_ns: int


def copy_s(activity: Activity, moved_bytes: int, chip: ChipSpec) -> float:
    """Time of one copy or fill, without what it costs to start it."""
    if activity in (Activity.HOST_TO_DEVICE, Activity.DEVICE_TO_HOST):
        return moved_bytes / chip.measured.pcie_copy_bytes_per_s
    if activity is Activity.PEER_TO_PEER:
        return moved_bytes / (chip.nvlink.link_count * chip.nvlink.link_bytes_per_s)
    if activity is Activity.DEVICE_TO_DEVICE:
        return 2 * moved_bytes / chip.measured.dram_scale_bytes_per_s
    rate = min(chip.measured.dram_write_bytes_per_s, memory_bytes_per_s(chip))
    return moved_bytes / rate


def schedule(commands: Iterable[Command], chip: ChipSpec) -> tuple[TimelineEvent, ...]:
    """Place commands in time, in the order they were submitted.

    Raises
    ------
    ValueError
        A kernel fills no part, or more than all, of the chip.
    """
    board = _Board(launch_gap_ns=launch_gap_ns(chip))
    return tuple(_place(command, board, chip) for command in commands)


def launch_gap_ns(chip: ChipSpec) -> int:
    """Pause between two kernels of one stream: a stream's period less a graph's."""
    return round((chip.measured.stream_launch_s - chip.measured.graph_node_s) / NS)


@dataclass(slots=True)
class _Board:
    """What is known so far while commands are placed."""

    launch_gap_ns: int
    stream_end_ns: dict[int, int] = field(default_factory=dict)
    event_ns: dict[int, int] = field(default_factory=dict)
    engine_end_ns: dict[Activity, int] = field(default_factory=dict)
    running: deque[tuple[int, int, float]] = field(default_factory=deque)
    """The latest kernels, which may overlap a later one: start, end, share."""
    settled_ns: int = 0
    """No kernel starts before this any more."""

    def ready_ns(self, stream: int) -> int:
        """When a stream's earlier work, and what the legacy stream orders it after, is done."""
        if stream == LEGACY_STREAM:
            return max(self.stream_end_ns.values(), default=0)
        legacy_ns = self.stream_end_ns.get(LEGACY_STREAM, 0)
        return max(self.stream_end_ns.get(stream, 0), legacy_ns)


def _place(command: Command, board: _Board, chip: ChipSpec) -> TimelineEvent:
    ready_ns = max(board.ready_ns(command.stream), command.submit_ns)
    if command.activity is Activity.KERNEL:
        start_ns, end_ns = _place_kernel(command, ready_ns, board)
    elif command.activity is Activity.RECORD:
        start_ns = end_ns = ready_ns
        board.event_ns[command.event] = ready_ns
    elif command.activity is Activity.WAIT:
        start_ns = end_ns = max(ready_ns, board.event_ns.get(command.event, 0))
    else:
        start_ns, end_ns = _place_copy(command, ready_ns, board, chip)
    board.stream_end_ns[command.stream] = end_ns
    return TimelineEvent(command=command, start_ns=start_ns, end_ns=end_ns)


def _place_copy(command: Command, ready_ns: int, board: _Board, chip: ChipSpec) -> tuple[int, int]:
    """Take the engine of this direction when it is free."""
    start_ns = max(ready_ns, board.engine_end_ns.get(command.activity, 0))
    lasting_ns = round(copy_s(command.activity, command.moved_bytes, chip) / NS)
    end_ns = start_ns + COPY_START_NS + lasting_ns
    board.engine_end_ns[command.activity] = end_ns
    return start_ns, end_ns


def _place_kernel(command: Command, ready_ns: int, board: _Board) -> tuple[int, int]:
    """Start as soon as the SMs have room for the whole of the kernel's run."""
    if not 0 < command.sm_share <= 1:
        raise ValueError(f"sm_share is {command.sm_share}, must be above 0 and at most 1")
    lasting_ns = max(round(command.duration_s / NS), 1)
    start_ns = max(ready_ns + board.launch_gap_ns, board.settled_ns)
    while True:
        blocking_ns = _blocked_until(start_ns, start_ns + lasting_ns, command.sm_share, board)
        if blocking_ns is None:
            break
        start_ns = blocking_ns
    _remember(start_ns, start_ns + lasting_ns, command.sm_share, board)
    return start_ns, start_ns + lasting_ns


def _blocked_until(start_ns: int, end_ns: int, share: float, board: _Board) -> int | None:
    """When the next kernel in the way ends; None when there is room."""
    rivals = [kernel for kernel in board.running if kernel[0] < end_ns and kernel[1] > start_ns]
    moments = [start_ns, *(kernel[0] for kernel in rivals if kernel[0] > start_ns)]
    for moment in moments:
        together = [kernel for kernel in rivals if kernel[0] <= moment < kernel[1]]
        if share + sum(kernel[2] for kernel in together) > 1 + 1e-9:
            return min(kernel[1] for kernel in together)
    return None


def _remember(start_ns: int, end_ns: int, share: float, board: _Board) -> None:
    """Keep the latest kernels only."""
    board.running.append((start_ns, end_ns, share))
    if len(board.running) > PENDING_KERNELS:
        board.settled_ns = max(board.settled_ns, board.running.popleft()[1])
