"""The same launches elsewhere: on other cards, slices and clocks, and with their data in L2.

Counters are those of the run; only what they would take is predicted anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from va100.errors import OutOfResources, SetupError
from va100.perf.kernel import estimate
from va100.perf.memory import Residency
from va100.perf.slices import slice_of
from va100.profile.launch import Launch
from va100.profile.quantities import counters_of
from va100.profile.reasons import together
from va100.profile.table import extent_text
from va100.spec import mig
from va100.spec.a100 import MODELS
from va100.spec.model import ChipSpec
from va100.spec.names import find_models
from va100.units import MHZ, energy_text, time_text
from va100.work import Counters, KernelResources, LaunchConfig

_CLOCK: Final = re.compile(r"(\d+)\s*mhz", re.IGNORECASE)
_WARM: Final = "warm"
_CLOCKS_HZ: Final = (1095 * MHZ, 765 * MHZ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Somewhere else, or something else, to run at."""

    name: str
    chip: ChipSpec
    clock_hz: float | None = None
    residency: Residency = Residency.DRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a launch would take there; a reason where it cannot run."""

    variation: str
    time_s: float | None
    energy_j: float | None
    bound: str


def variations(words: Sequence[str], chip: ChipSpec) -> list[Variation]:
    """What is asked for, or the usual: the four models, every slice, lower clocks, data in L2.

    Parameters
    ----------
    words : sequence of str
        Models (``sxm80``), MIG profiles of the chip (``1g.10gb``), clocks (``1095MHz``), ``warm``.

    Raises
    ------
    SetupError
        A word is none of these.
    """
    if words:
        return [_variation(word.strip(), chip) for word in words]
    slices = [entry.name for entry in mig.profiles(chip) if not entry.media_extensions]
    return [
        *(Variation(name=model.name, chip=model) for model in MODELS),
        *(_variation(name, chip) for name in slices),
        *(_variation(f"{clock // MHZ}MHz", chip) for clock in _CLOCKS_HZ),
        _variation(_WARM, chip),
    ]


def what_if(launch: Launch, variation: Variation) -> Outcome:
    """Predict one launch under a variation."""
    try:
        found = estimate(
            *launched(launch),
            variation.chip,
            residency=variation.residency,
            clock_hz=variation.clock_hz,
            kernel=launch.name,
        )
    except OutOfResources as error:
        return Outcome(variation=variation.name, time_s=None, energy_j=None, bound=str(error))
    return Outcome(
        variation=variation.name,
        time_s=found.duration_s,
        energy_j=found.energy.energy_j,
        bound=found.bound_by.value,
    )


def launched(launch: Launch) -> tuple[Counters, LaunchConfig, KernelResources]:
    """What the performance model needs to know of a launch to predict it anew."""
    resources = KernelResources(
        registers_per_thread=launch.registers,
        static_shared_bytes=launch.shared_bytes,
        local_bytes=launch.local_bytes,
    )
    config = LaunchConfig(grid=launch.grid, block=launch.block)
    return counters_of(launch.counters), config, resources


def whatif_text(launches: Sequence[Launch], places: Sequence[Variation]) -> str:
    """A table for each kernel and shape: where, how long, how much of now, joules, bound."""
    parts = []
    for group in together(launches).values():
        launch = max(group, key=lambda each: each.time_s)
        shape = f"{extent_text(launch.grid)} x {extent_text(launch.block)}"
        lines = [f"{launch.name}, {shape}: {time_text(launch.time_s)} as it ran"]
        width = max(len(place.name) for place in places)
        for place in places:
            found = what_if(launch, place)
            if found.time_s is None:
                lines.append(f"  {place.name:{width}}  {found.bound}")
                continue
            lines.append(
                f"  {place.name:{width}}  {time_text(found.time_s):>8}  "
                f"{found.time_s / launch.time_s:5.2f}x  "
                f"{energy_text(found.energy_j or 0.0):>8}  {found.bound}"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def whatif_json(launches: Sequence[Launch], places: Sequence[Variation]) -> str:
    """The same as a list of records, in base units."""
    records = [
        {
            "kernel": launch.name,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "variation": found.variation,
            "time_s": found.time_s,
            "energy_j": found.energy_j,
            "bound": found.bound,
        }
        for launch in launches
        for found in (what_if(launch, place) for place in places)
    ]
    return json.dumps(records, indent=1)


def _variation(word: str, chip: ChipSpec) -> Variation:
    if word.lower() == _WARM:
        return Variation(name="data in L2", chip=chip, residency=Residency.L2)
    clock = _CLOCK.fullmatch(word)
    try:
        if clock is not None:
            clock_hz = float(clock[1]) * MHZ
            if not chip.idle_clock_hz <= clock_hz <= chip.boost_clock_hz:
                raise ValueError(f"{chip.name} does not run at {word}")
            return Variation(name=f"{clock[1]} MHz", chip=chip, clock_hz=clock_hz)
        if "g." in word.lower():
            return Variation(name=f"MIG {word.lower()}", chip=slice_of(chip, word))
        found = [model for model in find_models(word) if isinstance(model, ChipSpec)]
        if len(found) != 1:
            names = ", ".join(model.name for model in found or MODELS)
            raise ValueError(f"{word} is no A100, or more than one: name one of {names}")
        return Variation(name=found[0].name, chip=found[0])
    except ValueError as error:
        raise SetupError(
            str(error),
            remedy="name models (sxm80), MIG profiles (1g.5gb), clocks (1095MHz) or warm",
        ) from error
