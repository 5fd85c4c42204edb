"""Rules of suppression."""

from __future__ import annotations

import pytest

from va100.check.suppress import Rule, read_rules, rule_for, split
from va100.errors import SetupError


@pytest.fixture
def rules(tmp_path):
    """Read rules from a text."""

    def read(text):
        path = tmp_path / "rules"
        path.write_text(text)
        return read_rules(path)

    return read


def test_comments_and_empty_lines_are_no_rules(rules):
    assert rules("# nothing\n\n  # more\n") == []


def test_all_words_must_fit(rules, stray, race):
    (rule,) = rules("tool=memcheck kernel=fi* line=14  # the known one")
    assert rule.fits(stray)
    assert not rule.fits(race)
    assert not Rule({"tool": "memcheck", "line": "15"}).fits(stray)


def test_either_access_of_a_race_may_be_meant(race):
    assert Rule({"line": "31"}).fits(race)
    assert Rule({"line": "20"}).fits(race)
    assert not Rule({"line": "21"}).fits(race)


def test_split_counts(stray, race):
    assert split([stray, race, stray], [Rule({"kind": "out-of-*"})]) == ([race], 2)


@pytest.mark.parametrize("text", ["memcheck", "colour=red", "tool"])
def test_nonsense_is_refused_with_its_line(rules, text):
    with pytest.raises(SetupError, match=":2"):
        rules(f"tool=memcheck\n{text}\n")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SetupError, match="missing"):
        read_rules(tmp_path / "missing")


def test_a_rule_made_for_a_finding_fits_it(rules, stray, race):
    for finding, other in ((stray, race), (race, stray)):
        (rule,) = rules(rule_for(finding))
        assert rule.fits(finding)
        assert not rule.fits(other)
