"""Options of compute-sanitizer: taken where nothing is to be done, refused with what to use."""

from __future__ import annotations

import argparse

import pytest

from va100.cli import check, sanitizer


@pytest.fixture
def parser():
    made = argparse.ArgumentParser(prog="va100")
    check.add_parser(made.add_subparsers())
    return made


def words_of(option, values):
    value = {"": []}.get(values, ["7"] if isinstance(values, str) else [values[0]])
    return [option, *value]


@pytest.mark.parametrize("option", sanitizer.NEEDLESS)
def test_nothing_to_be_done(option, parser):
    words = words_of(option, sanitizer.NEEDLESS[option][0])
    assert parser.parse_args(["check", *words, "a.cu", "x"]).target == "a.cu"


@pytest.mark.parametrize("option", sanitizer.ONE_VALUE)
def test_one_value_is_what_is_done(option, parser, capsys):
    value, reason = sanitizer.ONE_VALUE[option]
    assert parser.parse_args(["check", option, value, "a.cu"]).target == "a.cu"
    with pytest.raises(SystemExit):
        parser.parse_args(["check", option, "other", "a.cu"])
    assert reason in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("option", sanitizer.REFUSED)
def test_refused_with_what_to_use(option, parser, capsys):
    valued, instead = sanitizer.REFUSED[option]
    with pytest.raises(SystemExit):
        parser.parse_args(["check", option, *(["7"] if valued else []), "a.cu"])
    told = capsys.readouterr().err
    assert f"{option} is not taken here: {instead}" in told


def test_the_word_after_an_option_is_no_target():
    words = [w for o in sanitizer.valued_options() for w in (o, "7")]
    assert check.spelled_out(["check", *words, "a.cu", "--json"])[-2:] == ["a.cu", "--json"]
