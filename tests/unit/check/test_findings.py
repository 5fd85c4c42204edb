"""Findings as data."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.unit.check.conftest import access
from va100.check.findings import Finding, merged


def test_json_keeps_everything(stray, race):
    for finding in (stray, race):
        assert Finding.from_json(json.loads(json.dumps(finding.as_json()))) == finding


class TestMerged:
    def test_the_same_place_counts(self, stray):
        other = replace(stray, count=4, address=8, first=access(thread=(9, 0, 0)))
        assert merged([stray, other]) == [replace(stray, count=5)]

    def test_kinds_of_access_to_a_pair_of_lines_are_one(self, race):
        other = replace(race, first=replace(race.first, what="read"))
        assert [f.count for f in merged([race, other])] == [6]

    def test_places_and_severities_stay_apart(self, stray, race):
        moved = replace(stray, first=access(line=15))
        worse = replace(race, severity="error")
        assert len(merged([stray, moved, race, worse])) == 4

    def test_leaks_are_told_by_address(self):
        leak = Finding(tool="memcheck", kind="leak", severity="error", title="Leaked", address=1)
        assert len(merged([leak, replace(leak, address=2), leak])) == 2


def test_place_without_lines_is_the_ptx():
    assert access(file="", line=7).place == "PTX line 7"
    assert access().place == "fill.cu:14"
