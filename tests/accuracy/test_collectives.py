"""Predicted collectives against published ones; fails past its budget."""

from __future__ import annotations

import pytest

from tests.helpers.published_collectives import lines, overall, predicted, rows, table
from va100.perf.collectives import group_of

BOARDS = ("aic", "vtrain")
SMALL_BUDGET, LARGE_BUDGET = 0.08, 0.04
"""Most mean error of each family on boards, below 64 MiB and from there on."""
UNLIKE = "aic_comm, all-reduce kernels of trtllm"
"""Kernels that are not those the constants are of."""


@pytest.fixture
def measured(shared):
    return rows(shared("data/measured"))


class TestCollectives:
    def test_rows_held_back_on_boards(self, measured):
        count, mean, median, p90 = overall(measured, boards_only=True)
        assert count > 500
        assert (mean < 0.03, median < 0.02, p90 < 0.08) == (True, True, True)

    def test_every_family_on_boards_keeps_its_budget(self, measured):
        over = [
            line
            for line in lines(measured)
            if line.family.startswith(BOARDS)
            and line.family != UNLIKE
            and line.mean > (LARGE_BUDGET if line.size.startswith(">=") else SMALL_BUDGET)
        ]
        assert over == []

    def test_better_than_raw_links_and_the_tuner(self, measured):
        for line in lines(measured):
            if line.family.startswith(BOARDS):
                assert line.mean < line.roofline_mean, line
                assert line.mean < line.tuner_mean, line

    def test_bands_hold_nine_of_ten(self, measured):
        board = [row for row in measured if row.family.startswith(BOARDS)]
        for large in (False, True):
            held = [
                low <= row.measured_s <= high
                for row in board
                if (row.size_bytes >= 64 << 20) == large
                for low, high in [predicted(row, group_of(row.ranks)).band]
            ]
            assert sum(held) >= 0.9 * len(held)

    def test_page_shows_the_table(self, measured, root):
        assert table(lines(measured)) in (root / "docs" / "collectives.md").read_text()
