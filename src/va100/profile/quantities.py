"""Plain numbers of one launch, by name: what metrics, reasons and charts are made of.

A number that was not counted, or was counted as the best case only, is absent.  What a script calls
such a number is in :mod:`va100.profile.metrics`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from va100.perf.kernel import Bound
from va100.perf.memory import traffic
from va100.profile.launch import Launch
from va100.spec.model import ChipSpec, MmaKind, Operation
from va100.spec.rates import memory_bytes_per_s, peak_flop_per_s
from va100.work import WARP_SIZE, Counters, Pipe

SM_BOUNDS: Final = (
    Bound.ISSUE, Bound.ALU, Bound.FMA, Bound.FP16, Bound.FP64, Bound.XU, Bound.TENSOR, Bound.LSU,
    Bound.TEX,
)  # fmt: skip
"""Parts whose busiest is how busy the SMs compute."""
MEMORY_BOUNDS: Final = (Bound.DRAM, Bound.L2, Bound.L1, Bound.SHARED, Bound.ATOMIC)
_SAMPLED: Final = (
    "global_sectors", "global_store_sectors", "shared_wavefronts", "shared_store_wavefronts",
)  # fmt: skip
"""Counters that are a best case where no CTA was sampled."""
_OBSERVED: Final = ("local_sectors", "l1_lines", "l1_load_sectors", "l1_hit_sectors")
"""Counters that there are where CTAs went through a model of their L1."""
_WHOLLY_OBSERVED: Final = ("l2_hit_sectors", "dram_read_sectors", "dram_write_sectors")
"""Counters that there are where all CTAs did: a few alone find L2 as no launch does."""
_VECTOR: Final = re.compile(r"\.v(\d)\b")
_MATRICES: Final = re.compile(r"^ldmatrix\b.*\.x(\d)\b")
_TYPE_BITS: Final = re.compile(r"[a-z]+(\d+)$")
_MMA_SHAPE: Final = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")


def quantities(launch: Launch, chip: ChipSpec) -> dict[str, float]:
    """Everything that is known of a launch; names end in their unit, counters keep theirs."""
    found = _counted(launch.counters)
    found |= _shape(launch, chip)
    found |= _times(launch, chip)
    found |= _split(found)
    found |= _moved(launch.counters, chip)
    found |= _executed(launch.counters)
    found |= _conflicts(launch.counters, found)
    found |= _operations(launch.counters)
    return found


def counters_of(mapping: Mapping[str, Any]) -> Counters:
    """Counters as the performance model takes them; names it does not know are passed over."""
    known = {entry.name for entry in fields(Counters)}
    values = {name: value for name, value in mapping.items() if name in known}
    if "warp_instructions" in values:
        pipes = {pipe.value: pipe for pipe in Pipe}
        values["warp_instructions"] = {
            pipes[name]: count
            for name, count in values["warp_instructions"].items()
            if name in pipes
        }
    return Counters(**values)


def opcode_sum(opcodes: Mapping[str, float], *starts: str, within: str = "") -> float:
    """Sum over opcodes that begin with one of some words and hold another."""
    return float(
        sum(n for text, n in opcodes.items() if text.startswith(starts) and within in text)
    )


def _counted(counters: Mapping[str, Any]) -> dict[str, float]:
    """Counters by name; those by pipe as ``warp_instructions.fma`` and their sum."""
    found: dict[str, float] = {}
    for name, value in counters.items():
        if isinstance(value, Mapping):
            found[name] = float(sum(value.values()))
            found |= {f"{name}.{key}": float(count) for key, count in value.items()}
        elif value is not None:
            found[name] = float(value)
    for name in _untold(counters):
        found.pop(name, None)
    for pipe in Pipe:
        found.setdefault(f"warp_instructions.{pipe.value}", 0.0)
    return found


def _untold(counters: Mapping[str, Any]) -> tuple[str, ...]:
    """Counters that are there and say nothing."""
    observed = counters.get("observed_cta_count", 0)
    untold: tuple[str, ...] = () if counters.get("sampled_fraction") else _SAMPLED
    untold += () if observed else _OBSERVED
    return untold + (() if observed and observed == counters.get("cta_count") else _WHOLLY_OBSERVED)


def _shape(launch: Launch, chip: ChipSpec) -> dict[str, float]:
    """What was launched, and what of it an SM holds."""
    static = launch.shared_bytes - launch.dynamic_shared_bytes
    found: dict[str, float] = {
        "registers": launch.registers,
        "local_bytes": launch.local_bytes,
        "static_shared_bytes": static,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "driver_shared_bytes": chip.sm.shared_reserved_bytes,
        "shared_bytes": launch.shared_bytes,
        "occupancy_ratio": launch.occupancy,
        "warps_per_sm": launch.occupancy * chip.sm.resident_warp_count,
        "achieved_ratio": _achieved(launch),
        "achieved_warps_per_sm": _achieved(launch) * chip.sm.resident_warp_count,
        "waves": launch.waves,
        "device": launch.device,
        "stream": launch.stream,
        "sm_count": chip.sm_count,
        "scheduler_count": chip.sm_count * chip.sm.scheduler_count,
        "threads": launch.grid.size * launch.block.size,
    }
    for name, extent in (("grid", launch.grid), ("block", launch.block)):
        found |= {f"{name}.size": extent.size, f"{name}.x": extent.x}
        found |= {f"{name}.y": extent.y, f"{name}.z": extent.z}
    found |= {f"limit.{name}": count for name, count in launch.fit.get("limits", {}).items()}
    for name in ("ctas_per_sm", "carveout_bytes"):
        if name in launch.fit:
            found[name] = launch.fit[name]
    return found


def _achieved(launch: Launch) -> float:
    """Occupancy in the mean over a launch: the last wave may fill only some of its places.

    CTAs are taken to last equally long.
    """
    waves = launch.waves
    return launch.occupancy * waves / math.ceil(waves) if waves else 0.0


def _times(launch: Launch, chip: ChipSpec) -> dict[str, float]:
    """How long it takes, and how much of that each part is busy."""
    cycles = launch.time_s * chip.boost_clock_hz
    found = {
        "time_s": launch.time_s,
        "cycles": cycles,
        "sm_cycles": cycles * chip.sm_count,
        "scheduler_cycles": cycles * chip.sm_count * chip.sm.scheduler_count,
        "clock_hz": float(chip.boost_clock_hz),
        "memory_clock_hz": float(chip.memory_clock_hz),
        "peak_memory_bytes": memory_bytes_per_s(chip) * launch.time_s,
    }
    if launch.energy_j is not None:
        found["energy_j"] = launch.energy_j
    if launch.parts:
        found |= {f"busy_s.{bound.value}": launch.parts.get(bound.value, 0.0) for bound in Bound}
        found["sm_busy_s"] = _longest(launch.parts, SM_BOUNDS)
        found["memory_busy_s"] = _longest(launch.parts, MEMORY_BOUNDS)
        found["pipe_busy_s"] = _longest(launch.parts, SM_BOUNDS[1:])
    return found


def _longest(parts: Mapping[str, float], bounds: Iterable[Bound]) -> float:
    return max(parts.get(bound.value, 0.0) for bound in bounds)


def _split(found: Mapping[str, float]) -> dict[str, float]:
    """Loads by themselves: what was counted in all, less the stores."""
    names = {
        "global_load_requests": ("global_requests", "global_store_requests"),
        "global_load_sectors": ("global_sectors", "global_store_sectors"),
        "shared_load_requests": ("shared_requests", "shared_store_requests"),
        "shared_load_wavefronts": ("shared_wavefronts", "shared_store_wavefronts"),
    }
    split = {
        name: found[whole] - found[part]
        for name, (whole, part) in names.items()
        if whole in found and part in found
    }
    for kind in ("load", "store"):
        if f"global_{kind}_sectors" in split | dict(found):
            sectors = split.get(f"global_{kind}_sectors", found.get(f"global_{kind}_sectors", 0.0))
            split[f"global_{kind}_sector_bytes"] = sectors * 32
    return split


def _moved(mapping: Mapping[str, Any], chip: ChipSpec) -> dict[str, float]:
    """Bytes that cross each level of memory, as the model has them."""
    if "global_load_bytes" not in mapping:
        return {}
    counters = counters_of(mapping)
    flow = traffic(counters, chip)
    stored = flow.l2_bytes * flow.store_fraction
    footprint = counters.footprint_bytes or flow.l2_bytes
    written = min(stored, footprint)
    if "dram_write_sectors" in mapping and "dram_write_sectors" not in _untold(mapping):
        written = mapping["dram_write_sectors"] * chip.sm.sector_bytes
    found = {
        "dram_bytes": flow.dram_bytes,
        "dram_write_bytes": written,
        "dram_read_bytes": max(flow.dram_bytes - written, 0.0),
        "l2_bytes": flow.l2_bytes,
        "l2_write_bytes": stored,
        "l2_read_bytes": flow.l2_bytes - stored,
    }
    sectors = {
        name.replace("_bytes", "_sectors"): value / chip.sm.sector_bytes
        for name, value in found.items()
    }
    return found | sectors


_OPCODES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "global_ld": (("ld.global", "ldu.global"), ""),
    "global_st": (("st.global",), ""),
    "global_atom": (("atom.global",), ""),
    "global_red": (("red.global",), ""),
    "shared_ld": (("ld.shared",), ""),
    "shared_st": (("st.shared",), ""),
    "shared_atom": (("atom.shared", "red.shared"), ""),
    "local_ld": (("ld.local",), ""),
    "local_st": (("st.local",), ""),
    "ldsm": (("ldmatrix",), ""),
    "ldgsts": (("cp.async.ca", "cp.async.cg"), ""),
    "branch": (("bra", "brx"), ""),
}
"""Instructions that profilers count together: how their opcodes begin, and what they hold."""


def _executed(mapping: Mapping[str, Any]) -> dict[str, float]:
    """Warp instructions by what they do, as ``executed.global_ld``."""
    opcodes = mapping.get("opcode_instructions")
    if opcodes is None:
        return {}
    return {
        f"executed.{name}": opcode_sum(opcodes, *starts, within=within)
        for name, (starts, within) in _OPCODES.items()
    }


_SHARED_LOADS: Final = ("ld.shared", "ldmatrix")
_SHARED_STORES: Final = ("st.shared", "cp.async.cg.")
_SHARED_ATOMICS: Final = ("atom.shared", "red.shared")


def _conflicts(mapping: Mapping[str, Any], found: Mapping[str, float]) -> dict[str, float]:
    """Turns of the shared-memory banks beyond those that the accesses need by their width.

    ``cp.async.ca`` does not tell its width, so stores beside it have no answer.  Turns of atomics
    are counted with those of loads where CTAs were observed, and then loads alone have none.
    """
    opcodes = mapping.get("opcode_instructions")
    if opcodes is None or "shared_load_wavefronts" not in found:
        return {}
    atomics = opcode_sum(opcodes, *_SHARED_ATOMICS) if mapping.get("observed_cta_count") else 0.0
    needed = atomics + _needed_turns(opcodes, _SHARED_LOADS, found["shared_load_requests"])
    loads = max(found["shared_load_wavefronts"] - needed, 0.0)
    told = {} if atomics else {"load_conflicts": loads}
    if opcode_sum(opcodes, "cp.async.ca."):
        return told
    needed = _needed_turns(opcodes, _SHARED_STORES, found["shared_store_requests"])
    stores = max(found["shared_store_wavefronts"] - needed, 0.0)
    return told | {"store_conflicts": stores, "conflicts": loads + stores}


def _needed_turns(opcodes: Mapping[str, float], starts: tuple[str, ...], requests: float) -> float:
    """Turns without a conflict; requests of other instructions (``wmma``) move a word each."""
    others = requests - opcode_sum(opcodes, *starts)
    return _inherent_wavefronts(opcodes, *starts) + max(others, 0.0)


def _inherent_wavefronts(opcodes: Mapping[str, float], *starts: str) -> float:
    """Turns that accesses take without a conflict: one for each word of a lane or each matrix."""
    return float(sum(n * _words(text) for text, n in opcodes.items() if text.startswith(starts)))


def _words(opcode: str) -> int:
    """Words of a lane that an access moves, at least one; of ``ldmatrix``, its matrices."""
    if opcode.startswith("cp.async.cg."):
        return 4  # which is all that it moves
    matrices = _MATRICES.search(opcode)
    if matrices is not None:
        return int(matrices[1])
    vector, bits = _VECTOR.search(opcode), _TYPE_BITS.search(opcode)
    lanes_bytes = (int(vector[1]) if vector else 1) * (int(bits[1]) // 8 if bits else 4)
    return max(lanes_bytes // 4, 1)


_ARITHMETIC: Final[Mapping[str, tuple[str, ...]]] = {
    "fadd": ("add", "sub"),
    "fmul": ("mul",),
    "ffma": ("fma", "mad"),
}
_KINDS: Final[Mapping[str, tuple[str, float]]] = {
    "f32": ("f", 1), "f64": ("d", 1), "f16": ("h", 1), "bf16": ("h", 1), "f16x2": ("h", 2),
    "bf16x2": ("h", 2),
}  # fmt: skip
"""Type to the letter of its instructions, and the values that one of them holds."""


def _operations(mapping: Mapping[str, Any]) -> dict[str, float]:
    """Floating-point instructions by thread, as ``lanes.ffma``, and operations, as ``flop.f``."""
    lanes = mapping.get("opcode_threads")
    if lanes is None:
        return {}
    found = {f"lanes.{letter}{name[1:]}": 0.0 for letter in ("f", "d", "h") for name in _ARITHMETIC}
    found |= {"flop.f": 0.0, "flop.d": 0.0, "flop.h": 0.0, "flop.tensor": 0.0}
    for text, count in lanes.items():
        head, _, rest = text.partition(".")
        kind = _KINDS.get(rest.rpartition(".")[2])
        name = next((key for key, heads in _ARITHMETIC.items() if head in heads), None)
        if kind is not None and name is not None:
            letter, values = kind
            found[f"lanes.{letter}{name[1:]}"] += count
            found[f"flop.{letter}"] += count * values * (2 if name == "ffma" else 1)
        found["flop.tensor"] += count / WARP_SIZE * _matrix_flop(text)
    return found | {"flop": sum(found[f"flop.{kind}"] for kind in ("f", "d", "h", "tensor"))}


def _matrix_flop(opcode: str) -> float:
    """Operations of one matrix instruction of a warp; 0 of any other."""
    shape = _MMA_SHAPE.search(opcode)
    if shape is None or not opcode.startswith(("mma.", "wmma.mma.")):
        return 0.0
    m, n, k = (int(extent) for extent in shape.groups())
    return 2.0 * m * n * k


def peak_of(found: Mapping[str, float], chip: ChipSpec) -> tuple[str, float]:
    """Name and rate of the roof that most of a launch's operations are under."""
    roofs: dict[str, tuple[str, Operation | MmaKind]] = {
        "flop.f": ("FP32", Operation.FP32_FMA),
        "flop.d": ("FP64", Operation.FP64_FMA),
        "flop.h": ("FP16", Operation.FP16_FMA),
        "flop.tensor": ("FP16 tensor", MmaKind.FP16),
    }
    most = max(roofs, key=lambda name: found.get(name, 0.0))
    name, kind = roofs[most]
    return name, peak_flop_per_s(chip, kind)
