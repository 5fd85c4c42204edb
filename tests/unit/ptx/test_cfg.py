"""Blocks, scopes and places of one function."""

from __future__ import annotations

import pytest

from tests.helpers.ptx_corpus import golden_texts
from tests.helpers.ptx_trees import HEADER, kernel_text
from va100.errors import PtxVerifyError
from va100.ptx.cfg import EXIT, build_flow
from va100.ptx.parser import parse
from va100.ptx.printer import print_instruction
from va100.ptx.types import PtxType


def flow_of(body, params=""):
    module = parse(kernel_text(body, params))
    return build_flow(module, module.kernels[0])


def edges(flow):
    return [block.successors for block in flow.blocks]


def texts(flow):
    return [print_instruction(i) for i in flow.instructions]


class TestBlocks:
    def test_branch_target_comes_before_fall_through(self):
        flow = flow_of("@%p1 bra L; mov.u32 %r1, 1; L: ret;")
        assert edges(flow) == [(2, 1), (2,), ()]
        assert flow.labels == {"L": 2}
        assert [b.immediate_postdominator for b in flow.blocks] == [2, 2, EXIT]
        assert [b.immediate_dominator for b in flow.blocks] == [EXIT, 0, 0]
        assert flow.blocks[2].predecessors == (0, 1)

    def test_branch_to_the_next_instruction_keeps_both_edges(self):
        assert edges(flow_of("@%p1 bra L; L: ret;")) == [(1, 1), ()]

    def test_guarded_return_falls_through(self):
        flow = flow_of("@%p1 ret; mov.u32 %r1, 1; ret;")
        assert edges(flow) == [(1,), ()]
        assert flow.blocks[0].immediate_postdominator == EXIT

    def test_loop(self):
        flow = flow_of("L: add.u32 %r1, %r1, 1; @!%p1 bra L; ret;")
        assert edges(flow) == [(0, 1), ()]

    def test_unreachable_code_is_left_out(self):
        flow = flow_of("bra L; mov.u32 %r1, 1; M: mov.u32 %r1, 2; bra M; L: ret;")
        assert edges(flow) == [(1,), ()]
        assert "M" not in flow.labels

    def test_running_off_the_end_returns(self):
        flow = flow_of("mov.u32 %r1, 1; @%p1 bra L; mov.u32 %r2, 1; L:")
        assert texts(flow)[-1] == "ret;"
        assert edges(flow) == [(2, 1), (2,), ()]
        assert texts(flow_of("")) == ["ret;"]

    def test_calls_traps_and_barriers_do_not_end_a_block(self):
        assert len(flow_of("bar.sync 0; trap; nanosleep.u32 4; ret;").blocks) == 1

    def test_indexed_branch_leads_to_its_distinct_targets(self):
        flow = flow_of("T: .branchtargets B, A, B;\n@%p1 brx.idx %r1, T; ret;\nA: ret;\nB: ret;")
        labels = {index: name for name, index in flow.labels.items()}
        assert [labels.get(s) for s in flow.blocks[0].successors] == ["B", "A", None]
        assert flow.target_lists["T"].targets == ("B", "A", "B")

    def test_labels_nobody_branches_to_do_not_split_blocks(self):
        flow = flow_of("$L__tmp0: mov.u32 %r1, 1; $L__tmp1: mov.u32 %r2, 1; ret;")
        assert len(flow.blocks) == 1

    @pytest.mark.parametrize("branch", ["bra nowhere;", "bra %r1;", "brx.idx %r1, L;", "bra;"])
    def test_a_branch_needs_its_label(self, branch):
        with pytest.raises(PtxVerifyError) as caught:
            flow_of(f"L: {branch} ret;")
        assert caught.value.line > 0


class TestScopes:
    def test_inner_register_hides_outer_one(self):
        flow = flow_of("mov.u32 %r1, 1; { .reg .f32 %r1; mov.f32 %r1, 0f00000000; } "
                       "mov.u32 %r2, %r1;")  # fmt: skip
        assert texts(flow)[:3] == [
            "mov.u32 %r1, 1;",
            "mov.f32 %r1@2, 0f00000000;",
            "mov.u32 %r2, %r1;",
        ]
        assert flow.registers["%r1"] is PtxType.B32
        assert flow.registers["%r1@2"] is PtxType.F32

    def test_sibling_scopes_have_variables_of_their_own(self):
        scope = "{ .param .b32 a; st.param.b32 [a], %r1; }"
        flow = flow_of(scope + scope)
        assert texts(flow)[:2] == ["st.param.b32 [a], %r1;", "st.param.b32 [a@2], %r1;"]
        assert list(flow.variables) == ["a", "a@2"]

    def test_labels_belong_to_their_scope(self):
        scope = "{ @%p1 bra L; mov.u32 %r1, 1; L: }"
        flow = flow_of(scope + scope + "ret;")
        assert set(flow.labels) == {"L", "L@2"}
        assert edges(flow) == [(2, 1), (2,), (4, 3), (4,), ()]

    def test_guards_are_renamed_too(self):
        flow = flow_of("{ .reg .pred p; @p mov.u32 %r1, 1; } { .reg .pred p; @!p mov.u32 %r1, 2; }")
        assert texts(flow)[:2] == ["@p mov.u32 %r1, 1;", "@!p@2 mov.u32 %r1, 2;"]

    def test_ranges_hold_their_numbers_only(self):
        assert "%r8" in flow_of("mov.u32 %r8, 1;").registers
        for name in ("%r9", "%r08", "%q1"):
            with pytest.raises(PtxVerifyError, match="not declared"):
                flow_of(f"mov.u32 {name}, 1;")

    def test_only_used_registers_are_listed(self):
        assert flow_of("mov.u32 %r3, %tid.x;").registers == {"%r3": PtxType.B32}

    def test_vector_registers_fall_apart(self):
        flow = flow_of(".reg .v2 .f32 %v; ld.v2.f32 %v, [%rd1]; add.f32 %f1, %v.x, %v.g;")
        assert texts(flow)[:2] == ["ld.v2.f32 {%v.x, %v.y}, [%rd1];", "add.f32 %f1, %v.x, %v.y;"]
        assert flow.registers["%v.x"] is PtxType.F32

    def test_a_vector_of_one_is_its_element(self):
        assert texts(flow_of("ld.b32 { %r1 }, [%rd1];"))[0] == "ld.b32 %r1, [%rd1];"

    def test_a_special_register_of_a_later_chip_is_named(self):
        with pytest.raises(PtxVerifyError, match=r"'%clusterid.x' needs sm_90"):
            flow_of("mov.u32 %r1, %clusterid.x;")

    def test_register_used_outside_its_scope(self):
        with pytest.raises(PtxVerifyError, match="not declared"):
            flow_of("{ .reg .b32 %x; } mov.u32 %x, 1;")

    def test_prototypes_and_call_targets_are_kept(self):
        module = parse(golden_texts()["syntax.ptx"])
        kernel = next(k for k in module.kernels if k.name == "everything")
        flow = build_flow(module, kernel)
        assert set(flow.prototypes) == {"proto", "noret"}
        assert flow.prototypes["noret"].noreturn
        assert flow.target_lists["choices"].targets == ("callee", "renamed")


class TestPlaces:
    def test_lines_and_locations(self):
        flow = flow_of("\n.loc 1 7 3\nmov.u32 %r1, 1;\nmov.u32 %r1, 2;\n.loc 1 9 1\n\nret;")
        offset = kernel_text("").count("\n", 0, kernel_text("X").index("X"))
        assert [line - offset for line in flow.lines] == [3, 4, 7]
        assert [location.line for location in flow.locations] == [7, 7, 9]
        assert flow_of("ret;").locations == (None,)

    def test_an_unknown_instruction_is_shown_in_its_line(self):
        with pytest.raises(PtxVerifyError) as caught:
            flow_of("mov.u32 %r1, 1;\n   @%p1 addd.s32 %r1, %r1, 1;")
        error = caught.value
        assert error.source_line == "   @%p1 addd.s32 %r1, %r1, 1;"
        assert error.column == 4
        assert "did you mean 'add'" in str(error)

    def test_a_declaration_has_no_flow(self):
        module = parse(HEADER + ".func f;")
        with pytest.raises(ValueError, match="declaration"):
            build_flow(module, module.functions[0])
