"""CUDA programs on a node: what NVML tells of them while they run and after they are gone."""

from __future__ import annotations

import ctypes
import json
import random

import pytest

from tests.helpers.node_program import Program
from tests.helpers.nvml_calls import IN_USE, LIBRARY, NONE, NOT_FOUND, Nvml, Utilization
from va100.cli.main import main
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists() or not (NATIVE_DIR / LIBRARY_NAME).exists(),
    reason="the native core is not built",
)


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", "hgx-a100-4x40gb")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with Nvml() as library:
        yield library


def utilization(nvml, gpu):
    found = Utilization()
    nvml.call("nvmlDeviceGetUtilizationRates", gpu, ctypes.byref(found))
    return found.gpu


def test_cuda_and_nvml_mean_the_same_cards(nvml):
    with Program() as program:
        count, name, bus_id, uuid, *_ = program.first
        gpu = nvml.gpu()
        assert int(count) == nvml.number("nvmlDeviceGetCount_v2") == 4
        assert name == nvml.text("nvmlDeviceGetName", gpu)
        assert uuid == nvml.text("nvmlDeviceGetUUID", gpu).removeprefix("GPU-").replace("-", "")
        found = nvml.handle("nvmlDeviceGetHandleByPciBusId_v2", bus_id.encode())
        assert found.value == gpu.value


def test_the_plain_node_is_what_cuda_sees_without_one(nvml, monkeypatch):
    monkeypatch.delenv("VA100_NODE")
    monkeypatch.setenv("VA100_GPUS", "2")
    nvml.call("nvmlShutdown")
    nvml.call("nvmlInit_v2")
    with Program() as program:
        assert int(program.first[0]) == nvml.number("nvmlDeviceGetCount_v2") == 2
        uuid = nvml.text("nvmlDeviceGetUUID", nvml.gpu()).removeprefix("GPU-").replace("-", "")
        assert program.first[3] == uuid
        assert program.ask("room")  # its context is there now
        assert [p.pid for p in nvml.processes(nvml.gpu())] == [program.pid]


def test_memory_is_told_and_nothing_is_left_of_who_is_killed(nvml):
    gpu = nvml.gpu()
    idle = nvml.memory(gpu).used
    with Program() as program:
        assert program.ask(f"alloc {1 << 30}") == "0"
        (found,) = nvml.processes(gpu)
        assert (found.pid, found.gpu_instance) == (program.pid, NONE)
        assert found.used > 1 << 30
        assert nvml.memory(gpu).used == idle + found.used
        assert nvml.processes(nvml.gpu(1)) == []
        assert program.ask("free") == "0"
        assert nvml.memory(gpu).used == idle + found.used - (1 << 30)
        program.kill()
        assert nvml.processes(gpu) == []
        assert nvml.memory(gpu).used == idle


def random_words(rng):
    """What a program does before it is killed, or while it is."""
    words = [f"alloc {rng.randrange(1, 1 << 30)}" for _ in range(rng.randrange(3))]
    if words and rng.random() < 0.7:
        words.append(f"copy {rng.randrange(1, 1 << 12)}")
    if rng.random() < 0.7:
        words += [
            "alloc 1048576",
            f"work {rng.randrange(1, 20_000)} {rng.choice(['timed', 'forever'])}",
        ]
    return words


def random_slice(nvml, gpu, rng):
    """An instance in which a program may run; its handles and UUID."""
    profile, level = rng.choice([(19, 0), (14, 1), (9, 2), (5, 3)])
    instance = nvml.create(gpu, profile)
    compute = nvml.handle("nvmlGpuInstanceCreateComputeInstance", instance, level)
    device = nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, 0)
    return instance, compute, nvml.text("nvmlDeviceGetUUID", device)


def test_killed_at_random_points_nothing_is_left(nvml, full):
    whole, divided = nvml.gpu(0), nvml.gpu(1)
    assert nvml.set_mig(divided, 1) == 0
    idle, rng = nvml.memory(whole).used, random.Random(11)
    energy = 0
    for _ in range(200 if full else 10):
        in_slice = rng.random() < 0.5
        instance, compute, uuid = random_slice(nvml, divided, rng)
        with Program(CUDA_VISIBLE_DEVICES=uuid if in_slice else "0") as program:
            words = random_words(rng)
            program.process.stdin.write("".join(f"{word}\n" for word in words))
            program.process.stdin.flush()
            for _ in range(rng.randrange(len(words) + 1)):
                program.process.stdout.readline()
            for _ in range(rng.randrange(3000)):
                nvml.processes(divided if in_slice else whole)  # while it comes up and works
        for gpu in (whole, divided):
            assert nvml.processes(gpu) == []
            assert nvml.memory(gpu).used == idle
            assert nvml.number("nvmlDeviceGetClockInfo", gpu, 1) == 210
        nvml.call("nvmlComputeInstanceDestroy", compute)
        nvml.call("nvmlGpuInstanceDestroy", instance)
        assert utilization(nvml, whole) == 0
        before, energy = energy, _energy(nvml, whole)
        assert energy >= before


def _energy(nvml, gpu):
    return nvml.number("nvmlDeviceGetTotalEnergyConsumption", gpu, kind=ctypes.c_uint64)


def test_a_card_of_a_chosen_node_is_filled_by_all_together(nvml):
    with Program() as one, Program() as two:
        assert one.ask(f"alloc {30 << 30}") == "0"
        before = int(two.ask("room"))
        assert before < 10 << 30
        assert two.ask(f"alloc {20 << 30}") == "2"  # out of memory
        assert one.ask("free") == "0"
        assert int(two.ask("room")) == before + (30 << 30)
        assert two.ask(f"alloc {20 << 30}") == "0"


def test_readings_follow_work(nvml):
    gpu = nvml.gpu()
    idle_mw = nvml.number("nvmlDeviceGetPowerUsage", gpu)
    before = nvml.number("nvmlDeviceGetTotalEnergyConsumption", gpu, kind=ctypes.c_uint64)
    with Program() as program:
        program.ask(f"alloc {1 << 20}")
        assert program.ask("work 20000 forever") == "working"
        for _ in range(10_000_000):
            if utilization(nvml, gpu) > 50:
                break
            assert program.process.poll() is None
        else:
            pytest.fail("utilisation stays low while kernels run")
        assert nvml.number("nvmlDeviceGetClockInfo", gpu, 1) > 210
        assert nvml.number("nvmlDeviceGetPowerUsage", gpu) > idle_mw
        assert nvml.processes(gpu)[0].pid == program.pid
        program.kill()
    assert utilization(nvml, gpu) == 0
    assert nvml.number("nvmlDeviceGetClockInfo", gpu, 1) == 210
    after = nvml.number("nvmlDeviceGetTotalEnergyConsumption", gpu, kind=ctypes.c_uint64)
    assert after > before


def pcie_received(nvml, gpu):
    class Field(ctypes.Structure):
        _fields_ = [
            ("number", ctypes.c_uint),
            ("scope", ctypes.c_uint),
            ("stamp", ctypes.c_int64),
            ("latency", ctypes.c_int64),
            ("type", ctypes.c_uint),
            ("code", ctypes.c_int),
            ("value", ctypes.c_uint64),
        ]

    field = Field(number=198)
    nvml.call("nvmlDeviceGetFieldValues", gpu, 1, ctypes.byref(field))
    assert field.code == 0
    return field.value


def test_bytes_over_pcie_are_counted_and_kept(nvml):
    gpu = nvml.gpu()
    assert pcie_received(nvml, gpu) == 0
    with Program() as program:
        assert program.ask(f"alloc {8 << 20}") == "0"
        assert program.ask(f"copy {8 << 20}") == "0"
        assert pcie_received(nvml, gpu) == 8 << 20
    assert pcie_received(nvml, gpu) == 8 << 20
    assert pcie_received(nvml, nvml.gpu(1)) == 0


def test_accounting_tells_of_who_is_gone(nvml):
    class Stats(ctypes.Structure):
        _fields_ = [
            ("gpu", ctypes.c_uint),
            ("memory", ctypes.c_uint),
            ("most_bytes", ctypes.c_uint64),
            ("ms", ctypes.c_uint64),
            ("started_us", ctypes.c_uint64),
            ("running", ctypes.c_uint),
            ("reserved", ctypes.c_uint * 5),
        ]

    gpu, stats = nvml.gpu(), Stats()
    nvml.call("nvmlDeviceSetAccountingMode", gpu, 1)
    with Program() as program:
        assert program.ask(f"alloc {1 << 30}") == "0"
        assert program.ask("free") == "0"
        nvml.call("nvmlDeviceGetAccountingStats", gpu, program.pid, ctypes.byref(stats))
        assert stats.running
    pids, count = (ctypes.c_uint * 64)(), ctypes.c_uint(64)
    nvml.call("nvmlDeviceGetAccountingPids", gpu, ctypes.byref(count), pids)
    assert list(pids[: count.value]) == [program.pid]
    nvml.call("nvmlDeviceGetAccountingStats", gpu, program.pid, ctypes.byref(stats))
    assert not stats.running
    assert stats.most_bytes >= 1 << 30
    assert stats.started_us > 0


class TestSlices:
    @pytest.fixture
    def slices(self, nvml):
        """Two instances of GPU 1, the first in halves."""
        gpu = nvml.gpu(1)
        assert nvml.set_mig(gpu, 1) == 0
        uuids = []
        for profile, levels in ((14, (0, 0)), (19, (0,))):
            instance = nvml.create(gpu, profile)
            for level in levels:
                nvml.handle("nvmlGpuInstanceCreateComputeInstance", instance, level)
        for index in range(3):
            device = nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, index)
            uuids.append(nvml.text("nvmlDeviceGetUUID", device))
        return uuids

    def test_a_process_sees_one_slice_as_a_device(self, nvml, slices):
        for uuid, sms in zip(slices, (14, 14, 14), strict=True):
            with Program(CUDA_VISIBLE_DEVICES=uuid) as program:
                count, name, _, told, *_ = program.first
                assert count == "1"
                assert told == uuid.removeprefix("MIG-").replace("-", "")
                assert int(program.first[5]) == sms
        assert name == "NVIDIA A100-SXM4-40GB MIG 1g.5gb"

    def test_a_1g_slice_is_what_device_queries_show(self, nvml, slices):
        with Program(CUDA_VISIBLE_DEVICES=slices[2]) as program:
            total, sms, bus_bits, l2, engines = map(int, program.first[4:])
        assert total == 4864 << 20
        assert (sms, bus_bits, l2, engines) == (14, 640, 5 << 20, 1)

    def test_predicted_times_are_the_slice_s(self, nvml, slices):
        times = []
        for variables in ({"CUDA_VISIBLE_DEVICES": slices[2]}, {"VA100_NODE": "sxm-a100-40gb"}):
            with Program(**variables) as program:
                assert program.ask(f"alloc {1 << 20}") == "0"
                times.append(float(program.ask("work 2000 timed")))
        # 216 CTAs of 256 threads: at once on 108 SMs, in two waves on 14.
        assert times[0] > 4 * times[1]

    def test_two_slices_named_are_one_seen(self, nvml, slices):
        with Program(CUDA_VISIBLE_DEVICES=f"{slices[1]},{slices[2]}") as program:
            assert program.first[0] == "1"

    def test_without_a_list_the_first_slice_is_seen(self, nvml, slices):
        with Program() as program:
            assert program.first[0] == "1"
            assert program.first[3] == slices[0].removeprefix("MIG-").replace("-", "")

    def test_older_spelling(self, nvml, slices):
        gpu = nvml.text("nvmlDeviceGetUUID", nvml.gpu(1))
        with Program(CUDA_VISIBLE_DEVICES=f"MIG-{gpu}/13/0") as program:
            assert program.first[3] == slices[2].removeprefix("MIG-").replace("-", "")

    def test_limits_hold_and_neighbours_do_not_notice(self, nvml, slices):
        mig = [
            nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", nvml.gpu(1), index)
            for index in range(3)
        ]
        with (
            Program(CUDA_VISIBLE_DEVICES=slices[0]) as one,
            Program(CUDA_VISIBLE_DEVICES=slices[2]) as two,
        ):
            assert two.ask(f"alloc {5 << 30}") == "2"
            assert two.ask(f"alloc {4 << 30}") == "0"
            assert one.ask(f"alloc {8 << 30}") == "0"
            assert [p.pid for p in nvml.processes(mig[0])] == [one.pid]
            assert nvml.processes(mig[1]) == []
            assert [p.pid for p in nvml.processes(mig[2])] == [two.pid]
            board = {p.pid: p.used for p in nvml.processes(nvml.gpu(1))}
            assert set(board) == {one.pid, two.pid}
            reserved = nvml.memory(nvml.gpu(0)).used
            assert nvml.memory(nvml.gpu(1)).used == reserved + sum(board.values())
            name = "nvmlDeviceGetGpuInstanceById"
            instance = nvml.handle(name, nvml.gpu(1), 13)
            compute = nvml.handle("nvmlGpuInstanceGetComputeInstanceById", instance, 0)
            assert nvml.code("nvmlComputeInstanceDestroy", compute) == IN_USE
            two.kill()
            nvml.call("nvmlComputeInstanceDestroy", compute)
            nvml.call("nvmlGpuInstanceDestroy", instance)
            assert nvml.code("nvmlGpuInstanceDestroy", instance) == NOT_FOUND
            assert one.ask("free") == "0"

    def test_layouts_of_files_leave_alone_what_is_used(self, nvml, slices, tmp_path, capsys):
        """GPU 1 holds 2g.10gb in halves and 1g.5gb; the latter is used."""

        def apply(**devices):
            rule = {"devices": [1], "mig-enabled": bool(devices), "mig-devices": devices}
            path = tmp_path / "layout.json"
            path.write_text(json.dumps({"version": "v1", "mig-configs": {"it": [rule]}}))
            return main(["mig", "apply", "-f", str(path)]), capsys.readouterr()

        with Program(CUDA_VISIBLE_DEVICES=slices[2]) as program:
            assert program.ask("alloc 1048576") == "0"
            status, said = apply(**{"7g.40gb": 1})
            assert (status, "what is used cannot stay as it is: 1g.5gb at 6" in said.err) == (
                1,
                True,
            )
            status, said = apply()
            assert (status, f"process {program.pid} uses it" in said.err) == (1, True)
            status, said = apply(**{"3g.20gb": 1, "1g.5gb": 1})
            assert (status, said.err) == (0, "")
            assert "destroyed 2g.10gb" in said.out
            assert program.ask("sync") == "0"
            assert program.ask("alloc 1048576") == "0"
        assert apply(**{"7g.40gb": 1})[0] == 0

    def test_the_mode_waits_for_those_who_use_the_gpu(self, nvml):
        gpu = nvml.gpu(0)
        with Program() as program:
            program.ask("room")
            assert nvml.set_mig(gpu, 1) == IN_USE
            modes = [ctypes.c_uint(), ctypes.c_uint()]
            nvml.call("nvmlDeviceGetMigMode", gpu, *map(ctypes.byref, modes))
            assert [mode.value for mode in modes] == [0, 1]
            program.kill()
        assert nvml.set_mig(gpu, 1) == 0


def test_exclusive_and_prohibited_cards_let_no_more_in(nvml):
    gpu = nvml.gpu()
    nvml.call("nvmlDeviceSetComputeMode", gpu, 3)
    with Program() as one:
        assert one.ask("room")
        with Program() as two:
            assert two.process.stdout.readline() == "cuDevicePrimaryCtxRetain 46\n"
    nvml.call("nvmlDeviceSetComputeMode", gpu, 2)
    with Program() as three:
        assert three.process.stdout.readline() == "cuDevicePrimaryCtxRetain 46\n"
