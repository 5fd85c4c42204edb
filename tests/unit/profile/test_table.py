"""The kernel table and its JSON."""

from __future__ import annotations

import json

import pytest

from va100.profile.report_schema import KernelGroup, LaunchReport, ReportFault
from va100.profile.table import extent_text, report_json, table_text
from va100.work import Dim3


def group(kernel="saxpy", total_s=2e-3, count=2, **kwargs):
    return KernelGroup(
        kernel=kernel,
        grid=kwargs.pop("grid", Dim3(4096)),
        block=kwargs.pop("block", Dim3(256)),
        count=count,
        total_s=total_s,
        mean_s=total_s / count,
        min_s=total_s / count,
        max_s=total_s / count,
        bound_by=kwargs.pop("bound_by", "DRAM bandwidth"),
        occupancy=kwargs.pop("occupancy", 0.75),
        **kwargs,
    )


REPORT = LaunchReport(
    model="A100-SXM4-80GB",
    kernels=(
        group("_Z5firstPf", 1e-3, grid=Dim3(64, 64), block=Dim3(16, 16)),
        group("_Z6secondILi256EEvPf", 3e-3, assumed=("footprint was not counted",)),
    ),
)


class TestTableText:
    def test_wide(self):
        assert table_text(REPORT, width=120).splitlines() == [
            "kernel       grid   block  count  A100 time    mean  bound by        occupancy",
            "-" * 78,
            "second<256>  4096   256        2       3 ms  1.5 ms  DRAM bandwidth        75%",
            "first        64x64  16x16      2       1 ms  500 us  DRAM bandwidth        75%",
            "-" * 78,
            "4 launches, 4 ms on A100-SXM4-80GB "
            "(first estimate from counted instructions and bytes, not a measurement)",
            "note: footprint was not counted",
        ]

    @pytest.mark.parametrize("width", range(40, 140))
    def test_no_row_is_wider_than_the_terminal(self, width):
        report = LaunchReport(
            kernels=(group("a_very_long_kernel_name_indeed" * 5), *REPORT.kernels)
        )
        rows = table_text(report, width=width).splitlines()[:5]
        assert max(len(row) for row in rows) <= width
        assert "a_ver" in rows[2] or "a_ver" in rows[3] or "a_ver" in rows[4]

    @pytest.mark.parametrize(
        ("name", "width", "shown"),
        [
            ("ns::inner::reduce<256>", 22, "ns::inner::reduce<256>"),
            ("ns::inner::reduce<256>", 21, "reduce<256>"),
            (
                "ns::DeviceRadixSortKernel<a::B, c::D, e::F>",
                34,
                "DeviceRadixSortKernel..c::D, e::F>",
            ),
            ("ns::DeviceRadixSortKernel<a::B, c::D, e::F>", 30, "DeviceRadixSortKernel.., e::F>"),
        ],
    )
    def test_a_long_name_keeps_what_tells_it_apart(self, name, width, shown):
        report = LaunchReport(kernels=(group(name),))
        rest = table_text(LaunchReport(kernels=(group("k"),)), width=500).splitlines()[2]
        found = table_text(report, width=width + len(rest) - len("kernel"))
        assert found.splitlines()[2].split("  ")[0] == shown

    def test_nothing_launched(self):
        assert table_text(LaunchReport(), width=80) == "no kernel was launched"

    def test_unknown_values_are_marked(self):
        report = LaunchReport(kernels=(group(bound_by="", occupancy=0.0),))
        assert table_text(report, width=120).splitlines()[2].split()[-2:] == ["?", "?"]

    def test_a_fault_is_pointed_to_not_told_again(self):
        fault = ReportFault(text="illegal address 0x0\n  in kernel f", kernel="_Z1fPf")
        text = table_text(LaunchReport(kernels=(group(),), faults=(fault,)), width=80)
        assert text.splitlines()[-1].startswith("fault: f was stopped, as told above")
        assert "illegal address" not in text

    def test_nothing_launched_and_nothing_reported_differ(self):
        assert table_text(LaunchReport(), width=80) == "no kernel was launched"
        died = LaunchReport(complete=False, notes=("it died",))
        assert table_text(died, width=80) == "note: it died"


class TestReportJson:
    def test_a_fault_has_both_names_and_its_whole_text(self):
        fault = ReportFault(text="trap executed\n  in kernel f", kernel="_Z1fPf")
        (entry,) = json.loads(report_json(LaunchReport(faults=(fault,))))["faults"]
        assert entry == {"kernel": "_Z1fPf", "name": "f", "text": fault.text}

    def test_base_units_and_both_names(self):
        entry = json.loads(report_json(REPORT))["kernels"][1]
        assert entry["kernel"] == "_Z6secondILi256EEvPf"
        assert entry["name"] == "second<256>"
        assert entry["total_s"] == 3e-3
        assert entry["grid"] == [4096, 1, 1]

    def test_says_it_is_an_estimate(self):
        assert "first estimate" in json.loads(report_json(LaunchReport()))["estimate"]


@pytest.mark.parametrize(
    ("extent", "text"), [(Dim3(1), "1"), (Dim3(4, 2), "4x2"), (Dim3(1, 1, 3), "1x1x3")]
)
def test_extent_text(extent, text):
    assert extent_text(extent) == text
