"""Bands around times, and that they say what the page of measured errors says."""

from __future__ import annotations

import re

import pytest

from va100.perf.operators.bands import MEASURED, UNMEASURED, band_s
from va100.perf.operators.chips import OTHER_CHIP_RATIO

ROW = re.compile(
    r"^\| ([^|]+?) \| (?:third|no|all) \| \d+ \| [\d.]+% \| [\d.]+% \| ([\d.]+)% \|", re.MULTILINE
)


@pytest.fixture
def published(root):
    rows = ROW.findall((root / "docs" / "operators.md").read_text(encoding="utf-8"))
    return {name: float(within) / 100 for name, within in rows}


@pytest.mark.parametrize("family", MEASURED, ids=lambda family: family.name)
def test_the_table_is_the_page(family, published):
    assert family.within_ratio == pytest.approx(published[family.name])


@pytest.mark.parametrize("family", [*MEASURED, UNMEASURED], ids=lambda family: family.name)
def test_a_band_holds_its_time_and_widens_on_other_chips(family):
    low, high = band_s(2e-6, family)
    lower, higher = band_s(2e-6, family, OTHER_CHIP_RATIO)
    assert 0 < lower <= low < 2e-6 < high <= higher
