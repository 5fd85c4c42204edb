"""What the driver's linker calls the texts it is handed."""

from __future__ import annotations

import pytest

from tests.helpers.linked_texts import CALLEE, CALLER
from tests.helpers.ptx_trees import HEADER
from va100.driver.linking import joined
from va100.errors import LinkError, PtxSyntaxError


def test_joins() -> None:
    text = joined([("a.ptx", HEADER + CALLER), ("b.ptx", HEADER + CALLEE)])
    assert "// from b.ptx" in text
    assert text.count(".visible .func") == text.count(".entry") == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [("mine.ptx", "mine.ptx:18:"), ("object 1", "PTX of a.cu:18:"), ("input 1", "PTX of a.cu:18:")],
)
def test_a_text_without_a_name_has_that_of_its_source(name: str, told: str) -> None:
    with pytest.raises(LinkError) as caught:
        joined([(name, f'{HEADER}.file 1 "/home/x/a.cu"\n{CALLER}')])
    assert told in str(caught.value)


def test_what_is_no_ptx_is_named() -> None:
    with pytest.raises(PtxSyntaxError, match="input 1:4"):
        joined([("input 1", HEADER + "nonsense")])
