"""The YAML subset against PyYAML where they agree, and its refusals."""

from __future__ import annotations

import pytest

from va100.errors import PlanError
from va100.plan.models.yaml import parse_yaml

DOCUMENTS = {
    "map": "a: 1\nb: two\nc: 3.5\nd: 1e9\ne: true\nf: null\ng: 1_000\n",
    "nested": "a:\n  b:\n    c: 1\n  d: 2\ne: 3\n",
    "list": "a:\n  - 1\n  - two\n  - - 3\n",
    "list of maps": "jobs:\n  - name: x\n    gpus: 2\n  - name: y\n    gpus: 4\n",
    "list at the key's indentation": "a:\n- 1\n- 2\nb: 3\n",
    "flow": "a: [1, 2, x]\nb: {c: 1, d: 2}\n",
    "comments": "# first\na: 1 # one\n\nb: 'x # y'\n",
    "quotes": "a: \"x: y\"\n'b c': 1\n",
    "document mark": "---\na: 1\n",
}
EXPECTED = {
    "map": {"a": 1, "b": "two", "c": 3.5, "d": 1e9, "e": True, "f": None, "g": 1000},
    "nested": {"a": {"b": {"c": 1}, "d": 2}, "e": 3},
    "list": {"a": [1, "two", [3]]},
    "list of maps": {"jobs": [{"name": "x", "gpus": 2}, {"name": "y", "gpus": 4}]},
    "list at the key's indentation": {"a": [1, 2], "b": 3},
    "flow": {"a": [1, 2, "x"], "b": {"c": 1, "d": 2}},
    "comments": {"a": 1, "b": "x # y"},
    "quotes": {"a": "x: y", "b c": 1},
    "document mark": {"a": 1},
}


class TestParseYaml:
    @pytest.mark.parametrize("name", DOCUMENTS)
    def test_reads(self, name):
        assert parse_yaml(DOCUMENTS[name], "f") == EXPECTED[name]

    @pytest.mark.parametrize("name", [n for n in DOCUMENTS if n != "map"])
    def test_agrees_with_pyyaml(self, name):
        yaml = pytest.importorskip("yaml")
        assert parse_yaml(DOCUMENTS[name], "f") == yaml.safe_load(DOCUMENTS[name])

    def test_an_empty_document_is_an_empty_map(self):
        assert parse_yaml("# nothing\n", "f") == {}


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("a: &x 1\n", "f:1:"),
            ("a: 1\nb: *x\n", "f:2:"),
            ("a: |\n  text\n", "f:1:"),
            ("a: !t 1\n", "f:1:"),
            ("a: [1, [2]]\n", "f:1:"),
            ("a: 1\na: 2\n", "f:2:"),
            ("a: 1\n  b: 2\n", "f:2:"),
            ("a: 1\n\tb: 2\n", "f:2:"),
            ("a: 1\nword\n", "f:2:"),
        ],
    )
    def test_names_the_line(self, text, place):
        with pytest.raises(PlanError) as error:
            parse_yaml(text, "f")
        assert str(error.value).startswith(place)
        assert error.value.hint
