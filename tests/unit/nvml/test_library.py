"""``libnvidia-ml.so.1`` from outside: exports, order of calls, bounds, versions, answers."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import timeit
from pathlib import Path

import pytest

from tests.helpers.nvml_calls import (
    INSUFFICIENT_SIZE,
    INVALID,
    LIBRARY,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    UNINITIALIZED,
    VERSION,
    Nvml,
)
from tests.helpers.source_tree import ROOT
from va100.spec.a100 import A100_SXM4_40GB

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")

sys.path.insert(0, str(ROOT / "tools"))
from nvml_tables import generate  # noqa: E402
from nvml_tables.table import read_rows  # noqa: E402

ROWS = read_rows()


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", "hgx-a100-8x40gb")
    with Nvml() as library:
        yield library


class TestTables:
    def test_generated_files_are_fresh(self):
        assert generate.stale() == [], "run: python tools/nvml_tables/generate.py"

    def test_every_row_is_exported_and_nothing_else(self):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=True
        ).stdout
        names = {line.split()[-1] for line in listed.splitlines()}
        ours = {name for name in names if name.startswith("va100_node_")}
        assert names - ours == {row.name for row in ROWS}
        assert len(ROWS) >= 436

    def test_the_python_binding_finds_every_function_it_asks_for(self):
        pynvml = pytest.importorskip("pynvml")
        text = Path(pynvml.__file__).read_text("utf-8")

        asked = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"', text))
        assert len(asked) > 300
        assert asked <= {row.name for row in ROWS}


class TestCalling:
    def test_before_init_only_starting_works(self):
        # A process of its own: here, others may have started the library.
        code = f"""
import ctypes, sys
sys.path.insert(0, {str(ROOT / "tools")!r})
from nvml_tables.table import read_rows
library = ctypes.CDLL({str(LIBRARY)!r})
zeros = [None] * 8
for row in read_rows():
    if row.group != "start":
        code = getattr(library, row.name)(*zeros)
        assert code == {UNINITIALIZED}, (row.name, code)
assert library.nvmlShutdown() == {UNINITIALIZED}
"""
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    def test_null_pointers_and_junk_are_refused_everywhere(self, nvml):
        junk = ctypes.c_void_p(0xDEAD0)
        for row in ROWS:
            if row.group == "start" or not row.is_implemented or not row.parameters:
                continue
            code = nvml.code(row.name, *[None] * 8)
            assert code != SUCCESS or row.name in {
                "nvmlSystemGetHicVersion",
            }, row.name
            if row.parameters[0].c_type.startswith(("nvmlDevice_t", "nvmlGpuInst", "nvmlComputeI")):
                buffers = [ctypes.create_string_buffer(4096) for _ in range(6)]
                assert nvml.code(row.name, junk, *buffers) in (INVALID, VERSION, NOT_SUPPORTED), (
                    row.name
                )

    def test_refused_rows_say_not_supported(self, nvml):
        for row in ROWS:
            if not row.is_implemented:
                assert nvml.code(row.name, *[None] * 8) == NOT_SUPPORTED, row.name

    def test_starting_is_counted(self, nvml):
        nvml.call("nvmlInit_v2")
        nvml.call("nvmlShutdown")
        assert nvml.number("nvmlDeviceGetCount_v2") == 8

    def test_starting_again_and_again_maps_the_node_once(self, nvml):
        def mappings():
            return Path("/proc/self/maps").read_text("utf-8").count(".node")

        before = mappings()
        for _ in range(10):
            nvml.call("nvmlShutdown")
            nvml.call("nvmlInit_v2")
        assert mappings() == before

    @pytest.mark.parametrize(
        ("name", "length"),
        [
            ("nvmlDeviceGetName", len("NVIDIA A100-SXM4-40GB") + 1),
            ("nvmlDeviceGetUUID", 41),
            ("nvmlDeviceGetSerial", 14),
            ("nvmlDeviceGetVbiosVersion", 15),
        ],
    )
    def test_texts_stay_inside_their_buffers(self, nvml, name, length):
        gpu = nvml.gpu()
        buffer = ctypes.create_string_buffer(b"\xee" * 200, 200)
        assert nvml.code(name, gpu, buffer, length) == SUCCESS
        assert len(buffer.value) == length - 1
        assert buffer.raw[length:] == b"\xee" * (200 - length)
        before = buffer.raw
        assert nvml.code(name, gpu, buffer, length - 1) == INSUFFICIENT_SIZE
        assert buffer.raw == before

    def test_a_structure_of_another_version_is_refused(self, nvml):
        gpu = nvml.gpu()
        wrong = ctypes.create_string_buffer(512)
        for name in (
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetPciInfoExt",
            "nvmlDeviceGetTemperatureV",
            "nvmlDeviceGetSramEccErrorStatus",
            "nvmlDeviceGetRunningProcessDetailList",
            "nvmlDeviceGetProcessesUtilizationInfo",
            "nvmlDeviceGetGpuFabricInfoV",
            "nvmlDeviceGetAddressingMode",
        ):
            assert nvml.code(name, gpu, wrong) == VERSION, name

    def test_a_call_is_quick(self, nvml):
        gpu, power = nvml.gpu(), ctypes.c_uint()
        call = nvml.library.nvmlDeviceGetPowerUsage
        times = timeit.repeat(lambda: call(gpu, ctypes.byref(power)), number=200, repeat=9)
        assert sorted(times)[4] / 200 < 20e-6


class TestAnswers:
    """An idle A100-SXM4-40GB's, as captures show them."""

    def test_identity(self, nvml):
        gpu = nvml.gpu()
        assert nvml.text("nvmlDeviceGetName", gpu) == "NVIDIA A100-SXM4-40GB"
        assert nvml.text("nvmlSystemGetDriverVersion").startswith("580.")
        assert nvml.number("nvmlDeviceGetArchitecture", gpu) == 7
        assert nvml.number("nvmlDeviceGetNumGpuCores", gpu) == 6912
        uuid = nvml.text("nvmlDeviceGetUUID", gpu)
        again = nvml.handle("nvmlDeviceGetHandleByUUID", uuid.encode())
        assert again.value == gpu.value
        for spelled in (b"00000000:07:00.0", b"0000:07:00.0", b"07:00.0", b"0:7:0"):
            found = nvml.handle("nvmlDeviceGetHandleByPciBusId_v2", spelled)
            assert found.value == gpu.value, spelled
        other = ctypes.byref(ctypes.c_void_p())
        assert nvml.code("nvmlDeviceGetHandleByPciBusId_v2", b"0000:08:00.0", other) == NOT_FOUND

    def test_memory(self, nvml):
        memory = nvml.memory(nvml.gpu())
        assert memory.total == A100_SXM4_40GB.memory_bytes
        assert memory.used == A100_SXM4_40GB.memory_reserved_bytes
        assert memory.free + memory.used == memory.total

    def test_idle_readings(self, nvml):
        gpu = nvml.gpu()
        clocks = [nvml.number("nvmlDeviceGetClockInfo", gpu, domain) for domain in range(4)]
        assert clocks == [210, 210, 1215, 585]
        most = [nvml.number("nvmlDeviceGetMaxClockInfo", gpu, domain) for domain in range(4)]
        assert most == [1410, 1410, 1215, 1290]
        assert nvml.number("nvmlDeviceGetPerformanceState", gpu) == 0
        idle_mw = round(A100_SXM4_40GB.measured.idle_w * 1000)
        assert nvml.number("nvmlDeviceGetPowerUsage", gpu) == idle_mw
        assert nvml.number("nvmlDeviceGetTemperature", gpu, 0) == 33
        thresholds = [nvml.number("nvmlDeviceGetTemperatureThreshold", gpu, i) for i in range(4)]
        assert thresholds == [92, 89, 95, 85]
        assert nvml.processes(gpu) == []

    def test_supported_clocks_are_81_steps_of_15_mhz(self, nvml):
        clocks, count = (ctypes.c_uint * 200)(), ctypes.c_uint(200)
        name = "nvmlDeviceGetSupportedGraphicsClocks"
        nvml.call(name, nvml.gpu(), 1215, ctypes.byref(count), clocks)
        assert list(clocks[: count.value]) == list(range(1410, 209, -15))
        count.value = 5
        assert nvml.code(name, nvml.gpu(), 1215, ctypes.byref(count), clocks) == INSUFFICIENT_SIZE
        assert count.value == 81

    def test_samples_are_of_the_last_moments_in_order(self, nvml):
        class Sample(ctypes.Structure):
            _fields_ = [("stamp", ctypes.c_uint64), ("value", ctypes.c_uint64)]

        gpu, kind, count = nvml.gpu(), ctypes.c_uint(), ctypes.c_uint()
        name, since = "nvmlDeviceGetSamples", ctypes.c_uint64(0)
        nvml.call(name, gpu, 0, since, ctypes.byref(kind), ctypes.byref(count), None)
        samples = (Sample * count.value)()
        nvml.call(name, gpu, 0, since, ctypes.byref(kind), ctypes.byref(count), samples)
        stamps = [sample.stamp for sample in samples[: count.value]]
        assert count.value > 4
        assert stamps == sorted(set(stamps))
        idle_mw = round(A100_SXM4_40GB.measured.idle_w * 1000)
        assert {sample.value for sample in samples[: count.value]} == {idle_mw}
        later = ctypes.c_uint64(stamps[-1] + 10**9)
        arguments = (later, ctypes.byref(kind), ctypes.byref(count), samples)
        assert nvml.code(name, gpu, 0, *arguments) == NOT_FOUND

    def test_limits_are_kept(self, nvml):
        gpu = nvml.gpu()
        assert nvml.code("nvmlDeviceSetPowerManagementLimit", gpu, 99_000) == INVALID
        nvml.call("nvmlDeviceSetPowerManagementLimit", gpu, 300_000)
        assert nvml.number("nvmlDeviceGetEnforcedPowerLimit", gpu) == 300_000

    def test_every_gpu_reaches_every_other_over_nvlink(self, nvml):
        gpus = [nvml.gpu(index) for index in range(8)]
        for other in gpus[1:]:
            assert nvml.number("nvmlDeviceGetP2PStatus", gpus[0], other, 2) == 0
        kinds = {nvml.number("nvmlDeviceGetNvLinkRemoteDeviceType", gpus[0], i) for i in range(12)}
        assert kinds == {2}  # switches

    def test_under_mig_utilisation_is_not_supported_and_slices_are_devices(self, nvml):
        gpu = nvml.gpu()
        nvml.set_mig(gpu, 1)
        pair = (ctypes.c_uint * 2)()
        assert nvml.code("nvmlDeviceGetUtilizationRates", gpu, pair) == NOT_SUPPORTED
        instance = nvml.create(gpu, 14)
        nvml.handle("nvmlGpuInstanceCreateComputeInstance", instance, 1)
        slice_ = nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 0)
        assert nvml.text("nvmlDeviceGetName", slice_) == "NVIDIA A100-SXM4-40GB MIG 2g.10gb"
        uuid = nvml.text("nvmlDeviceGetUUID", slice_)
        assert uuid.startswith("MIG-")
        assert uuid.split("-")[3][0] == "5"
        assert nvml.memory(slice_).total == 9856 << 20
        attributes = (ctypes.c_uint * 12)()
        nvml.call("nvmlDeviceGetAttributes_v2", slice_, attributes)
        assert list(attributes[:3]) == [28, 2, 1]
        parent = nvml.handle("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", slice_)
        assert parent.value == gpu.value
        assert nvml.number("nvmlDeviceGetNvLinkState", gpu, 0) == 0
        # Destroyed and made again in the same place, it has the same UUID and another handle.
        nvml.call(
            "nvmlComputeInstanceDestroy",
            nvml.handle("nvmlGpuInstanceGetComputeInstanceById", instance, 0),
        )
        name = ctypes.create_string_buffer(96)
        assert nvml.code("nvmlDeviceGetName", slice_, name, 96) == NOT_FOUND
        nvml.handle("nvmlGpuInstanceCreateComputeInstance", instance, 1)
        again = nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 0)
        assert nvml.text("nvmlDeviceGetUUID", again) == uuid
