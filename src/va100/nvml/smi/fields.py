"""Fields of ``--query-gpu``: name, aliases, unit, and how each is read.

The names are those that drivers of the 535 to 580 branches list; a table and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from va100.nvml.readings import (
    AGGREGATE,
    COMPUTE_MODES,
    CORRECTED,
    GRAPHICS,
    MEMORY,
    POWER_AVERAGE_FIELD,
    POWER_INSTANT_FIELD,
    REASONS,
    RECOVERIES,
    RECOVERY_FIELD,
    SM,
    UNCORRECTED,
    VIDEO,
    VIOLATION_FIELDS,
    VOLATILE,
    Gpu,
    deprecated,
    refused,
)
from va100.nvml.smi.text import active, enabled, mebibytes, megahertz, watts, yes

Read = Callable[[Gpu], str]


class Field(NamedTuple):
    """One field."""

    name: str
    read: Read
    unit: str = ""
    aliases: tuple[str, ...] = ()


def _absent(_gpu: Gpu) -> str:
    raise refused("field")


def _deprecated(_gpu: Gpu) -> str:
    raise deprecated("field")


def _number(name: str, *arguments: int) -> Read:
    return lambda gpu: str(gpu.number(name, *arguments))


def _mode(name: str) -> Read:
    return lambda gpu: enabled(gpu.number(name))


def _one_of(name: str, place: int, count: int = 2) -> Read:
    return lambda gpu: enabled(gpu.numbers(name, count)[place])


def _text(name: str, *arguments: int) -> Read:
    return lambda gpu: gpu.text(name, *arguments)


def _busy(engine: str) -> Read:
    return lambda gpu: str(gpu.busy(engine))


def _clock(domain: int) -> Read:
    return lambda gpu: megahertz(gpu.clock_hz(domain))


def _max_clock(domain: int) -> Read:
    return lambda gpu: megahertz(gpu.max_clock_hz(domain))


def _application(domain: int) -> Read:
    return lambda gpu: megahertz(gpu.application_clock_hz(domain))


def _default(domain: int) -> Read:
    return lambda gpu: megahertz(gpu.default_clock_hz(domain))


def _encoder(place: int) -> Read:
    return lambda gpu: str(gpu.encoder[place])


def _reason(name: str) -> Read:
    return lambda gpu: active(gpu.reasons & REASONS[name])


def _violation_us(name: str) -> Read:
    """Microseconds of a reason that held, from the nanoseconds of a numbered field."""
    return lambda gpu: str(int(gpu.field(VIOLATION_FIELDS[name])) // 1000)


_LOCATIONS: Final[Mapping[str, int]] = {
    "device_memory": 2,
    "dram": 2,
    "register_file": 3,
    "l1_cache": 0,
    "l2_cache": 1,
    "texture_memory": 4,
    "cbu": 6,
    "sram": 7,
}


def _ecc_fields() -> Iterator[Field]:
    """Error counters by kind, counter and place."""
    for kind, kind_name in ((CORRECTED, "corrected"), (UNCORRECTED, "uncorrected")):
        for counter, counter_name in ((VOLATILE, "volatile"), (AGGREGATE, "aggregate")):
            prefix = f"ecc.errors.{kind_name}.{counter_name}"
            for place, location in _LOCATIONS.items():
                yield Field(f"{prefix}.{place}", _errors(kind, counter, location))
            yield Field(f"{prefix}.total", _total(kind, counter))


def _errors(kind: int, counter: int, location: int) -> Read:
    return lambda gpu: str(gpu.errors(kind, counter, location))


def _total(kind: int, counter: int) -> Read:
    return lambda gpu: str(gpu.total_errors(kind, counter))


def _reasons() -> Iterator[Field]:
    """Reasons for clocks, each under its old name, too."""
    old, new = "clocks_throttle_reasons", "clocks_event_reasons"
    yield Field(
        f"{new}.supported",
        lambda gpu: f"0x{gpu.long_number('GetSupportedClocksEventReasons'):016X}",
        aliases=(f"{old}.supported",),
    )
    yield Field(f"{new}.active", lambda gpu: f"0x{gpu.reasons:016X}", aliases=(f"{old}.active",))
    for name in REASONS:
        if name != "display_clocks_setting":
            yield Field(f"{new}.{name}", _reason(name), aliases=(f"{old}.{name}",))
    counters = f"{new}_counters"
    for name in ("sw_power_cap", "sync_boost"):
        yield Field(f"{counters}.{name}", _violation_us(name), "us")
    for name in ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"):
        yield Field(f"{counters}.{name}", _absent, "us")


def _pcie() -> Iterator[Field]:
    current, most = "GetCurrPcieLinkGeneration", "GetMaxPcieLinkGeneration"
    yield Field("pcie.link.gen.current", _number(current))
    yield Field("pcie.link.gen.gpucurrent", _number(current))
    yield Field("pcie.link.gen.max", _number(most))
    yield Field("pcie.link.gen.gpumax", _number("GetGpuMaxPcieLinkGeneration"))
    yield Field("pcie.link.gen.hostmax", _absent)
    yield Field("pcie.link.width.current", _number("GetCurrPcieLinkWidth"))
    yield Field("pcie.link.width.max", _number("GetMaxPcieLinkWidth"))


def _power() -> Iterator[Field]:
    yield Field("power.management", lambda gpu: enabled(gpu.number("GetPowerManagementMode")))
    yield Field("power.draw", lambda gpu: watts(gpu.power_w), "W")
    yield Field(
        "power.draw.average", lambda gpu: watts(gpu.power_field_w(POWER_AVERAGE_FIELD)), "W"
    )
    yield Field(
        "power.draw.instant", lambda gpu: watts(gpu.power_field_w(POWER_INSTANT_FIELD)), "W"
    )
    yield Field("power.limit", lambda gpu: watts(gpu.power_limit_w), "W")
    yield Field("enforced.power.limit", lambda gpu: watts(gpu.enforced_limit_w), "W")
    yield Field("power.default_limit", lambda gpu: watts(gpu.default_limit_w), "W")
    yield Field("power.min_limit", lambda gpu: watts(gpu.limits_w[0]), "W")
    yield Field("power.max_limit", lambda gpu: watts(gpu.limits_w[1]), "W")
    for name in (
        "draw.average",
        "draw.instant",
        "limit",
        "default_limit",
        "min_limit",
        "max_limit",
    ):
        yield Field(f"module.power.{name}", _absent, "W")
    yield Field("module.enforced.power.limit", _absent, "W")


def _clocks() -> Iterator[Field]:
    domains = (
        ("graphics", "gr", GRAPHICS),
        ("sm", "sm", SM),
        ("memory", "mem", MEMORY),
        ("video", "video", VIDEO),
    )
    for name, short, domain in domains:
        yield Field(f"clocks.current.{name}", _clock(domain), "MHz", (f"clocks.{short}",))
    for prefix, make in (("applications", _application), ("default_applications", _default)):
        for name, short, domain in domains:
            if domain in (GRAPHICS, MEMORY):
                alias = f"clocks.{prefix}.{short}"
                yield Field(f"clocks.{prefix}.{name}", make(domain), "MHz", (alias,))
    for name, short, domain in domains:
        if domain != VIDEO:
            shorts = () if name == short else (f"clocks.max.{short}",)
            yield Field(f"clocks.max.{name}", _max_clock(domain), "MHz", shorts)


def _identity() -> Iterator[Field]:
    """What a GPU is; ``timestamp`` and ``count`` are not of a GPU and are filled in elsewhere."""
    yield Field("driver_version", lambda gpu: gpu.nvml.text("nvmlSystemGetDriverVersion"))
    yield Field("vgpu_driver_capability.heterogenous_multivGPU", _absent)
    yield Field("count", lambda gpu: str(gpu.nvml.number("nvmlDeviceGetCount_v2")))
    yield Field("name", lambda gpu: gpu.name, aliases=("gpu_name",))
    yield Field("serial", _text("GetSerial"), aliases=("gpu_serial",))
    yield Field("uuid", lambda gpu: gpu.uuid, aliases=("gpu_uuid",))
    yield Field("pci.bus_id", lambda gpu: gpu.bus_id, aliases=("gpu_bus_id",))
    yield Field("pci.domain", lambda gpu: f"0x{gpu.pci.domain:04X}")
    yield Field("pci.bus", lambda gpu: f"0x{gpu.pci.bus:02X}")
    yield Field("pci.device", lambda gpu: f"0x{gpu.pci.device:02X}")
    yield Field("pci.baseClass", lambda gpu: f"0x{gpu.pci_class.base_class:X}")
    yield Field("pci.subClass", lambda gpu: f"0x{gpu.pci_class.sub_class:X}")
    yield Field("pci.device_id", lambda gpu: f"0x{gpu.pci.pci_device_id:08X}")
    yield Field("pci.sub_device_id", lambda gpu: f"0x{gpu.pci.pci_subsystem_id:08X}")
    for name in ("fractional_multiVgpu", "heterogeneous_timeSlice_profile"):
        yield Field(f"vgpu_device_capability.{name}", _absent)
    yield Field("vgpu_device_capability.heterogeneous_timeSlice_sizes", _absent)
    yield from _pcie()
    yield Field("index", lambda gpu: str(gpu.index))
    yield Field("display_mode", _mode("GetDisplayMode"))
    yield Field("display_active", _mode("GetDisplayActive"))
    yield Field("persistence_mode", _mode("GetPersistenceMode"))
    yield Field("addressing_mode", lambda gpu: gpu.addressing_mode)
    yield Field("accounting.mode", _mode("GetAccountingMode"))
    yield Field("accounting.buffer_size", _number("GetAccountingBufferSize"))
    yield Field("driver_model.current", _absent)
    yield Field("driver_model.pending", _absent)
    yield Field("vbios_version", _text("GetVbiosVersion"))
    yield Field("inforom.img", _text("GetInforomImageVersion"), aliases=("inforom.image",))
    yield Field("inforom.oem", _text("GetInforomVersion", 0))
    yield Field("inforom.ecc", _text("GetInforomVersion", 1))
    yield Field("inforom.pwr", _text("GetInforomVersion", 2), aliases=("inforom.power",))
    yield Field("reset_status.reset_required", _deprecated)
    yield Field("reset_status.drain_and_reset_recommended", _deprecated)
    yield Field("gom.current", _absent)
    yield Field("gom.pending", _absent)


def _state() -> Iterator[Field]:
    yield Field("fan.speed", _number("GetFanSpeed"), "%")
    yield Field("pstate", lambda gpu: gpu.performance_state)
    yield from _reasons()
    yield Field("memory.total", lambda gpu: mebibytes(gpu.memory.total), "MiB")
    yield Field("memory.reserved", lambda gpu: mebibytes(gpu.memory.reserved), "MiB")
    yield Field("memory.used", lambda gpu: mebibytes(gpu.memory.used), "MiB")
    yield Field("memory.free", lambda gpu: mebibytes(gpu.memory.free), "MiB")
    yield Field("compute_mode", lambda gpu: COMPUTE_MODES[gpu.number("GetComputeMode")])
    yield Field("compute_cap", lambda gpu: gpu.compute_capability)
    yield Field("utilization.gpu", lambda gpu: str(gpu.utilization.gpu), "%")
    yield Field("utilization.memory", lambda gpu: str(gpu.utilization.memory), "%")
    yield Field("utilization.encoder", _busy("Encoder"), "%")
    yield Field("utilization.decoder", _busy("Decoder"), "%")
    yield Field("utilization.jpeg", _busy("Jpg"), "%")
    yield Field("utilization.ofa", _busy("Ofa"), "%")
    yield Field("encoder.stats.sessionCount", _encoder(0))
    yield Field("encoder.stats.averageFps", _encoder(1))
    yield Field("encoder.stats.averageLatency", _encoder(2))
    yield Field("dramEncryption.mode.current", _absent)
    yield Field("dramEncryption.mode.pending", _absent)
    yield Field("ecc.mode.current", _one_of("GetEccMode", 0))
    yield Field("ecc.mode.pending", _one_of("GetEccMode", 1))
    yield from _ecc_fields()
    yield Field("retired_pages.single_bit_ecc.count", _absent, aliases=("retired_pages.sbe",))
    yield Field("retired_pages.double_bit.count", _absent, aliases=("retired_pages.dbe",))
    yield Field("retired_pages.pending", _absent)
    yield from _rest()


def _rest() -> Iterator[Field]:
    yield Field("temperature.gpu", lambda gpu: str(gpu.temperature_c))
    yield Field("temperature.gpu.tlimit", _absent)
    yield Field("temperature.memory", lambda gpu: str(gpu.memory_temperature_c))
    yield from _power()
    yield from _clocks()
    yield Field("mig.mode.current", lambda gpu: enabled(gpu.mig_mode[0]))
    yield Field("mig.mode.pending", lambda gpu: enabled(gpu.mig_mode[1]))
    yield Field("gsp.mode.current", _one_of("GetGspFirmwareMode", 0))
    yield Field("gsp.mode.default", _one_of("GetGspFirmwareMode", 1))
    yield Field("c2c.mode", _absent)
    yield Field("protected_memory.total", lambda _gpu: "0", "MiB")
    yield Field("protected_memory.used", lambda _gpu: "0", "MiB")
    yield Field("protected_memory.free", lambda _gpu: "0", "MiB")
    for name in ("state", "status", "cliqueId", "clusterUuid"):
        yield Field(f"fabric.{name}", _absent)
    yield Field("gpu_recovery_action", recovery)
    yield Field("platform.module_id", _number("GetModuleId"))


def recovery(gpu: Gpu) -> str:
    """What has to be done before the GPU is whole again."""
    action = int(gpu.field(RECOVERY_FIELD))
    return RECOVERIES[action] if action < len(RECOVERIES) else "Unknown"


def _rows() -> Iterator[Field]:
    names = ("correctable", "uncorrectable")
    for place, name in enumerate(names):
        yield Field(f"remapped_rows.{name}", _remapped(place))
    yield Field("remapped_rows.pending", lambda gpu: yes(gpu.remapped[2]))
    yield Field("remapped_rows.failure", lambda gpu: yes(gpu.remapped[3]))
    for name in ("max", "high", "partial", "low", "none"):
        yield Field(f"remapped_rows.histogram.{name}", _bank(name))


def _remapped(place: int) -> Read:
    return lambda gpu: str(gpu.remapped[place])


def _bank(name: str) -> Read:
    return lambda gpu: str(getattr(gpu.histogram, name))


GPU_FIELDS: Final = (*_identity(), *_state())
_COMMON: Final = ("name", "pci.bus_id", "serial", "uuid")
"""What every other query names of the GPU, each with a ``gpu_`` before it."""
REMAPPED_FIELDS: Final = (
    *(
        field._replace(name=field.aliases[0], aliases=())
        for field in GPU_FIELDS
        if field.name in _COMMON
    ),
    *_rows(),
)


def by_name(fields: tuple[Field, ...]) -> Mapping[str, Field]:
    """Find fields by name or alias, without regard to case."""
    named = {field.name.lower(): field for field in fields}
    return MappingProxyType(
        named | {alias.lower(): field for field in fields for alias in field.aliases}
    )
