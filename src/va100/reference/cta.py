"""A CTA: its warps, shared memory and barriers; and what a whole launch has in common.

:mod:`.engine` makes launches and runs their CTAs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from va100.errors import Deadlock, DeviceFault
from va100.gpu.arena import WINDOW_DEVICE
from va100.gpu.launch import LoadedModule
from va100.gpu.watch import Watcher
from va100.ptx.isa.form import Family
from va100.reference.barrier import Barriers
from va100.reference.code import KernelCode, align_up
from va100.reference.collective import missing_lanes
from va100.reference.control import return_lanes
from va100.reference.lanes import LANE, Lanes
from va100.reference.moment import stuck
from va100.reference.storage import Storage
from va100.reference.tally import Tally
from va100.reference.warp import Warp, lowest
from va100.work import SHARED_UNIT_BYTES, WARP_SIZE, Dim3, LaunchConfig

if TYPE_CHECKING:
    from va100.reference.frame import Group

ROUND: Final = 1000
"""Steps a warp takes before the next one's turn."""


@dataclass(slots=True)
class Launch:
    """What all CTAs of a launch share."""

    module: LoadedModule
    code: KernelCode
    config: LaunchConfig
    storage: Storage
    params_address: int
    workspace_address: int
    """Zeroed memory that cooperative groups synchronise a grid in."""
    sm_count: int
    grid_id: int
    output: bytearray = field(default_factory=bytearray)
    tally: Tally = field(default_factory=Tally)
    heap: dict[int, int] = field(default_factory=dict)
    """Live device-side allocations: address to bytes."""
    children: list[int] = field(default_factory=list)
    """Records of grids that device code launched, in launch order."""
    watcher: Watcher | None = None
    running: list[Cta] = field(default_factory=list)
    """CTAs under way."""

    @property
    def local_bytes(self) -> int:
        """Bytes of local memory of a thread."""
        return max(self.code.local_bytes, 16)

    @property
    def local_stride(self) -> int:
        """Bytes between the local memories of two threads."""
        return align_up(self.local_bytes, 16)

    @property
    def shared_bytes(self) -> int:
        """Static and dynamic shared memory of a CTA, in whole units."""
        asked = self.code.static_shared_bytes + self.config.dynamic_shared_bytes
        return align_up(asked, SHARED_UNIT_BYTES)

    def fall_off(self, warp: Warp, group: Group) -> None:
        """Return from a function whose text ends without ``ret``."""
        return_lanes(warp, group, group.bits)


class Cta:
    """One CTA on its way from entry to exit."""

    def __init__(self, launch: Launch, index: Dim3) -> None:
        self.launch = launch
        self.index = index
        self.shared_bytes = launch.shared_bytes
        arena = launch.module.arena
        threads = align_up(launch.config.block.size, WARP_SIZE)
        self.shared_address = arena.allocate(max(self.shared_bytes, 1), device=WINDOW_DEVICE)
        self.local_address = arena.allocate(threads * launch.local_stride, device=WINDOW_DEVICE)
        arena.view(self.shared_address, max(self.shared_bytes, 1))[:] = 0
        self.barriers = Barriers(self)
        self.coordinates = [_coordinates(launch.config.block, w) for w in range(threads // 32)]
        self.warps = [
            Warp(self, w, _existing(launch.config.block.size - w * WARP_SIZE))
            for w in range(threads // WARP_SIZE)
        ]

    @property
    def finished(self) -> bool:
        """Whether every lane has exited."""
        return not any(warp.live for warp in self.warps)

    @property
    def linear_index(self) -> int:
        """Index in the grid, x fastest."""
        grid = self.launch.config.grid
        return self.index.x + grid.x * (self.index.y + grid.y * self.index.z)

    def run(self) -> int:
        """Give every warp a turn; returns the steps taken.

        Raises
        ------
        Deadlock
            No lane can go on, and not all have exited.
        """
        taken = sum(warp.run(ROUND) for warp in self.warps if warp.live)
        if not taken and not self.finished:
            self._tell_of_deadlock()
            raise self._deadlock()
        return taken

    def release(self) -> None:
        """Give the windows back."""
        self.launch.module.arena.free(self.shared_address)
        self.launch.module.arena.free(self.local_address)

    def _tell_of_deadlock(self) -> None:
        moment = stuck(self) if self.launch.watcher is not None else None
        if moment is not None and self.launch.watcher is not None:
            self.launch.watcher.faulted(moment, self._deadlock())

    def _deadlock(self) -> DeviceFault:
        """Describe who waits for what; the place is the first waiting lane's."""
        waiting = [
            (issue, meeting.members)
            for warp in self.warps
            for meeting in warp.rendezvous.values()
            for issue in meeting.issues
        ]
        for issue, members in waiting:
            if issue.step.operation.form.family is Family.MATRIX:
                return missing_lanes(issue, issue.bits)
            missing = (
                members
                & issue.warp.live
                & ~issue.warp.rendezvous[issue.step.operation.text, members].arrived
            )
            return Deadlock(
                f"lanes 0x{issue.bits:08x} of warp {issue.warp.index} wait at {issue.group.waits} "
                f"for lanes 0x{missing:08x}, which cannot arrive",
                **issue.place(lowest(issue.bits)),
            )
        return self.barriers.deadlock()


def _existing(threads: int) -> int:
    return (1 << min(threads, WARP_SIZE)) - 1


def _coordinates(block: Dim3, warp: int) -> tuple[Lanes, Lanes, Lanes]:
    """``tid.x``, ``tid.y``, ``tid.z`` of a warp's lanes."""
    flat = LANE + np.uint32(warp * WARP_SIZE)
    x, rest = flat % np.uint32(block.x), flat // np.uint32(block.x)
    return x, rest % np.uint32(block.y), rest // np.uint32(block.y)
