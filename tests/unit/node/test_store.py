"""A node's state: made, found, changed by several processes, and whole whoever is killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from tests.helpers.nvml_calls import IN_USE, LIBRARY, Nvml
from va100.errors import NodeError, SetupError
from va100.node import store
from va100.node.kinds import BY_NAME, KINDS, Board
from va100.node.wishes import read_wish

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")

CHURN = """
import sys
from tests.helpers.nvml_calls import Nvml, Refused
with Nvml() as nvml:
    gpu = nvml.gpu()
    print("begun", flush=True)
    rounds = int(sys.argv[1])
    while rounds:
        rounds -= 1
        made = []
        try:
            for profile in (19, 14, 19, 9):
                gi = nvml.create(gpu, profile)
                made.append(gi)
                ci = nvml.handle("nvmlGpuInstanceCreateComputeInstance", gi, 0)
                nvml.call("nvmlComputeInstanceDestroy", ci)
        except Refused as refused:
            assert refused.code == 23, refused
        for gi in made:
            nvml.call("nvmlGpuInstanceDestroy", gi)
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.delenv("VA100_NODE", raising=False)
    return tmp_path


def churn(rounds):
    return subprocess.Popen(
        [sys.executable, "-c", CHURN, str(rounds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "VA100_NODE": "box", "PYTHONPATH": os.pathsep.join(sys.path)},
    )


class TestMaking:
    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
    def test_a_node_of_each_kind_has_its_cards(self, home, kind):
        store.create_kind("box", kind)
        gpus = store.describe("box")["gpus"]
        assert [gpu["model"] for gpu in gpus] == [kind.chip.name] * len(kind.seats)
        assert len({gpu["uuid"] for gpu in gpus}) == len(gpus)
        assert len({gpu["bus_id"] for gpu in gpus}) == len(gpus)

    def test_uuids_follow_from_the_name(self, home):
        kind = BY_NAME["hgx-a100-4x40gb"]
        store.create_kind("one", kind)
        store.create_kind("two", kind)
        before = [gpu["uuid"] for gpu in store.describe("one")["gpus"]]
        other = [gpu["uuid"] for gpu in store.describe("two")["gpus"]]
        assert not set(before) & set(other)
        store.delete("one")
        store.create_kind("one", kind)
        assert [gpu["uuid"] for gpu in store.describe("one")["gpus"]] == before

    def test_a_kind_is_made_on_first_use_and_others_are_refused(self, home, monkeypatch):
        monkeypatch.setenv("VA100_NODE", "pcie-a100-80gb-x2")
        assert len(store.describe()["gpus"]) == 2
        monkeypatch.setenv("VA100_NODE", "nothing-of-the-kind")
        with pytest.raises(NodeError, match="va100 node create nothing-of-the-kind"):
            store.describe()

    def test_without_a_choice_there_is_one_gpu(self, home, monkeypatch):
        monkeypatch.delenv("VA100_GPUS", raising=False)
        monkeypatch.delenv("VA100_MODEL", raising=False)
        assert [gpu["model"] for gpu in store.describe()["gpus"]] == ["A100-SXM4-80GB"]

    def test_a_home_that_cannot_be_written_is_done_without(self, home, monkeypatch):
        monkeypatch.setenv("VA100_HOME", "/proc/nowhere")
        assert store.describe()["path"] == ""

    def test_names_that_are_no_names_are_refused(self, home):
        for name in ("", "../up", "a b", ".hidden", "x" * 60):
            with pytest.raises(NodeError):
                store.create_kind(name, KINDS[0])

    def test_there_is_one_node_of_a_name(self, home):
        store.create_kind("box", KINDS[0])
        with pytest.raises(NodeError) as refused:
            store.create_kind("box", KINDS[0])
        assert refused.value.why == "exists"

    def test_a_file_that_is_no_node_is_told_apart(self, home):
        store.create_kind("box", KINDS[0])
        path = home / "nodes" / "box.node"
        path.write_bytes(b"something else")
        with pytest.raises(NodeError, match="holds no node"):
            store.describe("box")

    def test_looking_often_keeps_no_more_files_open(self, home):
        store.create_kind("box", KINDS[0])
        store.describe("box")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            store.describe("box")
        assert len(os.listdir("/proc/self/fd")) == before

    def test_a_node_made_anew_under_its_name_is_watched_anew(self, home):
        for _ in range(3):
            store.create_kind("box", KINDS[0])
            assert store.describe("box")["gpus"][0]["processes"] == []
            store.delete("box")


class TestWishes:
    def write(self, home, text, name="wish.json"):
        path = home / name
        path.write_text(text)
        return path

    def test_json_and_yaml_say_the_same(self, home):
        wish = {"board": "bridged", "gpus": [{"model": "pcie80", "bus": "0001:17:00", "numa": 1}]}
        pytest.importorskip("yaml")
        text = "board: bridged\ngpus:\n- {model: pcie80, bus: '0001:17:00', numa: 1}\n"
        found = read_wish(self.write(home, json.dumps(wish)))
        assert found == read_wish(self.write(home, text, "wish.yaml"))
        board, [(chip, seat)] = found
        assert (board, chip.name) == (Board.BRIDGED, "A100-PCIE-80GB")
        assert (seat.domain, seat.bus, seat.numa) == (1, 0x17, 1)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[]", "no mapping"),
            ("{}", "`gpus` is to be a list"),
            ('{"gpus": []}', "1 to 16"),
            ('{"gpus": ["h100"]}', "gpus[0].model"),
            ('{"gpus": ["sxm80"], "board": "glued"}', "board: glued"),
            ('{"gpus": [{"model": "sxm80", "bus": "zz"}]}', "no PCI address"),
            ('{"gpus": [{"model": "sxm80", "colour": 1}]}', "gpus[0].colour"),
            (
                '{"gpus": [{"model": "sxm80", "bus": "7:0"}, {"model": "sxm80", "bus": "07:00"}]}',
                "gpus[1] sits where gpus[0] does",
            ),
            ("{", "Expecting"),
        ],
    )
    def test_what_is_wrong_is_said(self, home, text, problem):
        with pytest.raises(SetupError) as refused:
            read_wish(self.write(home, text))
        assert problem in str(refused.value)


class TestSharing:
    def test_two_processes_create_and_destroy_at_once(self, home):
        store.create_kind("box", BY_NAME["hgx-a100-4x40gb"])
        self.turn_on(home)
        running = [churn(150), churn(150)]
        for process in running:
            _, errors = process.communicate(timeout=100)
            assert process.returncode == 0, errors
        assert store.describe("box")["gpus"][0]["gpu_instances"] == []

    def test_whoever_is_killed_leaves_the_old_or_the_new(self, home, full):
        """Instances that a killed process made stay, as on a card; each of them is whole."""
        store.create_kind("box", BY_NAME["hgx-a100-4x40gb"])
        self.turn_on(home)
        rng = random.Random(5)
        for _ in range(200 if full else 8):
            process = churn(10**6)
            assert process.stdout.readline() == "begun\n"
            for _ in range(rng.randrange(200)):
                store.describe("box")  # what others see meanwhile makes sense
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.clear_up()

    def turn_on(self, home):
        os.environ["VA100_NODE"] = "box"
        try:
            with Nvml() as nvml:
                assert nvml.set_mig(nvml.gpu(), 1) == 0
        finally:
            del os.environ["VA100_NODE"]

    def clear_up(self):
        gpu = store.describe("box")["gpus"][0]
        assert gpu["processes"] == []
        taken = 0
        for gi in gpu["gpu_instances"]:
            span = ((1 << gi["size"]) - 1) << gi["start"]
            assert not taken & span
            taken |= span
        store.reset("box", 0)
        assert store.describe("box")["gpus"][0]["gpu_instances"] == []


class TestFaults:
    @pytest.fixture
    def nvml(self, home, monkeypatch):
        store.create_kind("box", BY_NAME["hgx-a100-8x80gb"])
        monkeypatch.setenv("VA100_NODE", "box")
        with Nvml() as library:
            yield library

    def test_a_lost_gpu_answers_nothing_and_comes_back_mended(self, nvml):
        gpu = nvml.gpu(2)
        store.inject("box", 2, "lost")
        assert nvml.code("nvmlDeviceGetPowerUsage", gpu, None) in (2, 15)
        with pytest.raises(Exception, match="15"):
            nvml.gpu(2)
        assert nvml.number("nvmlDeviceGetIndex", nvml.gpu(1)) == 1
        store.inject("box", 2, "clear")
        assert nvml.number("nvmlDeviceGetIndex", gpu) == 2

    def test_ecc_errors_are_counted_and_told(self, nvml):
        import ctypes

        gpu = nvml.gpu()
        events = nvml.handle("nvmlEventSetCreate")
        nvml.call("nvmlDeviceRegisterEvents", gpu, ctypes.c_uint64(8 | 2 | 1), events)
        store.inject("box", 0, "ecc", "dram uncorrected", 3)
        total = ctypes.c_uint64()
        nvml.call("nvmlDeviceGetTotalEccErrors", gpu, 1, 0, ctypes.byref(total))
        assert total.value == 3
        rows = [ctypes.c_uint() for _ in range(4)]
        nvml.call("nvmlDeviceGetRemappedRows", gpu, *map(ctypes.byref, rows))
        assert [row.value for row in rows] == [0, 3, 1, 0]
        assert self.told(nvml, events) == [(2, 0), (8, 48), (8, 63), (8, 94)]
        store.reset("box", 0)
        nvml.call("nvmlDeviceGetTotalEccErrors", gpu, 1, 0, ctypes.byref(total))
        assert total.value == 0
        nvml.call("nvmlDeviceGetTotalEccErrors", gpu, 1, 1, ctypes.byref(total))
        assert total.value == 3
        nvml.call("nvmlEventSetFree", events)

    def told(self, nvml, events):
        import ctypes

        from tests.helpers.nvml_calls import Event

        found = []
        event = Event()
        while not nvml.code("nvmlEventSetWait_v2", events, ctypes.byref(event), 0):
            found.append((event.type, event.data))
        return found

    def test_permission_goes_and_comes_back(self, nvml):
        name = "nvmlDeviceGetPersistenceMode"
        store.inject("box", 0, "no-permission", name)
        with pytest.raises(Exception, match=r"\b4\b"):
            nvml.number(name, nvml.gpu())
        store.inject("box", None, "clear")
        assert nvml.number(name, nvml.gpu()) == 1

    def test_a_link_goes_down(self, nvml):
        states = [nvml.number("nvmlDeviceGetNvLinkState", nvml.gpu(), link) for link in range(12)]
        assert states == [1] * 12
        store.inject("box", 0, "link", "5")
        states = [nvml.number("nvmlDeviceGetNvLinkState", nvml.gpu(), link) for link in range(12)]
        assert states == [1] * 5 + [0] + [1] * 6

    def test_heat_and_power_brake_are_reasons_to_slow_down(self, nvml):
        import ctypes

        def reasons():
            name = "nvmlDeviceGetCurrentClocksEventReasons"
            return nvml.number(name, nvml.gpu(), kind=ctypes.c_uint64)

        assert reasons() == 0x1
        store.inject("box", 0, "thermal")
        assert reasons() & 0x48 == 0x48
        store.inject("box", 0, "power-brake")
        assert reasons() & 0x80
        store.inject("box", 0, "clear")
        assert reasons() == 0x1

    @pytest.mark.parametrize(
        ("what", "detail"),
        [("xid", "many"), ("ecc", "l9"), ("link", "12"), ("nonsense", ""), ("no-permission", "rm")],
    )
    def test_what_makes_no_sense_is_refused(self, nvml, what, detail):
        with pytest.raises(NodeError):
            store.inject("box", 0, what, detail)

    def test_mig_is_not_turned_off_while_instances_are_there(self, nvml):
        import ctypes

        gpu = nvml.gpu()
        nvml.set_mig(gpu, 1)
        nvml.create(gpu, 9)
        assert nvml.code("nvmlDeviceSetMigMode", gpu, 0, ctypes.byref(ctypes.c_int())) == IN_USE
