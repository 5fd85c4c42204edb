"""A served load, event by event: continuous batching with a paged cache and chunked prefill.

Replicas take requests in turn and are simulated one by one.  Between events every step of a batch
is alike, so many steps are taken at once; a simulated second of a thousand requests takes less
than a real one.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from va100.plan.load import Request
from va100.plan.serving import StepModel

MOST_STEPS_AT_ONCE: Final = 64
"""Steps taken at one price; the cache grows by as many tokens a sequence meanwhile."""


@dataclass(frozen=True, slots=True)
class Served:
    """What became of one request."""

    arrival_s: float
    first_token_s: float
    done_s: float
    output: int

    @property
    def ttft_s(self) -> float:
        """From arrival to the first token."""
        return self.first_token_s - self.arrival_s

    @property
    def tpot_s(self) -> float:
        """Between tokens after the first, on average; 0 with one token."""
        return (self.done_s - self.first_token_s) / max(self.output - 1, 1)

    @property
    def latency_s(self) -> float:
        """From arrival to the last token."""
        return self.done_s - self.arrival_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaResult:
    """One replica's requests and how it worked."""

    served: tuple[Served, ...]
    refused: int
    """Requests that no empty cache could hold."""
    preempted: int
    busy_s: float
    energy_j: float
    """Of one rank, while busy."""
    end_s: float
    steps: int


@dataclass(slots=True)
class _Job:
    number: int
    arrival_s: float
    prompt: int
    output: int
    left: int
    """Tokens of the prompt (and of what was lost) still to be filled in."""
    given: int = 0
    first_token_s: float = -1.0
    enter_step: int = 0
    enter_given: int = 0


@dataclass(slots=True)
class Replica:
    """One engine's state while a load is played."""

    steps: StepModel
    cache_tokens: int
    most_sequences: int
    chunk: int
    block: int
    prefilled: bool = False
    """Prompts come filled in already, from another replica."""
    _prices: dict[tuple[int, int, int, int], tuple[float, float]] = field(default_factory=dict)

    def play(self, requests: Sequence[Request]) -> ReplicaResult:
        """Serve all requests, first come, first served."""
        return _Play(self, requests).run()

    def price(self, new: int, length: int, decodes: int, context: float) -> tuple[float, float]:
        """Seconds and joules of a step; kept for steps that are nearly alike."""
        key = (_near(new), _near(length), decodes, _near(int(context)))
        found = self._prices.get(key)
        if found is None:
            parts = [(key[0], max(key[1], key[0]))] if new else []
            found = self.steps.step(parts, decodes, max(float(key[3]), 1.0))
            self._prices[key] = found
        return found


def _near(count: int) -> int:
    """A count rounded to 1 part in 32."""
    if count < 64:
        return count
    grain = 1 << (count.bit_length() - 6)
    return (count + grain // 2) // grain * grain


class _Play:
    """One replica's run through its requests."""

    def __init__(self, replica: Replica, requests: Sequence[Request]) -> None:
        self.replica = replica
        self.coming = deque(
            _Job(number, r.arrival_s, r.prompt, r.output, 0 if replica.prefilled else r.prompt)
            for number, r in enumerate(requests)
        )
        self.waiting: deque[_Job] = deque()
        self.filling: deque[_Job] = deque()
        self.running: dict[int, _Job] = {}
        self.ends: list[tuple[int, int]] = []
        self.now_s = 0.0
        self.step_number = 0
        self.context = 0
        self.held = 0
        self.refused = self.preempted = self.taken = 0
        self.busy_s = self.energy_j = 0.0
        self.served: list[Served] = []

    def run(self) -> ReplicaResult:
        while self.coming or self.waiting or self.filling or self.running:
            self._arrive()
            self._admit()
            if self.filling:
                self._mixed_step()
            elif self.running:
                self._decode_steps()
            elif self.coming:
                self.now_s = max(self.now_s, self.coming[0].arrival_s)
        self.served.sort(key=lambda one: (one.arrival_s, one.done_s))
        return ReplicaResult(
            served=tuple(self.served),
            refused=self.refused,
            preempted=self.preempted,
            busy_s=self.busy_s,
            energy_j=self.energy_j,
            end_s=self.now_s,
            steps=self.taken,
        )

    def _arrive(self) -> None:
        while self.coming and self.coming[0].arrival_s <= self.now_s:
            job = self.coming.popleft()
            if self._blocks(job.prompt + job.output) > self.replica.cache_tokens:
                self.refused += 1
            else:
                self.waiting.append(job)

    def _blocks(self, tokens: int) -> int:
        block = self.replica.block
        return -(-tokens // block) * block

    def _used(self) -> float:
        """Tokens of blocks in use; a running sequence's last block is half full on average."""
        return self.context + self.replica.block / 2 * len(self.running) + self.held

    def _admit(self) -> None:
        limit = self.replica.most_sequences
        while self.waiting and len(self.running) + len(self.filling) < limit:
            job = self.waiting[0]
            need = self._blocks(job.prompt + job.given + 1)
            if self._used() + need > self.replica.cache_tokens:
                return
            self.waiting.popleft()
            if job.left:
                self.held += need
                self.filling.append(job)
            else:
                self._start(job)

    def _start(self, job: _Job) -> None:
        """A filled-in sequence joins the batch."""
        job.enter_step, job.enter_given = self.step_number, job.given
        self.running[job.number] = job
        self.context += job.prompt + job.given
        heapq.heappush(self.ends, (self.step_number + job.output - job.given, job.number))

    def _take(self, seconds: float, joules: float, steps: int) -> None:
        self.now_s += seconds
        self.busy_s += seconds
        self.energy_j += joules
        self.taken += steps

    def _mixed_step(self) -> None:
        """All running sequences get a token, and the rest of the step fills prompts in."""
        count = len(self.running)
        room = (self.replica.chunk or 2**62) - count
        new = length = 0
        filled: list[_Job] = []
        while self.filling and room > 0:
            job = self.filling[0]
            take = min(job.left, room)
            job.left -= take
            room -= take
            new += take
            length = max(length, job.prompt + job.given - job.left)
            if job.left:
                break
            filled.append(self.filling.popleft())
        mean = self.context / count if count else 0.0
        seconds, joules = self.replica.price(new, length, count, mean)
        self._take(seconds, joules, 1)
        self._advance(1)
        for job in filled:
            self._first_token(job)

    def _first_token(self, job: _Job) -> None:
        self.held -= self._blocks(job.prompt + job.given + 1)
        if job.first_token_s < 0:
            job.first_token_s = self.now_s
            job.given = 1
        if job.given >= job.output:
            self._finish(job)
        else:
            self._start(job)

    def _decode_steps(self) -> None:
        """As many equal steps as nothing interrupts."""
        count = len(self.running)
        until = self.ends[0][0] - self.step_number
        steps = min(until, MOST_STEPS_AT_ONCE)
        mean = self.context / count
        seconds, joules = self.replica.price(0, 0, count, mean + steps / 2)
        if self.coming:
            gap_s = self.coming[0].arrival_s - self.now_s
            steps = max(min(steps, int(gap_s / seconds) + 1), 1)
        spare = self.replica.cache_tokens - self._used()
        if spare < count * steps:
            steps = max(int(spare // count), 1)
            if spare < count and count > 1:
                self._preempt()
                return
        self._take(seconds * steps, joules * steps, steps)
        self._advance(steps)

    def _advance(self, steps: int) -> None:
        self.step_number += steps
        self.context += steps * len(self.running)
        while self.ends and self.ends[0][0] <= self.step_number:
            _, number = heapq.heappop(self.ends)
            job = self.running.pop(number)
            self.context -= job.prompt + job.enter_given + self.step_number - job.enter_step
            if job.first_token_s < 0:
                job.first_token_s = self.now_s
            self._finish(job)

    def _finish(self, job: _Job) -> None:
        self.served.append(Served(job.arrival_s, job.first_token_s, self.now_s, job.output))

    def _preempt(self) -> None:
        """The latest sequence loses its cache and will be filled in again."""
        number = max(self.running, key=lambda key: (self.running[key].enter_step, key))
        job = self.running.pop(number)
        self.ends = [end for end in self.ends if end[1] != number]
        heapq.heapify(self.ends)
        done = job.enter_given + self.step_number - job.enter_step
        self.context -= job.prompt + done
        job.given = done
        job.left = job.prompt + done
        self.waiting.appendleft(job)
        self.preempted += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A distribution in five numbers."""

    mean: float
    p50: float
    p90: float
    p99: float
    largest: float


def summary(values: Sequence[float]) -> Summary:
    """Mean and percentiles (nearest rank)."""
    ranked = sorted(values)
    count = len(ranked)

    def at(share: float) -> float:
        return ranked[min(max(-(-int(share * count * 1000) // 1000), 1), count) - 1]

    return Summary(
        mean=sum(ranked) / count, p50=at(0.5), p90=at(0.9), p99=at(0.99), largest=ranked[-1]
    )
