"""The debugger's judgement: at which instruction of which warp the program stops.

What people say and see when it does is in :mod:`.commands`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from va100.debug.breakpoints import Breakpoint, Place
from va100.debug.expression import truth
from va100.debug.names import Names
from va100.gpu.watch import Moment
from va100.ptx.program import PtxModule
from va100.work import WARP_SIZE


class Pace(Enum):
    """How far the program goes on."""

    RUN = "run"
    STEP = "step"
    """To another line of the source."""
    NEXT = "next"
    """To another line, calls in one go."""
    STEP_INSTRUCTION = "stepi"
    NEXT_INSTRUCTION = "nexti"
    FINISH = "finish"
    """Out of the function."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why and where the program stands still."""

    moment: Moment
    lane: int
    reason: str
    fault: Exception | None = None
    is_dead: bool = False
    """Whether it is a dump: nothing goes on from here."""


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a step began."""

    launch_id: int
    key: tuple[object, ...]
    lane: int
    depth: int
    line: tuple[str, int]


Interact = Callable[[Stop], None]


class Debugger:
    """Stops launches; a :class:`va100.debug.interpreted.Choosing` watcher.

    ``interact`` is called at each stop and says with :meth:`go` how to go on.
    """

    def __init__(self, interact: Interact, tell: Callable[[str], object]) -> None:
        self._interact = interact
        self._tell = tell
        self.breakpoints: dict[int, Breakpoint] = {}
        self.catches_faults = False
        self.interrupted = False
        """Set by a signal: stop at the next instruction."""
        self._numbers = 0
        self._pace = Pace.RUN
        self._start: _Start | None = None
        self._launch_id = 0
        self._places: dict[Place, list[Breakpoint]] = {}
        self._entered: set[int] = set()
        """Breakpoints on the kernel that have stopped this launch."""
        self._entered_for = 0
        self._stopped = False
        self.is_watching = False
        """Whether a launch is under way."""

    # ------------------------------------------------------------ what is asked for

    def add(self, where: str, condition: str, *, once: bool) -> Breakpoint:
        """Make a breakpoint."""
        self._numbers += 1
        made = Breakpoint(self._numbers, where, condition, once)
        self.breakpoints[made.number] = made
        self._launch_id = 0  # the places of this launch are to be looked up again
        return made

    def delete(self, number: int) -> None:
        """Forget a breakpoint."""
        del self.breakpoints[number]
        self._launch_id = 0

    def enable(self, number: int, *, on: bool) -> None:
        """Stop at a breakpoint from now on, or do not."""
        self.breakpoints[number].enabled = on
        self._launch_id = 0

    def go(self, pace: Pace, stop: Stop | None) -> None:
        """Say how far to go on from a stop."""
        self._pace = pace
        self._start = None
        if stop is not None and pace is not Pace.RUN:
            spot = stop.moment.spot
            self._start = _Start(
                stop.moment.launch_id,
                (stop.moment.cta, stop.moment.warp),
                stop.lane,
                stop.moment.depth,
                (spot.file, spot.line),
            )

    def unfound(self) -> Iterator[Breakpoint]:
        """Breakpoints whose place no code has had so far."""
        return (b for b in self.breakpoints.values() if not b.is_found)

    # ------------------------------------------------------------ the watcher

    def wants(self, kernel: str, module: PtxModule) -> bool:
        """Whether a launch may stop."""
        if self.catches_faults:
            return True
        kernels = {f.name for f in module.kernels}
        return any(
            function == kernel or function not in kernels
            for b in self._enabled()
            for function, _ in b.places(module)
        )

    def before(self, moment: Moment) -> None:
        """Stop here, or not."""
        if moment.launch_id != self._launch_id:
            self._enter(moment)
        self.is_watching = True
        stop = self._stop(moment)
        if stop is not None:
            self._pace, self._start, self.interrupted = Pace.RUN, None, False
            self._stopped = True
            self._interact(stop)

    def after(self, moment: Moment) -> None:
        """Nothing: the debugger stops before instructions."""

    def faulted(self, moment: Moment, error: Exception) -> None:
        """Stop at what was wrong, to look at it."""
        lanes = moment.lanes or moment.arrived
        lane = (lanes & -lanes).bit_length() - 1
        thread = getattr(error, "thread", None)
        if thread is not None:
            for candidate in _lanes(lanes):
                if tuple(moment.thread(candidate)) == tuple(thread):
                    lane = candidate
        self._stopped = True
        self._interact(Stop(moment, lane, str(error), error))

    def ended(self) -> None:
        """Say that a launch which has stopped is over."""
        if self._stopped:
            left = "; the thread that was stepped has ended" if self._start is not None else ""
            self._tell(f"[the launch has ended{left}]")
        self._stopped, self._start, self._pace = False, None, Pace.RUN
        self.is_watching = False
        self._launch_id = 0

    # ------------------------------------------------------------ stopping

    def _enabled(self) -> list[Breakpoint]:
        return [b for b in self.breakpoints.values() if b.enabled]

    def _enter(self, moment: Moment) -> None:
        self._launch_id = moment.launch_id
        if moment.launch_id != self._entered_for:
            self._entered_for = moment.launch_id
            self._entered.clear()
        self._places = {}
        for breakpoint_ in self._enabled():
            for place in breakpoint_.places(moment.module):
                self._places.setdefault(place, []).append(breakpoint_)

    def _stop(self, moment: Moment) -> Stop | None:
        if self.interrupted:
            return Stop(moment, next(_lanes(moment.arrived)), "Interrupted")
        for breakpoint_ in self._places.get((moment.function, moment.index), ()):
            lane = self._hit(breakpoint_, moment)
            if lane is not None:
                return Stop(moment, lane, self._count(breakpoint_, moment))
        start = self._start
        if start is None or not self._is_stepped(moment, start):
            return None
        return Stop(moment, start.lane, "")

    def _hit(self, breakpoint_: Breakpoint, moment: Moment) -> int | None:
        """The lane that a breakpoint stops, or None."""
        once_a_launch = breakpoint_.is_function and moment.depth == 0
        if once_a_launch and breakpoint_.number in self._entered:
            return None
        for lane in _lanes(moment.arrived):
            if not breakpoint_.condition or self._holds(breakpoint_, moment, lane):
                if once_a_launch:
                    self._entered.add(breakpoint_.number)
                return lane
        return None

    def _holds(self, breakpoint_: Breakpoint, moment: Moment, lane: int) -> bool:
        try:
            return truth(breakpoint_.condition, Names(moment, lane))
        except (LookupError, ValueError) as error:
            self._tell(f"breakpoint {breakpoint_.number}: {breakpoint_.condition}: {error}")
            return True

    def _count(self, breakpoint_: Breakpoint, moment: Moment) -> str:
        breakpoint_.hits += 1
        if breakpoint_.once:
            del self.breakpoints[breakpoint_.number]
            self._enter(moment)
            return f"Temporary breakpoint {breakpoint_.number}"
        return f"Breakpoint {breakpoint_.number}"

    def _is_stepped(self, moment: Moment, start: _Start) -> bool:
        """Whether a step that began somewhere ends here."""
        is_there = (moment.cta, moment.warp) == start.key and moment.arrived >> start.lane & 1
        if moment.launch_id != start.launch_id or not is_there:
            return False
        if self._pace is Pace.FINISH:
            return moment.depth < start.depth
        if self._pace is Pace.STEP_INSTRUCTION:
            return True
        if moment.depth > start.depth and self._pace in (Pace.NEXT, Pace.NEXT_INSTRUCTION):
            return False
        if self._pace is Pace.NEXT_INSTRUCTION or not start.line[1]:
            return True
        spot = moment.spot
        changed = (spot.file, spot.line) != start.line or moment.depth != start.depth
        return bool(spot.line) and changed


def _lanes(bits: int) -> Iterator[int]:
    return (lane for lane in range(WARP_SIZE) if bits >> lane & 1)
