"""Whole models in fp32 against published passes; fails past its budget."""

from __future__ import annotations

import statistics

from tests.helpers.plan_end_to_end import passes, table

BUDGETS = {"inference": 0.07, "fusion": 0.15, "training": 0.25}
"""Most mean error.  The table's training rows have forward passes that take half as long again as
the same models' inference there, which is not reproduced: their budget only keeps it from
growing."""


def test_mean_errors_keep_their_budgets(shared):
    found = passes(shared("data/measured"))
    print(table(found))
    for kind, budget in BUDGETS.items():
        mine = [one.error for one in found if one.kind == kind]
        assert mine
        assert statistics.mean(mine) <= budget, table(found)
