"""Findings as people read them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from va100.check.findings import Finding
from va100.check.report import Outcome, TextForm, report_json, report_text


def test_text_of_an_access(stray):
    text = report_text(Outcome(tools=("memcheck",), findings=[replace(stray, count=12)]))
    assert text.splitlines() == [
        "========= VA100 CHECK (memcheck)",
        "========= Invalid __global__ write of size 4 bytes",
        "=========     at fill in fill.cu:14: st.global.u32 [%rd4], %r6;",
        "=========     by thread (5,0,0) in block (1,0,0)",
        "=========     address 0x20000000",
        "=========     12 times",
        "=========",
        "========= ERROR SUMMARY: 1 error (12 times)",
    ]


def test_text_of_a_race(race):
    text = report_text(Outcome(tools=("racecheck",), findings=[race]))
    assert "Warning: Race on __shared__ memory" in text
    assert "write at fill in fill.cu:20" in text
    assert "and read at fill in fill.cu:31" in text
    assert "by thread (6,0,0) in block (1,0,0)" in text
    assert "[3 hazards]" in text
    assert "RACECHECK SUMMARY: 1 hazard (0 errors, 1 warning)" in text
    assert "ERROR SUMMARY: 0 errors" in text


@pytest.mark.parametrize("reverse", [False, True])
def test_text_of_a_hazard(race, reverse):
    seen = replace(race, hazard="RAW", reversed=reverse)
    outcome = Outcome(tools=("racecheck",), findings=[seen])
    text = report_text(outcome, form=TextForm(races="hazard"))
    assert "Warning: Potential RAW hazard detected at __shared__ 0x" in text
    write, read = text.index("Write thread"), text.index("Read thread")
    assert (write > read) is reverse  # the fixture's first is the write
    assert "Race on" not in text
    both = report_text(outcome, form=TextForm(races="all"))
    assert "RAW hazard" in both
    assert "Race on __shared__ memory" in both


def test_files_without_folders_and_another_prefix(stray):
    deep = replace(stray, first=replace(stray.first, file="a/b/fill.cu"))
    form = TextForm(prefix="##", strip_paths=True)
    text = report_text(Outcome(tools=("memcheck",), findings=[deep], status=3), form=form)
    assert "##     at fill in fill.cu:14" in text
    assert "## the program itself ended with status 3" in text
    assert all(line.startswith("##") for line in text.splitlines())


def test_limit_hides_but_counts(stray):
    findings = [replace(stray, kernel=f"k{i}") for i in range(5)]
    text = report_text(Outcome(tools=("memcheck",), findings=findings), limit=2)
    assert text.count("Invalid") == 2
    assert "3 more not shown" in text
    assert "ERROR SUMMARY: 5 errors" in text


def test_leaks_are_summed():
    leaks = [
        Finding(tool="memcheck", kind="leak", severity="error", title=f"Leaked {n}", size_bytes=n)
        for n in (10, 30)
    ]
    text = report_text(Outcome(tools=("memcheck",), findings=leaks))
    assert "LEAK SUMMARY: 40 bytes leaked in 2 allocations" in text


def test_what_is_missing_is_said(stray):
    text = report_text(Outcome(tools=("memcheck",), findings=[stray], suppressed=2, complete=False))
    assert "ended early" in text
    assert "2 suppressed" in text


def test_json(stray, race):
    data = json.loads(
        report_json(Outcome(tools=("memcheck",), findings=[stray, race]), program="a.cu")
    )
    assert (data["errors"], data["warnings"], data["program"]) == (1, 1, "a.cu")
    assert [Finding.from_json(f) for f in data["findings"]] == [stray, race]
