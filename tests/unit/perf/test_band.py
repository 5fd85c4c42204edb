"""The band around a predicted time, and that it says what the page of measured errors says."""

from __future__ import annotations

import re

import pytest

from va100.perf.band import FAMILIES, UNMEASURED_FACTOR, band_s, band_source
from va100.perf.kernel import Bound

ROW = re.compile(r"^\| ([^|]+?) \| \d+ \| [\d.]+% \| ([\d.]+)% \|", re.MULTILINE)


@pytest.fixture
def published(root):
    rows = ROW.findall((root / "docs" / "accuracy.md").read_text(encoding="utf-8"))
    return {name: float(within) / 100 for name, within in rows}


def test_the_table_is_the_page(published):
    for family in set(FAMILIES.values()):
        assert family.within_ratio == pytest.approx(published[family.name])


@pytest.mark.parametrize("bound", Bound)
def test_a_band_holds_its_time(bound):
    low, high = band_s(2e-6, bound)
    assert 0 < low < 2e-6 < high
    assert band_source(bound)


def test_a_time_at_either_end_is_off_by_what_was_measured():
    low, high = band_s(1.0, Bound.DRAM)
    within = FAMILIES[Bound.DRAM].within_ratio
    assert 1.0 / low - 1 == pytest.approx(within)
    assert 1.0 / high - 1 == pytest.approx(-within)


def test_what_was_not_measured_says_so():
    low, high = band_s(1.0, Bound.TENSOR)
    assert (low, high) == (1 / UNMEASURED_FACTOR, UNMEASURED_FACTOR)
    assert "order of magnitude" in band_source(Bound.TENSOR)
