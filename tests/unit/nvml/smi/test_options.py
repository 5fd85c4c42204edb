"""The tool's way of options."""

from __future__ import annotations

import pytest

from va100.nvml.smi.look import Stop
from va100.nvml.smi.options import FLAG, OPTIONAL, VALUE, Option, help_text, number, parse

TABLE = (
    Option(("-i", "--id"), VALUE, "only these", "ID"),
    Option(("-q", "--query"), FLAG, "all"),
    Option(("-l", "--loop"), OPTIONAL, "again", "SECONDS"),
)


def parsed(*words):
    return parse(words, TABLE, "tool")


class TestParse:
    @pytest.mark.parametrize(
        "words", [("-i", "0"), ("--id", "0"), ("--id=0",), ("-i=0",)], ids=" ".join
    )
    def test_spellings_of_a_value(self, words):
        assert parsed(*words) == {"-i": "0"}

    def test_a_value_may_be_left_out_where_it_may(self):
        assert parsed("-l", "-q") == {"-l": "", "-q": ""}
        assert parsed("-q", "-l", "3") == {"-q": "", "-l": "3"}
        assert parsed("--loop=3") == {"-l": "3"}

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("-z",), '"-z" is not recognized'),
            (("-i",), '"-i" is missing its value'),
            (("--query=1",), "takes no value"),
            (("-q", "--query"), "given twice"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
    )
    def test_what_is_wrong_is_told(self, words, told):
        with pytest.raises(Stop) as stopped:
            parsed(*words)
        assert stopped.value.status == 2
        assert told in stopped.value.text
        assert "'tool -h'" in stopped.value.text


class TestNumber:
    @pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "x"])
    def test_only_whole_numbers(self, text):
        with pytest.raises(Stop):
            number({"-l": text}, "-l", "tool", least=1)
        assert number({"-l": "5"}, "-l", "tool", least=1) == 5


def test_help_lists_every_option():
    text = help_text("tool [OPTION]", TABLE)
    for option in TABLE:
        assert ", ".join(option.spellings) in text
        assert option.text in text
