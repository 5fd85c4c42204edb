"""Metrics of a node's GPUs in Prometheus' text format, named and labelled as dcgm-exporter does.

What is served and where is the command line's; here is what one scrape says.  Figures come from
NVML, and what profiling tells of instances from the node's state, as DCGM asks the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import Nvml
from va100.nvml.instances import MigGpu
from va100.nvml.readings import MEMORY, SM, Gpu, MigDevice, gpus
from va100.nvml.smi.text import mebibytes
from va100.spec.mig import COMPUTE_SLICES, MEMORY_SLICES
from va100.units import MIB

Number = int | float
Labels = tuple[tuple[str, str], ...]
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_ALL_LINKS: Final = structs.NONE
_TX_FIELD, _RX_FIELD = 138, 139
"""KiB that links carried."""


class Part(NamedTuple):
    """What a series is about: a GPU, or a GPU instance of one."""

    gpu: Gpu
    told: Mapping[str, Any]
    """The GPU in the node's state."""
    instance: Instance | None = None


class Instance(NamedTuple):
    """A GPU instance, and a MIG device of it that tells of its memory."""

    id: int
    profile: str
    memory_bytes: int
    device: MigDevice | None
    """None: it holds no compute instance, and nobody uses it."""


Read = Callable[[Part], Number | None]
"""Reads a figure; none: there is none, which is not the same as zero."""


class Metric(NamedTuple):
    """One family of series."""

    name: str
    kind: str
    text: str
    read: Read
    of_instances: bool = False
    """Told of each GPU instance, too."""
    without_mig: bool = False
    """Not told of GPUs whose MIG mode is on."""


def _used(part: Part) -> structs.Memory:
    if part.instance is None:
        return part.gpu.memory
    if part.instance.device is None:
        total = part.instance.memory_bytes
        return structs.Memory(total=total, free=total)
    return part.instance.device.memory


def _links(part: Part) -> Number:
    """KiB that all links carried, both ways."""
    sent = part.gpu.field(_TX_FIELD, _ALL_LINKS)
    return sent + part.gpu.field(_RX_FIELD, _ALL_LINKS)


def _engine_active(part: Part) -> Number | None:
    """Share of time in which kernels ran; of a GPU under MIG, weighted by compute slices."""
    return _active(part, "any", _slices, COMPUTE_SLICES)


def _memory_active(part: Part) -> Number | None:
    """Share of time in which the memory was used; under MIG, weighted by memory slices."""
    return _active(part, "memory", lambda one: int(one["size"]), MEMORY_SLICES)


def _pipe_active(unit: str) -> Read:
    """Reads the share of cycles in which a pipe ran; under MIG, weighted by compute slices."""
    return lambda part: _active(part, unit, _slices, COMPUTE_SLICES)


def _active(
    part: Part, unit: str, weigh: Callable[[Mapping[str, Any]], int], whole: int
) -> float | None:
    """Share of one GPU instance, or of a GPU: of all its instances, where its MIG mode is on."""
    if part.instance is not None:
        return _busy(part.told, unit, part.instance.id)
    if not part.gpu.is_mig_enabled:
        return _busy(part.told, unit, None)
    shares = [_busy(part.told, unit, one["id"]) * weigh(one) for one in part.told["gpu_instances"]]
    return float(sum(shares)) / whole


def _busy(told: Mapping[str, Any], unit: str, instance: int | None) -> float:
    """Share of time in which processes kept a unit of a GPU instance, or of a GPU, busy."""
    mine = [p["active"][unit] for p in told["processes"] if p["gpu_instance"] == instance]
    return min(1.0, float(sum(mine)))


def _slices(instance: Mapping[str, Any]) -> int:
    """Compute slices of a GPU instance, which its profile's name begins with."""
    return int(instance["profile"].partition("g")[0])


METRICS: Final = (
    Metric(
        "DCGM_FI_DEV_SM_CLOCK",
        "gauge",
        "Clock of the SMs (in MHz).",
        lambda part: part.gpu.clock_hz(SM) // 1_000_000,
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_MEM_CLOCK",
        "gauge",
        "Clock of the memory (in MHz).",
        lambda part: part.gpu.clock_hz(MEMORY) // 1_000_000,
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_MEMORY_TEMP",
        "gauge",
        "Temperature of the memory (in C).",
        lambda part: part.gpu.memory_temperature_c,
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_GPU_TEMP",
        "gauge",
        "Temperature of the GPU (in C).",
        lambda part: part.gpu.temperature_c,
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_POWER_USAGE", "gauge", "Power of the board (in W).", lambda p: p.gpu.power_w
    ),
    Metric(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Energy since the driver came up (in mJ).",
        lambda part: part.gpu.long_number("GetTotalEnergyConsumption"),
    ),
    Metric(
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "counter",
        "Packets that PCIe sent again.",
        lambda part: part.gpu.number("GetPcieReplayCounter"),
    ),
    Metric(
        "DCGM_FI_DEV_GPU_UTIL",
        "gauge",
        "Share of time in which kernels ran (in %).",
        lambda part: part.gpu.utilization.gpu,
        without_mig=True,
    ),
    Metric(
        "DCGM_FI_DEV_MEM_COPY_UTIL",
        "gauge",
        "Share of time in which the memory was used (in %).",
        lambda part: part.gpu.utilization.memory,
        without_mig=True,
    ),
    Metric(
        "DCGM_FI_DEV_ENC_UTIL",
        "gauge",
        "Share of time in which the encoder ran (in %).",
        lambda part: part.gpu.busy("Encoder"),
        without_mig=True,
    ),
    Metric(
        "DCGM_FI_DEV_DEC_UTIL",
        "gauge",
        "Share of time in which the decoder ran (in %).",
        lambda part: part.gpu.busy("Decoder"),
        without_mig=True,
    ),
    Metric(
        "DCGM_FI_DEV_XID_ERRORS",
        "gauge",
        "Number of the last Xid error; 0: there was none.",
        lambda part: int(part.told["faults"]["last_xid"]),
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_FB_FREE",
        "gauge",
        "Memory that is free (in MiB).",
        lambda part: int(mebibytes(_used(part).free)),
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_FB_USED",
        "gauge",
        "Memory that is used (in MiB).",
        lambda part: int(mebibytes(_used(part).used)),
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_FB_RESERVED",
        "gauge",
        "Memory that the driver keeps (in MiB).",
        lambda part: int(mebibytes(_used(part).reserved)),
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Rows of memory remapped for errors that were not corrected.",
        lambda part: part.gpu.remapped[1],
    ),
    Metric(
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Rows of memory remapped for errors that were corrected.",
        lambda part: part.gpu.remapped[0],
    ),
    Metric(
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "gauge",
        "Whether a row could not be remapped.",
        lambda part: part.gpu.remapped[3],
    ),
    Metric(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "What all NVLinks carried, both ways (in KiB).",
        _links,
    ),
    Metric(
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", "Whether vGPU is licensed.", lambda _part: 0
    ),
    Metric(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "gauge",
        "Share of time in which kernels ran (as a ratio).",
        _engine_active,
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Share of cycles in which tensor cores ran (as a ratio).",
        _pipe_active("tensor"),
        of_instances=True,
    ),
    *(
        Metric(
            f"DCGM_FI_PROF_PIPE_{unit.upper()}_ACTIVE",
            "gauge",
            f"Share of cycles in which the {unit.upper()} pipe ran (as a ratio).",
            _pipe_active(unit),
            of_instances=True,
        )
        for unit in ("fp64", "fp32", "fp16")
    ),
    Metric(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Share of cycles in which the memory's interface ran (as a ratio).",
        _memory_active,
        of_instances=True,
    ),
    Metric(
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "gauge",
        "What leaves over PCIe (in bytes a second).",
        lambda part: part.gpu.throughput_bytes_per_s(0),
    ),
    Metric(
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "gauge",
        "What arrives over PCIe (in bytes a second).",
        lambda part: part.gpu.throughput_bytes_per_s(1),
    ),
)
"""Families in the order of dcgm-exporter's usual list."""


def scrape(nvml: Nvml, told: Mapping[str, Any], host: str) -> str:
    """One answer to Prometheus.

    Parameters
    ----------
    told : mapping
        What :func:`va100.node.store.describe` says of the node.
    host : str
        The machine's name, for a label.
    """
    driver = nvml.text("nvmlSystemGetDriverVersion")
    parts = [part for gpu in gpus(nvml) if isinstance(gpu, Gpu) for part in _parts(gpu, told)]
    return "".join(_family(metric, parts, host, driver) for metric in METRICS)


def _parts(gpu: Gpu, told: Mapping[str, Any]) -> Iterator[Part]:
    of_gpu: Mapping[str, Any] = told["gpus"][gpu.index]
    yield Part(gpu, of_gpu)
    if not of_gpu["gpu_instances"]:
        return
    devices = {device.gpu_instance: device for device in gpu.mig_devices}
    sizes = {profile.id: profile.memory_mib * MIB for profile in MigGpu(gpu).profiles}
    for one in sorted(of_gpu["gpu_instances"], key=itemgetter("id")):
        number, size = one["id"], sizes.get(one["profile_id"], 0)
        yield Part(gpu, of_gpu, Instance(number, one["profile"], size, devices.get(number)))


def _family(metric: Metric, parts: Sequence[Part], host: str, driver: str) -> str:
    lines = [
        f"{metric.name}{{{_labels(part, host, driver)}}} {number}\n"
        for part in parts
        if (number := _value(metric, part)) is not None
    ]
    if not lines:
        return ""
    heads = f"# HELP {metric.name} {metric.text}\n# TYPE {metric.name} {metric.kind}\n"
    return heads + "".join(lines)


def _value(metric: Metric, part: Part) -> str | None:
    """The number; none where this is not told of that."""
    if part.instance is not None and not metric.of_instances:
        return None
    if metric.without_mig and part.gpu.is_mig_enabled:
        return None
    try:
        number = metric.read(part)
    except NvmlError:
        return None
    if number is None:
        return None
    return f"{number:.6f}" if isinstance(number, float) else str(number)


def _labels(part: Part, host: str, driver: str) -> str:
    gpu = part.gpu
    labels = [
        ("gpu", str(gpu.index)),
        ("UUID", gpu.uuid),
        ("pci_bus_id", gpu.bus_id),
        ("device", f"nvidia{gpu.index}"),
        ("modelName", gpu.name),
    ]
    if part.instance is not None:
        labels += [("GPU_I_PROFILE", part.instance.profile), ("GPU_I_ID", str(part.instance.id))]
    labels += [("Hostname", host), ("DCGM_FI_DRIVER_VERSION", driver)]
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
