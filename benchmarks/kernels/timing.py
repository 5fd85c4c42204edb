"""Timing several ways of doing the same work, interleaved, so that noise strikes all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

BURST = 4
"""Runs in a row of one contender: the first finds its data out of cache."""


@dataclass(slots=True)
class Best:
    """The fastest of many runs of a contender."""

    cpu_s: float = float("inf")
    """CPU time of the calling thread; meaningless for several workers."""
    wall_s: float = float("inf")
    runs: int = 0


@dataclass(slots=True)
class Race:
    """Contenders measured in turns."""

    contenders: Mapping[str, Callable[[], None]]
    best: dict[str, Best] = field(default_factory=dict)

    def run(self, seconds: float, least_rounds: int = 3) -> dict[str, Best]:
        """Give everyone bursts in turn until the time is up."""
        self.best = {name: Best() for name in self.contenders}
        end = time.perf_counter() + seconds
        rounds = 0
        while rounds < least_rounds or time.perf_counter() < end:
            for name, run in self.contenders.items():
                _burst(run, self.best[name])
            rounds += 1
        return self.best


def _burst(run: Callable[[], None], best: Best) -> None:
    for _ in range(BURST):
        wall, cpu = time.perf_counter(), time.thread_time()
        run()
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        best.cpu_s = min(best.cpu_s, cpu)
        best.wall_s = min(best.wall_s, wall)
        best.runs += 1
        if wall > 0.2:
            return
