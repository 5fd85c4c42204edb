"""Science and analytics on GPUs: what one problem takes, on one card or spread over several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from va100.errors import PlanError
from va100.perf.operators import analytics, science
from va100.plan.kernels import NOTHING, Cost
from va100.plan.machine import Machine
from va100.plan.training import place_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One kind of work: sizes it needs with their defaults, and what its rate counts.

    ``halo`` is the bytes that a neighbour gets of each surface point of a step, 0 where GPUs do
    not exchange surfaces; ``steps`` and ``unit`` name the sizes that a rate is made of.
    """

    text: str
    sizes: Mapping[str, int]
    unit: str
    memory_bytes: str
    """A formula of the sizes, in words, for people."""
    operator: str = "science"
    halo: int = 0
    exchange: str = ""
    """``surface``, ``all_to_all``, ``all_reduce`` or nothing."""


PROBLEMS: Final[Mapping[str, Problem]] = MappingProxyType(
    {
        "stencil": Problem(
            text="stencil of a grid: CFD, heat, waves",
            sizes={"points": 512**3, "reads": 1, "writes": 1, "flops": 14, "steps": 100},
            unit="points x steps",
            memory_bytes="points x (reads + writes) x bytes of the type",
            halo=4,
            exchange="surface",
        ),
        "fft": Problem(
            text="complex Fourier transform",
            sizes={"n": 256, "batch": 1, "dims": 3},
            unit="transforms",
            memory_bytes="2 x n^dims x batch x twice the type",
            exchange="all_to_all",
        ),
        "md": Problem(
            text="molecular dynamics: pair forces, neighbour lists, integration",
            sizes={"atoms": 100_000, "neighbours": 400, "steps": 1000},
            unit="steps",
            memory_bytes="atoms x (neighbours x 4 + 100)",
            halo=16,
            exchange="surface",
        ),
        "nbody": Problem(
            text="all pairs of bodies",
            sizes={"bodies": 65_536, "steps": 1},
            unit="steps",
            memory_bytes="bodies x 32",
            exchange="all_gather",
        ),
        "hpl": Problem(
            text="dense FP64 solution of a linear system",
            sizes={"n": 80_000},
            unit="solutions",
            memory_bytes="n^2 x 8",
            exchange="panels",
        ),
        "spmv": Problem(
            text="sparse matrix times vector, CSR",
            sizes={"rows": 10**6, "cols": 10**6, "nnz": 50_000_000},
            unit="products",
            memory_bytes="nnz x 12 + rows x 12",
            exchange="all_gather",
        ),
        "alphafold": Problem(
            text="AlphaFold-like structure inference of one chain",
            sizes={"residues": 400, "recycles": 3},
            unit="structures",
            memory_bytes="residues^2 x 4 kB + 5 GB",
        ),
        "sort": Problem(
            text="radix sort of key and value pairs",
            sizes={"rows": 10**8},
            unit="rows",
            memory_bytes="rows x 16",
            operator="analytics",
            exchange="all_to_all",
        ),
        "join": Problem(
            text="hash join",
            sizes={"rows": 10**8, "other_rows": 10**7},
            unit="rows",
            memory_bytes="(rows + 2 x other_rows) x 8",
            operator="analytics",
            exchange="all_to_all",
        ),
        "group_by": Problem(
            text="hash group-by with a sum",
            sizes={"rows": 10**8, "other_rows": 10**6},
            unit="rows",
            memory_bytes="(rows + 2 x groups) x 8",
            operator="analytics",
            exchange="all_to_all",
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemEstimate:
    """What a problem takes."""

    kind: str
    sizes: Mapping[str, int]
    dtype: str
    machine: Machine
    gpus: int
    fits: bool
    peak_bytes: int
    """Of one GPU."""
    time_s: float
    band: tuple[float, float]
    compute_s: float
    exchange_s: float
    per_s: float
    unit: str
    bound: str
    flop_per_s: float
    energy_j: float
    smallest_gpus: int
    notes: tuple[str, ...]


def estimate_problem(
    kind: str, sizes: Mapping[str, int], machine: Machine, *, gpus: int = 1, dtype: str = ""
) -> ProblemEstimate:
    """Price a problem, spread over GPUs in equal parts.

    Raises
    ------
    PlanError
        No such kind or size, or the GPU lacks the type.
    """
    if kind not in PROBLEMS:
        raise PlanError(f"no problem {kind!r}", hint=f"there are {', '.join(PROBLEMS)}")
    problem = PROBLEMS[kind]
    strangers = sorted(set(sizes) - set(problem.sizes))
    if strangers:
        raise PlanError(
            f"{kind} has no {', '.join(strangers)}", hint=f"it has {', '.join(problem.sizes)}"
        )
    full = {**problem.sizes, **sizes}
    wrong = [name for name, value in full.items() if value < 1]
    if wrong:
        raise PlanError(f"{wrong[0]} is {full[wrong[0]]}", hint="give 1 or more")
    number = dtype or ("fp64" if kind in ("hpl", "spmv") else "fp32")
    one, found = _one(kind, full, machine, gpus, number)
    exchange = _exchange(problem, full, machine, gpus, number)
    time_s = one.time_s + exchange.time_s
    low, high = found.get("band", (time_s / 2, time_s * 2))
    factor = time_s / max(one.time_s, 1e-30)
    whole = _bytes(kind, full, number)
    amount = _amount(kind, full)
    waiting = place_of(machine).waiting_w * exchange.time_s
    return ProblemEstimate(
        kind=kind,
        sizes=full,
        dtype=number,
        machine=machine,
        gpus=gpus,
        fits=whole / gpus <= machine.memory_bytes * 0.97,
        peak_bytes=int(whole / gpus),
        time_s=time_s,
        band=(low * factor, high * factor),
        compute_s=one.time_s,
        exchange_s=exchange.time_s,
        per_s=amount / time_s,
        unit=problem.unit,
        bound=str(found.get("bound", "")),
        flop_per_s=one.flop_count * gpus / time_s,
        energy_j=(one.energy_j + waiting) * gpus,
        smallest_gpus=-(-whole // int(machine.memory_bytes * 0.97)),
        notes=tuple(found.get("notes", ())),
    )


def _one(
    kind: str, sizes: Mapping[str, int], machine: Machine, gpus: int, dtype: str
) -> tuple[Cost, dict[str, Any]]:
    """One GPU's part."""
    if kind == "alphafold":
        return _alphafold(sizes, machine), {"bound": "mixed"}
    repeat = 1
    try:
        if PROBLEMS[kind].operator == "analytics":
            given = {name: -(-value // gpus) for name, value in sizes.items()}
            found: Any = analytics.estimate(kind, given.pop("rows"), chip=machine.chip, **given)
            work = 0.0
        else:
            name, given, repeat = _science_sizes(kind, sizes, gpus)
            found = science.estimate(name, dtype=dtype, chip=machine.chip, **given)
            work = found.flop_count
    except ValueError as error:
        raise PlanError(str(error), hint="choose another type, size or machine") from error
    cost = Cost(found.time_s, found.energy_j, work, 1).scaled(count=repeat)
    low, high = found.band
    return cost, {
        "band": (low * repeat, high * repeat), "bound": found.bound, "notes": found.notes,
    }  # fmt: skip


def _science_sizes(
    kind: str, sizes: Mapping[str, int], gpus: int
) -> tuple[str, dict[str, int], int]:
    """Operator's name, its sizes of one GPU's part, and how often it runs."""
    given = dict(sizes)
    if kind == "md":
        atoms = -(-given["atoms"] // gpus)
        return "pair_force", {"atoms": atoms, "neighbours": given["neighbours"]}, given["steps"]
    if kind == "nbody":
        # Each GPU takes its share of the targets against all bodies: time goes with the pairs.
        share = max(round(given["bodies"] / gpus**0.5), 1)
        return "nbody", {"bodies": share}, given["steps"]
    if kind == "hpl":
        return "hpl", {"n": max(round(given["n"] / gpus ** (1 / 3)), 1)}, 1
    if kind == "stencil":
        return "stencil", {**given, "points": -(-given["points"] // gpus)}, 1
    if kind == "spmv":
        return kind, {
            "rows": -(-given["rows"] // gpus), "cols": given["cols"],
            "nnz": -(-given["nnz"] // gpus),
        }, 1  # fmt: skip
    if kind == "fft" and given["batch"] >= gpus:
        return kind, {**given, "batch": -(-given["batch"] // gpus)}, 1
    return kind, given, 1


_ALPHAFOLD_PAIR_S: Final = 9.86e-5
_ALPHAFOLD_TRIPLE_S: Final = 1.0e-8
_ALPHAFOLD_FIXED_S: Final = 3.9
"""Seconds a pass at once, for each pair and each triple of residues; fitted to three published
times of AlphaFold 2 with three recycles on an A100, checked on the others."""


def _alphafold(sizes: Mapping[str, int], machine: Machine) -> Cost:
    residues, passes = sizes["residues"], sizes["recycles"] + 1
    each = _ALPHAFOLD_PAIR_S * residues**2 + _ALPHAFOLD_TRIPLE_S * residues**3
    speed = machine.memory_bytes_per_s / 1555e9
    time_s = _ALPHAFOLD_FIXED_S + passes / 4 * each / speed
    return Cost(time_s, time_s * 0.6 * machine.power_w, 0.0, 1)


def _bytes(kind: str, sizes: Mapping[str, int], dtype: str) -> int:
    each = 8 if dtype == "fp64" else 4
    rows = (sizes.get("rows", 0) + 2 * sizes.get("other_rows", 0)) * 8
    points = sizes.get("points", 0) * (sizes.get("reads", 0) + sizes.get("writes", 0))
    volume = sizes.get("n", 0) ** sizes.get("dims", 2)
    formulas = {
        "stencil": points * each,
        "fft": 4 * volume * sizes.get("batch", 1) * each,
        "md": sizes.get("atoms", 0) * (sizes.get("neighbours", 0) * 4 + 100),
        "nbody": sizes.get("bodies", 0) * 8 * each,
        "hpl": volume * 8,
        "spmv": (sizes.get("nnz", 0) + sizes.get("rows", 0)) * (each + 4),
        "alphafold": sizes.get("residues", 0) ** 2 * 4096 + 5 * 10**9,
        "sort": 2 * rows,
        "join": rows,
        "group_by": rows,
    }
    return int(formulas[kind])


def _amount(kind: str, sizes: Mapping[str, int]) -> float:
    """Units of a problem that its rate counts."""
    if kind == "stencil":
        return float(sizes["points"]) * sizes["steps"]
    return float(sizes.get("steps", sizes.get("batch", sizes.get("rows", 1))))


def _exchange(
    problem: Problem, sizes: Mapping[str, int], machine: Machine, gpus: int, dtype: str
) -> Cost:
    if gpus == 1 or not problem.exchange:
        return NOTHING
    place = place_of(machine)
    nodes = place.nodes_of(gpus)
    each = 8 if dtype == "fp64" else 4
    if problem.exchange == "surface":
        inside = sizes.get("points", sizes.get("atoms", 1)) / gpus
        size = inside ** (2 / 3) * problem.halo * (each / 4) * sizes.get("reads", 1)
        hop = place.exchange("send_recv", size, 2, min(nodes, 2))
        return hop.scaled(count=2.0 * sizes.get("steps", 1))
    if problem.exchange == "panels":
        # Every column is broadcast along the rows of ranks once, a step ahead of its use.
        size = sizes["n"] ** 2 * 8 / gpus**0.5
        return place.exchange("broadcast", size, gpus, nodes).scaled(0.3)
    moved = _bytes_moved(problem, sizes, each) / gpus
    op = "all_gather" if problem.exchange == "all_gather" else "all_to_all"
    return place.exchange(op, moved, gpus, nodes).scaled(count=float(sizes.get("steps", 1)))


def _bytes_moved(problem: Problem, sizes: Mapping[str, int], each: int) -> float:
    if problem.operator == "analytics":
        return (sizes["rows"] + sizes.get("other_rows", 0)) * 8.0
    if "bodies" in sizes:
        return sizes["bodies"] * 4.0 * each
    if "nnz" in sizes:
        return sizes["cols"] * float(each)
    return float(2 * sizes["n"] ** sizes["dims"] * sizes["batch"] * each)
