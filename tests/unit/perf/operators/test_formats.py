"""Number formats: widths, other names, refusals."""

from __future__ import annotations

import pytest

from va100.perf.operators.formats import ALIASES, FORMATS, WIDTHS, element_bytes, find_format


@pytest.mark.parametrize("name", FORMATS)
def test_found_by_its_name_in_any_case(name):
    assert find_format(name.upper()) is FORMATS[name]


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_other_spellings_mean_a_format(alias, name):
    assert find_format(alias) is FORMATS[name]


@pytest.mark.parametrize("name", WIDTHS)
def test_every_width_is_positive(name):
    assert element_bytes(name) > 0


def test_packed_weights_are_narrower_than_activations():
    assert [name for name, one in FORMATS.items() if one.weight_only] == ["w8a16", "w4a16"]


@pytest.mark.parametrize("find", [find_format, element_bytes])
def test_a_stranger_is_named_with_what_there_is(find):
    with pytest.raises(ValueError, match=r"dtype 'fp12' is not one of .*fp16"):
        find("fp12")
