"""What somebody who watches a launch sees of it, instruction by instruction: traces, debuggers.

An engine that can be watched makes :class:`Moment` objects; who watches names no engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from va100.ptx.cfg import FlowGraph
from va100.ptx.isa.form import Operation
from va100.ptx.program import Instruction, Location, Operand, PtxModule
from va100.ptx.types import PtxType, Space
from va100.work import Dim3, LaunchConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """An instruction in the text."""

    function: str
    index: int
    """Of the instruction in its function."""
    instruction: Instruction
    operation: Operation
    text: str
    """As written, on one line."""
    ptx_line: int
    location: Location | None
    file: str
    """Source file that the location names; empty when there is none."""

    @property
    def line(self) -> int:
        """Line of the source file; 0 when there is none."""
        return self.location.line if self.location is not None and self.file else 0


def spot_in(module: PtxModule, flow: FlowGraph, index: int) -> Spot:
    """An instruction of a function, by its index."""
    instruction, location = flow.instructions[index], flow.locations[index]
    written = " ".join(module.source[slice(*instruction.span)].split())
    return Spot(
        function=flow.function.name,
        index=index,
        instruction=instruction,
        operation=flow.operations[index],
        # The `ret` that the end of a body means is not written there.
        text=written if instruction.opcode in written else f"{instruction.op};",
        ptx_line=flow.lines[index],
        location=location,
        file=module.files.get(location.file, "") if location else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Lanes of a warp that are at one instruction together."""

    cta: Dim3
    warp: int
    lanes: int
    """Mask."""
    spot: Spot
    waits: str
    """What for; empty when they may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Where a PTX variable lies for one thread."""

    address: int
    """Generic."""
    size_bytes: int
    type: PtxType
    space: Space


class Moment(Protocol):
    """Lanes of one warp at one instruction, before it or after it."""

    @property
    def launch_id(self) -> int:
        """Another number for every launch."""
        ...

    @property
    def kernel(self) -> str:
        """Name in the module."""
        ...

    @property
    def module(self) -> PtxModule:
        """The module that the kernel is in."""
        ...

    @property
    def config(self) -> LaunchConfig:
        """The launch's shape."""
        ...

    @property
    def cta(self) -> Dim3:
        """Index of the CTA."""
        ...

    @property
    def warp(self) -> int:
        """Index of the warp in its CTA."""
        ...

    @property
    def arrived(self) -> int:
        """Mask of the lanes at the instruction."""
        ...

    @property
    def lanes(self) -> int:
        """Mask of those that its predicate lets execute it."""
        ...

    @property
    def spot(self) -> Spot:
        """The instruction."""
        ...

    @property
    def function(self) -> str:
        """Name of the function that the lanes are in."""
        ...

    @property
    def index(self) -> int:
        """Of the instruction in its function."""
        ...

    @property
    def depth(self) -> int:
        """Calls between the kernel and here; 0 in the kernel itself."""
        ...

    def thread(self, lane: int) -> Dim3:
        """``threadIdx`` of a lane."""
        ...

    def waiting(self) -> int:
        """Mask of the warp's lanes that wait for others."""
        ...

    def registers(self) -> Mapping[str, PtxType]:
        """Registers that the function declares."""
        ...

    def register(self, name: str, lane: int) -> int:
        """Raw bits of a register or special register; ``LookupError`` when there is none."""
        ...

    def address(self, operand: Operand, space: Space, lane: int) -> int:
        """Generic address of a memory operand; ``LookupError`` when it has none."""
        ...

    def variable(self, name: str, lane: int) -> Named:
        """A PTX variable or parameter by name; ``LookupError`` when there is none."""
        ...

    def variables(self) -> Sequence[str]:
        """Names of the PTX variables and parameters that are seen here."""
        ...

    def window(self, space: Space, lane: int) -> tuple[int, int]:
        """Generic address and bytes of shared memory or of a lane's local memory."""
        ...

    def memory(self, address: int, size_bytes: int) -> bytes:
        """Device memory; ``LookupError`` where a kernel may not read."""
        ...

    def frames(self) -> Sequence[Spot]:
        """Innermost first: the instruction, then the call that led here, and so on."""
        ...

    def standings(self) -> Sequence[Standing]:
        """Every lane of every CTA that is under way."""
        ...

    def elsewhere(self, cta: Dim3, thread: Dim3) -> tuple[Moment, int] | None:
        """The moment of another thread, and its lane; None when it does not run now."""
        ...

    def take_output(self) -> bytes:
        """What ``printf`` has written since the last time."""
        ...


class Watcher(Protocol):
    """Is told of every instruction of a launch, in the order in which they run."""

    def before(self, moment: Moment) -> None:
        """Lanes are about to execute an instruction."""
        ...

    def after(self, moment: Moment) -> None:
        """They have executed it, or wait in it for others."""
        ...

    def faulted(self, moment: Moment, error: Exception) -> None:
        """It was wrong; the launch ends."""
        ...

    def ended(self) -> None:
        """The launch has ended, well or not."""
        ...
