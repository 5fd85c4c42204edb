"""The reference engine under watch: a warp's lanes at an instruction, as watchers see them.

Reads the machine and changes nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from va100.errors import Va100Error
from va100.gpu.watch import Named, Spot, Standing, spot_in
from va100.ptx.program import Operand, PtxModule, Symbol
from va100.ptx.types import PtxType, Space
from va100.reference import special
from va100.reference.code import Home, Step
from va100.reference.frame import Frame, Group
from va100.reference.issue import Issue
from va100.work import WARP_SIZE, Dim3, LaunchConfig

if TYPE_CHECKING:
    from va100.reference.cta import Cta
    from va100.reference.warp import Warp


class Moment:
    """A :class:`va100.gpu.watch.Moment` of this engine."""

    __slots__ = ("_issue", "_warp", "arrived", "lanes")

    def __init__(self, warp: Warp, group: Group, step: Step, lanes: int) -> None:
        self._warp = warp
        self.arrived = group.bits
        self.lanes = lanes
        # A group of its own: the one that runs moves on.
        self._issue = Issue(warp, Group(group.frame, group.pc, group.bits), step, lanes)

    @property
    def launch_id(self) -> int:
        """Another number for every launch."""
        return self._warp.cta.launch.grid_id

    @property
    def kernel(self) -> str:
        """Name in the module."""
        return self._warp.cta.launch.code.entry.function.name

    @property
    def module(self) -> PtxModule:
        """The module that the kernel is in."""
        return self._warp.cta.launch.module.ptx

    @property
    def config(self) -> LaunchConfig:
        """The launch's shape."""
        return self._warp.cta.launch.config

    @property
    def cta(self) -> Dim3:
        """Index of the CTA."""
        return self._warp.cta.index

    @property
    def warp(self) -> int:
        """Index of the warp in its CTA."""
        return self._warp.index

    @property
    def function(self) -> str:
        """Name of the function that the lanes are in."""
        return self._frame.code.function.name

    @property
    def index(self) -> int:
        """Of the instruction in its function."""
        return self._issue.step.index

    @property
    def depth(self) -> int:
        """Calls between the kernel and here."""
        return self._frame.depth

    @property
    def spot(self) -> Spot:
        """The instruction."""
        return spot_in(self.module, self._frame.code.flow, self.index)

    @property
    def _frame(self) -> Frame:
        return self._issue.group.frame

    # ------------------------------------------------------------ threads

    def thread(self, lane: int) -> Dim3:
        """``threadIdx`` of a lane."""
        return Dim3(*self._warp.thread(lane))

    def waiting(self) -> int:
        """Mask of the warp's lanes that wait for others."""
        free = 0
        for group in self._warp.ready:
            free |= group.bits
        return self._warp.live & ~free

    def standings(self) -> Sequence[Standing]:
        """Every lane of every CTA that is under way."""
        return [
            Standing(
                cta=cta.index,
                warp=warp.index,
                lanes=group.bits,
                spot=spot_in(self.module, group.frame.code.flow, step.index),
                waits=group.waits,
            )
            for cta in self._warp.cta.launch.running
            for warp in cta.warps
            for group, step in _groups(warp)
        ]

    def elsewhere(self, cta: Dim3, thread: Dim3) -> tuple[Moment, int] | None:
        """The moment of another thread, and its lane."""
        block = self.config.block
        if not all(0 <= i < extent for i, extent in zip(thread, block, strict=True)):
            return None
        flat = thread.x + block.x * (thread.y + block.y * thread.z)
        index, lane = divmod(flat, WARP_SIZE)
        for found in self._warp.cta.launch.running:
            if found.index != cta:
                continue
            for group, step in _groups(found.warps[index]):
                if group.bits >> lane & 1:
                    return Moment(found.warps[index], group, step, group.bits), lane
        return None

    def frames(self) -> Sequence[Spot]:
        """Innermost first."""
        found = [self.spot]
        frame = self._frame
        while frame.parent is not None and frame.call is not None:
            found.append(spot_in(self.module, frame.parent.code.flow, frame.call.step.index))
            frame = frame.parent
        return found

    # ------------------------------------------------------------ values

    def registers(self) -> Mapping[str, PtxType]:
        """Registers that the function declares."""
        return self._frame.code.flow.registers

    def register(self, name: str, lane: int) -> int:
        """Raw bits of a register or special register."""
        found = self._frame.registers.get(name)
        if found is None and name not in self._frame.code.flow.registers:
            try:
                found = special.read(self._issue, name)
            except Va100Error as error:
                raise LookupError(f"{name} is no register here") from error
        return 0 if found is None else int.from_bytes(found[lane].tobytes(), "little")

    def address(self, operand: Operand, space: Space, lane: int) -> int:
        """Generic address of a memory operand."""
        try:
            return int(self._issue.address(operand, space)[lane])
        except Va100Error as error:
            raise LookupError("it has no address") from error

    def variable(self, name: str, lane: int) -> Named:
        """A PTX variable or parameter by name."""
        code = self._frame.code
        place = code.places.get(name)
        known = code.flow.variables.get(name) or next(
            (v for v in (*code.function.params, *self.module.variables) if v.name == name), None
        )
        if place is None or known is None or place.home is Home.CODE:
            raise LookupError(f"{name} is no variable here")
        value = int(self._issue.symbol_value(Symbol(name))[lane])
        if place.home is Home.SHARED:
            value += self._warp.cta.shared_address
        elif place.home is Home.FRAME and known.space is Space.LOCAL:
            value += int(self._warp.local_bases[lane])
        return Named(address=value, size_bytes=known.size_bytes, type=known.type, space=known.space)

    def variables(self) -> Sequence[str]:
        """Names of the PTX variables and parameters that are seen here."""
        code = self._frame.code
        listed = [v.name for v in (*code.function.params, *self.module.variables)]
        names = dict.fromkeys([*listed, *code.flow.variables])
        return [n for n in names if n in code.places and code.places[n].home is not Home.CODE]

    def window(self, space: Space, lane: int) -> tuple[int, int]:
        """Generic address and bytes of shared memory or of a lane's local memory."""
        cta = self._warp.cta
        if space is Space.SHARED:
            return cta.shared_address, cta.shared_bytes
        return int(self._warp.local_bases[lane]), cta.launch.local_bytes

    def memory(self, address: int, size_bytes: int) -> bytes:
        """Device memory."""
        arena = self._warp.cta.launch.module.arena
        if size_bytes and not arena.accessible(address, size_bytes):
            raise LookupError(f"0x{address:x} is not memory that a kernel may read")
        return arena.download(address, size_bytes)

    def take_output(self) -> bytes:
        """What ``printf`` has written since the last time."""
        output = self._warp.cta.launch.output
        taken = bytes(output)
        output.clear()
        return taken


def stuck(cta: Cta) -> Moment | None:
    """Lanes of a CTA that wait for what never comes."""
    for warp in cta.warps:
        for group, step in _groups(warp):
            return Moment(warp, group, step, group.bits)
    return None


def _groups(warp: Warp) -> list[tuple[Group, Step]]:
    """All groups of a warp with what they are at; those that wait are at what they wait in."""
    found = [(g, _step_at(g)) for g in warp.ready]
    seen = {id(g) for g in warp.ready}
    waiting = [i for meeting in warp.rendezvous.values() for i in meeting.issues]
    waiting += [i for i in warp.cta.barriers.waiting() if i.warp is warp]
    for issue in waiting:
        if id(issue.group) not in seen:
            seen.add(id(issue.group))
            found.append((issue.group, issue.step))
    return found


def _step_at(group: Group) -> Step:
    steps = group.frame.code.steps
    return steps[min(group.pc, len(steps) - 1)]
