"""Core dumps: where a launch went wrong, kept in a file for the debugger to look at later.

A dump holds the faulting CTA: every warp's place, registers and calls, shared and local memory,
parameters, and the device memory around the addresses in its registers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from va100.debug.breakpoints import flows
from va100.errors import SetupError
from va100.gpu.watch import Moment, Named, Spot, Standing, spot_in
from va100.ptx.parser import parse
from va100.ptx.program import Operand, PtxModule
from va100.ptx.types import TYPES, PtxType, Space
from va100.work import WARP_SIZE, Dim3, LaunchConfig

FORMAT: Final = "va100 core dump 1"
GRANULE_BYTES: Final = 256
_MOST_GRANULES: Final = 512
_MOST_BYTES: Final = 1 << 20
"""Of one variable or window."""
_WAYS: Final = "a file that `va100 run --dump FILE` wrote"


# ---------------------------------------------------------------- writing


class Dumper:
    """Watches every launch, and writes a dump of the first that faults."""

    def __init__(self, path: Path, tell: Callable[[str], object]) -> None:
        self._path = path
        self._tell = tell
        self._is_done = False

    def wants(self, kernel: str, module: PtxModule) -> bool:
        """All, until one has faulted."""
        del kernel, module
        return not self._is_done

    def before(self, moment: Moment) -> None:
        """Nothing: only faults count."""

    def after(self, moment: Moment) -> None:
        """Nothing: only faults count."""

    def ended(self) -> None:
        """Nothing: only faults count."""

    def faulted(self, moment: Moment, error: Exception) -> None:
        """Write the dump."""
        self._is_done = True
        self._path.write_text(json.dumps(core_of(moment, error)), "utf-8")
        self._tell(f"core dump written; look at it with `va100 debug --core {self._path}`")


def core_of(moment: Moment, error: Exception) -> dict[str, Any]:
    """What a dump holds."""
    memory: dict[int, bytes] = {}
    groups = [_group(m, waits, memory) for m, waits in _together(moment)]
    thread = tuple(getattr(error, "thread", None) or moment.thread(_lowest(moment.arrived)))
    config = moment.config
    return {
        "format": FORMAT,
        "fault": str(error),
        "kernel": moment.kernel,
        "name": moment.module.name,
        "ptx": moment.module.source,
        "grid": config.grid,
        "block": config.block,
        "dynamic_shared_bytes": config.dynamic_shared_bytes,
        "cta": moment.cta,
        "thread": thread,
        "groups": groups,
        "memory": [[at, base64.b64encode(raw).decode()] for at, raw in memory.items()],
    }


def _together(moment: Moment) -> list[tuple[Moment, str]]:
    """A moment for every group of lanes of the CTA, the faulting one first."""
    standings = [s for s in moment.standings() if s.cta == moment.cta]
    own = (s.waits for s in standings if (s.warp, s.lanes) == (moment.warp, moment.arrived))
    found = [(moment, next(own, ""))]
    for standing in standings:
        lanes = standing.lanes & ~moment.arrived if standing.warp == moment.warp else standing.lanes
        if not lanes:
            continue
        flat = standing.warp * WARP_SIZE + _lowest(lanes)
        block = moment.config.block
        thread = Dim3(flat % block.x, flat // block.x % block.y, flat // (block.x * block.y))
        other = moment.elsewhere(standing.cta, thread)
        if other is not None:
            found.append((other[0], standing.waits))
    return found


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _group(moment: Moment, waits: str, memory: dict[int, bytes]) -> dict[str, Any]:
    lanes = [lane for lane in range(WARP_SIZE) if moment.arrived >> lane & 1]
    registers = {
        name: [moment.register(name, lane) if lane in lanes else 0 for lane in range(WARP_SIZE)]
        for name in moment.registers()
    }
    variables = {name: _variable(moment, name, lanes, memory) for name in moment.variables()}
    windows = {}
    for space in (Space.SHARED, Space.LOCAL):
        windows[space.value] = [moment.window(space, lane) for lane in range(WARP_SIZE)]
        for lane in lanes:
            _keep(moment, *moment.window(space, lane), memory)
    _keep_pointed(moment, registers, lanes, memory)
    return {
        "warp": moment.warp,
        "arrived": moment.arrived,
        "lanes": moment.lanes,
        "waits": waits,
        "frames": [(spot.function, spot.index) for spot in moment.frames()],
        "registers": registers,
        "variables": variables,
        "windows": windows,
    }


def _variable(
    moment: Moment, name: str, lanes: Sequence[int], memory: dict[int, bytes]
) -> dict[str, Any]:
    addresses = [0] * WARP_SIZE
    for lane in lanes:
        known = moment.variable(name, lane)
        addresses[lane] = known.address
        _keep(moment, known.address, known.size_bytes, memory)
    return {
        "addresses": addresses,
        "size_bytes": known.size_bytes,
        "type": known.type.value,
        "space": known.space.value,
    }


def _keep(moment: Moment, address: int, size_bytes: int, memory: dict[int, bytes]) -> None:
    if address in memory or not 0 < size_bytes <= _MOST_BYTES:
        return
    try:
        memory[address] = moment.memory(address, size_bytes)
    except LookupError:
        return


def _keep_pointed(
    moment: Moment,
    registers: Mapping[str, Sequence[int]],
    lanes: Sequence[int],
    memory: dict[int, bytes],
) -> None:
    """Keep what lies where registers point, a granule for each."""
    declared = moment.registers()
    pointed = {
        values[lane] & -GRANULE_BYTES
        for name, values in registers.items()
        if declared[name].bits == 64
        for lane in lanes
    }
    for address in sorted(pointed)[:_MOST_GRANULES]:
        _keep(moment, address, GRANULE_BYTES, memory)


# ---------------------------------------------------------------- reading


class Core:
    """A dump that was read."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.fault: str = facts["fault"]
        self.kernel: str = facts["kernel"]
        self.module: PtxModule = parse(facts["ptx"], facts["name"])
        self.config = LaunchConfig(
            grid=Dim3(*facts["grid"]),
            block=Dim3(*facts["block"]),
            dynamic_shared_bytes=facts["dynamic_shared_bytes"],
        )
        self.cta = Dim3(*facts["cta"])
        self.thread = Dim3(*facts["thread"])
        self._memory = sorted((int(at), base64.b64decode(raw)) for at, raw in facts["memory"])
        self._flows = {flow.function.name: flow for flow in flows(self.module)}
        self.moments = [CoreMoment(self, group) for group in facts["groups"]]

    def spot(self, function: str, index: int) -> Spot:
        """An instruction."""
        return spot_in(self.module, self._flows[function], index)

    def declared(self, function: str) -> Mapping[str, PtxType]:
        """Registers of a function."""
        return self._flows[function].registers

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory that the dump holds."""
        for at, raw in self._memory:
            if at <= address and address + size_bytes <= at + len(raw):
                return raw[address - at : address - at + size_bytes]
        raise LookupError(f"0x{address:x} is not in the dump")

    def focus(self) -> tuple[CoreMoment, int]:
        """The thread that faulted."""
        return self.moments[0].elsewhere(self.cta, self.thread) or (
            self.moments[0],
            _lowest(self.moments[0].arrived),
        )


class CoreMoment:
    """A :class:`va100.gpu.watch.Moment` of a dump."""

    launch_id = 1

    def __init__(self, core: Core, facts: Mapping[str, Any]) -> None:
        self._core = core
        self._facts = facts
        self.kernel = core.kernel
        self.module = core.module
        self.config = core.config
        self.cta = core.cta
        self.waits: str = facts["waits"]
        self.warp: int = facts["warp"]
        self.arrived: int = facts["arrived"]
        self.lanes: int = facts["lanes"]
        self.function: str = facts["frames"][0][0]
        self.index: int = facts["frames"][0][1]
        self.depth = len(facts["frames"]) - 1

    @cached_property
    def spot(self) -> Spot:
        """The instruction."""
        return self._core.spot(self.function, self.index)

    def thread(self, lane: int) -> Dim3:
        """``threadIdx`` of a lane."""
        block = self.config.block
        flat = self.warp * WARP_SIZE + lane
        return Dim3(flat % block.x, flat // block.x % block.y, flat // (block.x * block.y))

    def waiting(self) -> int:
        """Mask of the lanes here that wait for others."""
        return self.arrived if self.waits else 0

    def registers(self) -> Mapping[str, PtxType]:
        """Registers that the function declares."""
        return self._core.declared(self.function)

    def register(self, name: str, lane: int) -> int:
        """Raw bits of a register, or an index."""
        values = self._facts["registers"].get(name)
        if values is not None:
            return int(values[lane])
        family, _, axis = name.partition(".")
        vectors = {
            "%tid": self.thread(lane),
            "%ctaid": self.cta,
            "%ntid": self.config.block,
            "%nctaid": self.config.grid,
        }
        if family in vectors and axis in ("x", "y", "z"):
            return int(getattr(vectors[family], axis))
        known = {"%laneid": lane, "%warpid": self.warp}
        if name not in known:
            raise LookupError(f"{name} is not in the dump")
        return known[name]

    def address(self, operand: Operand, space: Space, lane: int) -> int:
        """Not kept."""
        del operand, space, lane
        raise LookupError("addresses of operands are not in the dump")

    def variable(self, name: str, lane: int) -> Named:
        """A PTX variable or parameter."""
        facts = self._facts["variables"].get(name)
        if facts is None:
            raise LookupError(f"{name} is no variable here")
        return Named(
            address=facts["addresses"][lane],
            size_bytes=facts["size_bytes"],
            type=TYPES[facts["type"]],
            space=Space(facts["space"]),
        )

    def variables(self) -> Sequence[str]:
        """Names of the PTX variables and parameters."""
        return list(self._facts["variables"])

    def window(self, space: Space, lane: int) -> tuple[int, int]:
        """Generic address and bytes of shared or local memory."""
        base, size = self._facts["windows"][space.value][lane]
        return int(base), int(size)

    def memory(self, address: int, size_bytes: int) -> bytes:
        """Memory that the dump holds."""
        return self._core.read(address, size_bytes)

    def frames(self) -> Sequence[Spot]:
        """Innermost first."""
        return [self._core.spot(function, index) for function, index in self._facts["frames"]]

    def standings(self) -> Sequence[Standing]:
        """Every lane of the CTA."""
        return [
            Standing(cta=m.cta, warp=m.warp, lanes=m.arrived, spot=m.spot, waits=m.waits)
            for m in self._core.moments
        ]

    def elsewhere(self, cta: Dim3, thread: Dim3) -> tuple[CoreMoment, int] | None:
        """The moment of another thread."""
        if cta != self.cta:
            return None
        for moment in self._core.moments:
            for lane in range(WARP_SIZE):
                if moment.arrived >> lane & 1 and moment.thread(lane) == thread:
                    return moment, lane
        return None

    def take_output(self) -> bytes:
        """Not kept."""
        return b""


def read_core(path: Path) -> Core:
    """Read a dump.

    Raises
    ------
    SetupError
        It cannot be read, or is none.
    """
    try:
        facts = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}", remedy=f"name {_WAYS}") from error
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise SetupError(f"{path} is no core dump", remedy=f"name {_WAYS}")
    return Core(facts)
