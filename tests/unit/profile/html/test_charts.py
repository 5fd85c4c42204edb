"""Places on charts."""

from __future__ import annotations

import re

import pytest

from tests.helpers.launches import CHIP, FIT, PARTS, launch, report, work
from va100.profile.html.bars import part_bars, strip
from va100.profile.html.markup import element, joined, picture
from va100.profile.html.memory import memory_chart
from va100.profile.html.occupancy import occupancy_charts
from va100.profile.html.roofline import Point, point_of, roofline
from va100.profile.html.scale import Linear, Logarithmic, powers_around
from va100.profile.quantities import quantities
from va100.work import Dim3


class TestScale:
    def test_linear_keeps_inside(self):
        x = Linear(0.0, 10.0, 100.0, 200.0)
        assert (x(5), x(-1), x(11)) == (150, 100, 200)

    def test_logarithmic(self):
        x = Logarithmic(0, 2, 0.0, 100.0)
        assert (x(1), x(10), x(100), x(1e9), x(1e-9)) == (0, 50, 100, 100, 0)

    @pytest.mark.parametrize(
        ("least", "most", "powers"), [(0.5, 20, (-1, 2)), (1, 1, (0, 1)), (3, 900, (0, 3))]
    )
    def test_powers_around(self, least, most, powers):
        assert powers_around(least, most) == powers


class TestMarkup:
    def test_text_is_escaped_and_markup_is_not(self):
        inner = element("b", "<x>")
        assert element("p", "a & b ", inner) == "<p>a &amp; b <b>&lt;x&gt;</b></p>"
        assert joined("<", inner) == "&lt;<b>&lt;x&gt;</b>"

    def test_attributes(self):
        assert element("line", x1=1.0, stroke_width=2.5, class_='a"b') == (
            '<line x1="1" stroke-width="2.5" class="a&quot;b"/>'
        )

    def test_a_picture_scales_and_is_told(self):
        assert picture(10, 5, "what").startswith('<svg viewBox="0 0 10 5" role="img"')


class TestBars:
    def test_the_bound_is_the_one_that_stands_out(self):
        chart = part_bars(PARTS, 8e-6, "DRAM bandwidth")
        assert chart.count("bar chosen") == 1
        assert "DRAM bandwidth 82%" in chart

    def test_bars_are_as_long_as_their_parts(self):
        chart = part_bars({"a": 4e-6, "b": 2e-6, "c": 1e-12}, 8e-6, "a")
        first, second = (float(w) for w in re.findall(r'width="([\d.]+)" height="14"', chart))
        assert first == pytest.approx(2 * second, rel=1e-3)

    def test_a_share_near_the_end_is_told_inside_its_bar(self):
        chart = part_bars({"a": 7.6e-6, "b": 2e-6}, 8e-6, "a")
        assert 'class="bar-text end">95%' in chart
        assert 'class="tick">25%' in chart

    def test_a_strip_has_a_row_a_stream_and_no_slice_without_width(self):
        chart = strip(report(work(), work()).events)
        assert chart.count('class="slice ') == 5
        assert "stream 7" in chart
        assert "stream 8" in chart
        widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="20"', chart)]
        assert min(widths) >= 1.5

    def test_no_events_no_strip(self):
        assert strip(()) == ""


class TestRoofline:
    def test_a_point_is_under_its_roof(self):
        found = quantities(launch(), CHIP)
        point = point_of(1, "saxpy", found, CHIP)
        assert point.intensity == pytest.approx((2 * 1048576 + 64) / 12582912)
        assert point.flop_per_s < point.intensity * 2.04e12
        assert point.roof == "FP32"
        chart = roofline([point], CHIP)
        assert "1, saxpy: 0.167 FLOP/B, 262 GFLOP/s" in chart
        assert "FP32 19.5 TFLOP/s" in chart
        assert "DRAM 2.04 TB/s" in chart

    def test_without_operations_there_is_no_point(self):
        assert point_of(1, "copy", {"flop": 0.0, "dram_bytes": 5.0, "time_s": 1.0}, CHIP) is None
        assert "no kernel has a place on it" in roofline([], CHIP)

    def test_a_name_goes_where_it_hides_no_point(self):
        def point(number, intensity, rate=1e12):
            return Point(number=number, name="kernel", intensity=intensity, flop_per_s=rate,
                         roof="FP32", roof_flop_per_s=19.5e12)  # fmt: skip

        def named(*points):
            return re.findall(r'class="(label|label end)">kernel', roofline(points, CHIP))

        assert named(point(1, 10.0)) == ["label"]
        assert named(point(1, 900.0)) == ["label end"]
        assert named(point(1, 10.0), point(2, 20.0)) == ["label end", "label"]
        assert named(point(1, 10.0), point(2, 20.0, rate=1e11)) == ["label", "label"]

    def test_names_that_would_hide_each_other_are_left_to_the_numbers(self):
        found = quantities(launch(), CHIP)
        points = [point_of(i, f"k{i}", found, CHIP) for i in (1, 2)]
        chart = roofline(points, CHIP)
        assert chart.count('class="label">k') == 1
        assert chart.count('class="dot"') == 2


class TestMemory:
    def test_bytes_and_how_busy(self):
        shown = launch()
        chart = memory_chart(shown, quantities(shown, CHIP))
        assert "L2 and DRAM: 8.0 MiB read, 4.0 MiB written" in chart
        assert "82% busy" in chart
        assert "1,500 requests, 8.33 turns each" in chart
        assert "25% hit" in chart
        assert "10% hit" in chart

    def test_shared_memory_that_is_not_used(self):
        shown = launch(counters={"sampled_fraction": 1.0})
        chart = memory_chart(shown, quantities(shown, CHIP))
        assert "not used" in chart
        assert "0 B" in chart


class TestOccupancy:
    def test_three_curves_with_the_launch_on_each(self):
        charts = occupancy_charts(launch(), CHIP)
        assert charts.count("<svg") == charts.count('class="dot"') == 3
        assert "Occupancy by registers a thread: 100% at 32; 100% at best" in charts
        assert "threads a CTA: 256" in charts
        assert "shared memory a CTA: 1.5 KiB" in charts

    def test_a_block_that_is_no_multiple_of_a_warp(self):
        charts = occupancy_charts(launch(block=Dim3(33), occupancy=FIT | {"fraction": 0.5}), CHIP)
        assert "50% at 33" in charts
