"""What cuda.core asks NVML besides readings: P-states, counters to clear, system events, CPUs."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint

import pytest

from tests.helpers.nvml_calls import (
    INSUFFICIENT_SIZE,
    INVALID,
    LIBRARY,
    NOT_SUPPORTED,
    SUCCESS,
    VERSION,
    Nvml,
)

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")

TIMEOUT = 10
GRAPHICS, SM, MEMORY, VIDEO = range(4)
PCIE_REPLAYS, ENERGY = 94, 83


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", "hgx-a100-8x80gb")
    with Nvml() as library:
        yield library


@pytest.mark.parametrize(
    ("clock", "least", "most"), [(GRAPHICS, 210, 1410), (SM, 210, 1410), (MEMORY, 1593, 1593)]
)
def test_the_one_p_state_has_all_clocks(nvml, clock, least, most):
    low, high = c_uint(), c_uint()
    name = "nvmlDeviceGetMinMaxClockOfPState"
    nvml.call(name, nvml.gpu(), clock, 0, byref(low), byref(high))
    assert (low.value, high.value) == (least, most)
    assert nvml.code(name, nvml.gpu(), clock, 8, byref(low), byref(high)) == NOT_SUPPORTED
    assert nvml.code(name, nvml.gpu(), clock, 16, byref(low), byref(high)) == INVALID


def test_dynamic_p_states_are_utilisations(nvml):
    class Info(ctypes.Structure):
        _fields_ = (("flags", c_uint), ("domains", c_uint * 4 * 8))

    info = Info()
    nvml.call("nvmlDeviceGetDynamicPstatesInfo", nvml.gpu(), byref(info))
    assert [domain[0] for domain in info.domains] == [1] * 4 + [0] * 4
    assert all(domain[1] <= 100 for domain in info.domains)


def test_replays_can_be_cleared_and_energy_cannot(nvml):
    class Field(ctypes.Structure):
        _fields_ = (
            ("id", c_uint), ("scope", c_uint), ("timestamp", ctypes.c_int64),
            ("latency", ctypes.c_int64), ("type", c_uint), ("result", c_uint),
            ("value", ctypes.c_uint64),
        )  # fmt: skip

    fields = (Field * 3)(Field(PCIE_REPLAYS), Field(ENERGY), Field(9999))
    nvml.call("nvmlDeviceClearFieldValues", nvml.gpu(), 3, fields)
    assert [field.result for field in fields] == [SUCCESS, NOT_SUPPORTED, INVALID]
    assert nvml.code("nvmlDeviceClearFieldValues", nvml.gpu(), 0, fields) == INVALID


class Set(ctypes.Structure):
    _fields_ = (("version", c_uint), ("set", ctypes.c_void_p))


class Registration(ctypes.Structure):
    _fields_ = (("version", c_uint), ("types", ctypes.c_uint64), ("set", ctypes.c_void_p))


class Wait(ctypes.Structure):
    _fields_ = (
        ("version", c_uint), ("timeout_ms", c_uint), ("set", ctypes.c_void_p),
        ("data", ctypes.c_void_p), ("size", c_uint), ("count", c_uint),
    )  # fmt: skip


def first(kind: type, **fields) -> ctypes.Structure:
    """A request of a structure's first version."""
    return kind(ctypes.sizeof(kind) | 1 << 24, **fields)


def test_system_events_are_waited_for_and_none_comes(nvml):
    made = first(Set)
    nvml.call("nvmlSystemEventSetCreate", byref(made))
    nvml.call("nvmlSystemRegisterEvents", byref(first(Registration, types=3, set=made.set)))
    unknown = first(Registration, types=4, set=made.set)
    assert nvml.code("nvmlSystemRegisterEvents", byref(unknown)) == INVALID
    wait = first(Wait, set=made.set, timeout_ms=1)
    assert nvml.code("nvmlSystemEventSetWait", byref(wait)) == TIMEOUT
    nvml.call("nvmlSystemEventSetFree", byref(made))
    for name, request in (("Free", made), ("Wait", wait)):
        assert nvml.code(f"nvmlSystemEventSet{name}", byref(request)) == INVALID
    assert nvml.code("nvmlSystemEventSetCreate", byref(Set(1))) == VERSION


def test_gpus_near_a_processor(nvml):
    count = c_uint()
    nvml.call("nvmlSystemGetTopologyGpuSet", 0, byref(count), None)
    assert count.value == 8
    room = (ctypes.c_void_p * 8)()
    nvml.call("nvmlSystemGetTopologyGpuSet", 0, byref(count), room)
    assert room[3] == nvml.gpu(3).value
    few = c_uint(7)
    assert nvml.code("nvmlSystemGetTopologyGpuSet", 0, byref(few), room) == INSUFFICIENT_SIZE
    assert nvml.code("nvmlSystemGetTopologyGpuSet", 1 << 20, byref(count), None) == INVALID
