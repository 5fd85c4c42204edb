"""Limits that a run is to keep: the grammar with its carets, and what fails."""

from __future__ import annotations

import pytest

from tests.helpers.launches import CHIP, launch
from va100.errors import SetupError
from va100.profile.criteria import CriterionError, offences, parse_criterion


class TestGrammar:
    @pytest.mark.parametrize(
        ("text", "quantity", "comparison", "number", "relative"),
        [
            ("time > 1.1x", "time_s", ">", 1.1, True),
            ("time>10us", "time_s", ">", 10e-6, False),
            ("  time  >=  .5 ms ", "time_s", ">=", 0.5e-3, False),
            ("registers > 64", "registers", ">", 64, False),
            ("shared > 48KiB", "shared_bytes", ">", 48 * 1024, False),
            ("occupancy < 50%", "occupancy_ratio", "<", 0.5, False),
            ("energy > 1.5mJ", "energy_j", ">", 1.5e-3, False),
            ("global_sectors != 1e6", "global_sectors", "!=", 1e6, False),
            ("warp_instructions.fma <= 2x", "warp_instructions.fma", "<=", 2, True),
            ("dram__bytes.sum > 1GB", "dram__bytes.sum", ">", 1e9, False),
            ("busy_s.DRAM bandwidth > 1us", "busy_s.DRAM bandwidth", ">", 1e-6, False),
            ("gpu__time_duration.sum > 10us", "gpu__time_duration.sum", ">", 1e4, False),
            ("gpu__time_duration.sum > 10", "gpu__time_duration.sum", ">", 10, False),
            (
                "sm__maximum_warps_per_active_cycle_pct < 50%",
                "sm__maximum_warps_per_active_cycle_pct", "<", 50, False,
            ),
        ],
    )  # fmt: skip
    def test_reads(self, text, quantity, comparison, number, relative):
        found = parse_criterion(text)
        assert (found.quantity, found.comparison, found.relative) == (
            quantity, comparison, relative,
        )  # fmt: skip
        assert found.number == pytest.approx(number)

    @pytest.mark.parametrize(
        ("text", "column", "problem"),
        [
            ("", 0, "a quantity"),
            ("> 1", 0, "a quantity"),
            ("time", 4, "a comparison"),
            ("time = 5", 5, "a comparison"),
            ("time 5", 6, "a comparison"),
            ("time >", 6, "a number"),
            ("time >> 1.1x", 6, "a number"),
            ("time > x", 7, "a number"),
            ("time > -1", 7, "a number"),
            ("time > 1.1y", 10, "y is no unit"),
            ("time > 1.1x 2", 10, "this is too much"),
        ],
    )
    def test_a_caret_stands_where_it_stops_making_sense(self, text, column, problem):
        with pytest.raises(CriterionError) as caught:
            parse_criterion(text)
        assert caught.value.column == column
        assert caught.value.problem.startswith(problem)
        *_, shown, caret = str(caught.value).split("\n")
        assert shown == f"    {text}"
        assert caret == " " * (4 + column) + "^"


class TestOffences:
    def found(self, text, base=None, **changes):
        return offences([parse_criterion(text)], [(launch(**changes), base)], CHIP)

    def test_relative(self):
        base = launch()
        assert self.found("time > 1.1x", base, duration_s=8.7e-6) == []
        (offence,) = self.found("time > 1.1x", base, duration_s=8.9e-6)
        assert str(offence) == (
            "saxpy (864, 1, 1) x (256, 1, 1): time is 8.9 us, was 8 us, 1.113x, fails 'time > 1.1x'"
        )

    def test_absolute_needs_no_base(self):
        assert self.found("registers > 32") == []
        assert len(self.found("registers >= 32")) == 1
        assert "fails 'registers >= 32'" in str(self.found("registers >= 32")[0])

    def test_values_are_told_as_people_read_them(self):
        assert "occupancy is 100%" in str(self.found("occupancy > 50%")[0])
        assert "registers is 32," in str(self.found("registers > 8")[0])

    def test_a_new_kernel_keeps_what_is_relative(self):
        assert self.found("time > 0.1x") == []

    def test_metrics_and_counters(self):
        assert len(self.found("dram__bytes.sum > 12MB")) == 1
        assert len(self.found("l2_bytes > 12MB")) == 1
        assert self.found("gpu__time_duration.sum > 9us") == []

    def test_what_is_not_known_is_refused(self):
        assert self.found("energy > 1J") == []
        with pytest.raises(SetupError, match="patience"):
            self.found("patience < 3")
