"""Which findings fail a test, and what it is told."""

from __future__ import annotations

import json

import pytest

from va100.check.findings import Access, Finding
from va100.errors import SetupError
from va100.testing.findings import Judge, has_error, joined


def finding(severity="error", kind="race", line=7):
    access = Access(
        what="write",
        function="k",
        file="k.cu",
        line=line,
        instruction="st.shared.u32 [%r4], %r1;",
        cta=(0, 0, 0),
        thread=(1, 0, 0),
    )
    return Finding(
        tool="racecheck", kind=kind, severity=severity, title="A race", kernel="k", first=access
    )


def lines(*findings):
    return [json.dumps({"type": "finding", **f.as_json()}) for f in findings]


class TestJudge:
    def test_what_counts(self):
        judge = Judge(["racecheck"], None)
        told = judge.counted(
            lines(finding(), finding("info"), finding("warn"), finding(kind="leak"), finding())
        )
        assert [(f.severity, f.count) for f in told] == [("error", 2), ("warn", 1)]
        assert has_error(told)
        assert not has_error(told[1:])

    def test_the_verdict_begins_with_what_and_where(self):
        judge = Judge(["racecheck"], None)
        first, _, report = judge.verdict([finding("warn"), finding(), finding(line=9)]).partition(
            "\n"
        )
        assert first == "racecheck: A race at k.cu:7, and 1 more"
        assert report.startswith("========= VA100 CHECK (racecheck)")

    def test_suppressions(self, tmp_path):
        rules = tmp_path / "rules"
        rules.write_text("kernel=k line=7\n")
        judge = Judge(["racecheck"], str(rules))
        assert [f.first.line for f in judge.counted(lines(finding(), finding(line=9)))] == [9]
        with pytest.raises(SetupError, match="No such file"):
            Judge(["racecheck"], str(tmp_path / "nowhere"))


def test_findings_of_several_processes_are_told_once():
    assert [f.count for f in joined([finding(), finding(), finding(line=9)])] == [2, 1]
