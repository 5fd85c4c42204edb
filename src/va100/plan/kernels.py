"""Seconds and joules of the kernels that plans are made of.

The only place in the planner that asks :mod:`va100.perf.operators` and
:mod:`va100.perf.collectives`; answers are kept, since a search asks the same again and again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from va100.errors import PlanError
from va100.perf import collectives
from va100.perf.operators import attention, gemm
from va100.perf.operators.chips import find_chip
from va100.perf.operators.estimates import settle
from va100.perf.operators.streams import Stream, stream_demand


@dataclass(frozen=True, slots=True)
class Cost:
    """Time, energy and work of something that runs on one GPU (or of one rank's part of it)."""

    time_s: float = 0.0
    energy_j: float = 0.0
    flop_count: float = 0.0
    kernels: int = 0

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        return Cost(
            self.time_s + other.time_s,
            self.energy_j + other.energy_j,
            self.flop_count + other.flop_count,
            self.kernels + other.kernels,
        )

    def scaled(self, time: float = 1.0, count: float = 1.0) -> Cost:
        """``count`` of the same, each ``time`` times as long at equal energy per second."""
        factor = time * count
        return Cost(
            self.time_s * factor,
            self.energy_j * factor,
            self.flop_count * count,
            round(self.kernels * count),
        )


NOTHING = Cost()


class Gemm(NamedTuple):
    """A product ``m x k`` by ``k x n``, ``batch`` of them."""

    m: int
    n: int
    k: int
    batch: int
    dtype: str
    chip: str
    sparse: bool = False


class Core(NamedTuple):
    """The core of attention: prefill, or decode over a paged cache."""

    batch: int
    q_len: int
    kv_len: int
    heads: int
    kv_heads: int
    head_dim: int
    causal: bool
    dtype: str
    chip: str
    kv_dtype: str = ""
    value_dim: int = 0


@lru_cache(maxsize=65536)
def product(shape: Gemm) -> Cost:
    """A matrix product."""
    if min(shape.m, shape.n, shape.k, shape.batch) < 1:
        return NOTHING
    try:
        found = gemm.estimate(
            shape.m,
            shape.n,
            shape.k,
            batch=shape.batch,
            dtype=shape.dtype,
            sparse=shape.sparse,
            chip=shape.chip,
        )
    except ValueError as error:
        raise PlanError(str(error), hint="choose another precision or machine") from error
    flop_count = 2.0 * shape.m * shape.n * shape.k * shape.batch
    return Cost(found.time_s, found.energy_j, flop_count, 1)


@lru_cache(maxsize=65536)
def flash(shape: Core) -> Cost:
    """The core of attention in one kernel."""
    try:
        found = attention.estimate(
            shape.batch,
            shape.q_len,
            shape.kv_len,
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            causal=shape.causal,
            dtype=shape.dtype,
            kv_dtype=shape.kv_dtype or None,
            value_dim=shape.value_dim or None,
            chip=shape.chip,
        )
    except ValueError as error:
        raise PlanError(str(error), hint="choose another precision or machine") from error
    return Cost(found.time_s, found.energy_j, found.flop_count, 1)


@lru_cache(maxsize=16384)
def stream(read_bytes: int, write_bytes: int, chip: str) -> Cost:
    """One kernel that streams through memory: a norm, an activation, dropout, the optimiser."""
    if read_bytes + write_bytes <= 0:
        return NOTHING
    moved = Stream(read_bytes=float(read_bytes), written_bytes=float(write_bytes))
    target = find_chip(chip)
    found = settle(stream_demand(moved, target), target)
    return Cost(found.time_s, found.energy_j, 0.0, 1)


class Among(NamedTuple):
    """Who takes part in a collective: ranks, as many on each of so many nodes of a kind."""

    ranks: int
    node: str
    nodes: int = 1
    network: str = ""


@lru_cache(maxsize=16384)
def collective(op: str, count_bytes: int, among: Among) -> Cost:
    """A collective; joules of one rank."""
    if among.ranks <= 1 or count_bytes <= 0:
        return NOTHING
    try:
        found = collectives.estimate(op, count_bytes, among.ranks, group=_group(among))
    except ValueError as error:
        raise PlanError(str(error), hint="choose other sizes of groups") from error
    return Cost(found.time_s, found.energy_j / among.ranks, 0.0, 1)


@lru_cache(maxsize=1024)
def _group(among: Among) -> collectives.Group:
    return collectives.group_of(
        among.ranks, among.node, nodes=among.nodes, network=among.network or None
    )
