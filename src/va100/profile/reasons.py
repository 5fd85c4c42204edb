"""Why a launch takes as long as it does, in words.

Sentences are made of the numbers in :mod:`va100.profile.quantities`; nothing is measured or
guessed here, and what was not counted is not spoken of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from va100.perf.band import band_source
from va100.perf.kernel import Bound, launch_floor_s
from va100.profile.launch import Launch, bound_of
from va100.profile.quantities import quantities
from va100.profile.report_schema import LineCounters, issues_of, sectors_of
from va100.spec.model import ChipSpec
from va100.spec.rates import memory_bytes_per_s
from va100.units import GB, MHZ, rate_text, time_text
from va100.units import energy_text as joules_text
from va100.work import WARP_SIZE

Sentence = Callable[[Launch, Mapping[str, float], ChipSpec], str]

_WASTEFUL: Final = 1.25
"""Times the ideal from which it is worth telling."""
_LEAST_ERROR: Final = 0.05
"""Error of a sample worth telling."""
_FEW_LANES: Final = 28
_SHORT_TAIL: Final = 0.1
"""Part of the last wave's places that stay empty, over all places, worth telling."""
_TOP_LINES: Final = 3
_LEAST_SHARE: Final = 0.01
_SECTOR_BYTES: Final = 32


def reasons(launch: Launch, chip: ChipSpec) -> list[str]:
    """What holds a launch back, the most important first."""
    found = quantities(launch, chip)
    said = [
        "; ".join(filter(None, (_bound_text(launch, found, chip), _sectors_text(launch, found)))),
        _caches_text(found),
        _fill_text(launch, found, chip),
        _occupancy_text(launch, found),
        _conflicts_text(launch, found),
        _lanes_text(launch, found),
    ]
    return [text for text in said if text]


def band_text(launch: Launch) -> str:
    """The band of a time, with where it comes from."""
    low_s, high_s = launch.time_s_band
    source = band_source(bound_of(launch.bound))
    return f"{time_text(low_s)} to {time_text(high_s)} ({source})"


def energy_text(launch: Launch) -> str:
    """Joules of a launch, the power they make, and the clock that goes with it."""
    energy_j = launch.energy_j
    if energy_j is None:
        return "not known"
    power_w = energy_j / launch.time_s if launch.time_s else 0.0
    return f"{joules_text(energy_j)}, {power_w:.0f} W at {launch.clock_hz / MHZ:.0f} MHz"


def line_text(line: LineCounters) -> str:
    """Spell a place in a source file, or in the PTX."""
    return f"{PurePath(line.file).name}:{line.line}" if line.file else f"PTX line {line.line}"


def top_lines(launch: Launch) -> list[tuple[LineCounters, float, float | None]]:
    """Lines with the largest share of what a launch is bound by.

    Returns
    -------
    list of (line, instructions, sectors)
        Shares of the launch's, 0 to 1; of sectors None where the launch has none.
    """
    issues = {index: issues_of(line) for index, line in enumerate(launch.lines)}
    sectors = {index: sectors_of(line) for index, line in enumerate(launch.lines)}
    all_issues, all_sectors = sum(issues.values()), sum(sectors.values())
    by_memory = _by_memory(launch) and bool(all_sectors)
    leading, total = (sectors, all_sectors) if by_memory else (issues, all_issues)
    order = sorted(leading, key=lambda index: (-leading[index], -issues[index]))
    return [
        (
            launch.lines[index],
            issues[index] / all_issues,
            sectors[index] / all_sectors if all_sectors else None,
        )
        for index in order[:_TOP_LINES]
        if total and leading[index] / total >= _LEAST_SHARE
    ]


# ------------------------------------------------------------------ what it is bound by


def _dram_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    reached = found["dram_bytes"] / found["peak_memory_bytes"]
    return f"DRAM-bound: {reached:.0%} of {memory_bytes_per_s(chip) / GB:,.0f} GB/s"


def _l2_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    rate = found["l2_bytes"] / launch.time_s
    most = rate_text(chip.measured.l2_bytes_per_s, "B/s")
    return f"L2-bound: {rate_text(rate, 'B/s')}, where all SMs together were seen to draw {most}"


def _launch_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    floor = time_text(launch_floor_s(chip))
    return f"launch-bound: {floor} of {time_text(launch.time_s)} is what any launch takes"


def _latency_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    busiest = max(
        ((name, time_s) for name, time_s in launch.parts.items() if name != Bound.LATENCY.value),
        key=lambda part: part[1],
        default=("", 0.0),
    )
    text = "latency-bound: warps wait for what they asked for"
    if busiest[1]:
        text += f"; the busiest part is {busiest[0]}, {busiest[1] / launch.time_s:.0%} of the time"
    return text


def _part_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    busy = found.get(f"busy_s.{launch.bound}", 0.0) / launch.time_s
    name = launch.bound.removesuffix(" pipe").removesuffix(" bandwidth")
    return f"{name.replace(' ', '-')}-bound: {launch.bound} busy {busy:.0%} of the time"


_SENTENCES: Final[Mapping[Bound, Sentence]] = {
    Bound.DRAM: _dram_text,
    Bound.L2: _l2_text,
    Bound.LAUNCH: _launch_text,
    Bound.LATENCY: _latency_text,
}
"""What is bound by anything else is told by how busy that is."""


def _bound_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    bound = bound_of(launch.bound)
    known = bound is not None and "dram_bytes" in found
    sentence = _SENTENCES.get(bound, _part_text) if bound and known else _part_text
    return sentence(launch, found, chip)


# ------------------------------------------------------------------ what else stands out


def _sectors_text(launch: Launch, found: Mapping[str, float]) -> str:
    """Sectors of a request beside those that its bytes would fill."""
    requests, sectors = found.get("global_requests", 0.0), found.get("global_sectors")
    if not requests or sectors is None:
        return ""
    moved = found["global_load_bytes"] + found["global_store_bytes"]
    ideal = max(moved / _SECTOR_BYTES / requests, 1.0)
    each = sectors / requests
    number = f"{each:.3g}{_error_text(found)}"
    if each <= ideal * _WASTEFUL:
        unit = "sector" if number == "1" else "sectors"
        return f"{number} {unit}/request, which is ideal" if _by_memory(launch) else ""
    worst = max(launch.lines, key=_wasted, default=None)
    where = f" at {line_text(worst)}" if worst is not None and _wasted(worst) > 0 else ""
    return f"{number} sectors/request, {ideal:.3g} is ideal{where}"


def _error_text(found: Mapping[str, float]) -> str:
    """What a sample of CTAs leaves open, where it is worth telling."""
    error = found.get("sector_error", 0.0)
    return f" (give or take {error:.0%})" if error >= _LEAST_ERROR else ""


def _caches_text(found: Mapping[str, float]) -> str:
    """What L1 holds of loads and L2 of what is left."""
    loaded, hit = found.get("l1_load_sectors", 0.0), found.get("l1_hit_sectors", 0.0)
    asked = found.get("l2_sectors", 0.0) if "l2_hit_sectors" in found else 0.0
    said = []
    if loaded and hit / loaded >= _LEAST_SHARE:
        said.append(f"L1 holds {hit / loaded:.0%} of the sectors that are loaded")
    if asked and found["l2_hit_sectors"] / asked >= _LEAST_SHARE:
        share = found["l2_hit_sectors"] / asked
        said.append(
            f"L2 {share:.0%} of those it is asked for"
            if said
            else f"L2 holds {share:.0%} of the sectors it is asked for"
        )
    return f"caches: {', '.join(said)}" if said else ""


def _fill_text(launch: Launch, found: Mapping[str, float], chip: ChipSpec) -> str:
    """How the grid fills the chip."""
    waves = launch.waves
    if not waves:
        return ""
    if waves < 1:
        places = round(launch.grid.size / waves)
        if launch.grid.size < chip.sm_count:
            idle = chip.sm_count - launch.grid.size
            ctas = f"{launch.grid.size} CTAs leave" if launch.grid.size > 1 else "1 CTA leaves"
            return f"grid: {ctas} {idle} of {chip.sm_count} SMs idle"
        return f"grid: {launch.grid.size} CTAs for {places} places, so SMs are {waves:.0%} full"
    rounds = math.ceil(waves)
    if (rounds - waves) / rounds < _SHORT_TAIL:
        return ""
    return f"tail: the last of {rounds} waves fills {waves - rounds + 1:.0%} of its places"


def _occupancy_text(launch: Launch, found: Mapping[str, float]) -> str:
    limiter, ctas = launch.fit.get("limiter"), launch.fit.get("ctas_per_sm")
    if launch.occupancy > 0.99 or limiter is None:
        return ""
    what = {
        "registers": f"registers, {launch.registers} a thread,",
        "shared memory": f"shared memory, {launch.shared_bytes} bytes a CTA,",
    }.get(limiter, limiter)
    return f"occupancy: {what} let {ctas} CTAs on an SM, {launch.occupancy:.0%} of its warps"


def _conflicts_text(launch: Launch, found: Mapping[str, float]) -> str:
    conflicts, turns = found.get("conflicts", 0.0), found.get("shared_wavefronts", 0.0)
    if not turns or turns <= (turns - conflicts) * _WASTEFUL:
        return ""
    worst = max(launch.lines, key=_turns_each, default=None)
    where = ""
    if worst is not None and _turns_each(worst) > 1:
        where = f"; {_turns_each(worst):.3g} turns/request at {line_text(worst)}"
    return f"bank conflicts: {conflicts / turns:.0%} of shared memory's turns{where}"


def _lanes_text(launch: Launch, found: Mapping[str, float]) -> str:
    issued, lanes = found.get("warp_instructions", 0.0), found.get("thread_instructions", 0.0)
    most = min(WARP_SIZE, launch.block.size)
    if not issued or lanes / issued >= most * _FEW_LANES / WARP_SIZE:
        return ""
    worst = max(launch.lines, key=_idle_lanes, default=None)
    where = ""
    if worst is not None and _idle_lanes(worst) > 0:
        each = worst.counters.get("thread_instructions", 0.0) / issues_of(worst)
        where = f"; {each:.3g} at {line_text(worst)}"
    return f"divergence: {lanes / issued:.3g} of {WARP_SIZE} lanes take part{where}"


def _by_memory(launch: Launch) -> bool:
    return bound_of(launch.bound) in (Bound.DRAM, Bound.L2, Bound.L1)


def _wasted(line: LineCounters) -> float:
    """Sectors beyond those that a line's bytes would fill."""
    counters = line.counters
    moved = counters.get("global_load_bytes", 0.0) + counters.get("global_store_bytes", 0.0)
    requests = float(counters.get("global_requests", 0.0))
    return sectors_of(line) - max(float(moved) / _SECTOR_BYTES, requests)


def _turns_each(line: LineCounters) -> float:
    requests = float(line.counters.get("shared_requests", 0.0))
    return float(line.counters.get("shared_wavefronts", 0.0)) / requests if requests else 0.0


def _idle_lanes(line: LineCounters) -> float:
    return issues_of(line) * WARP_SIZE - float(line.counters.get("thread_instructions", 0.0))


def together(launches: Sequence[Launch]) -> dict[tuple[str, str, str, int], list[Launch]]:
    """Launches of one kernel in one shape on one device, in the order of their first."""
    groups: dict[tuple[str, str, str, int], list[Launch]] = {}
    for launch in launches:
        key = (launch.kernel, str(launch.grid), str(launch.block), launch.device)
        groups.setdefault(key, []).append(launch)
    return groups
