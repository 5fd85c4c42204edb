"""Tables that must agree do: instruction families, both engines, opcodes."""

from __future__ import annotations

import pytest

from va100.jit.function import LOWERINGS
from va100.ptx.isa import ISA
from va100.ptx.isa.form import Family, Support
from va100.reference.evaluate import EVALUATE, not_executed


def executed_families():
    """Families of which at least one form is executed."""
    return {form.family for form in ISA if form.support is Support.EXECUTED}


def test_the_jit_lowers_every_family():
    assert set(LOWERINGS) == set(Family)


def test_the_reference_evaluates_every_family():
    assert set(EVALUATE) == set(Family)


def test_the_reference_refuses_exactly_what_the_table_does_not_execute():
    refused = {family for family, evaluate in EVALUATE.items() if evaluate is not_executed}
    assert refused == set(Family) - executed_families()


def test_every_family_has_forms():
    assert {form.family for form in ISA} == set(Family)


@pytest.mark.parametrize("family", Family, ids=lambda family: family.value)
def test_rows_of_a_family_are_distinct(family):
    rows = [form for form in ISA if form.family is family]
    assert len(rows) == len(set(rows))
