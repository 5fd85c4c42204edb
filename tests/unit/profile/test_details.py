"""The report for a terminal."""

from __future__ import annotations

from tests.helpers.launches import CHIP, report, work
from va100.profile.details import details_text, kernel_groups
from va100.profile.launch import launches_of
from va100.profile.metrics import chosen
from va100.profile.report_schema import LineCounters


def text_of(full, metrics=()):
    return details_text(full, launches_of(full), chosen(metrics), CHIP, width=120)


def test_table_then_reasons_lines_and_metrics():
    lines = text_of(report(work()), ["dram__bytes.sum"]).splitlines()
    assert lines[2].startswith("saxpy   864   256")
    assert "  energy: 2 mJ, 250 W at 1410 MHz" in lines
    start = lines.index("saxpy, 864 x 256")
    assert lines[start + 1].startswith("  DRAM-bound: ")
    assert "  saxpy.cu:12: 66% of instructions, 100% of sectors" in lines
    assert lines[-1].split() == ["dram__bytes.sum", "byte", "12582912"]


def test_launches_alike_are_one_row_and_the_longest_is_explained():
    full = report(work(), work(duration_s=9.0e-6), work(kernel="_Z4tinyv", duration_s=1e-6))
    (first, second) = kernel_groups(launches_of(full))
    assert (first.count, first.min_s, first.max_s) == (2, 8.0e-6, 9.0e-6)
    assert first.total_s == 17.0e-6
    assert second.kernel == "_Z4tinyv"
    text = text_of(full)
    assert "saxpy, 864 x 256, its longest launch" in text
    assert text.index("\nsaxpy, 864") < text.index("\ntiny, 864")


def test_lines_of_ptx_are_shown_with_their_text():
    line = LineCounters(
        file="", line=9, text="add.f32 %f1, %f1, %f2;",
        counters={"warp_instructions": {"fma": 5.0}},
    )  # fmt: skip
    text = text_of(report(work(lines=(line,), bound_by="FMA pipe")))
    assert "  PTX line 9: 100% of instructions  add.f32 %f1, %f1, %f2;" in text


def test_nothing_was_launched():
    assert text_of(report()) == "no kernel was launched"


def test_only_the_longest_are_told_one_by_one():
    full = report(*(work(kernel=f"k{i}", duration_s=1e-6 * (20 - i)) for i in range(15)))
    text = text_of(full)
    assert "\nk11, 864 x 256\n" in text
    assert "\nk12, 864" not in text
    assert text.endswith("3 more are in the table only; --kernel chooses among them")
