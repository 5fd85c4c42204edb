"""Sums of launches, and how they are told."""

from __future__ import annotations

import json

import pytest

from va100.profile.report_schema import KernelGroup
from va100.testing.tally import Tally, alike
from va100.work import Dim3


def group(kernel="k", count=1, mean_s=1e-6, block=32):
    return KernelGroup(
        kernel=kernel,
        grid=Dim3(1, 1, 1),
        block=Dim3(block, 1, 1),
        count=count,
        total_s=count * mean_s,
        mean_s=mean_s,
        min_s=mean_s,
        max_s=mean_s,
    )


@pytest.fixture
def tally():
    made = Tally(model="A100-SXM4-80GB", gpu_count=1)
    made.add("a.py::one", [group(count=3)])
    made.add("a.py::two", [group(mean_s=4e-6), group("other", 2)])
    made.add("a.py::one", [group(block=64)])
    return made


class TestAlike:
    def test_sums_and_extremes(self):
        (joined,) = alike([group(count=3), group(mean_s=5e-6)])
        assert joined.count == 4
        assert (joined.total_s, joined.mean_s) == pytest.approx((8e-6, 2e-6))
        assert (joined.min_s, joined.max_s) == (1e-6, 5e-6)

    def test_other_shapes_and_names_stay_apart(self):
        assert len(alike([group(), group(block=64), group("other"), group()])) == 3


class TestTally:
    def test_the_file_has_every_test_and_the_sum(self, tally):
        tally.end("a.py::one", "failed")
        tally.end("a.py::one", "passed")  # of a later phase
        entry = json.loads(tally.json())
        one, two = entry["tests"]
        assert (one["test"], one["outcome"], one["launches"]) == ("a.py::one", "failed", 4)
        assert two["total_s"] == pytest.approx(6e-6)
        assert sum(k["count"] for k in entry["kernels"]) == 7
        assert sum(k["total_s"] for k in entry["kernels"]) == pytest.approx(1e-5)

    def test_the_table_begins_with_the_longest(self, tally):
        lines = tally.text(width=100).splitlines()
        assert [line.split()[-1] for line in lines[-2:]] == ["a.py::two", "a.py::one"]

    def test_a_long_session_is_cut_and_says_so(self, tally):
        for number in range(100):
            tally.add(f"b.py::test_{number}" + "x" * 90, [group()])
        lines = tally.text(width=80).splitlines()
        assert lines[-1] == "and 82 more; --va100-report=FILE.json has all"
        assert max(len(line) for line in lines[-21:]) <= 80

    def test_no_launches(self):
        text = Tally(model="A100-SXM4-80GB", gpu_count=1).text(width=80)
        assert text == "no kernel was launched"
