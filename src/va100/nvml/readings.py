"""Readings of one GPU or MIG device, in base units, as NVML gives them; what fails is raised.

How readings are printed is in :mod:`va100.nvml.smi`; MIG's instances, made and destroyed, are in
:mod:`va100.nvml.instances`.  An object stands for one look at a device: what several lines of a
report need is asked for once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import DEPRECATED, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, Nvml

GRAPHICS, SM, MEMORY, VIDEO = range(4)
"""Clock domains."""
CORRECTED, UNCORRECTED = range(2)
VOLATILE, AGGREGATE = range(2)
SHUTDOWN, SLOWDOWN, MEMORY_MAX, GPU_MAX = range(4)
"""Thresholds of temperature."""
MEMORY_TEMPERATURE_FIELD: Final = 82
REPLAY_ROLLOVER_FIELD: Final = 95
POWER_AVERAGE_FIELD: Final = 185
POWER_INSTANT_FIELD: Final = 186
RECOVERY_FIELD: Final = 230
VIOLATION_FIELDS: Final = {"sw_power_cap": 74, "sync_boost": 76}
"""Nanoseconds; others are counted from number 269."""
_MHZ, _MW = 1_000_000, 1e-3

REASONS: Final = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clocks_setting": 0x100,
}
"""Bits of the reasons why clocks are as they are."""
RECOVERIES: Final = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
BRANDS: Final = {1: "Quadro", 2: "Tesla", 5: "GeForce", 14: "NVIDIA"}
ARCHITECTURES: Final = {6: "Turing", 7: "Ampere", 8: "Ada Lovelace", 9: "Hopper"}
COMPUTE_MODES: Final = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
VIRTUALIZATION: Final = ("None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA")
ADDRESSING: Final = ("None", "HMM", "ATS")
PART_NUMBERS: Final = {0x20B0: "20B0-884-A1"}
"""By PCI device, from a capture of an A100-SXM4-40GB; NVML does not tell, others are not known."""


class Gpu:
    """A GPU, or a MIG device."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p, index: int) -> None:
        self.nvml = nvml
        self.handle = handle
        self.index = index

    def number(self, name: str, *arguments: Any) -> int:
        """Read one ``unsigned int``."""
        return self.nvml.number(f"nvmlDevice{name}", self.handle, *map(_unsigned, arguments))

    def numbers(self, name: str, count: int = 2) -> tuple[int, ...]:
        """Read several ``unsigned int`` at once."""
        return self.nvml.numbers(f"nvmlDevice{name}", count, self.handle)

    def long_number(self, name: str, *arguments: Any) -> int:
        """Read one ``unsigned long long``."""
        return self.nvml.long_number(f"nvmlDevice{name}", self.handle, *map(_unsigned, arguments))

    def text(self, name: str, *arguments: Any) -> str:
        """Read text."""
        return self.nvml.text(f"nvmlDevice{name}", self.handle, *map(_unsigned, arguments))

    def set(self, name: str, *arguments: int) -> None:
        """Change something."""
        self.nvml.call(f"nvmlDevice{name}", self.handle, *map(_unsigned, arguments))

    def field(self, number: int, scope: int = 0) -> int | float:
        """Read one of the numbered fields."""
        one = structs.FieldValue(field=number, scope=scope)
        name = "nvmlDeviceGetFieldValues"
        self.nvml.call(name, self.handle, 1, ctypes.byref(one))
        if one.code:
            raise NvmlError(code=one.code, function=name, text=self.nvml.error_text(one.code))
        return structs.field_value(one)

    # ------------------------------------------------------------- what it is

    @cached_property
    def name(self) -> str:
        """Product, as it is called."""
        return self.text("GetName")

    @cached_property
    def uuid(self) -> str:
        """Name that no other device has."""
        return self.text("GetUUID")

    @cached_property
    def pci(self) -> structs.PciInfo:
        """Where it sits."""
        return self.nvml.filled("nvmlDeviceGetPciInfo_v3", structs.PciInfo, self.handle)

    @property
    def bus_id(self) -> str:
        """Address on PCIe."""
        text: bytes = self.pci.bus_id
        return text.decode()

    @property
    def pci_class(self) -> structs.PciInfoExt:
        """Its class of PCIe device."""
        return self.nvml.filled("nvmlDeviceGetPciInfoExt", structs.PciInfoExt, self.handle)

    @property
    def part_number(self) -> str:
        """The chip's part number."""
        part = PART_NUMBERS.get(self.pci.pci_device_id >> 16)
        if part is None:
            raise refused("part number")
        return part

    @property
    def addressing_mode(self) -> str:
        """How processes and it share addresses."""
        name = "nvmlDeviceGetAddressingMode"
        mode = self.nvml.filled(name, structs.AddressingMode, self.handle)
        return _named(ADDRESSING, mode.value)

    @property
    def compute_capability(self) -> str:
        """Such as ``8.0``."""
        return "{}.{}".format(*self.numbers("GetCudaComputeCapability"))

    @property
    def gsp_version(self) -> str:
        """Version of the firmware of its system processor."""
        buffer = ctypes.create_string_buffer(64)
        self.nvml.call("nvmlDeviceGetGspFirmwareVersion", self.handle, buffer)
        return buffer.value.decode()

    # ------------------------------------------------------------ what it does

    @cached_property
    def memory(self) -> structs.Memory:
        """Memory in bytes; ``used`` is without what is reserved."""
        return self.nvml.filled("nvmlDeviceGetMemoryInfo_v2", structs.Memory, self.handle)

    @cached_property
    def bar1(self) -> structs.Bar1:
        """What is mapped into PCIe's addresses, in bytes."""
        return self.nvml.filled("nvmlDeviceGetBAR1MemoryInfo", structs.Bar1, self.handle)

    @cached_property
    def utilization(self) -> structs.Utilization:
        """Busy shares, in percent."""
        name = "nvmlDeviceGetUtilizationRates"
        return self.nvml.filled(name, structs.Utilization, self.handle)

    @property
    def power_w(self) -> float:
        """Power as its sensor tells it."""
        return self.number("GetPowerUsage") * _MW

    def power_field_w(self, number: int) -> float:
        """Power from a numbered field."""
        return self.field(number) * _MW

    @property
    def power_limit_w(self) -> float:
        """Limit that was asked for."""
        return self.number("GetPowerManagementLimit") * _MW

    @property
    def enforced_limit_w(self) -> float:
        """Limit in force."""
        return self.number("GetEnforcedPowerLimit") * _MW

    @property
    def default_limit_w(self) -> float:
        """Limit after a reset."""
        return self.number("GetPowerManagementDefaultLimit") * _MW

    @cached_property
    def limits_w(self) -> tuple[float, float]:
        """Lowest and highest limit that it takes."""
        low, high = self.numbers("GetPowerManagementLimitConstraints")
        return low * _MW, high * _MW

    @property
    def energy_j(self) -> float:
        """Energy since the driver came up."""
        return self.long_number("GetTotalEnergyConsumption") * 1e-3

    @property
    def temperature_c(self) -> int:
        """Of the chip."""
        return self.number("GetTemperature", 0)

    @property
    def memory_temperature_c(self) -> int:
        """Of the memory."""
        return int(self.field(MEMORY_TEMPERATURE_FIELD))

    def threshold_c(self, which: int) -> int:
        """One of the thresholds."""
        return self.number("GetTemperatureThreshold", which)

    def clock_hz(self, domain: int) -> int:
        """A clock now."""
        return self.number("GetClockInfo", domain) * _MHZ

    def max_clock_hz(self, domain: int) -> int:
        """A clock at its highest."""
        return self.number("GetMaxClockInfo", domain) * _MHZ

    def application_clock_hz(self, domain: int) -> int:
        """A clock that applications asked for."""
        return self.number("GetApplicationsClock", domain) * _MHZ

    def default_clock_hz(self, domain: int) -> int:
        """A clock where nobody asked."""
        return self.number("GetDefaultApplicationsClock", domain) * _MHZ

    @property
    def performance_state(self) -> str:
        """``P0`` to ``P15``."""
        state = self.number("GetPerformanceState")
        if state > 15:
            raise refused("performance state")
        return f"P{state}"

    @cached_property
    def reasons(self) -> int:
        """Bits of :data:`REASONS`."""
        return self.long_number("GetCurrentClocksEventReasons")

    @cached_property
    def encoder(self) -> tuple[int, ...]:
        """Encoder sessions, and their average frame rate and latency."""
        return self.numbers("GetEncoderStats", 3)

    @cached_property
    def frame_capture(self) -> tuple[int, ...]:
        """The same of sessions that capture the frame buffer."""
        name = "nvmlDeviceGetFBCStats"
        stats = self.nvml.filled(name, structs.FrameCapture, self.handle)
        return stats.sessions, stats.average_fps, stats.latency

    def busy(self, engine: str) -> int:
        """Busy share of ``Encoder``, ``Decoder``, ``Jpg`` or ``Ofa``, in percent."""
        return self.numbers(f"Get{engine}Utilization")[0]

    def supported_clocks_hz(self) -> Iterator[tuple[int, list[int]]]:
        """Each memory clock with the graphics clocks beside it."""
        memory = self.nvml.numbers_listed("nvmlDeviceGetSupportedMemoryClocks", self.handle)
        for clock in memory:
            graphics = self.nvml.numbers_listed(
                "nvmlDeviceGetSupportedGraphicsClocks", self.handle, ctypes.c_uint(clock)
            )
            yield clock * _MHZ, [one * _MHZ for one in graphics]

    def throughput_bytes_per_s(self, direction: int) -> int:
        """What crosses PCIe: 0 from the GPU, 1 to it."""
        return self.number("GetPcieThroughput", direction) * 1024

    # ------------------------------------------------------------ what is wrong

    @cached_property
    def has_ecc(self) -> bool:
        """Whether errors are counted."""
        return self.numbers("GetEccMode")[0] == 1

    @cached_property
    def sram(self) -> structs.SramErrors:
        """Errors of on-chip memory."""
        name = "nvmlDeviceGetSramEccErrorStatus"
        return self.nvml.filled(name, structs.SramErrors, self.handle)

    def errors(self, kind: int, counter: int, location: int) -> int:
        """Errors of one kind, by counter and place."""
        return self.long_number("GetMemoryErrorCounter", kind, counter, location)

    def total_errors(self, kind: int, counter: int) -> int:
        """Errors of one kind wherever they were."""
        return self.long_number("GetTotalEccErrors", kind, counter)

    @cached_property
    def remapped(self) -> tuple[int, ...]:
        """Rows for corrected and for uncorrected errors, whether more wait, whether one failed."""
        return self.numbers("GetRemappedRows", 4)

    @cached_property
    def histogram(self) -> structs.RemapHistogram:
        """Banks by the rows they can still spare."""
        name = "nvmlDeviceGetRowRemapperHistogram"
        return self.nvml.filled(name, structs.RemapHistogram, self.handle)

    # ------------------------------------------------------------ who uses it

    @cached_property
    def processes(self) -> list[structs.Process]:
        """Who has a context on it."""
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        return self.nvml.listed(name, structs.Process, self.handle)

    def process_name(self, pid: int) -> str:
        """What a process runs."""
        return self.nvml.text("nvmlSystemGetProcessName", ctypes.c_uint(pid))

    def process_use(self, since_us: int = 0) -> dict[int, structs.ProcessUse]:
        """What processes lately kept busy, by their number."""
        room = 256
        found = (structs.ProcessUse * room)()
        count = ctypes.c_uint(room)
        try:
            self.nvml.call(
                "nvmlDeviceGetProcessUtilization",
                self.handle,
                found,
                ctypes.byref(count),
                ctypes.c_ulonglong(since_us),
            )
        except NvmlError as error:
            if error.code != NOT_FOUND:
                raise
            return {}
        return {use.pid: use for use in found[: count.value]}

    def accounted(self) -> Iterator[tuple[int, structs.Accounting]]:
        """Processes that are counted, those that ended among them."""
        name = "nvmlDeviceGetAccountingStats"
        for pid in self.nvml.numbers_listed("nvmlDeviceGetAccountingPids", self.handle):
            try:
                yield (
                    pid,
                    self.nvml.filled(name, structs.Accounting, self.handle, ctypes.c_uint(pid)),
                )
            except NvmlError as error:
                if error.code != NOT_FOUND:
                    raise

    # -------------------------------------------------------------------- MIG

    @cached_property
    def mig_mode(self) -> tuple[int, ...]:
        """Mode now, and after a reset."""
        return self.numbers("GetMigMode")

    @property
    def is_mig_enabled(self) -> bool:
        """Whether the mode is on; cards without it have it off."""
        try:
            return self.mig_mode[0] == 1
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise
            return False

    @cached_property
    def mig_devices(self) -> list[MigDevice]:
        """MIG devices, in the order of their index; none while the mode is off."""
        if not self.is_mig_enabled:
            return []
        found = []
        for index in range(self.number("GetMaxMigDeviceCount")):
            try:
                name = "nvmlDeviceGetMigDeviceHandleByIndex"
                handle = self.nvml.handle(name, self.handle, ctypes.c_uint(index))
            except NvmlError as error:
                if error.code not in (NOT_FOUND, INVALID_ARGUMENT):
                    raise
                continue
            found.append(MigDevice(self.nvml, handle, index, self))
        return found


class MigDevice(Gpu):
    """A compute instance, which CUDA takes for a device."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p, index: int, gpu: Gpu) -> None:
        super().__init__(nvml, handle, index)
        self.gpu = gpu

    @cached_property
    def gpu_instance(self) -> int:
        """Number of its GPU instance."""
        return self.number("GetGpuInstanceId")

    @cached_property
    def compute_instance(self) -> int:
        """Number of its compute instance there."""
        return self.number("GetComputeInstanceId")

    @cached_property
    def attributes(self) -> structs.Attributes:
        """What it consists of."""
        return self.nvml.filled("nvmlDeviceGetAttributes_v2", structs.Attributes, self.handle)

    @property
    def profile(self) -> str:
        """Name of its profile, such as ``1c.3g.20gb``: what follows ``MIG`` in its name."""
        return self.name.rpartition("MIG ")[2]


def gpus(nvml: Nvml) -> list[Gpu | NvmlError]:
    """All GPUs in order; in the place of one that cannot be reached, why."""
    found: list[Gpu | NvmlError] = []
    for index in range(nvml.number("nvmlDeviceGetCount_v2")):
        try:
            handle = nvml.handle("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index))
        except NvmlError as error:
            found.append(error)
        else:
            found.append(Gpu(nvml, handle, index))
    return found


def refused(what: str) -> NvmlError:
    """Make the error of a reading that this card does not give."""
    return NvmlError(code=NOT_SUPPORTED, function=what, text="Not Supported")


def deprecated(what: str) -> NvmlError:
    """Make the error of a reading that the driver no longer gives."""
    return NvmlError(code=DEPRECATED, function=what, text="Deprecated")


def _unsigned(value: Any) -> Any:
    return ctypes.c_uint(value) if isinstance(value, int) else value


def _named(names: tuple[str, ...], number: int) -> str:
    if number >= len(names):
        raise refused("mode")
    return names[number]
