"""Recommenders: embedding tables placed over GPUs, lookups, interactions and two MLPs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from va100.errors import PlanError
from va100.perf.operators import embedding
from va100.plan.kernels import NOTHING, Cost, Gemm, product, stream
from va100.plan.machine import Machine
from va100.plan.models.files import read_document
from va100.plan.training import longer_s, place_of
from va100.units import MIB, MS, US

_FL15: Final = (
    7912889, 33823, 17139, 7339, 20046, 4, 7105, 1382, 63, 5554114, 582469, 245828, 11, 2209,
    10667, 104, 4, 968, 15, 8165896, 2675940, 7156453, 302516, 12022, 97, 35,
)  # fmt: skip
"""Rows of the Criteo tables with values seen 15 times or more, as NVIDIA's example prints them."""
_MLPERF: Final = (
    39884406, 39043, 17289, 7420, 20263, 3, 7120, 1543, 63, 38532951, 2953546, 403346, 10, 2208,
    11938, 155, 4, 976, 14, 39979771, 25641295, 39664984, 585935, 12972, 108, 36,
)  # fmt: skip
"""Rows of the Criteo tables capped at 40 million, as MLPerf Training prints them."""
CONTEXT_BYTES: Final = 700 * MIB
HOST_KERNEL_S: Final = 7 * US
STEP_S: Final = 1.0 * MS
"""Of the host and the loader once a batch; fitted to NVIDIA's published DLRM and NCF on one GPU."""
PRODUCT_RATIO: Final = 1.3
WITHIN_RATIO: Final = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommender:
    """A model: tables by their rows, their width, and widths of the MLPs' layers."""

    name: str
    rows: tuple[int, ...]
    dim: int
    pooling: int = 1
    """Rows looked up and summed in a table for one record."""
    numerical: int = 13
    bottom: tuple[int, ...] = ()
    top: tuple[int, ...] = (1,)
    dot: bool = True
    """Features meet in dot products; otherwise they are put side by side."""

    @property
    def features(self) -> int:
        """Vectors that meet."""
        return len(self.rows) + bool(self.bottom)

    @property
    def top_in(self) -> int:
        """Width of what the top MLP takes."""
        if not self.dot:
            return self.features * self.dim
        return self.features * (self.features - 1) // 2 + self.dim * bool(self.bottom)

    @property
    def table_params(self) -> int:
        """Parameters of all tables."""
        return sum(self.rows) * self.dim

    @property
    def dense_params(self) -> int:
        """Parameters of both MLPs."""
        return sum((a + 1) * b for a, b in self.layers)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of every layer of both MLPs."""
        bottom = zip((self.numerical, *self.bottom), self.bottom, strict=False)
        top = zip((self.top_in, *self.top), self.top, strict=False)
        return (*bottom, *top)


RECOMMENDERS: Final[Mapping[str, Recommender]] = MappingProxyType(
    {
        "dlrm-small": Recommender(
            name="dlrm-small", rows=_FL15, dim=128, bottom=(512, 256, 128),
            top=(1024, 1024, 512, 256, 1),
        ),
        "dlrm": Recommender(
            name="dlrm", rows=_MLPERF, dim=128, bottom=(512, 256, 128),
            top=(1024, 1024, 512, 256, 1),
        ),
        "ncf": Recommender(
            name="ncf", rows=(138493, 26744, 138493, 26744), dim=64, numerical=0, bottom=(),
            top=(256, 256, 128, 64, 1), dot=False,
        ),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendOptions:
    """How a model is run; ``batch`` is of all GPUs together."""

    batch: int = 65536
    gpus: int = 1
    training: bool = False
    precision: str = "tf32"
    table_bytes: int = 4
    """Of one value of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Part of a table on one GPU: so many of its columns."""

    table: int
    gpu: int
    rows: int
    columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendEstimate:
    """What a model takes."""

    model: Recommender
    options: RecommendOptions
    machine: Machine
    fits: bool
    shards: tuple[Shard, ...]
    peak_bytes: int
    """Of the fullest GPU."""
    parts_bytes: Mapping[str, int]
    step_s: float
    band: tuple[float, float]
    parts_s: Mapping[str, float]
    records_per_s: float
    energy_j: float
    smallest_gpus: int


def read_recommender(name: str) -> Recommender:
    """Model of a name, or of a YAML file.

    Raises
    ------
    PlanError
        Neither a known name nor a file that describes one.
    """
    if name in RECOMMENDERS:
        return RECOMMENDERS[name]
    path = Path(name)
    if not path.exists():
        raise PlanError(
            f"no recommender {name!r}", hint=f"{', '.join(RECOMMENDERS)}, or a YAML file"
        )
    document = read_document(path)
    if not isinstance(document, Mapping):
        raise PlanError(f"{path}: holds no map", hint="rows: [...], dim:, bottom:, top:")
    return _described(document, path)


def _described(document: Mapping[str, Any], path: Path) -> Recommender:
    known = set(Recommender.__dataclass_fields__)
    strangers = sorted(str(key) for key in document if key not in known)
    if strangers:
        raise PlanError(f"{path}: unknown {', '.join(strangers)}", hint=", ".join(sorted(known)))
    values: dict[str, Any] = {
        str(key): tuple(value) if isinstance(value, list) else value
        for key, value in document.items()
    }
    values.setdefault("name", path.stem)
    lists = [
        values.get(key, default) for key, default in (("rows", ()), ("top", (1,)), ("bottom", ()))
    ]
    if not all(isinstance(part, tuple) for part in lists):
        raise PlanError(f"{path}: rows, bottom and top are lists", hint="such as [512, 256, 1]")
    whole = [*(n for part in lists for n in part), values.get("dim", 0), values.get("pooling", 1)]
    whole.append(
        values.get("numerical", 13) + 1 if isinstance(values.get("numerical", 13), int) else 0
    )
    if not values.get("rows") or not all(isinstance(n, int) and n > 0 for n in whole):
        raise PlanError(f"{path}: sizes are whole numbers above 0", hint="correct the file")
    return Recommender(**values)


def place_tables(model: Recommender, options: RecommendOptions, room_bytes: float) -> list[Shard]:
    """Tables on GPUs, heaviest first to the emptiest; one that no GPU holds is cut by columns.

    Raises
    ------
    PlanError
        Not even cut do they fit.
    """
    state = _bytes_per_value(options)
    full = [0.0] * options.gpus
    found = []
    order = sorted(range(len(model.rows)), key=lambda table: (-model.rows[table], table))
    for table in order:
        rows = model.rows[table]
        parts = 1
        while rows * model.dim * state / parts > room_bytes * 0.98 and parts < model.dim:
            parts *= 2
        for _ in range(parts):
            gpu = min(range(options.gpus), key=lambda number: (full[number], number))
            columns = model.dim // parts
            full[gpu] += rows * columns * state
            found.append(Shard(table=table, gpu=gpu, rows=rows, columns=columns))
    if max(full) > room_bytes:
        raise PlanError(
            f"tables of {sum(full) / 1e9:.0f} GB do not fit {options.gpus} GPUs",
            hint="more GPUs, or narrower values",
        )
    return found


def _bytes_per_value(options: RecommendOptions) -> float:
    # Plain gradient descent keeps no state of tables.
    return float(options.table_bytes)


def estimate_recommender(
    model: Recommender, options: RecommendOptions, machine: Machine
) -> RecommendEstimate:
    """Price a step or a batch.

    Raises
    ------
    PlanError
        The batch cannot be shared, or the precision is none of the GPU's.
    """
    if options.batch % options.gpus:
        raise PlanError(
            f"--batch {options.batch} is not shared by {options.gpus} GPUs", hint="a multiple"
        )
    local = options.batch // options.gpus
    parts_bytes = _memory(model, options, local)
    room = machine.memory_bytes - sum(parts_bytes.values())
    smallest = _smallest(model, options, machine)
    try:
        shards = tuple(place_tables(model, options, room))
        fits = True
    except PlanError:
        shards, fits = (), False
    held = _held(shards, options)
    parts, work = _times(model, options, machine, shards)
    step_s = sum(parts.values())
    waiting_s = max(step_s - work.time_s, 0.0)
    energy = (work.energy_j + waiting_s * place_of(machine).waiting_w) * options.gpus
    tables = max(held) if held else int(model.table_params * _bytes_per_value(options))
    return RecommendEstimate(
        model=model,
        options=options,
        machine=machine,
        fits=fits,
        shards=shards,
        peak_bytes=int(tables + sum(parts_bytes.values())),
        parts_bytes={"tables": int(tables), **parts_bytes},
        step_s=step_s,
        band=(step_s / (1 + WITHIN_RATIO), step_s / (1 - WITHIN_RATIO)),
        parts_s=parts,
        records_per_s=options.batch / step_s,
        energy_j=energy,
        smallest_gpus=smallest,
    )


def _held(shards: Sequence[Shard], options: RecommendOptions) -> list[float]:
    held = [0.0] * options.gpus
    for shard in shards:
        held[shard.gpu] += shard.rows * shard.columns * _bytes_per_value(options)
    return held if shards else []


def _smallest(model: Recommender, options: RecommendOptions, machine: Machine) -> int:
    for gpus in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        asked = RecommendOptions(
            batch=gpus, gpus=gpus, training=options.training, table_bytes=options.table_bytes
        )
        room = machine.memory_bytes - sum(_memory(model, asked, 1).values())
        try:
            place_tables(model, asked, room)
        except PlanError:
            continue
        return gpus
    return 0


def _memory(model: Recommender, options: RecommendOptions, local: int) -> dict[str, int]:
    widths = sum(b for _, b in model.layers) + model.features * model.dim + model.top_in
    factor = 2 if options.training else 1
    return {
        "mlps": model.dense_params * (12 if options.training else 4),
        "activations": local * widths * 4 * factor,
        "context": CONTEXT_BYTES,
    }


def _times(
    model: Recommender, options: RecommendOptions, machine: Machine, shards: tuple[Shard, ...]
) -> tuple[dict[str, float], Cost]:
    local = options.batch // options.gpus
    forward, backward = _dense(model, options, machine, local)
    lookups = _lookups(model, options, machine, shards)
    meeting = _meeting(model, options, machine, local)
    work = forward + backward + lookups + meeting
    place = place_of(machine)
    nodes = place.nodes_of(options.gpus)
    vectors = local * len(model.rows) * model.dim * (2 if options.precision == "fp16" else 4)
    exchange = reduce = NOTHING
    if options.gpus > 1:
        times = 2.0 if options.training else 1.0
        exchange = place.exchange("all_to_all", vectors, options.gpus, nodes).scaled(count=times)
        if options.training:
            reduce = place.exchange("all_reduce", model.dense_params * 4, options.gpus, nodes)
    host_s = work.kernels * HOST_KERNEL_S
    chip_s = work.time_s + exchange.time_s
    visible = max(reduce.time_s - 0.5 * backward.time_s, 0.1 * reduce.time_s)
    return {
        "mlps": forward.time_s + backward.time_s,
        "lookups": lookups.time_s,
        "interaction": meeting.time_s,
        "exchange": exchange.time_s,
        "gradients": visible,
        "host": longer_s(chip_s, host_s, 6.0) - chip_s + STEP_S,
    }, work


def _dense(
    model: Recommender, options: RecommendOptions, machine: Machine, local: int
) -> tuple[Cost, Cost]:
    forward = backward = NOTHING
    each = 2 if options.precision == "fp16" else 4
    for a, b in model.layers:
        if not a:
            continue
        ahead = product(Gemm(local, b, a, 1, options.precision, machine.chip)).scaled(PRODUCT_RATIO)
        ahead = ahead + stream(local * b * each, local * b * each, machine.chip)
        forward = forward + ahead
        if options.training:
            backward = backward + ahead.scaled(count=2.0)
    return forward, backward


def _lookups(
    model: Recommender, options: RecommendOptions, machine: Machine, shards: tuple[Shard, ...]
) -> Cost:
    """Rows read, and changed in training, on the GPU that has most of them to do."""
    per_gpu = [NOTHING] * options.gpus
    for shard in shards:
        cost = _lookup(shard, options.batch, model.pooling, options.training, machine.chip)
        per_gpu[shard.gpu] = per_gpu[shard.gpu] + cost
    return max(per_gpu, key=lambda cost: cost.time_s)


@lru_cache(maxsize=4096)
def _lookup(shard: Shard, batch: int, pooling: int, training: bool, chip: str) -> Cost:  # noqa: FBT001
    total = NOTHING
    for update in (False, True) if training else (False,):
        found = embedding.estimate(
            batch, shard.columns, table_rows=shard.rows, pooling=pooling, update=update, chip=chip
        )
        total = total + Cost(found.time_s, found.energy_j, 0.0, 1)
    return total


def _meeting(model: Recommender, options: RecommendOptions, machine: Machine, local: int) -> Cost:
    """Features meet in dot products, or are put side by side; three times in training."""
    each = 2 if options.precision == "fp16" else 4
    moved = local * model.features * model.dim * each
    cost = stream(moved, moved, machine.chip)
    if model.dot:
        shape = Gemm(
            model.features, model.features, model.dim, local, options.precision, machine.chip
        )
        cost = cost + product(shape)
    return cost.scaled(count=3.0 if options.training else 1.0)
