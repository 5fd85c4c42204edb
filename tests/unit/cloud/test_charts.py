"""Plots: one picture each, with words for those who do not see it, whatever the figures are."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from va100.cloud.charts import bar_chart, line_chart

FIGURES = st.floats(-1e9, 1e12, allow_nan=False)


@given(st.dictionaries(st.text(max_size=9).filter(str.isprintable),
                       st.lists(st.tuples(FIGURES, FIGURES), max_size=9), max_size=4))  # fmt: skip
def test_lines_are_well_formed(series):
    text = line_chart("A <title> & more", series)
    root = ET.fromstring(f"<div>{text}</div>")
    if any(series.values()):
        assert root[0].get("aria-label") == "A <title> & more"
        assert len(root[0].findall("polyline")) == len(series)
        assert not re.search(r"\b(nan|inf)\b", text)


def test_a_line_lies_where_its_figures_are():
    text = line_chart("t", {"a": [(0.0, 0.0), (10.0, 50.0)]}, top=100)
    points = re.search(r'points="([^"]+)"', text).group(1).split()
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in points)
    assert x0 < x1
    assert y0 - y1 == (220 - 28 - 12) / 2, "half of the axis"


def test_bars_are_as_high_as_their_values():
    root = ET.fromstring(bar_chart("t", [("a", 1.0, "$1"), ("b", 2.0, "$2"), ("c", 0, "$0")]))
    heights = [float(one.get("height")) for one in root.findall("rect")]
    assert heights[0] * 2 == heights[1]
    assert heights[2] == 0
    assert [one.find("title").text for one in root.findall("rect")] == ["a: $1", "b: $2", "c: $0"]


def test_without_figures_words_are_shown():
    assert "no figures yet" in line_chart("t", {})
    assert "no figures yet" in bar_chart("t", [])
