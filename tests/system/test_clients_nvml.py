"""Monitors and libraries that ask NVML, unchanged, on a node on which a program works."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap

import pytest

from tests.helpers.node_program import Program
from tests.helpers.nvml_calls import LIBRARY
from va100.gpu.native import NATIVE_DIR

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Of a shell after `eval "$(va100 env --node ...)"`, as far as NVML is concerned."""
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", "hgx-a100-4x40gb")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(NATIVE_DIR))
    monkeypatch.setenv("TERM", "dumb")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "120"}


def run(environment, *arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(environment, text):
    return run(environment, "-c", textwrap.dedent(text))


def test_nvidia_ml_py(environment):
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py: the extra node-clients")
    with Program() as program:
        program.ask(f"alloc {1 << 30}")
        told = python(
            environment,
            """
            import pynvml as n
            n.nvmlInit()
            print(n.nvmlSystemGetDriverVersion(), n.nvmlDeviceGetCount())
            gpu = n.nvmlDeviceGetHandleByIndex(0)
            print(n.nvmlDeviceGetName(gpu), n.nvmlDeviceGetPciInfo(gpu).busId)
            memory = n.nvmlDeviceGetMemoryInfo(gpu, version=n.nvmlMemory_v2)
            print(memory.used > 1 << 30, memory.total >> 20, memory.reserved >> 20)
            print([p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(gpu)])
            values = n.nvmlDeviceGetFieldValues(gpu, [n.NVML_FI_DEV_NVLINK_LINK_COUNT,
                                                      n.NVML_FI_DEV_MEMORY_TEMP])
            print([v.value.uiVal for v in values])
            print(n.nvmlDeviceGetTemperatureV(gpu, n.NVML_TEMPERATURE_GPU))
            print(n.nvmlDeviceGetMigMode(gpu))
            try:
                n.nvmlDeviceGetFanSpeed(gpu)
            except n.NVMLError_NotSupported as error:
                print(error)
            n.nvmlShutdown()
            """,
        ).splitlines()
        assert told[0].endswith(" 4")
        assert told[1] == "NVIDIA A100-SXM4-40GB 00000000:07:00.0"
        assert told[2] == "True 40960 518"
        assert told[3] == f"[{program.pid}]"
        assert told[4].startswith("[12, 3")
        assert told[6:] == ["[0, 0]", "Not Supported"]


def test_nvitop(environment):
    pytest.importorskip("nvitop", reason="needs nvitop: the extra node-clients")
    with Program() as program:
        program.ask(f"alloc {1 << 30}")
        text = run(environment, "-m", "nvitop", "-1", "--ascii")
        assert len(re.findall(r"A100-SXM4-40GB|40960MiB|40\.00GiB", text)) >= 4
        assert re.search(rf"\b{program.pid}\b", text)


def test_nvitop_shows_slices(environment):
    pytest.importorskip("nvitop", reason="needs nvitop: the extra node-clients")
    python(
        environment,
        """
        import pynvml as n
        n.nvmlInit()
        gpu = n.nvmlDeviceGetHandleByIndex(0)
        assert n.nvmlDeviceSetMigMode(gpu, 1) == 0
        for _ in range(3):
            gi = n.nvmlDeviceCreateGpuInstance(gpu, 14)
            n.nvmlGpuInstanceCreateComputeInstance(gi, 1)
        """,
    )
    told = python(
        environment,
        """
        from nvitop import Device
        gpu = Device.all()[0]
        print(gpu.mig_mode(), gpu.gpu_utilization())
        for mig in gpu.mig_devices():
            print(mig.name(), mig.memory_total() >> 20, mig.gpu_instance_id(), mig.uuid()[:4])
        """,
    ).splitlines()
    assert told[0] == "Enabled N/A"
    assert [line.split()[-3:] for line in told[1:]] == [
        ["9856", number, "MIG-"] for number in ("3", "4", "5")
    ]


def test_gpustat(environment):
    pytest.importorskip("gpustat", reason="needs gpustat: the extra node-clients")
    with Program() as program:
        program.ask(f"alloc {1 << 30}")
        text = run(environment, "-m", "gpustat", "--no-color", "--show-pid")
        lines = [line for line in text.splitlines() if line.startswith("[")]
        assert len(lines) == 4
        assert "NVIDIA A100-SXM4-40GB" in lines[0]
        assert re.search(r"\d+ / 40960 MB", lines[0])
        assert f"/{program.pid}(" in lines[0]
        assert f"/{program.pid}(" not in lines[1]


def test_what_pytorch_asks(environment):
    """torch.cuda's own way of counting devices without a context, by ctypes."""
    told = python(
        environment,
        """
        from ctypes import CDLL, byref, c_int, c_void_p, create_string_buffer
        nvml = CDLL("libnvidia-ml.so.1")
        assert nvml.nvmlInit() == 0
        count = c_int(-1)
        assert nvml.nvmlDeviceGetCount_v2(byref(count)) == 0
        for index in range(count.value):
            handle = c_void_p()
            assert nvml.nvmlDeviceGetHandleByIndex_v2(index, byref(handle)) == 0
            text = create_string_buffer(96)
            assert nvml.nvmlDeviceGetUUID(handle, text, 96) == 0
            print(text.raw.decode("ascii").strip("\\0"))
        """,
    ).split()
    assert len(told) == 4
    assert all(
        re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid) for uuid in told
    )


def test_ray(environment):
    if not importlib.util.find_spec("ray"):
        pytest.skip("needs Ray: pip install ray")
    told = python(
        environment,
        """
        from ray._private.accelerators.nvidia_gpu import NvidiaGPUAcceleratorManager as Found
        print(Found.get_current_node_num_accelerators(), Found.get_current_node_accelerator_type())
        """,
    )
    assert told == "4 A100\n"


def test_what_ray_asks(environment):
    """Ray's provider of GPU readings calls these, whether Ray is installed or not."""
    pytest.importorskip("pynvml", reason="needs nvidia-ml-py: the extra node-clients")
    told = python(
        environment,
        """
        import pynvml as n
        n.nvmlInit()
        for index in range(n.nvmlDeviceGetCount()):
            gpu = n.nvmlDeviceGetHandleByIndex(index)
            assert n.nvmlDeviceGetMigMode(gpu) == [0, 0]
            memory, busy = n.nvmlDeviceGetMemoryInfo(gpu), n.nvmlDeviceGetUtilizationRates(gpu)
            processes = n.nvmlDeviceGetComputeRunningProcesses(gpu)
            processes += n.nvmlDeviceGetGraphicsRunningProcesses(gpu)
            try:
                used = n.nvmlDeviceGetProcessesUtilizationInfo(gpu, 0)
            except n.NVMLError as error:
                used = error
            print(index, n.nvmlDeviceGetName(gpu), busy.gpu, len(processes))
        n.nvmlShutdown()
        """,
    )
    assert told.splitlines()[3] == "3 NVIDIA A100-SXM4-40GB 0 0"


@pytest.mark.parametrize(("asked", "said"), [("", "13.5"), ("13000", "13.0"), ("12040", "12.4")])
def test_all_say_one_cuda_version(environment, asked, said):
    """The driver, NVML and nvidia-smi, whichever release is asked for."""
    if asked:
        environment = environment | {"VA100_DRIVER_VERSION": asked}
    told = python(
        environment,
        """
        import ctypes
        number = ctypes.c_int()
        assert ctypes.CDLL("libnvidia-ml.so.1").nvmlInit_v2() == 0
        for library, name in (
            ("libcuda.so.1", "cuDriverGetVersion"),
            ("libnvidia-ml.so.1", "nvmlSystemGetCudaDriverVersion_v2"),
        ):
            assert getattr(ctypes.CDLL(library), name)(ctypes.byref(number)) == 0
            print(number.value // 1000, number.value % 1000 // 10, sep=".")
        """,
    )
    assert told.split() == [said, said]
    table = subprocess.run(
        [NATIVE_DIR / "smi" / "nvidia-smi"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=True,
    ).stdout
    assert f"Driver Version: 580.95.05      CUDA Version: {said} " in table
