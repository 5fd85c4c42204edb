"""Two runs beside each other."""

from __future__ import annotations

from tests.helpers.launches import launch
from va100.profile.compare import comparison_text, paired
from va100.work import Dim3


def named(name, time_s=8e-6, grid=8, **changes):
    return launch(kernel=name, duration_s=time_s, grid=Dim3(grid), **changes)


class TestPaired:
    def test_same_shape_in_order(self):
        base = [named("a", 1e-6), named("b", 2e-6), named("a", 3e-6)]
        now = [named("a", 4e-6), named("a", 5e-6), named("b", 6e-6)]
        assert [before.time_s for _, before in paired(now, base)] == [1e-6, 3e-6, 2e-6]

    def test_a_changed_shape_finds_the_kernel_that_is_left(self):
        base = [named("a", 1e-6, grid=8), named("a", 2e-6, grid=16)]
        now = [named("a", 3e-6, grid=32), named("a", 4e-6, grid=16)]
        assert [before.time_s for _, before in paired(now, base)] == [1e-6, 2e-6]

    def test_without_a_partner(self):
        assert [before for _, before in paired([named("a")], [named("b")])] == [None]


class TestComparisonText:
    def test_table(self):
        base = [named("a", 1e-6), named("a", 1e-6), named("gone"), named("same", 5e-6)]
        now = [
            named("a", 2e-6), named("a", 4e-6, bound_by="latency"), named("new"),
            named("same", 5.0001e-6),
        ]  # fmt: skip
        lines = comparison_text(now, base).splitlines()
        assert lines[2].split() == [
            "a", "8", "256", "2", "2", "us", "6", "us", "3.00x", "DRAM", "bandwidth",
        ]  # fmt: skip
        assert "same" in lines[3].split()[-3:]
        assert "only now: new (1 launches)" in lines
        assert "only in the base: gone (1 launches)" in lines
        assert lines[-1] == "in both: 7 us before, 11 us now, 1.57x"

    def test_a_changed_bound_is_told(self):
        text = comparison_text([named("a", bound_by="latency")], [named("a")])
        assert "DRAM bandwidth -> latency" in text

    def test_nothing_in_common(self):
        text = comparison_text([named("a")], [named("b")])
        assert text.splitlines() == [
            "no kernel is in both runs",
            "only now: a (1 launches)",
            "only in the base: b (1 launches)",
        ]
