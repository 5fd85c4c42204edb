"""Text to tree: one test a piece of syntax, and errors that point at the place."""

from __future__ import annotations

import pickle
import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import va100.ptx.body
from tests.helpers.ptx_trees import HEADER, kernel_text
from va100.errors import PtxSyntaxError
from va100.ptx.parser import parse
from va100.ptx.program import (
    Address,
    Alias,
    CallArguments,
    CallPrototype,
    Guard,
    Immediate,
    Initializer,
    Instruction,
    Label,
    Location,
    Negative,
    Not,
    Pair,
    PointerAttribute,
    Pragma,
    Register,
    RegisterDecl,
    Scope,
    Section,
    SourceFile,
    Span,
    Symbol,
    TargetList,
    TextureAddress,
    Vector,
)
from va100.ptx.types import PtxType, Space


def body(text, params=""):
    """The statements of a kernel after the six register declarations it always has."""
    return parse(kernel_text(text, params)).kernels[0].body[6:]


def operands(text):
    (instruction,) = body(text)
    return instruction.operands


def operand(text):
    """One operand, read as a move's source."""
    return operands(f"mov.b64 %rd1, {text};")[1]


def variable(text):
    (found,) = parse(HEADER + text).variables
    return found


def ints(*values):
    return tuple(Immediate(value, "int") for value in values)


def double(value):
    return Immediate(int.from_bytes(struct.pack(">d", value), "big"), "f64")


class TestHeader:
    def test_version_target_and_size(self):
        module = parse(".version 8.7\n.target sm_75, debug\n.address_size 32\n")
        assert (module.version, module.target, module.address_size) == (
            (8, 7),
            ("sm_75", "debug"),
            32,
        )

    def test_address_size_is_64_unless_given(self):
        assert parse(".version 8.7\n.target sm_75").address_size == 64

    def test_trailing_nul_of_a_c_string_is_dropped(self):
        assert parse(HEADER + "\0").items == ()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "expected .version"),
            (".target sm_80", "expected .version before anything else"),
            (".version 9.0\n.entry k {}", "expected .target"),
            (".version 9.0", "expected .target"),
            (".version nine", "expected a version"),
            (".version 9", "expected a version"),
            (".version 9.0 .version 9.0", "given twice"),
            (".version 9.0 .target sm_80 .address_size 48", "neither 32 nor 64"),
            (HEADER + "mov.u32 %r1, 1;", "expected a directive"),
            (HEADER + "@foo", "expected a directive"),
        ],
    )
    def test_refused(self, text, expected):
        with pytest.raises(PtxSyntaxError, match=expected):
            parse(text)


class TestVariables:
    @pytest.mark.parametrize(
        ("text", "shape", "elements"),
        [
            ("x[3] = {1, 2, 3}", (3,), ints(1, 2, 3)),
            ("x[3] = {1}", (3,), ints(1)),
            ("x[] = {4, 5}", (2,), ints(4, 5)),
            ("x[2][2] = {{1}, {2, 3}}", (2, 2), ints(1, 0, 2, 3)),
            ("x[][2] = {{1}, {2, 3}, {4}}", (3, 2), ints(1, 0, 2, 3, 4, 0)),
            ("x[2][2] = {1, 2, 3, 4}", (2, 2), ints(1, 2, 3, 4)),
            ("x[1][2][2] = {{{1}, {}}}", (1, 2, 2), ints(1, 0, 0, 0)),
            ("x = 7", (), ints(7)),
            ("x[2] = {}", (2,), ()),
        ],
    )
    def test_array_initialisers(self, text, shape, elements):
        found = variable(f".global .u32 {text};")
        assert (found.shape, found.initializer) == (shape, Initializer(elements))

    def test_addresses(self):
        module = parse(HEADER + ".global .u32 y; .global .u64 x[5] = {y, y+4, generic(y)+8, "
                       "generic(y+8), y-4};")  # fmt: skip
        assert module.variables[1].initializer.elements == (
            Symbol("y"),
            Symbol("y", 4),
            ("generic", Symbol("y", 8)),
            ("generic", Symbol("y", 8)),
            Symbol("y", -4),
        )

    def test_address_bytes(self):
        found = variable(".global .u8 x = 0xFF00(0x12300 + 0x45);")
        assert found.initializer.elements == ints(0x23)
        found = variable(".global .u8 x[3] = {0xFF(x), 0xFF00(x+4), 0xFF0000(generic(x)+1)};")
        assert found.initializer.elements == (
            (0xFF, Symbol("x")),
            (0xFF00, Symbol("x", 4)),
            (0xFF0000, Symbol("generic(x)", 1)),
        )

    def test_everything_else_about_a_variable(self):
        found = variable(".weak .global .attribute(.managed, .unified(1, 2)) .align 16 .v2 .f32 x;")
        assert found.linkage == "weak"
        assert found.managed
        assert found.attributes == ("unified(1, 2)",)
        assert (found.align, found.vector, found.type) == (16, 2, PtxType.F32)
        assert (found.space, found.size_bytes) == (Space.GLOBAL, 8)

    def test_unsized_and_several_in_one_declaration(self):
        assert variable(".extern .shared .b8 x[];").shape == (0,)
        module = parse(HEADER + ".global .u32 a, b[2] = {1, 2}, c<2>;")
        assert [v.name for v in module.variables] == ["a", "b", "c0", "c1"]

    def test_sampler_settings(self):
        found = variable(".global .samplerref s = {filter_mode = linear, width = 4};")
        assert found.initializer.elements == (
            ("filter_mode", Symbol("linear")),
            ("width", Immediate(4, "int")),
        )

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (".global .u32 x[2] = {1, 2, 3};", "3 values for 2 elements"),
            (".global .align 3 .u32 x;", "no power of two"),
            (".global .u33 x;", "expected a type"),
            (".global .u32 x", "expected ';'"),
            (".global .u32 x[-1];", "negative"),
            (".global .u32 x = {1, };", None),
            (".global .u32 x<99999999>;", "too many"),
            (".global .u32 x[4] = {" + "{" * 100, "too deep"),
            (".global .u8 x[9][99999999] = {{1}, {2}};", "too many"),
            (".visible .extern .global .u32 x;", "only one linking directive"),
            (".global .u32 5;", "expected a variable name"),
            (".global .u8 x = 0xF0(x);", "selects no byte"),
            (".nv_intermediate_source_section { {", "expected '}'"),
        ],
    )
    def test_refused(self, text, expected):
        if expected is None:
            assert variable(text)
            return
        with pytest.raises(PtxSyntaxError, match=expected):
            parse(HEADER + text)


class TestFunctions:
    def test_kernel_parameters(self):
        text = ".param .u64 .ptr .shared .align 8 a, .param .align 4 .b8 b[12], .param .f32 c"
        a, b, c = parse(kernel_text("", text)).kernels[0].params
        assert a.pointer == PointerAttribute(Space.SHARED, 8)
        assert (b.align, b.shape, b.size_bytes) == (4, (12,), 12)
        assert (c.type, c.size_bytes, c.name) == (PtxType.F32, 4, "c")

    def test_directives(self):
        function = parse(HEADER + '.entry k .maxntid 8, 4 .minnctapersm 2 .pragma "x", "y"; {}')
        (kernel,) = function.kernels
        assert kernel.directives == (("maxntid", (8, 4)), ("minnctapersm", (2,)))
        assert kernel.directive("maxntid") == (8, 4)
        assert kernel.directive("reqntid") is None
        assert kernel.pragmas == ("x", "y")

    def test_declarations_and_linkage(self):
        module = parse(
            HEADER + ".extern .func (.param .b32 r) f (.param .b64 a);\n.func g .noreturn;\n"
            ".weak .func h () { ret; }\n.alias i, h;"
        )
        f, g, h = module.functions
        assert (f.linkage, f.body, len(f.returns), len(f.params)) == ("extern", None, 1, 1)
        assert g.directive("noreturn") == ()
        assert (h.linkage, len(h.body)) == ("weak", 1)
        assert module.kernels == ()
        alias = module.items[-1]
        assert isinstance(alias, Alias)
        assert (alias.name, alias.aliasee) == ("i", "h")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (".entry k( { }", "expected .param or .reg"),
            (".entry k(.param .u32) { }", "expected a parameter name"),
            (".entry { }", "expected a function name"),
            (".entry k() .maxntid { }", "expected"),
            (".entry k() foo { }", "expected '{'"),
            (".entry k() {", "expected '}' to end the function"),
            (".entry k() { ret }", "ends in ';'"),
            (".entry k() { ret; ", "expected '}'"),
        ],
    )
    def test_refused(self, text, expected):
        with pytest.raises(PtxSyntaxError, match=expected):
            parse(HEADER + text)


class TestStatements:
    def test_registers(self):
        (found,) = body(".reg .v2 .f32 a<4>, b;")
        assert isinstance(found, RegisterDecl)
        assert (found.type, found.names, found.vector) == (
            PtxType.F32,
            (("a", 4), ("b", None)),
            2,
        )

    def test_instruction_with_guard_and_span(self):
        text = kernel_text("  @!%p1\tld .global.L2::128B.u32 %r1,\n [%rd1 + 4] ;ret;")
        instruction = parse(text).kernels[0].body[6]
        start, end = instruction.span
        assert instruction == Instruction(
            "ld.global.L2::128B.u32",
            (Register("%r1"), Address(Register("%rd1"), 4)),
            Guard("%p1", negated=True),
            Span(start, end),
        )
        assert text[start:end] == "@!%p1\tld .global.L2::128B.u32 %r1,\n [%rd1 + 4] ;"

    def test_label_scope_and_location(self):
        label, scope, plain, inlined = body(
            "$L_1: { ret; }\n.loc 1 2 3\n.loc 1 4 5, function_name $L_1+8, inlined_at 1 2 3\n"
        )
        assert isinstance(label, Label)
        assert isinstance(scope, Scope)
        assert scope.body[0].op == "ret"
        assert isinstance(plain, Location)
        assert (plain.file, plain.line, plain.column, plain.inlined_at) == (1, 2, 3, None)
        assert (inlined.function_name, inlined.inlined_at) == ("$L_1+8", (1, 2, 3))

    @pytest.mark.parametrize(
        "text",
        [
            ".loc 3 166 5, function_name $L__info_string0, inlined_at 2 177 3\n",
            ".loc\t3 166 5 ,function_name $L_1 ,\n inlined_at 2 177 3 \n",
            ".loc 3 166 5, function_name $L_1+16, inlined_at 2 177 3\n",
            ".loc 3 166 5, inlined_at 2 177 3, function_name $L_1\n",
            ".loc 3 166 5\n",
        ],
    )
    def test_locations_are_read_alike_at_once_and_by_token(self, text, monkeypatch):
        read = body(text)
        monkeypatch.setattr(va100.ptx.body, "_LOC", re.compile("(?!)"))
        assert body(text) == read

    def test_tables(self):
        proto, targets = body(
            "p: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn; t: .branchtargets a, b;"
        )
        assert isinstance(proto, CallPrototype)
        assert (len(proto.returns), len(proto.params), proto.noreturn) == (1, 1, True)
        assert isinstance(targets, TargetList)
        assert (targets.kind, targets.targets) == ("branchtargets", ("a", "b"))

    def test_lists_of_numbered_labels(self):
        (targets,) = body("t: .branchtargets N<3>, x;")
        assert targets.targets == ("N0", "N1", "N2", "x")

    def test_intermediate_locations(self):
        (found,) = body(".loc_intermediate 3 100 10\n")
        assert (found.line, found.intermediate) == (100, True)

    def test_embedded_sources_and_language_are_kept(self):
        sources = " {\n.code_block {\n.source_begin\n } at } all\n.source_end\n}\n}"
        module = parse(f"{HEADER}.language CUDA C++\n.nv_intermediate_source_section{sources}\n")
        language, section = module.items
        assert (language.name, language.text) == (".language", " CUDA C++")
        assert (section.name, section.text) == (
            ".nv_intermediate_source_section",
            sources,
        )

    def test_pragma(self):
        (found,) = body('.pragma "nounroll";')
        assert isinstance(found, Pragma)
        assert found.texts == ("nounroll",)

    def test_comments_anywhere(self):
        text = "mov /* a; b */ .u32 // c\n %r1 /**/ , /* \n */ 1 ; // }"
        (found,) = body(text)
        assert (found.op, found.operands[1]) == ("mov.u32", Immediate(1, "int"))

    def test_files_and_sections_are_kept(self):
        module = parse(
            HEADER + '.file 1 "a//b.cu", 5, 6\n.section .debug_str {\n.b8 1 // }\n}\n@@DWARF x y\n'
        )
        file, section, line = module.items
        assert isinstance(file, SourceFile)
        assert (file.path, file.trailer) == ("a//b.cu", (5, 6))
        assert module.files == {1: "a//b.cu"}
        assert isinstance(section, Section)
        assert (section.name, section.text) == (".debug_str", "\n.b8 1 // }\n")
        assert (line.name, line.text) == ("@@DWARF", " x y")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("mov.u32 %r1, 1", "ends in ';'"),
            (".entry k;", "no place in a body"),
            (".loc 1 2;", "expected"),
            (".loc 1 2 3, inlined_by 1 2 3", "no part of .loc"),
            (".pragma nounroll;", "in quotes"),
            ("5;", "expected an instruction"),
            ("mov.u32 %r1, 1;;", None),
            ("{" * 99, "too deep"),
            ("/* for ever", r"expected \*/"),
            (".reg .b32 x<99999999>;", "too many"),
        ],
    )
    def test_refused(self, text, expected):
        with pytest.raises(PtxSyntaxError, match=expected or "expected"):
            body(text)


class TestOperands:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("%rd2", Register("%rd2")),
            ("%tid.x", Register("%tid.x")),
            ("%r1.b0", Register("%r1.b0")),
            ("name", Symbol("name")),
            ("name+8", Symbol("name", 8)),
            ("name - 8", Symbol("name", -8)),
            ("0x1F", Immediate(31, "int")),
            ("017", Immediate(15, "int")),
            ("0b101U", Immediate(5, "int")),
            ("42U", Immediate(42, "int")),
            ("-1", Immediate(-1, "int")),
            ("18446744073709551615", Immediate(2**64 - 1, "int")),
            ("-9223372036854775808", Immediate(-(2**63), "int")),
            ("WARP_SZ", Immediate(32, "int")),
            ("0f3F800000", Immediate(0x3F800000, "f32")),
            ("-0f3F800000", Immediate(0xBF800000, "f32")),
            ("0d3FF0000000000000", Immediate(0x3FF0000000000000, "f64")),
            ("1.5", double(1.5)),
            ("2.5e-3", double(2.5e-3)),
            ("1e3", double(1000.0)),
            ("-.5", double(-0.5)),
            ("{%r1, %r2}", Vector((Register("%r1"), Register("%r2")))),
            ("{_, %r2}", Vector((None, Register("%r2")))),
            ("{ %r1 }", Vector((Register("%r1"),))),
            ("!%p1", Not(Register("%p1"))),
            ("-%r1", Negative(Register("%r1"))),
            ("_", None),
            ("%p1|%p2", Pair(Register("%p1"), Register("%p2"))),
            ("_|%p2", Pair(None, Register("%p2"))),
            ("%p1 | _", Pair(Register("%p1"), None)),
            ("{%f1, _}|%p1", Pair(Vector((Register("%f1"), None)), Register("%p1"))),
        ],
    )
    def test_kinds(self, text, expected):
        assert operand(text) == expected

    @pytest.mark.parametrize(
        ("text", "base", "offset"),
        [
            ("[%rd1]", Register("%rd1"), 0),
            ("[%rd1+4]", Register("%rd1"), 4),
            ("[ %rd1 + 4 ]", Register("%rd1"), 4),
            ("[%rd1+-4]", Register("%rd1"), -4),
            ("[%rd1-4]", Register("%rd1"), -4),
            ("[%rd1+(2*8)]", Register("%rd1"), 16),
            ("[name]", Symbol("name"), 0),
            ("[name+4]", Symbol("name"), 4),
            ("[64]", None, 64),
            ("[0x10+4]", None, 20),
        ],
    )
    def test_addresses(self, text, base, offset):
        assert operand(text) == Address(base, offset)

    def test_texture_addresses(self):
        assert operand("[t, {%f1, %f2}]") == TextureAddress(
            (Symbol("t"), Vector((Register("%f1"), Register("%f2"))))
        )
        assert operand("[%rd1, s, {%f1}]") == TextureAddress(
            (Register("%rd1"), Symbol("s"), Vector((Register("%f1"),)))
        )
        assert operand("[t, %f1]") == TextureAddress((Symbol("t"), Register("%f1")))

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("(1 << 4) | 3", 19),
            ("~0", -1),
            ("!5", 0),
            ("7 / 2 + -7 / 2", 0),
            ("-7 % 3", -1),
            ("1 + 2 * 3 == 7 && 2 > 1", 1),
            ("3 > 4 ? 1 : 2 ? 5 : 6", 5),
            ("(.u64)-1", 2**64 - 1),
            ("(.s64)0xFFFFFFFFFFFFFFFF", -1),
            ("1 << 65", 2),
            ("0xF0 ^ 0xFF & 0x0F", 0xFF),
            ("9223372036854775807 * 4", -4),
        ],
    )
    def test_constant_expressions(self, text, value):
        assert operand(text) == Immediate(value, "int")

    def test_floating_expressions(self):
        assert operand("1.0 / 4.0 + 2") == double(2.25)
        assert operand("1.5 < 2.0") == Immediate(1, "int")

    def test_bare_names_are_registers_while_they_are_declared(self):
        outer, scope, after = body("mov.u32 x, 1; { .reg .u32 x; mov.u32 x, x; } mov.u32 x, 2;")
        assert outer.operands[0] == Symbol("x")
        assert scope.body[1].operands == (Register("x"), Register("x"))
        assert after.operands[0] == Symbol("x")

    def test_the_first_element_of_an_array_is_where_the_array_is(self):
        (taken,) = body("mov.u64 %rd1, local[0];")
        assert taken.operands == (Register("%rd1"), Symbol("local"))

    def test_bare_register_ranges_and_components(self):
        statements = body(".reg .v2 .f32 v; .reg .b32 r<3>; mov.b32 r2, r3; mov.f32 %f1, v.y;")
        assert statements[2].operands == (Register("r2"), Symbol("r3"))
        assert statements[3].operands[1] == Register("v.y")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("call f;", (None, Symbol("f"), CallArguments(()), None)),
            ("call f, ();", (None, Symbol("f"), CallArguments(()), None)),
            (
                "call.uni (%r1), f, (%r2, 3);",
                (
                    CallArguments((Register("%r1"),)),
                    Symbol("f"),
                    CallArguments((Register("%r2"), Immediate(3, "int"))),
                    None,
                ),
            ),
            (
                "call (a), %rd1, (b), proto;",
                (
                    CallArguments((Symbol("a"),)),
                    Register("%rd1"),
                    CallArguments((Symbol("b"),)),
                    Symbol("proto"),
                ),
            ),
            ("call %rd1, proto;", (None, Register("%rd1"), CallArguments(()), Symbol("proto"))),
        ],
    )
    def test_calls_have_four_places(self, text, expected):
        assert operands(text) == expected

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "expected an operand"),
            ("%r1 %r2", "unexpected '%r2'"),
            ("{%r1", "'}'"),
            ("[%rd1", "']'"),
            ("%r1]", "unexpected ']'"),
            ("{%r1]}", "without its opening"),
            ("99999999999999999999", "64 bits"),
            ("0x1FFFFFFFFFFFFFFFFF", "64 bits"),
            ("09", "64 bits"),
            ("0f3F80", "64 bits"),
            ("1 / 0", "division by zero"),
            ("1 << 1.5", "wants integers"),
            ("(" * 99, r"'\)'"),
            ("(" * 99 + "1" + ")" * 99, "too deep"),
            ("[1.5]", "an address is an integer"),
            ("[x+1.5]", "an offset is an integer"),
            ("x[4]", "array indexing is not taken"),
            ("x[0] 1", "unexpected '1'"),
            ("[%rd1].unified", "needs sm_90"),
            ("{[%rd1], %r1}", "registers and constants only"),
            ("(1 ? 2)", "expected ':'"),
            ("(1", r"'\)'"),
            ("[%p1|%p2, %r1]", "expected names"),
        ],
    )
    def test_refused(self, text, expected):
        with pytest.raises(PtxSyntaxError, match=expected):
            operand(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("call;", "expected"),
            ("call (a);", "expected the name"),
            ("call 5, (a);", "expected a function name or a register"),
            ("call f, (a), 5;", "prototype"),
            ("call f, (a), p, q;", "expected ';'"),
            ("call f, (a) b;", r"expected '\)'"),
        ],
    )
    def test_calls_refused(self, text, expected):
        with pytest.raises(PtxSyntaxError, match=expected):
            operands(text)


class TestErrors:
    def test_the_caret_is_under_the_place(self):
        text = kernel_text("add.s32 %r1,\n\t%r2, %r3 %r4;")
        with pytest.raises(PtxSyntaxError) as caught:
            parse(text, "k.ptx")
        error = caught.value
        assert error.file == "k.ptx"
        assert error.source_line == "\t%r2, %r3 %r4;"
        assert error.column == 1 + error.source_line.index("%r4")
        assert text.splitlines()[error.line - 1] == error.source_line
        caret = str(error).splitlines()[2]
        shown = str(error).splitlines()[1]
        assert shown[caret.index("^") :].startswith("%r4")

    def test_windows_line_ends(self):
        module = parse(HEADER.replace("\n", "\r\n") + ".entry k() {\r\n ret;\r\n}\r\n")
        assert module.kernels[0].body[0].op == "ret"

    def test_errors_cross_processes(self):
        with pytest.raises(PtxSyntaxError) as caught:
            parse(".version x")
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.line) == (str(caught.value), 1)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_parses_or_is_refused(text):
    for candidate in (text, HEADER + text, kernel_text(text)):
        try:
            parse(candidate)
        except PtxSyntaxError as error:
            assert error.line > 0


def test_reading_is_linear_in_a_missing_semicolon():
    """A long text without its semicolons must not make the regular expressions backtrack."""
    with pytest.raises(PtxSyntaxError):
        parse(kernel_text("mov.u32 %r1, 1   \n" * 20_000))
