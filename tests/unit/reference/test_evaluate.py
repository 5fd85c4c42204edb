"""The tables of the engine are complete."""

from __future__ import annotations

import pytest

from tests.helpers.builders import executed_forms
from va100.ptx.isa.form import Family
from va100.ptx.provided import PROVIDED
from va100.reference.atomic import ATOMIC
from va100.reference.barrier import BARRIER
from va100.reference.compare import COMPARE
from va100.reference.control import CONTROL
from va100.reference.evaluate import EVALUATE
from va100.reference.exchange import EXCHANGE
from va100.reference.floating import FLOATING
from va100.reference.half import HALF
from va100.reference.integer import CARRYING, INTEGER
from va100.reference.logic import LOGIC
from va100.reference.memory import MEMORY
from va100.reference.move import MOVE
from va100.reference.system import SYSTEM

OPCODES = {
    Family.INTEGER: {*INTEGER, *CARRYING},
    Family.FLOATING: set(FLOATING),
    Family.HALF: set(HALF),
    Family.COMPARE: set(COMPARE),
    Family.LOGIC: {*LOGIC, "lop3"},
    Family.MOVE: set(MOVE),
    Family.CONVERT: {"cvt"},
    Family.MEMORY: set(MEMORY),
    Family.ATOMIC: {"atom", "red"},
    Family.CONTROL: set(CONTROL),
    Family.BARRIER: set(BARRIER),
    Family.WARP: {*EXCHANGE, "activemask"},
}


def test_every_family_has_an_evaluator() -> None:
    assert set(EVALUATE) == set(Family)


@pytest.mark.parametrize("family", OPCODES)
def test_every_executed_opcode_has_a_function(family: Family) -> None:
    wanted = {form.opcode for form in executed_forms() if form.family is family}
    assert wanted == OPCODES[family]


def test_every_atomic_operation_has_a_function() -> None:
    slots = {s for f in executed_forms() if f.family is Family.ATOMIC for g in f.slots for s in g}
    operations = slots & {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"}
    assert operations == set(ATOMIC)


def test_provided_functions_have_functions() -> None:
    assert set(SYSTEM) == PROVIDED
