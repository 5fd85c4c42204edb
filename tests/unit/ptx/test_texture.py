"""What texture and surface instructions take, and what of them is not taken."""

from __future__ import annotations

import pytest

from va100.ptx.isa import decode
from va100.ptx.parser import parse
from va100.ptx.program import Immediate, Register
from va100.ptx.texture import place_of, problem, queried
from va100.ptx.types import PtxType
from va100.ptx.verify import instructions_of

TEXT = """.version 8.0
.target sm_80
.address_size 64
.global .texref image;
.entry k () {{ .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<3>; .reg .pred %p;
{} }}
"""
REGISTERS = {"%r1": PtxType.B32, "%f1": PtxType.F32}
OUT = "{%f3, %f4, %f5, %f6}"


def taken_apart(text):
    (kernel,) = parse(TEXT.format(text)).kernels
    instruction = next(instructions_of(kernel.body))
    return decode(instruction.op), instruction.operands


class TestPlace:
    def test_layers_come_first(self):
        place = place_of(*taken_apart(f"tex.a2d.v4.f32.f32 {OUT}, [%d1, {{%r1, %f1, %f2, %f2}}];"))
        assert (place.geometry, place.object) == ("a2d", Register("%d1"))
        assert place.layer == Register("%r1")
        assert place.coordinates == (Register("%f1"), Register("%f2"))
        assert (place.dimensions, place.offsets) == (2, ())

    def test_a_cube_is_filtered_in_two_dimensions(self):
        place = place_of(*taken_apart(f"tex.cube.v4.f32.f32 {OUT}, [%d1, {{%f1, %f2, %f3, %f3}}];"))
        assert (len(place.coordinates), place.dimensions) == (3, 2)

    @pytest.mark.parametrize("level", ["", "level", "grad"])
    def test_offsets_come_after_what_chooses_the_level(self, level):
        extra = {"": "", "level": ", %f1", "grad": ", {%f1, %f2}, {%f1, %f2}"}[level]
        dotted = f".{level}" if level else ""
        text = f"tex{dotted}.2d.v4.f32.f32 {OUT}, [%d1, {{%f1, %f2}}]{extra}, {{%r1, -2}};"
        assert place_of(*taken_apart(text)).offsets == (Register("%r1"), Immediate(-2, "int"))

    def test_stores_have_the_address_first(self):
        place = place_of(*taken_apart("sust.b.1d.b32 [%d2, {%r1}], {%r2};"))
        assert (place.object, place.coordinates) == (Register("%d2"), (Register("%r1"),))

    def test_a_query_asks_about_what_stands_in_brackets(self):
        assert queried(taken_apart("txq.width.b32 %r1, [%d1];")[1]) == Register("%d1")
        assert queried(taken_apart("istypep.texref %p, %d1;")[1]) == Register("%d1")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"tex.2d.v4.f32.f32 {OUT}, [%d1, {{%f1, %f2}}];", ""),
        (f"tex.1d.v4.f32.f32 {OUT}, [%d1, {{%f1}}], %r1;", ""),
        (f"tex.1d.v4.f32.f32 {OUT}, [%d1, {{%f1}}], %f1;", "comparing depths"),
        (f"tex.2d.v4.f32.f32 {OUT}, [%d1, {{%f1, %f2}}], {{%r1, %r2}}, %f1;", "comparing depths"),
        (f"tex.cube.v4.f32.f32 {OUT}, [%d1, {{%f1, %f2, %f3, %f3}}], %f1;", "comparing depths"),
        (f"tex.2d.v4.f32.f32 {OUT}|%p, [%d1, {{%f1, %f2}}];", "resident"),
        (f"tex.2d.v4.f32.f32 {OUT}, [%d1, %d2, {{%f1, %f2}}];", "samplers apart"),
        (f"tex.2d.v4.f32.f32 {OUT}, [image, {{%f1, %f2}}];", "references"),
        (f"tex.3d.v4.f32.f32 {OUT}, [%d1, {{%f1, %f2}}];", "3d takes 3 coordinates"),
        (f"tex.a1d.v4.f32.f32 {OUT}, [%d1, %f1];", "a1d takes 2 coordinates"),
        ("txq.width.b32 %r1, [image];", "references"),
        ("suq.width.b32 %r1, [%d1+8];", "offset"),
        ("suld.b.1d.b32 {%r1}, [%d1, {%r2}];", ""),
    ],
)
def test_what_is_not_taken(text, what):
    found = problem(*taken_apart(text), REGISTERS)
    assert what in found
    assert bool(found) == bool(what)
