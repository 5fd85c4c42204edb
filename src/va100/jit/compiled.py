"""A kernel that was compiled, and what a launch's counters say of it.

How it is compiled is in :mod:`va100.jit.engine`, how it runs in the native core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from va100.jit.compile import CompiledBlock, Layout, Site, sites
from va100.jit.count import (
    BlockCost,
    block_costs,
    counters_from,
    instruction_costs,
    pack_costs,
    unpack_costs,
)
from va100.jit.lines import LineCost, block_sums, line_costs, line_counters
from va100.jit.native import Variant
from va100.jit.observed import Observation, observed_costs, with_errors
from va100.ptx.program import PtxModule
from va100.ptx.waits import constant_bytes
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, SourceLine


@dataclass(frozen=True, kw_only=True)
class CompiledKernel:
    """A kernel's machine code for one block shape, with what explains it."""

    variant: Variant
    resources: KernelResources
    block: Dim3
    blocks: Sequence[CompiledBlock]
    lay_out: Callable[[], Layout]
    """The layout is only needed to explain, so it is only made when somebody asks."""
    ptx: PtxModule
    remembered: Callable[[Callable[[], bytes]], bytes]
    """Gives what an earlier process found out about the costs, or has it found out."""
    keep: tuple[object, ...]

    @cached_property
    def costs(self) -> Sequence[BlockCost]:
        """What one execution of each block amounts to."""
        return unpack_costs(self.remembered(self._costs))

    def _costs(self) -> bytes:
        return pack_costs(block_costs(self.lay_out(), self.blocks, self.block))

    @cached_property
    def _each(self) -> Sequence[BlockCost]:
        return instruction_costs(self.lay_out(), self.block)

    @cached_property
    def _line_costs(self) -> Mapping[SourceLine, LineCost]:
        return line_costs(self._each, self.sites, self.blocks)

    def counters(
        self, counts: Sequence[float], config: LaunchConfig, observed: int | None = None
    ) -> Counters:
        """What a launch's counters amount to; ``observed`` where some CTAs count for others."""
        found = self._counters(counts, config, observed)
        if not found.constant_waits:
            return found
        return replace(found, constant_bytes=float(constant_bytes(self.ptx)))

    def _counters(
        self, counts: Sequence[float], config: LaunchConfig, observed: int | None
    ) -> Counters:
        seen = self._observation(counts, observed)
        if seen is None:
            return counters_from(self.costs, counts, config)
        scaled = seen.scaled(counts[: self.variant.observed_at], config)
        costs = self._observed(seen, scaled, config)
        summed = counters_from(block_sums(costs, self.blocks), scaled, config)
        return with_errors(summed, seen, config.grid.size)

    def lines(self, counts: Sequence[float], config: LaunchConfig) -> Mapping[SourceLine, Counters]:
        """What of a launch's counters each source line is answerable for."""
        seen = self._observation(counts)
        if seen is None:
            return line_counters(self._line_costs, counts, config)
        scaled = seen.scaled(counts[: self.variant.observed_at], config)
        costs = self._observed(seen, scaled, config)
        return line_counters(line_costs(costs, self.sites, self.blocks), scaled, config)

    def _observation(
        self, counts: Sequence[float], observed: int | None = None
    ) -> Observation | None:
        at = self.variant.observed_at
        if not at or not counts[at]:
            return None
        seen = counts[at : self.variant.counter_count]
        return Observation(seen, int(seen[0]) if observed is None else observed)

    def _observed(
        self, seen: Observation, counts: Sequence[float], config: LaunchConfig
    ) -> Sequence[BlockCost]:
        return observed_costs(self._each, self.blocks, counts, seen, config.grid.size)

    @cached_property
    def sites(self) -> Sequence[Site]:
        """Every instruction of the variant."""
        return list(sites(self.ptx, self.lay_out()))
