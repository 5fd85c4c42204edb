"""The performance model against published measurements; fails past its budget."""

from __future__ import annotations

import pytest

from tests.helpers.published import all_cases, summaries, table

BUDGETS = {
    "element-wise, PyTorch": 0.08,
    "one double a thread, by occupancy": 0.06,
    "multiply-adds a byte, 0.25 to 40": 0.03,
    "small kernels in streams and graphs": 0.12,
    "SGEMM, cuBLAS": 0.14,
}
"""Most median error of each family."""


@pytest.fixture
def cases(shared):
    return all_cases(shared("data/measured"))


class TestPublished:
    def test_median_errors_keep_their_budgets(self, cases):
        found = {line.family: line for line in summaries(cases)}
        assert set(found) == set(BUDGETS)
        over = {name for name, line in found.items() if line.median > BUDGETS[name]}
        assert not over, "\n" + table(cases)
        assert all(line.count >= 50 for line in found.values())

    def test_better_than_the_plain_roofline(self, cases):
        for line in summaries(cases):
            assert line.median < line.roofline_median, line.family

    def test_page_shows_the_table(self, cases, root):
        assert table(cases) in (root / "docs" / "accuracy.md").read_text()
