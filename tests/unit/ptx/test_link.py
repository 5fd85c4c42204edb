"""Linking: who wins, what stays apart, what is missing, and that lines keep their sources."""

from __future__ import annotations

import pytest

from tests.helpers.linked_texts import CALLEE, CALLER
from tests.helpers.ptx_trees import HEADER
from va100.errors import LinkError
from va100.ptx.link import link, needs_linking, require_resolved
from va100.ptx.parser import parse
from va100.ptx.program import Function, Instruction, Location, Symbol
from va100.ptx.verify import instructions_of, verify


def joined(*texts, header=HEADER):
    modules = [
        parse(header + text, f"{name}.ptx") for name, text in zip("abcd", texts, strict=False)
    ]
    module = link(modules)
    verify(module)
    return module


def variable(module, name):
    (found,) = [v for v in module.variables if v.name == name]
    return found


def function(module, name):
    (found,) = [f for f in module.functions if f.name == name and f.body is not None]
    return found


def values(module, name):
    return [e.value for e in variable(module, name).initializer.elements]


def called(module, name):
    body = function(module, name).body
    return [i.operands[1].name for i in instructions_of(body) if i.opcode == "call"]


class TestLink:
    @pytest.mark.parametrize("texts", [(CALLER, CALLEE), (CALLEE, CALLER)])
    def test_declarations_find_their_definitions(self, texts):
        module = joined(*texts)
        assert called(module, "k") == ["twice"]
        assert function(module, "twice").linkage == "visible"
        assert variable(module, "table").size_bytes == 8

    def test_lines_of_the_first_module_keep_their_numbers(self):
        module = joined(CALLER, CALLEE)
        alone = parse(HEADER + CALLER)
        place = function(module, "k").span.start
        assert module.line_of(place) == alone.line_of(function(alone, "k").span.start)

    def test_takes_the_newest_version_and_target(self):
        first = parse(".version 7.0\n.target sm_70\n.address_size 64\n")
        second = parse(".version 8.2\n.target sm_80, debug\n.address_size 64\n.global .u32 g;")
        module = link([first, second])
        assert module.version == (8, 2)
        assert module.target == ("sm_80", "debug")

    def test_a_module_alone_stays_as_it_is(self):
        text = HEADER + CALLEE
        assert link([parse(text)]).source == text

    def test_linking_again_changes_nothing(self):
        once = joined(CALLER, CALLEE)
        assert link([once]).source == once.source


class TestPrivateNames:
    MODULE = """
.global .u32 mine = {value};
.func add() {{ ret; }}
.visible .entry {kernel}()
{{
    .reg .b32 %r<3>;
    ld.global.u32 %r1, [mine];
    add.s32 %r2, %r1, 1;
    call.uni add;
mine: ret;
}}
"""

    def test_are_kept_apart(self):
        module = joined(
            self.MODULE.format(value=1, kernel="one"), self.MODULE.format(value=2, kernel="two")
        )
        assert values(module, "mine") == [1]
        assert values(module, "mine$2") == [2]
        assert called(module, "one") == ["add"]
        assert called(module, "two") == ["add$2"]

    def test_opcodes_of_the_same_spelling_are_none(self):
        module = joined(
            self.MODULE.format(value=1, kernel="one"), self.MODULE.format(value=2, kernel="two")
        )
        body = function(module, "two").body
        assert [i.op for i in instructions_of(body)][1] == "add.s32"

    def test_give_way_to_a_shared_one(self):
        module = joined(".visible .global .u32 n = 1;", ".global .u32 n = 2;")
        assert values(module, "n") == [1]
        assert values(module, "n$2") == [2]

    def test_strings_are_left_alone(self):
        private = '.global .u32 name = 1;\n.file 1 "name"\n'
        module = joined(private, private.replace('1 "name"', '1 "name "'))
        assert set(module.files.values()) == {"name", "name "}


class TestWeakAndCommon:
    WEAK = ".weak .global .u32 w = {};\n.weak .func f() {{ .reg .b32 %r<{}>; ret; }}"

    def test_the_first_weak_one_is_taken(self):
        module = joined(self.WEAK.format(1, 1), self.WEAK.format(2, 2))
        assert values(module, "w") == [1]
        assert len([f for f in module.functions if f.name == "f"]) == 1

    @pytest.mark.parametrize("turned", [False, True])
    def test_a_visible_one_overrides(self, turned):
        texts = [self.WEAK.format(1, 1), ".visible .global .u32 w = 2;"]
        assert values(joined(*(reversed(texts) if turned else texts)), "w") == [2]

    def test_the_largest_common_one_is_taken(self):
        module = joined(".common .global .b32 c[4];", ".common .global .b32 c[8];")
        assert variable(module, "c").size_bytes == 32

    def test_a_common_one_with_a_value_is_taken(self):
        module = joined(".common .global .b32 c[2];", ".common .global .b32 c[2] = {7, 8};")
        assert values(module, "c") == [7, 8]

    def test_a_visible_one_overrides_a_common_one(self):
        module = joined(".common .global .b32 c[2];", ".visible .global .b32 c[2] = {7, 8};")
        assert values(module, "c") == [7, 8]

    @pytest.mark.parametrize(
        ("first", "second", "problem"),
        [
            (".common .global .b32 c = 1;", ".common .global .b32 c = 2;", "two initial values"),
            (".common .global .b32 c = 1;", ".common .global .b32 c[2];", "is larger where"),
        ],
    )
    def test_common_ones_that_do_not_fit_are_refused(self, first, second, problem):
        with pytest.raises(LinkError, match=problem):
            joined(first, second)


class TestSharedMemory:
    def test_dynamic_arrays_are_one_with_the_greatest_alignment(self):
        module = joined(
            ".extern .shared .align 4 .b8 s[];",
            ".extern .shared .align 16 .b8 s[];\n.extern .shared .b8 other[];",
        )
        assert variable(module, "s").alignment_bytes == 16
        assert variable(module, "other").size_bytes == 0

    def test_a_sized_one_needs_a_definition(self):
        use = ".extern .shared .b32 s[4];\n.visible .entry k() { .reg .b32 %r; mov.u32 %r, s; }"
        assert variable(joined(use, ".visible .shared .b32 s[4];"), "s").linkage == "visible"
        with pytest.raises(LinkError, match="`s` is used"):
            joined(use)


class TestAlias:
    TEXT = """
.visible .func real() { ret; }
.visible .func other();
.alias other, real;
"""
    USE = ".extern .func other();\n.visible .entry k() { call.uni other; }"

    def test_calls_reach_the_function(self):
        assert called(joined(self.USE, self.TEXT), "k") == ["real"]

    def test_of_an_alias(self):
        chain = self.TEXT + ".visible .func third();\n.alias third, other;"
        use = self.USE.replace("other", "third")
        assert called(joined(use, chain), "k") == ["real"]

    def test_of_a_private_function_that_is_renamed(self):
        private = self.TEXT.replace(".visible .func real", ".func real")
        module = joined(".func real() { ret; }", private, self.USE)
        assert called(module, "k") == ["real$2"]

    def test_with_a_definition_is_refused(self):
        with pytest.raises(LinkError, match="`other` is defined twice"):
            joined(self.TEXT, ".visible .func other() { ret; }")

    def test_is_a_reason_to_link_one_module(self):
        assert needs_linking(parse(HEADER + self.TEXT))
        assert not needs_linking(parse(HEADER + CALLEE))


class TestErrors:
    def test_a_second_definition_names_both_places(self):
        with pytest.raises(LinkError) as caught:
            joined("\n.visible .func f() { ret; }", "\n\n.visible .func f() { ret; }")
        assert caught.value.symbol == "f"
        assert str(caught.value).splitlines() == [
            "`f` is defined twice",
            "  a.ptx:5: .visible .func f() { ret; }",
            "  b.ptx:6: .visible .func f() { ret; }",
        ]

    def test_two_kernels_of_one_name_are_refused_private_ones_too(self):
        with pytest.raises(LinkError, match="`k` is defined twice"):
            joined(".entry k() { ret; }", ".entry k() { ret; }")

    def test_what_is_missing_is_named_with_its_use(self):
        with pytest.raises(LinkError) as caught:
            joined(CALLER)
        lines = str(caught.value).splitlines()
        assert lines[0] == "`twice` is used, but defined nowhere"
        assert lines[1] == "  a.ptx:17: call.uni (q0), twice, (p0);"
        assert lines[2] == "`table` is used, but defined nowhere"
        assert lines[3] == "  a.ptx:11: mov.u64 %d1, table;"

    def test_many_missing_ones_are_counted(self):
        names = [f"f{i}" for i in range(12)]
        declared = "\n".join(f".extern .func {n}();" for n in names)
        calls = " ".join(f"call.uni {n};" for n in names)
        with pytest.raises(LinkError, match="and 4 more"):
            joined(f"{declared}\n.visible .entry k() {{ {calls} }}")

    def test_what_is_declared_and_not_used_may_be_missing(self):
        joined(".extern .func f();\n.visible .entry k() { ret; }")

    def test_functions_that_come_with_cuda_may_be_missing(self):
        joined(".extern .func (.param .b64 r) malloc (.param .b64 n);")

    @pytest.mark.parametrize(
        ("first", "second", "problem"),
        [
            (".extern .global .u32 v;", ".visible .const .u32 v = 1;", "in .const in one place"),
            (".extern .global .u32 v;", ".visible .func v() { ret; }", "a function in one place"),
            (".extern .global .b32 v[2];", ".visible .global .b32 v[3];", "12 bytes in one place"),
            (".extern .func f();", ".visible .entry f() { ret; }", "is a kernel in one place"),
            (
                ".extern .func f(.param .b64 x);",
                ".visible .func f(.param .b32 x) { ret; }",
                "parameters that do not agree",
            ),
        ],
    )
    def test_what_does_not_agree_is_refused(self, first, second, problem):
        with pytest.raises(LinkError, match=problem):
            joined(first, second)


class TestRequireResolved:
    def test_passes_a_whole_module(self):
        require_resolved(parse(HEADER + CALLEE))

    def test_names_what_is_missing(self):
        with pytest.raises(LinkError, match="`twice` is used, but defined nowhere"):
            require_resolved(parse(HEADER + CALLER, "a.ptx"))


class TestFiles:
    TEXT = """
.file 1 "{own}"
.file 2 "both.h"
.visible .func {name}()
{{
    .loc 1 {line} 3
    .loc 2 7 1, function_name f, inlined_at 1 9 2
    ret;
}}
"""

    def test_lines_still_point_at_their_files(self):
        module = joined(
            self.TEXT.format(own="a.cu", name="f", line=5),
            self.TEXT.format(own="b.cu", name="g", line=6),
        )
        places = {
            f.name: [
                (module.files[s.file], s.line, s.inlined_at and module.files[s.inlined_at[0]])
                for s in f.body
                if isinstance(s, Location)
            ]
            for f in module.functions
        }
        assert places == {
            "f": [("a.cu", 5, None), ("both.h", 7, "a.cu")],
            "g": [("b.cu", 6, None), ("both.h", 7, "b.cu")],
        }
        assert len(module.files) == 3


class TestSeveralVariablesInOneStatement:
    def test_only_the_one_defined_elsewhere_goes(self):
        module = joined(
            ".weak .global .u32 a = 1, b = 2;\n.visible .entry k() { ret; }",
            ".visible .global .u32 a = 3;",
        )
        assert values(module, "a") == [3]
        assert values(module, "b") == [2]


def test_an_address_in_an_initial_value_is_followed():
    module = joined(
        ".global .u64 table[1] = {hidden};\n.func hidden() { ret; }",
        ".global .u64 table[1] = {hidden};\n.func hidden() { ret; }",
    )
    assert variable(module, "table$2").initializer.elements == (Symbol("hidden$2"),)
    assert all(isinstance(f, Function) for f in module.functions)
    assert all(isinstance(s, Instruction) for f in module.functions for s in f.body)
