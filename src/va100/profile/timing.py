"""One launch timed without a program around it, for harnesses that sweep configurations.

The kernel runs on the engine that is handed in; nothing here names one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from va100.driver.checked import CheckedModule, checked_module
from va100.driver.detail import counters_entry, estimate_entry
from va100.driver.names import short_name
from va100.errors import LaunchError
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine, LoadedModule
from va100.gpu.place import place_module, remove_module
from va100.perf.band import band_s
from va100.perf.kernel import KernelEstimate, estimate
from va100.perf.memory import Residency
from va100.perf.occupancy import Occupancy
from va100.profile.arguments import packed_arguments
from va100.profile.launch import Launch
from va100.ptx.program import Function, PtxModule
from va100.ptx.verify import unsupported
from va100.spec.model import ChipSpec
from va100.work import OBSERVED_CTAS, Counters, Dim3, KernelResources, LaunchConfig, Sampling

Extent = int | Sequence[int]
_MOST_GRID = (2**31 - 1, 65535, 65535)
_MOST_BLOCK = (1024, 1024, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a launch asks for besides its kernel."""

    grid: Extent
    block: Extent
    dynamic_shared_bytes: int = 0

    def config(self, kernel: str) -> LaunchConfig:
        """Check it against what any launch may ask for.

        Raises
        ------
        LaunchError
            An extent is 0 or larger than CUDA takes.
        TypeError, ValueError
            It is no extent at all.
        """
        grid, block = _extent(self.grid, "grid"), _extent(self.block, "block")
        for name, extent, most in (("grid", grid, _MOST_GRID), ("block", block, _MOST_BLOCK)):
            if not all(1 <= size <= limit for size, limit in zip(extent, most, strict=True)):
                raise LaunchError(
                    f"{name} is {extent}, each of it from 1 to {Dim3(*most)}", kernel=kernel
                )
        if self.dynamic_shared_bytes < 0:
            raise ValueError(f"dynamic shared memory of {self.dynamic_shared_bytes} bytes")
        return LaunchConfig(grid=grid, block=block, dynamic_shared_bytes=self.dynamic_shared_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a launch finds when it starts, and what is wanted of it."""

    chip: ChipSpec
    residency: Residency = Residency.DRAM
    copy_back: bool = False
    """Whether writable arrays receive what the kernel wrote."""
    cta_count: int | None = None
    """CTAs that run, for all; none: all run."""
    clock_hz: float | None = None
    """SM clock; boost without it."""


def timed(
    engine: Engine,
    text: str,
    kernel: str,
    shape: Shape,
    given: Sequence[Any],
    conditions: Conditions,
) -> Launch:
    """Run one launch and say what the chip would take for it.

    Parameters
    ----------
    text : str
        PTX.
    kernel : str
        Name as in the text, or as people write it: ``reduce<256, float>``, or ``reduce`` where
        there is one only.
    given : sequence
        Arguments; see :func:`va100.profile.arguments.packed_arguments`.

    Raises
    ------
    OutOfResources
        The launch does not fit on an SM; it is not run.
    LaunchError, DeviceFault, PtxError, LinkError, TypeError, ValueError
    """
    checked = checked_module(text, "kernel.ptx")
    function = find_kernel(checked.ptx, kernel)
    config = shape.config(function.name)
    _require_executed(checked, function)
    least = KernelResources(registers_per_thread=1)
    _estimate(Counters(), config, least, conditions, function.name)  # refuses what never fits
    arena = Arena()
    module = place_module(checked.ptx, arena)
    try:
        resources = engine.prepare(module, function.name, config.block)
        fit = _estimate(Counters(), config, resources, conditions, function.name).occupancy
        config = replace(config, sampling=_sampling(fit, config, conditions))
        arguments = packed_arguments(function, given, arena)
        try:
            outcome = engine.launch(module, function.name, config, arguments.packed)
            if conditions.copy_back:
                arguments.copy_back()
            footprint = arguments.footprint_bytes + _variable_bytes(module)
        finally:
            arguments.free()
    finally:
        remove_module(module)
    counters = replace(outcome.counters, footprint_bytes=float(footprint))
    priced = _estimate(counters, config, resources, conditions, function.name)
    return _launch(function.name, config, resources, counters, priced)


def find_kernel(module: PtxModule, name: str) -> Function:
    """Find a kernel by its name in the module or as people write it.

    Raises
    ------
    ValueError
        There is none, or more than one.
    """
    exact = [kernel for kernel in module.kernels if kernel.name == name]
    written = [kernel for kernel in module.kernels if short_name(kernel.name) == name]
    plain = [kernel for kernel in module.kernels if _plain(kernel.name) == name]
    found = exact or written or plain
    if len(found) == 1:
        return found[0]
    names = ", ".join(short_name(kernel.name) for kernel in (found or module.kernels))
    problem = "leaves a choice among" if found else "is none of"
    raise ValueError(f"kernel {name} {problem} {names or 'the kernels, of which there are none'}")


def _sampling(fit: Occupancy, config: LaunchConfig, conditions: Conditions) -> Sampling:
    """CTAs that are observed, with the caches they find."""
    sm = conditions.chip.sm
    wanted = conditions.cta_count
    resident = min(fit.ctas_per_sm, -(-config.grid.size // conditions.chip.sm_count))
    return Sampling(
        cta_count=OBSERVED_CTAS if wanted is None else wanted,
        alone=wanted is not None,
        l1_cta_bytes=(sm.l1_shared_bytes - fit.carveout_bytes) // resident,
        l2_bytes=conditions.chip.l2_bytes,
    )


def _estimate(
    counters: Counters,
    config: LaunchConfig,
    resources: KernelResources,
    conditions: Conditions,
    kernel: str,
) -> KernelEstimate:
    return estimate(
        counters, config, resources, conditions.chip, residency=conditions.residency,
        clock_hz=conditions.clock_hz, kernel=short_name(kernel),
    )  # fmt: skip


def _require_executed(checked: CheckedModule, function: Function) -> None:
    """Refuse a kernel that reaches what is not executed, by name."""
    found = unsupported(checked.ptx, function)
    if found:
        raise found[0]
    if function.name in checked.refusals:
        raise LaunchError(checked.refusals[function.name], kernel=short_name(function.name))


def _launch(
    kernel: str,
    config: LaunchConfig,
    resources: KernelResources,
    counters: Counters,
    priced: KernelEstimate,
) -> Launch:
    told = estimate_entry(priced)
    return Launch(
        kernel=kernel,
        grid=config.grid,
        block=config.block,
        time_s=priced.duration_s,
        time_s_band=band_s(priced.duration_s, priced.bound_by),
        energy_j=priced.energy.energy_j,
        clock_hz=priced.energy.clock_hz,
        bound=told["bound_by"],
        occupancy=priced.occupancy.fraction,
        registers=resources.registers_per_thread,
        shared_bytes=resources.static_shared_bytes + config.dynamic_shared_bytes,
        counters=counters_entry(counters),
        dynamic_shared_bytes=config.dynamic_shared_bytes,
        local_bytes=resources.local_bytes,
        waves=told["waves"],
        fit=told["occupancy"],
        parts=told["parts"],
        assumed=tuple(told["assumed"]),
    )


def _variable_bytes(module: LoadedModule) -> int:
    return sum(v.size_bytes for v in module.ptx.variables if v.name in module.addresses)


def _extent(given: Extent, name: str) -> Dim3:
    sizes = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name} has {len(sizes)} extents, not one to three")
    if not all(isinstance(size, int) for size in sizes):
        raise TypeError(f"{name} is {given!r}, not one to three whole numbers")
    return Dim3(*sizes)


def _plain(mangled: str) -> str:
    return short_name(mangled).partition("<")[0].rpartition("::")[2]
