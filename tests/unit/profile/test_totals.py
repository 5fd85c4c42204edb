"""A program's work summed up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.launches import CHIP, launch, report, work
from va100.perf.energy import BYTE_J, Level
from va100.profile.launch import launches_of
from va100.profile.report_schema import ReportEvent
from va100.profile.totals import card_energy_j, totals, totals_text

IDLE_W = CHIP.measured.idle_w


def _total(*launches, events=()):
    return totals(launches, events, CHIP)


def test_one_stream_is_told_once():
    full = report(work(), copies=False)
    (total,) = totals(launches_of(full), full.events, CHIP)
    assert (total.stream, total.launch_count, total.copy_count) == (None, 1, 0)
    assert total.span_s == pytest.approx(8e-6)
    assert total.busy_s == pytest.approx(total.span_s)
    assert total.energy_j == pytest.approx(2e-3)


def test_waiting_costs_what_an_idle_card_burns():
    first, second = launch(), replace(launch(), start_ns=1_000_000)
    (total,) = _total(replace(first, start_ns=0), second)
    assert total.span_s == pytest.approx(1e-3 + 8e-6)
    assert total.busy_s == pytest.approx(16e-6)
    assert total.idle_j == pytest.approx(IDLE_W * (1e-3 - 8e-6))
    assert total.energy_j == pytest.approx(4e-3 + total.idle_j)


def test_kernels_side_by_side_are_busy_once_and_streams_are_told():
    pair = (replace(launch(), stream=7, start_ns=0), replace(launch(), stream=8, start_ns=4_000))
    device, seven, eight = _total(*pair)
    assert (seven.stream, eight.stream) == (7, 8)
    assert device.busy_s == pytest.approx(12e-6)
    assert device.kernel_s == pytest.approx(16e-6)
    assert device.idle_j == pytest.approx(0.0)
    assert card_energy_j((device, seven, eight)) == device.energy_j


def test_copies_move_bytes_through_memory():
    copies = (
        ReportEvent(kind="HtoD", name="", start_ns=0, end_ns=10_000, stream=7, moved_bytes=10**6),
        ReportEvent(kind="DtoD", name="", start_ns=10_000, end_ns=11_000, stream=7,
                    moved_bytes=10**6),
    )  # fmt: skip
    (total,) = totals((), copies, CHIP)
    assert total.copy_j == pytest.approx(3e6 * BYTE_J[Level.DRAM])
    assert total.copy_s == pytest.approx(11e-6)
    assert total.idle_j == pytest.approx(IDLE_W * 11e-6)


def test_devices_are_told_apart():
    text = totals_text(_total(launch(), replace(launch(), device=1)))
    assert "\ndevice 0, 1 launch, 0 copies\n" in text
    assert "\ndevice 1, 1 launch, 0 copies\n" in text


def test_a_launch_of_unknown_energy_is_not_free():
    (total,) = _total(replace(launch(), energy_j=None))
    assert total.energy_j == pytest.approx(IDLE_W * 8e-6)


def test_text_says_time_band_and_joules():
    full = report(work())
    lines = totals_text(totals(launches_of(full), full.events, CHIP)).splitlines()
    assert lines[1] == "program, 1 launch, 3 copies"
    assert lines[2].startswith("  time: 9.5 us from the first start to the last end, busy 100%")
    assert lines[3].startswith("  kernels: 8 us, ")
    assert lines[4].startswith("  energy: 2.0")
    assert lines[5].startswith("  stream 7: 1 launch, 2 copies, kernels 8 us, copies 1.5 us, ")
    assert lines[6].startswith("  stream 8: 0 launches, 1 copy, ")


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.floats(1e-7, 1e-3), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    )
)
def test_parts_never_exceed_the_whole(drawn):
    base = launch()
    ran = [
        replace(base, start_ns=start, time_s=time_s, time_s_band=(time_s, time_s), stream=stream)
        for start, time_s, stream in drawn
    ]
    whole, *streams = totals(ran, (), CHIP)
    assert whole.busy_s <= whole.span_s * (1 + 1e-9)
    assert whole.busy_s <= whole.kernel_s * (1 + 1e-9)
    assert whole.energy_j >= whole.kernel_j
    if streams:
        assert sum(each.kernel_j for each in streams) == pytest.approx(whole.kernel_j)
        assert sum(each.launch_count for each in streams) == whole.launch_count
        assert max(each.busy_s for each in streams) <= whole.busy_s * (1 + 1e-9)
