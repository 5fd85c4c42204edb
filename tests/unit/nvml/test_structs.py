"""Our structures beside those of nvidia-ml-py, which follows NVIDIA's header."""

from __future__ import annotations

import ctypes

import pytest

from va100.nvml import structs

THEIRS = {
    structs.PciInfo: "nvmlPciInfo_t",
    structs.PciInfoExt: "nvmlPciInfoExt_v1_t",
    structs.Memory: "c_nvmlMemory_v2_t",
    structs.Bar1: "c_nvmlBAR1Memory_t",
    structs.Utilization: "c_nvmlUtilization_t",
    structs.Process: "c_nvmlProcessInfo_v2_t",
    structs.ProcessUse: "c_nvmlProcessUtilizationSample_t",
    structs.Accounting: "c_nvmlAccountingStats_t",
    structs.FrameCapture: "c_nvmlFBCStats_t",
    structs.SramErrors: "c_nvmlEccSramErrorStatus_v1_t",
    structs.RemapHistogram: "c_nvmlRowRemapperHistogramValues",
    structs.Attributes: "c_nvmlDeviceAttributes",
    structs.Placement: "c_nvmlGpuInstancePlacement_t",
    structs.GpuInstanceProfile: "c_nvmlGpuInstanceProfileInfo_v2_t",
    structs.GpuInstanceInfo: "c_nvmlGpuInstanceInfo_t",
    structs.ComputeInstanceProfile: "c_nvmlComputeInstanceProfileInfo_v2_t",
    structs.ComputeInstanceInfo: "c_nvmlComputeInstanceInfo_t",
    structs.FieldValue: "c_nvmlFieldValue_t",
    structs.AddressingMode: "c_nvmlDeviceAddressingMode_t",
}


def layout(kind):
    """Offsets and sizes of all members, in order."""
    return [(getattr(kind, name).offset, getattr(kind, name).size) for name, *_ in kind._fields_]


@pytest.mark.parametrize("ours", THEIRS, ids=lambda kind: kind.__name__)
def test_layouts_agree(ours):
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    theirs = getattr(pynvml, THEIRS[ours], None)
    if theirs is None:
        pytest.skip(f"this nvidia-ml-py has no {THEIRS[ours]}")
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    assert layout(ours) == layout(theirs)


def test_numbers_are_taken_as_they_are_typed():
    field = structs.FieldValue(kind=0)
    field.value.real = 49.5
    assert structs.field_value(field) == 49.5
    field = structs.FieldValue(kind=3)
    field.value.unsigned_long_long = 1 << 40
    assert structs.field_value(field) == 1 << 40
    field = structs.FieldValue(kind=5)
    field.value.signed = -7
    assert structs.field_value(field) == -7
