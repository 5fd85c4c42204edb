"""Tables that must agree do: instruction families, both engines, opcodes."""

from __future__ import annotations

import pytest

from va100.jit.lowerings import LOWERINGS
from va100.ptx.isa import ISA
from va100.ptx.isa.form import Family
from va100.reference.evaluate import EVALUATE


def test_the_jit_lowers_every_family():
    assert set(LOWERINGS) == set(Family)


def test_the_reference_evaluates_every_family():
    assert set(EVALUATE) == set(Family)


def test_every_family_has_forms():
    assert {form.family for form in ISA} == set(Family)


@pytest.mark.parametrize("family", Family, ids=lambda family: family.value)
def test_rows_of_a_family_are_distinct(family):
    rows = [form for form in ISA if form.family is family]
    assert len(rows) == len(set(rows))
