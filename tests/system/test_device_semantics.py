"""The variables and rules that Python people know: what is visible, what blocks, what forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import environment
from va100.profile.report_schema import read_report

CLIENTS = Path(__file__).parent / "clients"
VA100_RUN = (sys.executable, "-m", "va100.cli", "run")
NO_DEVICE, NOT_INITIALIZED, ILLEGAL_ADDRESS = 100, 3, 700
LAZY, EAGER = 2, 1

pytestmark = pytest.mark.skipif(not environment.is_built(), reason="the native core is not built")


def run(client, **variables):
    """Run a client on four GPUs."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "VA100_"))}
    done = subprocess.run(
        [*VA100_RUN, "--quiet", "--gpus", "4", CLIENTS / client],
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def listed(**variables):
    return json.loads(run("device_list.py", **variables).stdout)


@pytest.fixture(scope="module")
def all_four():
    return listed()["devices"]


class TestVisibleDevices:
    def test_all_without_the_variable(self, all_four):
        assert [bus for bus, _ in all_four] == [f"0000:{0x07 + 8 * i:02X}:00.0" for i in range(4)]
        assert len({uuid for _, uuid in all_four}) == 4

    @pytest.mark.parametrize(
        ("value", "seen"),
        [
            ("2", [2]),
            ("3,1", [3, 1]),
            (" 1 , 0 ", [1, 0]),
            ("0,1,9,2", [0, 1]),
            ("0,1,-1,2", [0, 1]),
            ("1,nonsense,2", [1]),
            ("1,,2", [1]),
            ("+2,0x1", [2, 0]),
        ],
    )
    def test_indices_until_the_first_that_is_none(self, all_four, value, seen):
        found = listed(CUDA_VISIBLE_DEVICES=value)
        assert found["init"] == 0
        assert found["devices"] == [all_four[i] for i in seen]
        assert found["runtime"] == [0, len(seen)]

    @pytest.mark.parametrize("value", ["", "-1", "9", "nonsense", "1,1", "NoDevFiles"])
    def test_none(self, value):
        found = listed(CUDA_VISIBLE_DEVICES=value)
        assert found["init"] == NO_DEVICE
        assert found["count"][0] == NOT_INITIALIZED
        assert found["runtime"][0] == NO_DEVICE

    def test_uuids_whole_and_in_part(self, all_four):
        first, last = all_four[0][1], all_four[3][1]
        assert listed(CUDA_VISIBLE_DEVICES=f"{last},{first}")["devices"] == [
            all_four[3],
            all_four[0],
        ]
        short = last[:9]
        assert not any(uuid.startswith(short) for _, uuid in all_four[:3])
        assert listed(CUDA_VISIBLE_DEVICES=short.upper())["init"] in (0, NO_DEVICE)
        assert listed(CUDA_VISIBLE_DEVICES=short)["devices"] == [all_four[3]]

    def test_a_part_that_fits_several_or_none_ends_the_list(self, all_four):
        known = all_four[2][1]
        assert listed(CUDA_VISIBLE_DEVICES="GPU-")["init"] == NO_DEVICE
        assert listed(CUDA_VISIBLE_DEVICES=f"{known},GPU-,{all_four[0][1]}")["devices"] == [
            all_four[2]
        ]
        assert listed(CUDA_VISIBLE_DEVICES=f"{known},0")["devices"] == [all_four[2]]
        assert listed(CUDA_VISIBLE_DEVICES=f"{known},{known}")["init"] == NO_DEVICE

    def test_a_slice_that_is_none_is_named(self):
        done = run("device_list.py", CUDA_VISIBLE_DEVICES="MIG-a,MIG-b")
        assert json.loads(done.stdout)["init"] == NO_DEVICE
        assert done.stderr.count("MIG-a names no MIG device of this node") == 1

    @pytest.mark.parametrize("order", ["PCI_BUS_ID", "FASTEST_FIRST"])
    def test_equal_cards_are_in_the_order_of_their_slots(self, all_four, order):
        found = listed(CUDA_DEVICE_ORDER=order, CUDA_VISIBLE_DEVICES="3,0")
        assert found["devices"] == [all_four[3], all_four[0]]


@pytest.mark.parametrize(
    ("value", "mode"), [(None, LAZY), ("LAZY", LAZY), ("EAGER", EAGER), ("DEFAULT", LAZY)]
)
def test_module_loading(value, mode):
    variables = {} if value is None else {"CUDA_MODULE_LOADING": value}
    assert listed(**variables)["loading"] == [0, mode]


@pytest.fixture(scope="module")
def lines():
    text = run("forks.py").stdout
    return dict(line.split(": ", 1) for line in text.splitlines() if " wrote " not in line)


class TestFork:
    def test_before_the_driver_came_up_it_works(self, lines):
        assert lines["fork before"] == "0"

    def test_afterwards_every_call_answers_that_nothing_is_initialised(self, lines):
        answers = dict.fromkeys(
            (
                "cuInit",
                "cuDeviceGetCount",
                "cuMemAlloc",
                "cuCtxSynchronize",
                "cudaGetDeviceCount",
                "cudaFree",
            ),
            NOT_INITIALIZED,
        )
        assert lines["fork after"] == str(answers)
        assert lines["fork of a fork"] == str(answers)

    def test_spawned_processes_and_the_parent_go_on(self, lines):
        assert lines["spawn after"] == "0"
        assert (lines["here"], lines["here again"]) == ("0", "0")

    def test_a_child_does_not_report_its_parents_launches_again(self, tmp_path):
        script, report = tmp_path / "forks.py", tmp_path / "report"
        script.write_text(
            "import os\nfrom va100.cli import selftest\nselftest.main()\n"
            "child = os.fork()\n"
            "if child:\n    os.waitpid(child, 0)\n"
        )
        run(script, VA100_REPORT=str(report))
        assert [kernel.count for kernel in read_report(report).kernels] == [1]


class TestLaunchBlocking:
    PROGRAM = """
import ctypes
from va100.cli import selftest
d = selftest._Driver()
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
d.call("cuInit", 0)
d.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
d.call("cuCtxSetCurrent", context)
d.call("cuModuleLoadData", ctypes.byref(module), selftest.PTX)
d.call("cuModuleGetFunction", ctypes.byref(function), module, b"triple")
nowhere = ctypes.c_uint64(64)
parameters = (ctypes.c_void_p * 1)(ctypes.addressof(nowhere))
shape = [ctypes.c_uint(extent) for extent in (1, 1, 1, 32, 1, 1, 0)]
print(d._library.cuLaunchKernel(function, *shape, None, parameters, None))
print(d._library.cuCtxSynchronize())
"""

    @pytest.mark.parametrize(
        ("value", "at_launch"), [("0", 0), ("", 0), ("1", ILLEGAL_ADDRESS), (None, 0)]
    )
    def test_a_fault_shows_in_the_launch_itself(self, tmp_path, value, at_launch):
        script = tmp_path / "faults.py"
        script.write_text(self.PROGRAM)
        variables = {} if value is None else {"CUDA_LAUNCH_BLOCKING": value}
        said = run(script, **variables).stdout.split()
        assert said == [str(at_launch), str(ILLEGAL_ADDRESS)]
