"""Which source lines a launch's counters came from.

A line's share follows from how often its blocks ran, as the whole launch's counters do; what one
execution of a block amounts to is told in :mod:`va100.jit.count`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from va100.jit.block_counts import COUNTERS_PER_BLOCK
from va100.jit.compile import CompiledBlock, Site
from va100.jit.count import BlockCost, counters_from
from va100.work import Counters, LaunchConfig, SourceLine


@dataclass(frozen=True, slots=True)
class LineCost:
    """What one execution of each of its blocks adds to a line."""

    blocks: tuple[int, ...]
    costs: tuple[BlockCost, ...]


def line_costs(
    costs: Sequence[BlockCost], sites: Sequence[Site], blocks: Sequence[CompiledBlock]
) -> dict[SourceLine, LineCost]:
    """Split the cost of every block by line.

    Parameters
    ----------
    costs : sequence of BlockCost
        Of each instruction, in the order of ``sites``.
    """
    gathered: dict[SourceLine, dict[int, BlockCost]] = defaultdict(dict)
    for number, block in enumerate(blocks):
        for site, cost in _between(sites, costs, block):
            total = gathered[_line_of(site)].setdefault(number, BlockCost())
            _accumulate(total, cost)
    return {
        line: LineCost(tuple(by_block), tuple(by_block.values()))
        for line, by_block in gathered.items()
    }


def block_sums(costs: Sequence[BlockCost], blocks: Sequence[CompiledBlock]) -> list[BlockCost]:
    """Costs of blocks from those of their instructions."""
    sums = []
    for block in blocks:
        total = BlockCost()
        for cost in costs[block.first_site : block.end_site]:
            _accumulate(total, cost)
        sums.append(total)
    return sums


def line_counters(
    lines: Mapping[SourceLine, LineCost], counts: Sequence[float], config: LaunchConfig
) -> dict[SourceLine, Counters]:
    """Sum each line over the blocks of a finished launch; lines that never ran are left out."""
    found = {}
    for line, cost in lines.items():
        own = [n for number in cost.blocks for n in _counts_of(number, counts)]
        if any(own):
            found[line] = counters_from(cost.costs, own, config)
    return found


def _counts_of(block: int, counts: Sequence[float]) -> Sequence[float]:
    return counts[block * COUNTERS_PER_BLOCK : (block + 1) * COUNTERS_PER_BLOCK]


def _between(
    sites: Sequence[Site], costs: Sequence[BlockCost], block: CompiledBlock
) -> Iterable[tuple[Site, BlockCost]]:
    first, end = block.first_site, block.end_site
    return zip(sites[first:end], costs[first:end], strict=True)


def _line_of(site: Site) -> SourceLine:
    if site.source_line:
        return SourceLine(site.file, site.source_line)
    return SourceLine("", site.line, site.text)


def _accumulate(total: BlockCost, cost: BlockCost) -> None:
    for entry in fields(cost):
        setattr(total, entry.name, getattr(total, entry.name) + getattr(cost, entry.name))
