"""NVML's structures as ctypes lays them out: those that our clients read, and what fills them in.

The native library has its own copy in ``native/nvml/types.h``; ``va100.nvml.client`` hands these
over, and nothing here calls anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar, Final

_U32 = ctypes.c_uint
_U64 = ctypes.c_ulonglong
_Fields = Sequence[tuple[str, Any]]

NONE: Final = 0xFFFFFFFF
"""No GPU instance, no compute instance."""


class PciInfo(ctypes.Structure):
    """Where a GPU sits on PCIe."""

    _fields_: ClassVar[_Fields] = [
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", _U32),
        ("bus", _U32),
        ("device", _U32),
        ("pci_device_id", _U32),
        ("pci_subsystem_id", _U32),
        ("bus_id", ctypes.c_char * 32),
    ]


class PciInfoExt(ctypes.Structure):
    """The same, with the class of device."""

    VERSION: ClassVar[int] = 1
    _fields_: ClassVar[_Fields] = [
        ("version", _U32),
        ("domain", _U32),
        ("bus", _U32),
        ("device", _U32),
        ("pci_device_id", _U32),
        ("pci_subsystem_id", _U32),
        ("base_class", _U32),
        ("sub_class", _U32),
        ("bus_id", ctypes.c_char * 32),
    ]


class Memory(ctypes.Structure):
    """Memory of a device, in bytes."""

    VERSION: ClassVar[int] = 2
    _fields_: ClassVar[_Fields] = [
        ("version", _U32),
        ("total", _U64),
        ("reserved", _U64),
        ("free", _U64),
        ("used", _U64),
    ]


class Memory1(ctypes.Structure):
    """Memory of a device without what is reserved, in bytes."""

    _fields_: ClassVar[_Fields] = [("total", _U64), ("free", _U64), ("used", _U64)]


class Bar1(ctypes.Structure):
    """What of the memory is mapped into PCIe's address space, in bytes."""

    _fields_: ClassVar[_Fields] = [("total", _U64), ("free", _U64), ("used", _U64)]


class Utilization(ctypes.Structure):
    """Busy share of the last sample period, in percent."""

    _fields_: ClassVar[_Fields] = [("gpu", _U32), ("memory", _U32)]


class Process(ctypes.Structure):
    """A process that has a context on a device."""

    _fields_: ClassVar[_Fields] = [
        ("pid", _U32),
        ("used_bytes", _U64),
        ("gpu_instance", _U32),
        ("compute_instance", _U32),
    ]


class ProcessUse(ctypes.Structure):
    """What a process lately kept busy, in percent."""

    _fields_: ClassVar[_Fields] = [
        ("pid", _U32),
        ("at_us", _U64),
        ("sm", _U32),
        ("memory", _U32),
        ("encoder", _U32),
        ("decoder", _U32),
    ]


class Accounting(ctypes.Structure):
    """What a process used while it lived."""

    _fields_: ClassVar[_Fields] = [
        ("gpu", _U32),
        ("memory", _U32),
        ("most_bytes", _U64),
        ("time_ms", _U64),
        ("started_us", _U64),
        ("is_running", _U32),
        ("reserved", _U32 * 5),
    ]


class FrameCapture(ctypes.Structure):
    """Sessions that capture the frame buffer."""

    _fields_: ClassVar[_Fields] = [("sessions", _U32), ("average_fps", _U32), ("latency", _U32)]


class SramErrors(ctypes.Structure):
    """Errors of on-chip memory by kind and place."""

    VERSION: ClassVar[int] = 1
    _fields_: ClassVar[_Fields] = [
        ("version", _U32),
        ("aggregate_parity", _U64),
        ("aggregate_secded", _U64),
        ("aggregate_corrected", _U64),
        ("volatile_parity", _U64),
        ("volatile_secded", _U64),
        ("volatile_corrected", _U64),
        ("bucket_l2", _U64),
        ("bucket_sm", _U64),
        ("bucket_pcie", _U64),
        ("bucket_mcu", _U64),
        ("bucket_other", _U64),
        ("threshold_exceeded", _U32),
    ]


class RemapHistogram(ctypes.Structure):
    """Banks of memory by how many spare rows they have left."""

    _fields_: ClassVar[_Fields] = [
        ("max", _U32),
        ("high", _U32),
        ("partial", _U32),
        ("low", _U32),
        ("none", _U32),
    ]


class Attributes(ctypes.Structure):
    """What a MIG device consists of."""

    _fields_: ClassVar[_Fields] = [
        ("multiprocessors", _U32),
        ("copy_engines", _U32),
        ("decoders", _U32),
        ("encoders", _U32),
        ("jpegs", _U32),
        ("ofas", _U32),
        ("gpu_slices", _U32),
        ("compute_slices", _U32),
        ("memory_mib", _U64),
    ]


class Placement(ctypes.Structure):
    """Slices that an instance holds."""

    _fields_: ClassVar[_Fields] = [("start", _U32), ("size", _U32)]


class GpuInstanceProfile(ctypes.Structure):
    """A kind of GPU instance."""

    VERSION: ClassVar[int] = 2
    _fields_: ClassVar[_Fields] = [
        ("version", _U32),
        ("id", _U32),
        ("p2p", _U32),
        ("slices", _U32),
        ("instances", _U32),
        ("multiprocessors", _U32),
        ("copy_engines", _U32),
        ("decoders", _U32),
        ("encoders", _U32),
        ("jpegs", _U32),
        ("ofas", _U32),
        ("memory_mib", _U64),
        ("name", ctypes.c_char * 96),
    ]


class GpuInstanceInfo(ctypes.Structure):
    """A GPU instance."""

    _fields_: ClassVar[_Fields] = [
        ("device", ctypes.c_void_p),
        ("id", _U32),
        ("profile_id", _U32),
        ("placement", Placement),
    ]


class ComputeInstanceProfile(ctypes.Structure):
    """A kind of compute instance."""

    VERSION: ClassVar[int] = 2
    _fields_: ClassVar[_Fields] = [
        ("version", _U32),
        ("id", _U32),
        ("slices", _U32),
        ("instances", _U32),
        ("multiprocessors", _U32),
        ("copy_engines", _U32),
        ("decoders", _U32),
        ("encoders", _U32),
        ("jpegs", _U32),
        ("ofas", _U32),
        ("name", ctypes.c_char * 96),
    ]


class ComputeInstanceInfo(ctypes.Structure):
    """A compute instance."""

    _fields_: ClassVar[_Fields] = [
        ("device", ctypes.c_void_p),
        ("gpu_instance", ctypes.c_void_p),
        ("id", _U32),
        ("profile_id", _U32),
        ("placement", Placement),
    ]


class _Value(ctypes.Union):
    _fields_: ClassVar[_Fields] = [
        ("real", ctypes.c_double),
        ("signed", ctypes.c_int),
        ("unsigned", _U32),
        ("long", ctypes.c_ulong),
        ("unsigned_long_long", _U64),
        ("long_long", ctypes.c_longlong),
        ("short", ctypes.c_ushort),
    ]


class FieldValue(ctypes.Structure):
    """One answer of ``nvmlDeviceGetFieldValues``."""

    _fields_: ClassVar[_Fields] = [
        ("field", _U32),
        ("scope", _U32),
        ("at_us", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("kind", _U32),
        ("code", ctypes.c_int),
        ("value", _Value),
    ]


_KINDS: Final = ("real", "unsigned", "long", "unsigned_long_long", "long_long", "signed", "short")
"""Members of the union in the order of ``nvmlValueType_t``."""


def field_value(field: FieldValue) -> int | float:
    """Take the number out of an answer."""
    member = _KINDS[field.kind] if field.kind < len(_KINDS) else "unsigned_long_long"
    number: int | float = getattr(field.value, member)
    return number


class AddressingMode(ctypes.Structure):
    """How processes and the GPU share addresses."""

    VERSION: ClassVar[int] = 1
    _fields_: ClassVar[_Fields] = [("version", _U32), ("value", _U32)]


class DriverBranch(ctypes.Structure):
    """The branch that a driver is of."""

    VERSION: ClassVar[int] = 1
    _fields_: ClassVar[_Fields] = [("version", _U32), ("branch", ctypes.c_char * 80)]


class Sample(ctypes.Structure):
    """One reading of a sensor's buffer."""

    _fields_: ClassVar[_Fields] = [("at_us", _U64), ("value", _Value)]
