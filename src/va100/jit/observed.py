"""What the accesses of observed CTAs amount to, read back from a launch's counters.

The native core adds them up by instruction (``native/exec/observe.cpp``); here they become what
one execution costs, in place of what is known before anything runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from va100.jit.block_counts import COUNTERS_PER_BLOCK
from va100.jit.compile import CompiledBlock
from va100.jit.count import BlockCost
from va100.work import Counters, LaunchConfig

LAUNCH_FIELDS: Final = 8
SITE_FIELDS: Final = 8
_SECTOR_SQUARES, _WAVEFRONT_SQUARES = 2, 3
_SECTORS, _WAVEFRONTS = 2, 3
_FEWEST: Final = 2
"""CTAs from which their spread can be told."""


def observed_counter_count(sites: int) -> int:
    """Counters that a variant has beyond those of its blocks."""
    return LAUNCH_FIELDS + sites * SITE_FIELDS


@dataclass(frozen=True, slots=True)
class Observation:
    """The counters of one launch's observed CTAs."""

    counts: Sequence[float]
    """From the first of them on."""
    cta_count: int
    """CTAs that were observed."""

    @property
    def stands_for(self) -> float:
        """CTAs that the counters are of: more than were observed where some count for others."""
        return self.counts[0]

    @property
    def written_sectors(self) -> float:
        """Sectors that went from L2 to DRAM."""
        return self.counts[1]

    def error(self, amount: int, squares: int) -> float:
        """Standard error of a sum over CTAs from a sample of them, as a part of the sum."""
        n, of = self.cta_count, self.stands_for
        total = sum(self.counts[LAUNCH_FIELDS + amount :: SITE_FIELDS])
        if n < _FEWEST or not total:
            return 0.0
        mean = total / of
        variance = max(self.counts[squares] / of - mean * mean, 0.0) * n / (n - 1)
        return math.sqrt(variance / n) / mean

    def scaled(self, counts: Sequence[float], config: LaunchConfig) -> Sequence[float]:
        """Counters of blocks for the whole grid, where only the observed CTAs ran."""
        if config.sampling is None or not config.sampling.alone:
            return counts
        scale = config.grid.size / self.stands_for
        return [n * scale for n in counts]

    def site(self, number: int) -> Sequence[float]:
        """What one instruction's accesses amounted to."""
        first = LAUNCH_FIELDS + number * SITE_FIELDS
        return self.counts[first : first + SITE_FIELDS]


def with_errors(counters: Counters, observation: Observation, cta_count: int) -> Counters:
    """Counters of a launch with what concerns its sample as a whole."""
    n = observation.cta_count
    share = observation.stands_for / cta_count
    return replace(
        counters,
        observed_cta_count=n,
        sampled_fraction=n / cta_count if counters.sampled_fraction else 0.0,
        dram_write_sectors=observation.written_sectors / share,
        sector_error=observation.error(_SECTORS, _SECTOR_SQUARES) if n < cta_count else 0.0,
        wavefront_error=observation.error(_WAVEFRONTS, _WAVEFRONT_SQUARES)
        if n < cta_count
        else 0.0,
    )


def observed_costs(
    costs: Sequence[BlockCost],
    blocks: Sequence[CompiledBlock],
    counts: Sequence[float],
    observation: Observation,
    cta_count: int,
) -> list[BlockCost]:
    """Costs of instructions with what was observed of each instead of what was assumed.

    Parameters
    ----------
    costs : sequence of BlockCost
        Of each instruction.
    counts : sequence of int
        Of the blocks of the whole launch.
    """
    found = list(costs)
    scale = cta_count / observation.stands_for if observation.stands_for else 0.0
    for number, block in enumerate(blocks):
        whole, parted, _ = counts[number * COUNTERS_PER_BLOCK : (number + 1) * COUNTERS_PER_BLOCK]
        issues = whole + parted
        for site in range(block.first_site, block.end_site):
            seen = observation.site(site)
            if seen[0] and issues:
                found[site] = _with(costs[site], seen, issues, scale)
    return found


def _with(cost: BlockCost, seen: Sequence[float], issues: float, scale: float) -> BlockCost:
    """Per execution of the block, as far as the whole launch's executions tell."""
    executions, _, sectors, wavefronts, lines, l1_hits, l2_sectors, l2_hits = seen
    store = next(iter(cost.opcodes)).startswith(("st.", "wmma.store."))
    shared_store = store or bool(cost.shared_store_requests)
    is_global, atomic = bool(cost.global_requests), bool(cost.atomics)
    amounts = {
        "wavefronts": wavefronts,
        "store_wavefronts": wavefronts if shared_store else 0,
        "sectors": sectors if is_global else 0,
        "store_sectors": sectors if is_global and store else 0,
        "local_sectors": 0 if is_global or atomic else sectors,
        "l1_lines": lines,
        "l1_load_sectors": 0 if store or atomic else sectors,
        "l1_hit_sectors": l1_hits,
        "l2_sectors": l2_sectors,
        "l2_store_sectors": l2_sectors if store else 0,
        "l2_hit_sectors": l2_hits,
        "dram_read_sectors": 0 if store else l2_sectors - l2_hits,
    }
    # Without a guard each execution of the block makes its requests; with one only some do.
    requests = max(cost.global_requests + cost.shared_requests + cost.atomics, 1)
    each = scale / issues if cost.guarded else requests / executions
    return replace(
        cost,
        sectors=0, store_sectors=0, wavefronts=0, store_wavefronts=0, unknown=0,
        seen_shared=cost.shared_requests,
        seen_shared_stores=cost.shared_store_requests,
        seen=Counter({name: n * each for name, n in amounts.items() if n}),
    )  # fmt: skip
