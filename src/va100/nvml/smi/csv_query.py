"""``--query-gpu=`` and its like: chosen fields as comma-separated values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import NOT_SUPPORTED
from va100.nvml.readings import Gpu
from va100.nvml.smi.fields import GPU_FIELDS, REMAPPED_FIELDS, Field, by_name
from va100.nvml.smi.look import Look, Stop
from va100.nvml.smi.options import MISUSED, Given, misuse
from va100.nvml.smi.text import bracketed, csv_time, mebibytes, megahertz

PROGRAM: Final = "nvidia-smi"
TEXTS: Final = (
    ("gpu", "fields of GPUs"),
    ("compute-apps", "fields of processes"),
    ("accounted-apps", "fields of processes that are counted, where accounting is on"),
    ("supported-clocks", "pairs of clocks that a GPU takes"),
    ("retired-pages", "pages of memory no longer used: an A100 has none"),
    ("remapped-rows", "fields of rows of memory that others stand for"),
)


class Column(NamedTuple):
    """A field of something that is not a GPU."""

    name: str
    unit: str = ""
    aliases: tuple[str, ...] = ()


Row = Mapping[str, str]
_OF_GPU: Final = (
    Column("timestamp"),
    Column("gpu_name"),
    Column("gpu_bus_id"),
    Column("gpu_serial"),
    Column("gpu_uuid"),
)
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "compute-apps": (
        *_OF_GPU,
        Column("pid"),
        Column("process_name", aliases=("name",)),
        Column("used_gpu_memory", "MiB", ("used_memory",)),
    ),
    "accounted-apps": (
        *_OF_GPU,
        Column("vgpu_instance"),
        Column("pid"),
        Column("gpu_utilization", "%", ("gpu_util",)),
        Column("mem_utilization", "%", ("mem_util",)),
        Column("max_memory_usage", "MiB"),
        Column("time", "ms"),
    ),
    "supported-clocks": (
        *_OF_GPU,
        Column("memory", "MHz", ("mem",)),
        Column("graphics", "MHz", ("gr",)),
    ),
    "retired-pages": (
        *_OF_GPU,
        Column("retired_pages.address"),
        Column("retired_pages.cause"),
    ),
}


class _Format(NamedTuple):
    header: bool
    units: bool


def query(source: str, given: Given) -> Callable[[Look], int]:
    """Prepare a query; called again, it prints no second header.

    Raises
    ------
    Stop
        A field or the format is wrong.
    """
    others = set(given) - {f"--query-{source}", "--format"}
    if others:
        raise misuse(f'"--query-{source}" does not go with {", ".join(sorted(others))}.', PROGRAM)
    shape = _format(given)
    names = [name.strip() for name in given[f"--query-{source}"].split(",")]
    fields = REMAPPED_FIELDS if source == "remapped-rows" else GPU_FIELDS
    if source in COLUMNS:
        columns = [_column(name, COLUMNS[source]) for name in names]
        return _Table(columns, shape, lambda look: _rows(source, look))
    return _GpuTable([_field(name, fields) for name in names], shape)


def list_fields(source: str) -> Callable[[Look], int]:
    """Prepare a list of what may be asked."""
    fields: tuple[Field | Column, ...] = GPU_FIELDS
    if source in COLUMNS:
        fields = COLUMNS[source]
    elif source == "remapped-rows":
        fields = REMAPPED_FIELDS

    def act(look: Look) -> int:
        look.line(f'Fields of "--query-{source}=", each with its other names and its unit:')
        if source not in COLUMNS:
            look.line('"timestamp"')
        for field in fields:
            names = " or ".join(f'"{name}"' for name in (field.name, *field.aliases))
            look.line(f"{names} [{field.unit}]" if field.unit else names)
        return 0

    return act


class _Table:
    """Prints rows of whatever a query is about."""

    def __init__(
        self,
        columns: Sequence[Column],
        shape: _Format,
        rows: Callable[[Look], Iterator[Row]],
    ) -> None:
        self.columns = columns
        self.shape = shape
        self.rows = rows
        self.is_begun = False

    def __call__(self, look: Look) -> int:
        if self.shape.header and not self.is_begun:
            look.line(", ".join(_heading(c.name, c.unit, self.shape) for c in self.columns))
        self.is_begun = True
        for row in self.rows(look):
            cells = (_cell(row[c.name], c.unit, self.shape) for c in self.columns)
            look.line(", ".join(cells))
        return look.status


class _GpuTable:
    """Prints fields of GPUs, one a line."""

    def __init__(self, fields: Sequence[Field | None], shape: _Format) -> None:
        self.fields = fields
        self.shape = shape
        self.is_begun = False

    def __call__(self, look: Look) -> int:
        if self.shape.header and not self.is_begun:
            heads = (
                _heading(f.name, f.unit, self.shape) if f else "timestamp" for f in self.fields
            )
            look.line(", ".join(heads))
        self.is_begun = True
        stamp = csv_time(look.now_s())
        for gpu in look.gpus():
            look.line(
                ", ".join(self._read(field, gpu) if field else stamp for field in self.fields)
            )
        return look.status

    def _read(self, field: Field, gpu: Gpu) -> str:
        return bracketed(lambda: _cell(field.read(gpu), field.unit, self.shape))


def _format(given: Given) -> _Format:
    words = [word.strip() for word in given.get("--format", "").split(",") if word.strip()]
    if "csv" not in words:
        raise Stop(
            '"--format=csv" is needed with a query; "noheader" and "nounits" may follow it. '
            f"Please run '{PROGRAM} -h' for help.\n",
            MISUSED,
        )
    for word in words:
        if word not in ("csv", "noheader", "nounits"):
            raise misuse(f'"{word}" is no format: csv, noheader, nounits.', PROGRAM)
    return _Format("noheader" not in words, "nounits" not in words)


def _field(name: str, fields: tuple[Field, ...]) -> Field | None:
    """Find a field of a GPU; none stands for the time."""
    if name.lower() == "timestamp":
        return None
    found = by_name(fields).get(name.lower())
    if found is None:
        raise Stop(f'Field "{name}" is not a valid field to query.\n\n', MISUSED)
    return found


def _column(name: str, columns: tuple[Column, ...]) -> Column:
    for column in columns:
        if name.lower() in (column.name, *column.aliases):
            return column
    raise Stop(f'Field "{name}" is not a valid field to query.\n\n', MISUSED)


def _heading(name: str, unit: str, shape: _Format) -> str:
    return f"{name} [{unit}]" if unit and shape.units else name


def _cell(value: str, unit: str, shape: _Format) -> str:
    if value.startswith("[") or not (unit and shape.units):
        return value
    return f"{value} {unit}"


def _rows(source: str, look: Look) -> Iterator[Row]:
    make = _SOURCES[source]
    for gpu in look.gpus():
        common = {
            "timestamp": csv_time(look.now_s()),
            "gpu_name": gpu.name,
            "gpu_bus_id": gpu.bus_id,
            "gpu_serial": bracketed(partial(gpu.text, "GetSerial")),
            "gpu_uuid": gpu.uuid,
        }
        try:
            for row in make(gpu):
                yield {**common, **row}
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise


def _process_rows(gpu: Gpu) -> Iterator[Row]:
    for process in gpu.processes:
        yield {**_process_gpu(gpu, process), "pid": str(process.pid)} | {
            "process_name": bracketed(partial(gpu.process_name, process.pid)),
            "used_gpu_memory": mebibytes(process.used_bytes),
        }


def _process_gpu(gpu: Gpu, process: structs.Process) -> Row:
    """UUID of the MIG device that a process uses, where it uses one."""
    if process.gpu_instance == structs.NONE:
        return {}
    for device in gpu.mig_devices:
        ids = (device.gpu_instance, device.compute_instance)
        if ids == (process.gpu_instance, process.compute_instance):
            return {"gpu_uuid": device.uuid}
    return {}


def _accounted_rows(gpu: Gpu) -> Iterator[Row]:
    for pid, stats in gpu.accounted():
        yield {
            "vgpu_instance": "[N/A]",
            "pid": str(pid),
            "gpu_utilization": str(stats.gpu),
            "mem_utilization": str(stats.memory),
            "max_memory_usage": mebibytes(stats.most_bytes),
            "time": str(stats.time_ms),
        }


def _clock_rows(gpu: Gpu) -> Iterator[Row]:
    for memory, graphics in gpu.supported_clocks_hz():
        for clock in graphics:
            yield {"memory": megahertz(memory), "graphics": megahertz(clock)}


def _no_rows(_gpu: Gpu) -> Iterator[Row]:
    yield from ()


_SOURCES: Final[Mapping[str, Callable[[Gpu], Iterator[Row]]]] = {
    "compute-apps": _process_rows,
    "accounted-apps": _accounted_rows,
    "supported-clocks": _clock_rows,
    "retired-pages": _no_rows,
}
