"""What kernels are made of, as a node's readings tell while they run."""

from __future__ import annotations

import pytest

from tests.helpers.node_program import Program
from tests.helpers.nvml_calls import LIBRARY, Nvml
from va100.cli import exporter
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR
from va100.node import store

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists() or not (NATIVE_DIR / LIBRARY_NAME).exists(),
    reason="the native core is not built",
)
NODE = "hgx-a100-4x40gb"


@pytest.fixture(autouse=True)
def node(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", NODE)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def active(process_index=0, gpu=0):
    """Shares of the last sample period, of a GPU's process."""
    return store.describe()["gpus"][gpu]["processes"][process_index]["active"]


def settled(program, unit):
    """Shares once the launches' counters are known and a whole period is of them."""
    for _ in range(100_000):
        found = active()
        if found[unit] > 0.3 and found["any"] > 0.9:
            return found
        assert program.process.poll() is None
    pytest.fail(f"no {unit} work is told: {active()}")


def test_tensor_cores_are_told_of_where_they_run_and_nowhere_else():
    with Program() as program:
        assert program.ask("alloc 1048576") == "0"
        assert program.ask("work 40 forever multiply") == "working"
        found = settled(program, "tensor")
        assert found["tensor"] > 0.2
        assert found["fp32"] < 0.05
        metrics = exporter.metrics()
        assert _series(metrics, "PIPE_TENSOR_ACTIVE") > 0.2
        assert _series(metrics, "PIPE_FP32_ACTIVE") < 0.05


def test_multiply_adds_are_told_as_such_and_draw_their_power():
    idle_w = store.describe()["gpus"][0]["power_w"]
    with Program() as program:
        assert program.ask("alloc 1048576") == "0"
        assert program.ask("work 2000 forever spin") == "working"
        found = settled(program, "fp32")
        assert found["tensor"] == 0
        assert store.describe()["gpus"][0]["power_w"] > idle_w + 50


class TestSlices:
    @pytest.fixture
    def slices(self):
        """Instances of GPU 0: 3g, 2g, 1g, 1g."""
        with Nvml() as nvml:
            gpu = nvml.gpu(0)
            assert nvml.set_mig(gpu, 1) == 0
            for profile, level in ((9, 2), (14, 1), (19, 0), (19, 0)):
                instance = nvml.create(gpu, profile)
                nvml.handle("nvmlGpuInstanceCreateComputeInstance", instance, level)
            handles = [nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, i) for i in range(4)]
            return [nvml.text("nvmlDeviceGetUUID", handle) for handle in handles]

    def test_busy_neighbours_cost_what_was_measured(self, slices):
        with Program(CUDA_VISIBLE_DEVICES=slices[3]) as program:
            assert program.ask("alloc 1048576") == "0"
            alone = float(program.ask("work 2000 timed"))
            with Program(CUDA_VISIBLE_DEVICES=slices[0]) as neighbour:
                assert neighbour.ask("alloc 1048576") == "0"
                assert neighbour.ask("work 20000 forever") == "working"
                while not any(p["busy_percent"] for p in _processes() if p["pid"] == neighbour.pid):
                    assert neighbour.process.poll() is None
                beside = max(float(program.ask("work 2000 timed")) for _ in range(3))
            after = float(program.ask("work 2000 timed"))
        assert after == pytest.approx(alone, rel=1e-6)
        assert 1.0005 < beside / alone < 1.08

    def test_slices_sum_to_the_board(self, slices):
        with (
            Program(CUDA_VISIBLE_DEVICES=slices[0]) as one,
            Program(CUDA_VISIBLE_DEVICES=slices[2]) as two,
        ):
            for program in (one, two):
                assert program.ask("alloc 1048576") == "0"
                assert program.ask("work 2000 forever") == "working"
            while len([p for p in _processes() if p["active"]["any"] > 0.05]) < 2:
                assert one.process.poll() is None
                assert two.process.poll() is None
            lines = exporter.metrics().splitlines()
        board, parts = 0.0, {}
        for line in lines:
            if line.startswith('DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0"'):
                value = float(line.rsplit(" ", 1)[1])
                if "GPU_I_ID" in line:
                    parts[line.split('GPU_I_PROFILE="')[1].split("g.")[0], line] = value
                else:
                    board = value
        assert sum(value > 0 for value in parts.values()) == 2
        assert board == pytest.approx(sum(int(k[0]) * v for k, v in parts.items()) / 7, abs=1e-5)


def _processes():
    return store.describe()["gpus"][0]["processes"]


def _series(metrics, name):
    (line,) = (
        line for line in metrics.splitlines() if line.startswith(f'DCGM_FI_PROF_{name}{{gpu="0"')
    )
    return float(line.rsplit(" ", 1)[1])
