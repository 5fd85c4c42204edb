"""Encoders on MIG slices against published batches; fails past its budget."""

from __future__ import annotations

import statistics

from tests.helpers.plan_slices import batches, table

BUDGET = 0.15


def test_mean_error_of_every_slice_keeps_its_budget(shared):
    found = batches(shared("data/measured"))
    print(table(found))
    for name in {one.slice_name for one in found}:
        mine = [one.error for one in found if one.slice_name == name]
        assert len(mine) >= 10
        assert statistics.mean(mine) <= BUDGET, table(found)
