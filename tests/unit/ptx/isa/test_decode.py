"""Opcode strings to operations, and the table's own consistency."""

from __future__ import annotations

import itertools

import pytest

from va100.errors import PtxVerifyError
from va100.ptx.isa import (
    ARCHITECTURE,
    FORM_IDS,
    FORMS_BY_OPCODE,
    ISA,
    Family,
    Support,
    decode,
    look_up,
)
from va100.ptx.isa.decode import spelling
from va100.ptx.isa.signature import arity, places
from va100.ptx.types import TYPES, PtxType, Space


def first_spelling(form):
    """The shortest text of a form: of every required group its first alternative."""
    return ".".join([form.opcode, *(slot[0] for slot in form.slots if "" not in slot)])


class TestTable:
    def test_every_family_has_rows(self):
        assert {form.family for form in ISA} == set(Family)

    def test_rows_are_unique(self):
        seen = {}
        for form in ISA:
            key = (form.opcode, frozenset(form.slots), form.operands)
            assert key not in seen or seen[key].min_sm != form.min_sm, spelling(form)
            seen[key] = form

    def test_names_are_unique(self):
        assert len(set(FORM_IDS.values())) == len(ISA)

    @pytest.mark.parametrize("form", ISA, ids=FORM_IDS.values())
    def test_every_row_is_found_by_its_own_spelling(self, form):
        found = look_up(first_spelling(form)).form
        assert found.opcode == form.opcode
        assert found.min_sm <= form.min_sm or found is form
        if found is not form:  # an earlier row may take the same text, never another support
            assert found.family is form.family or found.min_sm != form.min_sm

    def test_no_two_rows_of_the_a100_claim_one_text_differently(self):
        """Whatever both rows spell must mean the same: operands, family, support."""
        for opcode, forms in FORMS_BY_OPCODE.items():
            usable = [form for form in forms if form.min_sm <= ARCHITECTURE]
            for one, other in itertools.combinations(usable, 2):
                if one.slots == other.slots:
                    assert one.operands == other.operands, opcode

    def test_type_groups_are_pure(self):
        for form in ISA:
            for slot in form.slots:
                kinds = {name in TYPES for name in slot if name}
                assert len(kinds) <= 1 or form.min_sm > ARCHITECTURE, (spelling(form), slot)

    def test_operand_letters(self):
        for form in ISA:
            assert set(form.operands) <= set("dqabcepmvlis?"), spelling(form)

    def test_rows_of_later_chips_are_refused(self):
        later = [form for form in ISA if form.min_sm > ARCHITECTURE]
        own = [form for form in later if look_up(first_spelling(form)).form is form]
        assert len(own) > len(later) // 2
        for form in own:
            with pytest.raises(PtxVerifyError, match=f"needs sm_{form.min_sm}"):
                decode(first_spelling(form))

    def test_the_engines_execute_whatever_the_a100_has(self):
        for form in ISA:
            if form.min_sm <= ARCHITECTURE:
                assert form.support is Support.EXECUTED, spelling(form)


class TestDecode:
    def test_typed_places(self):
        op = decode("ld.global.L1::no_allocate.L2::128B.v4.f32")
        assert (op.opcode, op.space, op.vector, op.type) == ("ld", Space.GLOBAL, 4, PtxType.F32)
        assert "L2::128B" in op.modifiers

    def test_order_of_modifiers_is_free(self):
        texts = ["atom.acq_rel.gpu.global.add.u32", "atom.global.gpu.acq_rel.add.u32",
                 "atom.add.global.acq_rel.gpu.u32"]  # fmt: skip
        for op in map(decode, texts):
            assert (op.semantics, op.scope, op.space, op.combine) == (
                "acq_rel",
                "gpu",
                Space.GLOBAL,
                "add",
            )
        assert decode("vote.ballot.sync.b32").form is decode("vote.sync.ballot.b32").form

    def test_order_of_types_is_not(self):
        assert decode("cvt.rn.f32.u32").types == (PtxType.F32, PtxType.U32)
        assert decode("cvt.rzi.u32.f32").types == (PtxType.U32, PtxType.F32)
        for text in ("cvt.rn.u32.f32", "cvt.rzi.f32.u32", "set.eq.f32.f16x2"):
            with pytest.raises(PtxVerifyError):
                decode(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("fma.rn.ftz.sat.f32", {"rounding": "rn", "ftz": True, "saturate": True}),
            ("cvt.rni.sat.s32.f32", {"rounding": "rni", "saturate": True}),
            ("rcp.approx.ftz.f64", {"approximate": "approx", "ftz": True}),
            ("div.full.f32", {"approximate": "full"}),
            ("setp.ltu.and.ftz.f32", {"compare": "ltu", "combine": "and", "ftz": True}),
            ("setp.lo.u32", {"compare": "lo", "combine": ""}),
            ("shfl.sync.bfly.b32", {"combine": "bfly", "space": None}),
            ("redux.sync.min.s32", {"combine": "min"}),
            ("bar.red.popc.u32", {"combine": "popc"}),
            ("vote.sync.uni.pred", {"combine": "uni"}),
            ("match.all.sync.b64", {"combine": "all"}),
            ("prmt.b32.rc16", {"combine": "rc16"}),
            ("prmt.b32", {"combine": ""}),
            ("testp.subnormal.f64", {"combine": "subnormal"}),
            ("lop3.or.b32", {"combine": "or"}),
            ("red.shared::cta.add.f32", {"space": Space.SHARED, "combine": "add"}),
            ("atom.cas.b16", {"space": Space.GENERIC, "combine": "cas"}),
            ("ld.u32", {"space": Space.GENERIC, "semantics": ""}),
            ("ld.param::func.b32", {"space": Space.PARAM}),
            ("ld.volatile.shared.f64", {"semantics": "volatile"}),
            ("ld.mmio.relaxed.sys.global.u32", {"semantics": "mmio", "scope": "sys"}),
            ("st.release.sys.global.b32", {"semantics": "release", "scope": "sys"}),
            ("fence.sc.cta", {"semantics": "sc", "scope": "cta"}),
            ("membar.gl", {"scope": "gpu"}),
            ("cvta.to.shared.u64", {"to_space": True, "space": Space.SHARED}),
            ("cvta.local.u64", {"to_space": False, "space": Space.LOCAL}),
            ("bar.cta.sync", {"scope": ""}),
        ],
    )
    def test_fields(self, text, expected):
        op = decode(text)
        assert {name: getattr(op, name) for name in expected} == expected

    def test_repeated_modifiers_keep_their_order(self):
        op = decode("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32")
        assert op.sequence == ("mma", "sync", "aligned", "row", "col", "m16n16k16")
        twice = decode("wmma.mma.sync.aligned.col.col.m16n16k16.f32.f32")
        assert twice.sequence.count("col") == 2

    def test_the_same_text_is_decoded_once(self):
        assert decode("add.s32") is decode("add.s32")

    @pytest.mark.parametrize(
        ("text", "needed"),
        [
            ("add.bf16", 90),
            ("cvt.rn.tf32.f32", 90),
            ("cvt.rn.satfinite.e4m3x2.f32", 89),
            ("min.xorsign.abs.f32", 86),
            ("mbarrier.try_wait.parity.shared.b64", 90),
            ("elect.sync", 90),
            ("barrier.cluster.arrive", 90),
            ("setmaxnreg.inc.sync.aligned.u32", 90),
            ("cp.async.bulk.commit_group", 90),
            ("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32", 90),
            ("stmatrix.sync.aligned.m8n8.x4.shared.b16", 90),
            ("max.f32x2", None),
            ("add.f32x2", 100),
            ("ld.global.v8.f32", 100),
            ("ld.global.L1::evict_last.L2::evict_last.v4.u64", 100),
            ("ld.global.u32.proxy::readonly", 90),
            ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", 90),
            ("tcgen05.alloc.sync.aligned.b32", 100),
            ("mapa.shared::cluster.u32", 90),
            ("ld.shared::cluster.u32", 90),
        ],
    )
    def test_later_chips_are_named(self, text, needed):
        expected = f"needs sm_{needed}; the A100 is sm_80" if needed else "no modifier"
        with pytest.raises(PtxVerifyError, match=expected):
            decode(text)

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("addd.s32", "did you mean 'add'"),
            ("add.s33", r"did you mean '\.s32'"),
            ("ld.gloabl.u32", r"did you mean '\.global'"),
            ("mul.s32", r"mul\.\{hi,lo\}"),
            ("match.any.b32", r"match\.any\.sync"),
            ("add.sat.u32", "the nearest form is add"),
            ("fma.f32", r"fma\.\{rn,rz,rm,rp\}"),
            ("zzzz.q", "unknown instruction"),
            ("add", "is no form of 'add'"),
            ("add.s32.s32", "is no form of 'add'"),
        ],
    )
    def test_unknown_forms_are_answered_with_the_nearest(self, text, hint):
        with pytest.raises(PtxVerifyError, match=hint):
            decode(text)


class TestSignature:
    @pytest.mark.parametrize(
        ("text", "least", "most"),
        [("add.s32", 3, 3), ("setp.eq.s32", 3, 3), ("setp.eq.and.s32", 4, 4), ("bar.sync", 1, 2),
         ("bar.red.popc.u32", 3, 4), ("ret", 0, 0), ("ld.global.u32", 2, 3),
         ("atom.cas.b32", 4, 4), ("atom.exch.b32", 3, 4)],
    )  # fmt: skip
    def test_arity(self, text, least, most):
        assert arity(decode(text)) == (least, most)

    @pytest.mark.parametrize(
        ("text", "count", "types"),
        [
            ("mul.wide.s16", 3, ["s32", "s16", "s16"]),
            ("mad.wide.u32", 4, ["u64", "u32", "u32", "u64"]),
            ("shl.b64", 3, ["b64", "b64", "u32"]),
            ("bfi.b64", 5, ["b64", "b64", "b64", "u32", "u32"]),
            ("popc.b64", 2, ["u32", "b64"]),
            ("set.eq.u32.f64", 3, ["u32", "f64", "f64"]),
            ("slct.f64.s32", 4, ["f64", "f64", "f64", "s32"]),
            ("setp.lt.and.f32", 4, ["pred", "f32", "f32", "pred"]),
            ("cvt.rn.f16x2.f32", 3, ["f16x2", "f32", "f32"]),
            ("bar.red.or.pred", 3, ["pred", "u32", "pred"]),
            ("bar.red.or.pred", 4, ["pred", "u32", "u32", "pred"]),
            ("match.any.sync.b64", 3, ["b32", "b64", "u32"]),
            ("atom.cas.b64", 4, ["b64", None, "b64", "b64"]),
        ],
    )
    def test_places(self, text, count, types):
        found = [p.type.value if p.type else None for p in places(decode(text), count)]
        assert found == types

    def test_pairs(self):
        assert [p.pair for p in places(decode("setp.eq.s32"), 3)] == [True, False, False]
        assert not places(decode("add.s32"), 3)[0].pair
