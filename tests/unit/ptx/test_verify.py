"""The rules: what keeps them passes, what breaks one is named where it stands."""

from __future__ import annotations

import pytest

from tests.helpers.ptx_corpus import golden_texts
from tests.helpers.ptx_trees import HEADER, kernel_text
from va100.errors import PtxVerifyError, UnsupportedInstruction
from va100.ptx.parser import parse
from va100.ptx.verify import problems, reachable, unsupported, verify

DECLARATIONS = """
.global .u32 g; .shared .b8 s[64]; .const .u32 c = 1; .global .texref t;
.extern .func (.param .b32 r) f (.param .b32 a, .param .b64 b);
.func (.reg .u32 %out) r (.reg .u32 %x) { mov.u32 %out, %x; ret; }
.extern .func v;
"""


_MMA = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
_F4 = "{%f1, %f2, %f3, %f4}"
_SPARSE = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MATRICES = [
    (f"{_MMA} {_F4}, {{%r1, %r2}}, {{%r3}}, {_F4};", None),
    (f"{_MMA} {_F4}, {{%r1, 7}}, {{%r3}}, {{0f00000000, %f2, %f3, %f4}};", None),
    (f"{_MMA} {_F4}, {{%r1}}, {{%r3}}, {_F4};", "a vector of 2 for A, not a vector of 1"),
    (f"{_MMA} {_F4}, {{%r1, %r2}}, %r3, {_F4};", "a vector of 1 for B, not '%r3'"),
    (f"{_MMA} {_F4}, {{%r1, %h2}}, {{%r3}}, {_F4};", "'%h2' is .b16"),
    (f"{_MMA} {{%f1, 1, %f3, %f4}}, {{%r1, %r2}}, {{%r3}}, {_F4};", "D of"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f16 {%f1}, {%r1}, {%r2}, {%r3};", "is no form"),
    ("mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f3};", "is no form"),
    ("wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r1}, [%rd1];", "is no form"),
    ("wmma.load.a.sync.aligned.row.m8n8k32.global.s4 {%r1, %r2}, [%rd1];", "a vector of 1 for A"),
    ("wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%rd1], {%fd1};", "a vector of 2 for D"),
    ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [s];", "a vector of 2 for the matrices"),
    (f"{_SPARSE} {_F4}, {{%r1, %r2}}, {{%r3, %r4}}, {_F4}, %r5, 3;", None),
    (
        f"{_SPARSE} {_F4}, {{%r1, %r2}}, {{%r3, %r4}}, {_F4}, %r5, 4;",
        "selector is 0 to 3 here, not 4",
    ),
]


def found(text):
    return [error.problem for error in problems(parse(text))]


def in_kernel(body, params=".param .u64 in"):
    return found(kernel_text(body, params, HEADER + DECLARATIONS))


class TestAccepted:
    @pytest.mark.parametrize("name", golden_texts())
    def test_golden_texts(self, name):
        assert found(golden_texts()[name]) == []

    @pytest.mark.parametrize(
        "body",
        [
            "add.s32 %r1, %r2, -1;",
            "add.u32 %r1, %tid.x, 1;",
            "mov.u32 %r1, %clock;",
            "mov.u16 %h1, %tid.x;",
            "mov.b32 %f1, %r1;",
            "mov.b32 %r1, {%h1, %h2};",
            "mov.b64 {%r1, %r2}, %rd1;",
            "mov.b64 {%r1, _}, %rd1;",
            "mov.b64 {%h1, %h2, %h3, %h4}, %fd1;",
            "mov.pred %p1, -1;",
            "mov.b32 %r1, 0f3F800000;",
            "mov.u64 %rd1, g+4;",
            "mov.u64 %rd1, f;",
            "mov.u32 %r1, s;",
            "ld.global.u8 %r1, [%rd1];",
            "ld.global.u8 %h1, [g];",
            "ld.global.s8 %rd1, [%rd1+8];",
            "ld.shared.f32 %r1, [s+4];",
            "ld.b32 %f1, [%rd1];",
            "ld.param.u64 %rd1, [in];",
            "ld.const.u32 %r1, [c];",
            "st.global.u8 [%rd1], %r1;",
            "st.global.u32 [%rd1], 7;",
            "ld.global.v4.f32 {%f1, _, %f2, %f3}, [%rd1];",
            "st.global.v2.u64 [%rd1], {%rd2, 5};",
            "cvt.u32.u8 %r1, %r2;",
            "cvt.u16.u32 %h1, %r1;",
            "cvt.rn.f16.f32 %h1, %f1;",
            "cvt.f32.f16 %f1, %h1;",
            "fma.rn.f16x2 %r1, %r2, %r3, %r4;",
            "fma.rn.bf16 %h1, %h2, %h3, %h4;",
            "setp.eq.s32 %p1|%p2, %r1, 0;",
            "setp.eq.and.s32 _|%p2, %r1, 0, !%p1;",
            "selp.f32 %f1, %f2, 0f00000000, %p1;",
            "atom.global.add.u32 _, [%rd1], 1;",
            "atom.shared.cas.b64 %rd1, [s], %rd2, %rd3;",
            "red.global.add.f32 [%rd1], %f1;",
            "bar.sync 0, 64;",
            "bar.sync %r1;",
            "bar.red.and.pred %p1, 0, !%p2;",
            "shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;",
            "vote.sync.all.pred %p1, !%p2, -1;",
            "isspacep.global %p1, %rd1;",
            "shl.b64 %rd1, %rd2, 70;",
            "add.f64 %fd1, %fd2, 1.5;",
            "add.f32 %f1, %f2, 1.5;",
            "{ .param .b32 a; .param .b64 b; .param .b32 q; call (q), f, (a, b); }",
            "{ .param .b32 q; call (q), f, (%r1, %rd1); }",
            "call (%r1), r, (5);",
            "call v;",
            "P: .callprototype _ (.param .b64 _); { .param .b64 a; call %rd1, (a), P; }",
            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2}];",
            "{ .shared .u32 x[4]; st.shared.u32 [x+4], %r1; }",
        ],
    )
    def test_statement(self, body):
        assert in_kernel(body) == []


class TestOperands:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("add.s32 %r1, %r2;", "takes three operands, 2 given"),
            ("add.s32 %r1, %r2, %r3, %r4;", "takes three operands, 4 given"),
            ("ret %r1;", "takes no operand, 1 given"),
            ("bar.sync;", "takes one operand to 2, 0 given"),
            ("add.s32 5, %r2, %r3;", "the destination of add.s32 is a register, not 5"),
            ("add.s32 %tid.x, %r2, %r3;", "is a register, not '%tid.x'"),
            ("add.s32 _, %r2, %r3;", "cannot discard its result"),
            ("add.s32 %r1, [%rd1], %r3;", "a register or a constant, not an address"),
            ("add.s32 %r1, {%r1, %r2}, %r3;", "not a vector of 2"),
            ("add.s32 %r1, !%p1, %r3;", "not '!%p1'"),
            ("add.s32 %r1, -%r2, %r3;", "not '-%r2'"),
            ("add.s32 %r1|%p1, %r2, %r3;", "not a pair"),
            ("add.s32 %r1, %r2, %rd1;", "'%rd1' is .b64, add.s32 takes .s32 here"),
            ("add.s32 %f1, %r2, %r3;", "'%f1' is .f32, add.s32 takes .s32 here"),
            ("add.f32 %f1, %f2, 1;", "takes a floating-point constant"),
            ("add.f64 %fd1, %fd2, 0f3F800000;", "takes a 64-bit constant"),
            ("add.s32 %r1, %r2, 0f3F800000;", "takes an integer constant"),
            ("add.s32 %r1, %r2, 1.5;", "takes an integer constant"),
            ("mov.b16 %h1, 1.5;", "takes its bits as an integer"),
            ("add.s16 %h1, %h2, %tid.x;", None),
            ("add.u64 %rd1, %rd2, %tid.x;", "'%tid.x' is .u32, add.u64 takes .u64"),
            ("add.f32 %f1, %f2, %tid.x;", "takes .f32"),
            ("and.pred %p1, %p2, %r1;", "'%r1' is .b32, and.pred takes .pred"),
            ("and.b32 %r1, %r2, %p1;", "'%p1' is .pred"),
            ("shl.b64 %rd1, %rd2, %rd3;", "'%rd3' is .b64, shl.b64 takes .u32"),
            ("mul.wide.s32 %r1, %r2, %r3;", "takes .s64 here"),
            ("setp.eq.s32 %r1, %r2, %r3;", "takes .pred here"),
            ("setp.eq.s32 %p1|%r1, %r2, %r3;", "'%r1' after '|' is no predicate"),
            ("setp.eq.and.s32 %p1, %r2, %r3, %r4;", "takes a predicate, not '%r4'"),
            ("selp.b32 %r1, %r2, %r3, 1;", "takes a predicate, not 1"),
            ("@%r1 mov.u32 %r2, 1;", "the guard '%r1' is no predicate"),
            ("mov.u32 %f1, %r1;", "'%f1' is .f32, mov.u32 takes .u32"),
            ("mov.b32 %r1, {%r1, %r2};", "'%r1' is .b32, mov.b32 takes .b16"),
            ("mov.u32 %r1, {%h1, %h2};", "cannot move 2 elements"),
            ("mov.b64 %rd1, {%h1, %h2, %h3};", "cannot move 3 elements"),
            ("mov.b64 {%r1, %r2}, {%r3, %r4};", "does not take two vectors"),
            ("mov.b64 %rd1, {%r1, _};", "'_' cannot be packed"),
            ("mov.pred %p1, !%p2;", "use not.pred"),
            ("mov.u16 %h1, g;", "cannot take the address of 'g'"),
            ("L: mov.u64 %rd1, L;", "'L' is a label or list"),
            ("ld.global.u32 %r1, %rd1;", "takes an address in [ ]"),
            ("ld.global.u32 {%r1, %r2}, [%rd1];", "takes one register, not a vector"),
            ("ld.global.v4.u32 {%r1, %r2}, [%rd1];", "takes a vector of 4, not a vector of 2"),
            ("ld.global.v2.u32 %r1, [%rd1];", "takes a vector of 2, not '%r1'"),
            ("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];", "more than 16 bytes"),
            ("ld.global.u32 %h1, [%rd1];", "'%h1' is .b16, ld.global.u32 takes .u32"),
            ("ld.global.f32 %rd1, [%rd1];", None),
            ("ld.global.f32 %fd1, [%rd1];", "'%fd1' is .f64"),
            ("ld.global.u32 %r1, [%f1];", "cannot hold an address"),
            ("ld.global.u32 %r1, [%rd1+4294967296];", "does not fit in 32 bits"),
            ("ld.global.u32 %r1, [s];", "'s' is in .shared, not in .global"),
            ("ld.shared.u32 %r1, [g];", "'g' is in .global, not in .shared"),
            ("ld.u32 %r1, [in];", "'in' is in .param, which ld.u32 cannot reach"),
            ("ld.global.u32 %r1, [f];", None),
            ("ld.global.u32 %r1, [%rd1, {%r1}];", "takes a plain address"),
            ("st.param.u64 [in], %rd1;", "parameter 'in' can only be read"),
            ("cvt.rna.tf32.f32 %rd1, %f1;", "'%rd1' is .b64"),
            ("cvt.rn.bf16.f32 %r1, %f1;", "'%r1' is .b32"),
            ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "the truth table is 0 to 255, not 256"),
            ("lop3.b32 %r1, %r2, %r3, %r4, %r5;", "takes an integer constant"),
            ("bar.sync 16;", "barrier 16 does not exist"),
            ("bar.sync 0, 33;", "multiple of 32, not 33"),
            ("bra %r1;", "takes a label, not '%r1'"),
            ("bra g;", "label 'g' is not defined here"),
            ("bra nowhere;", "'nowhere' is not declared"),
            ("L: brx.idx %r1, L;", "'L' is no .branchtargets list"),
            ("mov.u32 %r1, %x;", "register '%x' is not declared"),
            ("mov.u64 %rd1, h;", "'h' is not declared"),
            ("mov.f32 %f1, %f2.x;", "'%f2' is no vector"),
            ("mov.u32 %r1, %clusterid.x;", "needs sm_90"),
            ("vote.sync.all.pred %p1, %r1, -1;", "takes a predicate"),
            *MATRICES,
        ],
    )
    def test_refused(self, body, expected):
        problems_found = in_kernel(body)
        if expected is None:
            assert problems_found == []
        else:
            assert [p for p in problems_found if expected in p], problems_found


class TestDeclarations:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (".reg .b32 %r1;", None),
            (".reg .b32 %x, %x;", "'%x' is declared twice"),
            (".reg .b32 %tid;", "is a special register"),
            (".reg .b32 %laneid;", "is a special register"),
            ("L: L: ret;", "label 'L' is defined twice"),
            (".shared .u32 x; .shared .u32 x;", "'x' is declared twice"),
            (".local .u32 x = 5;", "a .local variable takes no initial value"),
            (".local .pred x;", "a predicate is a register only"),
            (".local .u32 x[];", "'x' needs a size"),
            (".local .v4 .f64 x;", "a vector is 16 bytes at most"),
            ("T: .branchtargets L;", "label 'L' is not defined here"),
            ("T: .calltargets nobody;", "function 'nobody' is not declared"),
        ],
    )
    def test_in_a_body(self, text, expected):
        problems_found = in_kernel(text)
        if expected is None:
            assert problems_found == []
        else:
            assert [p for p in problems_found if expected in p], problems_found

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (".global .u8 x = 256;", None),
            (".global .s32 x = 0xFFFFFFFF;", None),
            (".global .u32 x = 1.5;", ".u32 takes integers"),
            (".global .f32 x = 1;", None),
            (".global .u64 x = y;", "'y' is not declared"),
            (".global .u8 x = x;", ".u8 cannot hold the address"),
            (".global .u8 x[2] = {0xFF(y), 1};", "'y' is not declared"),
            (".shared .u32 x = 5;", "takes no initial value"),
            (".extern .global .u32 x = 5;", "takes no initial value"),
            (".extern .global .u32 x; .global .u32 x = 5;", None),
            (".global .u32 x; .global .u32 x;", "'x' is declared twice"),
            (".global .u32 x; .func x;", "'x' is a variable already"),
            (".func x; .global .u32 x;", "'x' is a function already"),
            (".local .u32 x;", "no place at module scope"),
            (".shared .attribute(.managed) .u32 x;", "can be managed"),
            (".const .b8 x[65537];", "65537 bytes of .const"),
            (".shared .b8 x[49153];", "49153 bytes of static .shared"),
            (".global .u32 x[];", "'x' needs a size"),
            (".func f; .func f () { ret; }", None),
            (".func f () {} .func f () {}", "'f' is defined twice"),
            (".func f; .func f (.param .b32 a) { ret; }", "does not agree"),
            (".func f; .entry f () { ret; }", "does not agree"),
            (".func f; .alias g, f;", "'f' is no function defined here"),
            (".func f () {} .func g; .alias g, f;", None),
            (".entry f () {} .alias g, f;", "'f' is no function defined here"),
            (".weak .func f () {} .alias g, f;", "'f' is weak"),
            (".func f () {} .func g (.param .b32 a); .alias g, f;", "'g' does not agree"),
            (".func f () {} .func g () {} .alias g, f;", "'g' does not agree"),
            (".func .attribute(.unified(1, 2)) f () {}", ".unified on a function needs sm_90"),
            (".global .attribute(.unified(1, 2)) .u32 x;", ".unified needs sm_90"),
            (".entry k (.param .u32 a, .param .u32 a) { }", "'a' is declared twice"),
            (".entry k (.reg .u32 a) { }", "parameters are in .param"),
            (".entry k (.param .b8 a[32764]) { }", None),
            (".entry k (.param .b8 a[32765]) { }", "32765 bytes of parameters; 32764 fit"),
            (".entry k () .maxntid 1025 { }", "x is 1 to 1024, not 1025"),
            (".entry k () .reqntid 32, 64 { }", "2048 threads"),
            (".entry k () .reqntid 1, 1, 65 { }", "z is 1 to 64"),
            (".entry k () .maxntid 1, 1, 65 { }", None),
            (".entry k () .maxntid 0 { }", "x is 1 to 1024, not 0"),
            (".entry k () .maxntid 8 .reqntid 8 { }", "exclude each other"),
            (".entry k () .maxnreg 300 { }", "1 to 255"),
            (".entry k () .maxnreg 8 .maxnreg 8 { }", "given twice"),
            (".entry k () .reqnctapercluster 2 { }", "needs sm_90"),
            (".func f () .maxntid 8 { }", "for kernels only"),
            (".func (.param .b32 r) f .noreturn;", "without return values"),
        ],
    )
    def test_at_module_scope(self, text, expected):
        problems_found = found(HEADER + text)
        if expected is None:
            assert problems_found == []
        else:
            assert [p for p in problems_found if expected in p], problems_found

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            (".version 7.0 .target sm_80", None),
            (".version 6.0 .target sm_70, debug", None),
            (".version 8.0 .target sm_70 .target sm_80", None),
            (".version 8.0 .target sm_80 .target sm_90", "sm_90 code does not run"),
            (".version 9.9 .target sm_80", "newer than 9.5"),
            (".version 6.5 .target sm_80", "sm_80 needs PTX ISA 7.0"),
            (".version 8.0 .target sm_90", "sm_90 code does not run on the A100"),
            (".version 8.0 .target sm_90a", "sm_90a code does not run"),
            (".version 8.0 .target sm_81", "sm_81 code does not run"),
            (".version 8.0 .target sm_33", "unknown target 'sm_33'"),
            (".version 8.0 .target gfx90a", "unknown target 'gfx90a'"),
            (".version 8.0 .target debug", "one target such as sm_80"),
            (".version 8.0 .target sm_80 .address_size 32", "only 64-bit addresses"),
        ],
    )
    def test_header(self, header, expected):
        problems_found = found(header + "\n")
        if expected is None:
            assert problems_found == []
        else:
            assert [p for p in problems_found if expected in p], problems_found

    def test_parameters_before_ptx_8_1(self):
        text = ".version 8.0\n.target sm_80\n.entry k (.param .b8 a[4353]) { }"
        assert found(text) == ["4353 bytes of parameters; 4352 fit"]

    def test_instructions_newer_than_the_text(self):
        text = kernel_text("redux.sync.add.u32 %r1, %r2, -1;", header=".version 7.0 .target sm_75")
        assert ["needs sm_80; the text's target is sm_75" in p for p in found(text)] == [True]
        text = kernel_text("bmsk.clamp.b32 %r1, 1, 2;", header=".version 7.0 .target sm_80")
        assert ["needs PTX ISA 7.6; the text is 7.0" in p for p in found(text)] == [True]

    @pytest.mark.parametrize(
        ("line", "header", "expected"),
        [
            ("shfl.up.b32 %r1, %r2, 1, 0;", ".version 7.0 .target sm_80", "not in PTX ISA 6.4"),
            ("vote.ballot.b32 %r1, %p1;", ".version 6.4 .target sm_70", "for sm_70 and later"),
            ("vote.all.pred %p1, %p2;", ".version 6.3 .target sm_70", ""),
            ("shfl.idx.b32 %r1|%p1, %r2, 1, 31;", ".version 7.0 .target sm_60", ""),
        ],
    )
    def test_instructions_that_later_versions_lack(self, line, header, expected):
        problems = found(kernel_text(line, header=header))
        assert [expected in p for p in problems] == ([True] if expected else [])

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("mov.v2.b32 {%r1, %r2}, {%r3, %r4};", ""),
            ("mov.v4.b32 {%r1, %r2}, {%r3, %r4};", "moves 4 elements on both sides"),
            ("mov.v2.b32 {%r1, %r2}, %rd1;", "moves 2 elements on both sides"),
            ("mov.v4.b64 {%rd1, %rd2, %rd3, %rd4}, {%rd1, %rd2, %rd3, %rd4};", "wider than 128"),
            ("mov.v2.f32 {%r1, %r2}, {%rd3, %rd4};", "takes .f32 here"),
        ],
    )
    def test_moves_of_vectors(self, line, expected):
        problems = found(kernel_text(line))
        assert all(expected in p for p in problems)
        assert bool(problems) == bool(expected)

    @pytest.mark.parametrize(
        ("word", "version", "expected"),
        [
            ("sync.aligned", "6.3", ""),
            ("sync.aligned", "6.2", "needs PTX ISA 6.3"),
            ("sync", "6.2", ""),
            ("sync", "6.3", "not in PTX ISA 6.3"),
            ("sync.aligned", "6.5", "not in PTX ISA 6.5"),
        ],
    )
    def test_matrix_words_that_came_and_went(self, word, version, expected):
        a, c = (f"{{{', '.join(f'%{r}{i}' for i in range(n))}}}" for r, n in (("r", 8), ("f", 8)))
        end = "" if expected.endswith("6.3") else ".satfinite"
        line = f"wmma.mma.{word}.row.col.m16n16k16.f32.f32{end} {c}, {a}, {a}, {c};"
        problems = found(kernel_text(line, header=f".version {version} .target sm_70"))
        assert [expected in p for p in problems] == ([True] if expected else [])


class TestCalls:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ("call nobody;", "'nobody' is not declared"),
            ("call g;", "'g' is no function"),
            ("call k;", "is a kernel"),
            ("call f;", "'f' has 2 arguments, 0 given"),
            ("{ .param .b32 a; .param .b64 b; call f, (a, b); }", "has 1 return value, 0 given"),
            ("{ .param .b64 a; .param .b64 b; .param .b32 q; call (q), f, (a, b); }",
             "argument 1 of 'f': .b64 (8 bytes) is given, .b32 (4 bytes) is wanted"),
            ("{ .param .b64 b; .param .b32 q; call (q), f, (%f1, b); }", None),
            ("{ .param .b64 b; .param .b32 q; call (q), f, (%h1, b); }", "'%h1' is .b16"),
            ("call (%rd1), r, (5);", "'%rd1' is .b64"),
            ("call %rd1, (5);", "names a .callprototype"),
            ("call %f1, (5), P; P: .callprototype _ (.param .b32 _);", "cannot hold a function"),
            ("L: call %rd1, (5), L;", "is no .callprototype"),
            ("P: .callprototype _ (.param .b32 _); call %rd1, (5, 6), P;", "1 argument, 2 given"),
            ("P: .callprototype _ (.param .b32 _, .param .b8 _[]); call %rd1, (5), P;", None),
            ("P: .callprototype _ (.param .b32 _, .param .b8 _[]); { .param .b8 v[9]; "
             "call %rd1, (5, v), P; }", None),
            ("P: .callprototype _ (.param .b32 _, .param .b8 _[]); call %rd1, P;", "0 given"),
        ],
    )  # fmt: skip
    def test_signature(self, body, expected):
        problems_found = in_kernel(body)
        if expected is None:
            assert problems_found == []
        else:
            assert [p for p in problems_found if expected in p], problems_found


class TestErrors:
    def test_verify_raises_the_first(self):
        module = parse(kernel_text("mov.u32 %r1, %x;\naddd.s32 %r1, %r1, 1;"))
        with pytest.raises(PtxVerifyError) as caught:
            verify(module)
        assert "'%x'" in caught.value.problem
        assert caught.value.source_line == "mov.u32 %r1, %x;"

    def test_problems_come_in_order_of_place_and_once(self):
        module = parse(kernel_text("add.s32 %r1, %x, %x;\nmov.u32 %y, 1;\nfoo;"))
        lines = [error.line for error in problems(module)]
        assert lines == sorted(lines)
        assert [e.problem for e in problems(module)] == [
            "register '%x' is not declared",
            "register '%y' is not declared",
            "unknown instruction 'foo'",
        ]

    def test_a_clean_module_passes(self):
        assert verify(parse(kernel_text("ret;"))) is None


class TestUnsupported:
    TEXT = (
        HEADER
        + """
.func inner () { .reg .u32 %a; suq.width.b32 %a, [%a+4]; ret; }
.func outer () { call inner; ret; }
.func taken () { .reg .u32 %a; suq.height.b32 %a, [%a+4]; ret; }
.func untouched () { .reg .u32 %a; suq.depth.b32 %a, [%a+4]; ret; }
.alias other, outer;
.global .u64 table[1] = {taken};
.entry direct () { call other; ret; }
.entry indirect () { .reg .u64 %f; P: .callprototype _ (); call %f, P; ret; }
.entry clean () { ret; }
"""
    )

    def operations(self, name):
        module = parse(self.TEXT)
        assert found(self.TEXT) == []
        kernel = next(k for k in module.kernels if k.name == name)
        errors = unsupported(module, kernel)
        assert all(isinstance(e, UnsupportedInstruction) and e.line for e in errors)
        return [error.problem.split("'")[1] for error in errors]

    def test_through_calls_and_aliases(self):
        assert self.operations("direct") == ["suq.width.b32"]

    def test_indirect_calls_reach_functions_whose_address_is_taken(self):
        assert self.operations("indirect") == ["suq.height.b32"]

    def test_nothing(self):
        assert self.operations("clean") == []

    def test_registers_that_are_only_parsed(self):
        body = ".reg .u64 %a; mov.u64 %a, %perctamemoryoffset; ret;"
        module = parse(f"{HEADER}.entry k () .minperctamemory 64 {{ {body} }}")
        assert problems(module) == []
        (error,) = unsupported(module, module.kernels[0])
        assert "reads %perctamemoryoffset" in error.hint

    def test_recursion_ends(self):
        module = parse(HEADER + ".func f; .func f () { call f; ret; } .entry k () { call f; }")
        assert [f.name for f in reachable(module, module.kernels[0])] == ["k", "f"]
