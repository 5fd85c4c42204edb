"""Pipe cycles from instruction mixes, against the throughput table."""

from __future__ import annotations

import pytest

from va100.perf import pipes
from va100.spec.a100 import GA100_SM
from va100.spec.model import MmaKind
from va100.work import Counters, Pipe


def counted(opcodes=None, **on_pipes):
    return Counters(
        warp_instructions={Pipe(name): count for name, count in on_pipes.items()},
        opcode_instructions=opcodes or {},
    )


class TestBusyCycles:
    @pytest.mark.parametrize(
        ("pipe", "cycles"),
        [("alu", 0.5), ("fma", 0.5), ("fp16", 0.25), ("fp64", 1.0), ("xu", 2.0), ("lsu", 1.0)],
    )
    def test_one_instruction(self, pipe, cycles):
        assert pipes.busy_cycles(counted(**{pipe: 1}), GA100_SM) == {Pipe(pipe): cycles}

    def test_control_takes_issue_slots_only(self):
        counters = counted(control=8)
        assert pipes.busy_cycles(counters, GA100_SM) == {}
        assert pipes.issue_cycles(counters, GA100_SM) == 2.0


class TestIssued:
    def test_moves_and_parameter_loads_vanish(self):
        counters = counted({"mov.u32": 3, "ld.param.u64": 2, "cvta.to.global.u64": 1}, alu=5, lsu=6)
        assert pipes.issued(counters) == {Pipe.ALU: 1.0, Pipe.LSU: 4.0}

    def test_more_vanished_than_counted_is_none(self):
        assert pipes.issued(counted({"mov.u32": 3}, alu=1)) == {Pipe.ALU: 0.0}

    @pytest.mark.parametrize(
        ("opcode", "extra"),
        [
            ("div.rn.f32", {Pipe.FMA: 8, Pipe.XU: 1}),
            ("div.rn.ftz.f32", {Pipe.FMA: 8, Pipe.XU: 1}),
            ("rem.u32", {Pipe.ALU: 13, Pipe.FMA: 7, Pipe.XU: 3}),
            ("add.s64", {Pipe.ALU: 1}),
            ("mul.lo.s64", {Pipe.FMA: 3}),
            ("and.b64", {Pipe.ALU: 1}),
            ("setp.lt.s64", {}),
            ("mul.wide.s32", {}),
            ("fma.rn.f32", {}),
            ("add.s32", {}),
            ("bar", {}),
        ],
    )
    def test_expansion(self, opcode, extra):
        if opcode.startswith("setp"):
            extra = {Pipe.ALU: 1}
        found = pipes.issued(counted({opcode: 10}))
        assert found == {pipe: 10.0 * count for pipe, count in extra.items()}


class TestMmaWork:
    @pytest.mark.parametrize(
        ("opcode", "kind", "fma_count", "sparse"),
        [
            ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", MmaKind.FP16, 2048, False),
            ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", MmaKind.BF16, 2048, False),
            ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", MmaKind.TF32, 1024, False),
            ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", MmaKind.FP64, 256, False),
            ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", MmaKind.INT8, 4096, False),
            ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", MmaKind.FP16, 4096, True),
            ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", MmaKind.FP16, 4096, False),
        ],
    )
    def test_shapes(self, opcode, kind, fma_count, sparse):
        assert pipes.mma_work(opcode) == (kind, fma_count, sparse)

    def test_loads_of_fragments_are_no_work(self):
        assert pipes.mma_work("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16") is None
        assert pipes.mma_work("ldmatrix.sync.aligned.m8n8.x4.shared.b16") is None

    def test_volta_shape_is_no_tensor_work(self):
        """An A100 has no tensor instruction for it: compilers emit multiply-adds."""
        opcode = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
        assert pipes.mma_work(opcode) is None
        counters = Counters(warp_instructions={Pipe.FMA: 1.0}, opcode_instructions={opcode: 1.0})
        assert pipes.issued(counters) == {Pipe.FMA: 40.0, Pipe.ALU: 24.0}

    def test_cycles_follow_the_rate(self):
        opcode = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
        assert pipes.tensor_cycles(10, {opcode: 10}, GA100_SM) == 10 * 2048 / 1024
        sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
        assert pipes.tensor_cycles(10, {sparse: 10}, GA100_SM) == 10 * 4096 / 2048

    def test_unnamed_ones_are_taken_as_the_usual_shape(self):
        assert pipes.tensor_cycles(10, {}, GA100_SM) == 20.0
