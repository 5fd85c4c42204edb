"""Readings of a GPU under histories of work whose clock is the test's: what always holds."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.nvml_calls import LIBRARY
from va100.spec.a100 import MODELS

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")

SECOND = 1_000_000_000
MS = 1_000_000
FULL_MW = 131_400
FIELDS = "percent power_mw instant_mw energy_nj mhz centidegrees contexts used_bytes capped".split()
CHIPS = {chip.name: chip for chip in MODELS}


class Trial:
    """A GPU in memory, at whatever time it is told."""

    def __init__(self, model="A100-SXM4-80GB", power_limit_mw=0):
        self.library = ctypes.CDLL(str(LIBRARY))
        self.library.va100_node_trial_new.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(
            self.library.va100_node_trial_new(model.encode(), power_limit_mw)
        )
        self.chip = CHIPS[model]
        self.now = SECOND
        self.last = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.va100_node_trial_delete(self.handle)

    def use(self, process, used_bytes):
        now = ctypes.c_uint64(self.now)
        self.library.va100_node_trial_use(self.handle, process, ctypes.c_uint64(used_bytes), now)

    def begin(self, process, mw):
        self.library.va100_node_trial_begin(self.handle, process, mw, ctypes.c_uint64(self.now))

    def end(self, process):
        self.library.va100_node_trial_end(self.handle, process, ctypes.c_uint64(self.now))

    def read(self):
        out = (ctypes.c_uint64 * len(FIELDS))()
        self.library.va100_node_trial_read(self.handle, ctypes.c_uint64(self.now), out)
        return dict(zip(FIELDS, out, strict=True))


def require_invariants(trial, reading):
    idle_mw = round(trial.chip.measured.idle_w * 1000)
    idle_mhz = round(trial.chip.idle_clock_hz / 1e6)
    if reading["percent"]:
        assert reading["contexts"] > 0
        assert reading["used_bytes"] > 0
        assert reading["mhz"] > idle_mhz
        assert reading["power_mw"] > idle_mw
        assert reading["instant_mw"] > idle_mw
    if not reading["contexts"]:
        assert reading["percent"] == 0
        assert reading["mhz"] == idle_mhz
        assert reading["instant_mw"] == idle_mw
    assert reading["percent"] <= 100
    assert idle_mw <= reading["power_mw"] <= trial.chip.power_default_w * 1000
    if trial.last is not None:
        assert reading["energy_nj"] >= trial.last["energy_nj"]
    trial.last = reading


step = st.tuples(
    st.sampled_from(["come", "go", "begin", "end", "wait"]),
    st.integers(0, 1),
    st.integers(1, 400),  # milliseconds
    st.integers(1, FULL_MW),
)


@given(st.lists(step, max_size=40), st.sampled_from(sorted(CHIPS)))
def test_what_holds_at_every_instant(steps, model):
    with Trial(model) as trial:
        here, busy = set(), set()
        for what, process, ms, mw in steps:
            if what == "come" and process not in here:
                trial.use(process, 1 << 30)
                here.add(process)
            elif what == "begin" and process in here - busy:
                trial.begin(process, mw)
                busy.add(process)
            elif what == "end" and process in busy:
                trial.end(process)
                busy.discard(process)
            elif what == "go" and process in here - busy:
                trial.use(process, 0)
                here.discard(process)
            require_invariants(trial, trial.read())
            trial.now += ms * MS
            require_invariants(trial, trial.read())


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=20))
def test_the_energy_counter_is_the_integral_of_power(bursts):
    with Trial() as trial:
        trial.use(0, 1 << 30)
        before = trial.read()["energy_nj"]
        joules = 0.0
        for working, resting in bursts:
            for ms, mw in ((working, FULL_MW), (resting, 0)):
                if mw:
                    trial.begin(0, mw)
                for _ in range(ms):  # power is constant between two moments of change
                    trial.now += MS // 2
                    joules += trial.read()["instant_mw"] * 1e-6
                    trial.now += MS // 2
                if mw:
                    trial.end(0)
        counted = (trial.read()["energy_nj"] - before) * 1e-9
        assert counted == pytest.approx(joules, rel=0.01)


def test_the_sensor_reads_25_of_each_100_milliseconds():
    with Trial() as trial:
        trial.use(0, 1 << 30)
        trial.now = 10 * SECOND  # a period of the sensor begins
        trial.begin(0, FULL_MW)
        trial.now += 25 * MS
        trial.end(0)
        idle_mw = round(trial.chip.measured.idle_w * 1000)
        seen = set()
        for ms in range(1, 400):
            trial.now = 10 * SECOND + 25 * MS + ms * MS
            seen.add(trial.read()["power_mw"])
        full = idle_mw + 8_300 + FULL_MW
        assert max(seen) == pytest.approx(full, rel=0.01)
        assert min(seen) == idle_mw + 8_300
        assert len(seen) == 2


def test_an_idle_gpu_takes_fifty_watts_at_its_lowest_clock():
    with Trial("A100-SXM4-40GB") as trial:
        trial.now = 100 * SECOND
        reading = trial.read()
        assert reading["power_mw"] == 49_700
        assert reading["mhz"] == 210
        assert reading["centidegrees"] // 100 == 33
        assert reading["energy_nj"] == 4_970 * 1_000_000_000


def test_clocks_drop_under_a_power_limit_and_power_stays_below_it():
    with Trial(power_limit_mw=150_000) as trial:
        trial.use(0, 1 << 30)
        trial.begin(0, FULL_MW)
        trial.now += SECOND
        reading = trial.read()
        assert reading["capped"]
        assert reading["mhz"] < 1410
        assert 120_000 < reading["power_mw"] <= 150_000


def test_it_warms_up_under_work_and_cools_down_after_it():
    with Trial() as trial:
        trial.use(0, 1 << 30)
        trial.begin(0, FULL_MW)
        degrees = []
        for _ in range(10):
            trial.now += 30 * SECOND
            degrees.append(trial.read()["centidegrees"])
        assert degrees == sorted(degrees)
        assert 5000 < degrees[-1] < 6500
        trial.end(0)
        trial.now += 600 * SECOND
        assert trial.read()["centidegrees"] < 3700


def test_two_processes_at_once_share_the_limit():
    with Trial("A100-PCIE-40GB") as trial:
        for process in (0, 1):
            trial.use(process, 1 << 30)
            trial.begin(process, FULL_MW)
        trial.now += SECOND
        reading = trial.read()
        assert reading["percent"] == 100
        assert reading["power_mw"] <= 250_000


def test_a_process_that_is_gone_leaves_its_energy_and_nothing_else():
    with Trial() as trial:
        trial.use(0, 1 << 30)
        trial.begin(0, FULL_MW)
        trial.now += SECOND
        told = trial.read()["energy_nj"]
        trial.use(0, 0)  # killed at work
        after = trial.read()
        assert after["energy_nj"] == pytest.approx(told, rel=1e-6)
        assert (after["percent"], after["contexts"], after["used_bytes"]) == (0, 0, 0)
        assert after["mhz"] == 210
