"""Faults that an operator injects, as CUDA processes that run meet them."""

from __future__ import annotations

import pytest

from tests.helpers.node_program import Program
from tests.helpers.nvml_calls import LIBRARY, Nvml
from va100.errors import NodeError
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR
from va100.node import store

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists() or not (NATIVE_DIR / LIBRARY_NAME).exists(),
    reason="the native core is not built",
)
NODE = "hgx-a100-4x40gb"
UNCORRECTABLE, UNAVAILABLE, ILLEGAL_ADDRESS, LAUNCH_FAILED, UNKNOWN = 214, 46, 700, 719, 999


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", NODE)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with Nvml() as library:
        yield library


def code(program, word="sync"):
    return int(program.ask(word))


class TestWholeGpus:
    @pytest.mark.parametrize(
        ("what", "detail", "expected"),
        [
            ("lost", "", UNKNOWN),
            ("xid", "79", UNKNOWN),
            ("xid", "94", UNCORRECTABLE),
            ("xid", "95", UNCORRECTABLE),
            ("xid", "48", UNCORRECTABLE),
            ("xid", "31", ILLEGAL_ADDRESS),
            ("xid", "43", LAUNCH_FAILED),
            ("ecc", "dram uncorrected", UNCORRECTABLE),
            ("ecc", "sram uncorrected", UNCORRECTABLE),
        ],
    )
    def test_the_next_call_fails_and_so_do_all_after_it(self, nvml, what, detail, expected):
        with Program() as struck, Program(CUDA_VISIBLE_DEVICES="1") as other:
            assert (code(struck), code(other)) == (0, 0)
            store.inject(NODE, 0, what, detail)
            assert code(struck, "alloc 4096") == expected
            assert code(struck) == expected
            assert (code(other), code(other, "alloc 4096")) == (0, 0)
            store.inject(NODE, 0, "clear")
            assert code(struck) == expected

    @pytest.mark.parametrize(
        ("what", "detail"),
        [
            ("xid", "63"),
            ("xid", "12"),
            ("ecc", "dram corrected"),
            ("thermal", ""),
            ("link", "3"),
            ("pcie-replay", ""),
        ],
    )
    def test_what_ends_no_work_does_not(self, nvml, what, detail):
        with Program() as program:
            assert code(program) == 0
            store.inject(NODE, 0, what, detail)
            assert code(program) == 0

    def test_who_comes_after_it_does_not_meet_it(self, nvml):
        with Program() as struck:
            assert code(struck) == 0
            store.inject(NODE, 0, "xid", "94")
            assert code(struck) == UNCORRECTABLE
            assert code(struck, "create") == 0  # a context of its own
            assert code(struck) == 0
            with Program() as later:
                assert code(later, "alloc 4096") == 0

    @pytest.mark.parametrize("detail", ["79", "95"])
    def test_a_gpu_that_is_gone_or_waits_for_its_reset_lets_nobody_in(self, nvml, detail):
        with Program() as program:
            assert code(program) == 0
            store.inject(NODE, 0, "xid", detail)
            assert code(program, "create") == UNAVAILABLE
            program.kill()
        store.reset(NODE, 0)
        with Program() as later:
            assert code(later) == 0

    def test_kernels_that_run_over_and_over_end(self, nvml):
        with Program() as program:
            assert code(program, "alloc 1048576") == 0
            assert program.ask("work 2000 forever") == "working"
            store.inject(NODE, 0, "xid", "79")
            assert program.process.stdout.readline() == f"cuLaunchKernel {UNKNOWN}\n"
            assert program.process.wait(60) == 9

    def test_one_process_may_be_meant(self, nvml):
        with Program() as one, Program() as two:
            assert (code(one), code(two)) == (0, 0)
            store.inject(NODE, 0, "xid", "43", pid=two.pid)
            assert (code(one), code(two)) == (0, LAUNCH_FAILED)


class TestSlices:
    @pytest.fixture
    def slices(self, nvml):
        """Two instances of GPU 0: GI numbers and UUIDs."""
        gpu = nvml.gpu(0)
        assert nvml.set_mig(gpu, 1) == 0
        found = []
        for profile in (9, 9):
            instance = nvml.create(gpu, profile)
            nvml.handle("nvmlGpuInstanceCreateComputeInstance", instance, 2)
            found.append(nvml.info(instance).id)
        devices = [nvml.handle("nvmlDeviceGetMigDeviceHandleByIndex", gpu, i) for i in range(2)]
        by_instance = {
            nvml.number("nvmlDeviceGetGpuInstanceId", d): nvml.text("nvmlDeviceGetUUID", d)
            for d in devices
        }
        return [(number, by_instance[number]) for number in found]

    @pytest.mark.parametrize(
        ("what", "detail", "expected"),
        [
            ("xid", "94", UNCORRECTABLE),
            ("xid", "31", ILLEGAL_ADDRESS),
            ("ecc", "dram uncorrected", UNCORRECTABLE),
        ],
    )
    def test_a_fault_in_one_leaves_the_other_untouched(self, nvml, slices, what, detail, expected):
        (number, uuid), (_, neighbour) = slices
        with (
            Program(CUDA_VISIBLE_DEVICES=uuid) as struck,
            Program(CUDA_VISIBLE_DEVICES=neighbour) as other,
        ):
            assert (code(struck), code(other)) == (0, 0)
            store.inject(NODE, 0, what, detail, gpu_instance=number)
            assert code(struck) == expected
            assert code(other, "alloc 1048576") == 0
            assert float(other.ask("work 100 timed")) > 0
            struck.kill()
            with Program(CUDA_VISIBLE_DEVICES=uuid) as again:
                assert code(again, "alloc 4096") == 0

    def test_one_that_is_not_contained_meets_all(self, nvml, slices):
        with (
            Program(CUDA_VISIBLE_DEVICES=slices[0][1]) as one,
            Program(CUDA_VISIBLE_DEVICES=slices[1][1]) as two,
        ):
            assert (code(one), code(two)) == (0, 0)
            store.inject(NODE, 0, "xid", "95")
            assert (code(one), code(two)) == (UNCORRECTABLE, UNCORRECTABLE)

    @pytest.mark.parametrize(
        ("what", "detail", "aim", "said"),
        [
            ("xid", "79", {"gpu_instance": 1}, "is the whole GPU's"),
            ("xid", "94", {"gpu_instance": 5}, "has no GPU instance 5"),
            ("xid", "94", {"pid": 1}, "process 1 does not use"),
            ("thermal", "", {"gpu_instance": 1}, "is the whole GPU's"),
            ("ecc", "sram uncorrected", {"gpu_instance": 1}, "only an uncorrected error in DRAM"),
        ],
    )
    def test_what_cannot_be_aimed_is_refused(self, nvml, slices, what, detail, aim, said):
        with pytest.raises(NodeError, match=said):
            store.inject(NODE, 0, what, detail, **aim)
