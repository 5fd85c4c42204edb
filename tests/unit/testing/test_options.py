"""What the plugin's options mean among pytest's other words."""

from __future__ import annotations

import argparse

import pytest

from va100.check.findings import Tool
from va100.testing.options import TOOLS, asks_for_gpus, untangle

NOTHING = {
    "va100": False,
    "va100_check": None,
    "va100_suppressions": None,
    "va100_report": None,
    "va100_model": None,
    "va100_gpus": None,
}


def test_the_tools_are_the_checkers():
    assert tuple(tool.value for tool in Tool) == TOOLS


class TestUntangle:
    @pytest.mark.parametrize(
        ("words", "meant"),
        [
            ("--va100-check tests", "--va100-check=all tests"),
            ("--va100-report tests -n 2", "--va100-report= tests -n 2"),
            ("--va100-check --va100-report x.py", "--va100-check=all --va100-report= x.py"),
            ("--va100-check racecheck,memcheck,x t", "--va100-check=all racecheck,memcheck,x t"),
        ],
    )
    def test_a_word_that_is_no_value_stays_a_word(self, words, meant):
        arguments = words.split()
        assert untangle(arguments)
        assert arguments == meant.split()

    @pytest.mark.parametrize(
        "words",
        [
            "tests --va100-check",
            "--va100-check racecheck,memcheck tests",
            "--va100-check=all tests",
            "--va100-report kernels.json tests",
            "-k va100 tests",
            "",
        ],
    )
    def test_the_rest_is_left_alone(self, words):
        arguments = words.split()
        assert not untangle(arguments)
        assert arguments == words.split()


class TestAsksForGpus:
    def test_not_by_itself(self):
        assert not asks_for_gpus(argparse.Namespace(**NOTHING))

    @pytest.mark.parametrize("name", NOTHING)
    def test_any_option_does(self, name):
        value = True if name == "va100" else ""
        assert asks_for_gpus(argparse.Namespace(**{**NOTHING, name: value}))
