"""``va100 ptx`` from its arguments to what it prints and returns."""

from __future__ import annotations

import argparse
import io
import json

import pytest

from tests.helpers.ptx_corpus import GOLDEN
from tests.helpers.ptx_trees import kernel_text
from va100.cli import ptx

GOOD = kernel_text("@%p1 bra L; add.s32 %r1, %r2, 1; L: ret;", ".param .u64 data")
SLIP = kernel_text("add.s32 %r1, %r2 %r3;")
BROKEN = kernel_text("add.s32 %r1, %r2;\nfoo %r1;")


@pytest.fixture
def run(tmp_path, capsys):
    """Run the verb on texts; gives status, output, errors."""

    def go(*arguments, **texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.ptx").write_text(text)
        parser = argparse.ArgumentParser()
        ptx.add_parser(parser.add_subparsers())
        names = [a.replace("@", f"{tmp_path}/") for a in arguments]
        status = ptx.run(parser.parse_args(["ptx", *names]))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return go


def test_summary(run):
    status, out, err = run("@a.ptx", a=GOOD)
    assert (status, err) == (0, "")
    assert "PTX ISA 9.0 for sm_80" in out
    assert "kernel k (line 5)" in out
    assert "parameter .u64 data" in out
    assert "3 in 3 blocks: 2 control, 1 integer" in out


def test_golden_summary_names_what_is_not_executed(run):
    status, out, _ = run(str(GOLDEN / "syntax.ptx"))
    assert status == 0
    assert "not executed yet: tex.2d.v4.f32.f32 (line 117)" in out
    assert "needs from elsewhere: external, nothing" in out
    assert ".u32 shared_with_host (managed)" in out


@pytest.mark.parametrize("flag", [(), ("--verify",), ("--print",), ("--cfg",), ("--coverage",)])
def test_bad_text_shows_a_caret(run, flag):
    status, out, err = run("@a.ptx", *flag, a=SLIP)
    assert (status, out) == (1, "")
    lines = err.splitlines()
    assert lines[0].endswith("unexpected '%r3' in operand")
    assert lines[2].index("^") == lines[1].index("%r3")


def test_every_problem_is_listed(run):
    status, out, err = run("@a.ptx", "--verify", a=BROKEN)
    assert (status, out) == (1, "")
    assert "takes three operands, 2 given" in err
    assert "unknown instruction 'foo'" in err


def test_verify_says_so_when_all_is_well(run):
    status, out, _ = run("@a.ptx", "--verify", a=GOOD)
    assert (status, out.endswith("a.ptx: keeps the rules\n")) == (0, True)


def test_print_gives_text_that_prints_the_same(run):
    _, out, _ = run("@a.ptx", "--print", a=GOOD)
    assert run("@b.ptx", "--print", b=out)[1] == out


def test_blocks(run):
    assert "block 0 -> 2, 1" in run("@a.ptx", "--cfg", a=GOOD)[1]
    assert "b0 -> b2;" in run("@a.ptx", "--dot", a=GOOD)[1]


def test_coverage_of_a_text_and_of_everything(run):
    _, out, _ = run("@a.ptx", "--coverage", a=GOOD)
    assert "3 forms, 3 executed" in out
    assert "add{.sat}.s32  e.g. add.s32" in out
    status, out, _ = run("--coverage")
    assert status == 0
    assert "refused" in out
    assert "fence{.{sc,acq_rel}}.{cta,gpu,sys}" in out
    forms = json.loads(run("--coverage", "--json")[1])
    assert {"id", "family", "form", "since", "min_sm", "support"} == set(forms[0])


def test_json(run):
    status, out, _ = run("@a.ptx", "@b.ptx", "@c.ptx", "--json", a=GOOD, b=BROKEN, c=SLIP)
    good, broken, slip = json.loads(out)
    assert status == 1
    (function,) = good["functions"]
    assert function["params"][0]["name"] == "data"
    assert function["families"] == {"control": 2, "integer": 1}
    assert [block["successors"] for block in function["blocks"]] == [[2, 1], [2], []]
    assert good["problems"] == []
    assert [p["line"] for p in broken["problems"]] == [13, 14]
    assert slip["problems"][0]["column"] == 18


def test_standard_input(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SLIP.encode())))
    status, _, err = run("-")
    assert status == 1
    assert err.startswith("<stdin>:13:18: ")


def test_missing_file_is_2_and_the_others_are_still_shown(run):
    status, out, err = run("@none.ptx", "@a.ptx", a=GOOD)
    assert status == 2
    assert "No such file" in err
    assert "kernel k" in out


def test_nothing_to_read_is_2(run):
    assert run()[0] == 2


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\x7fELF\x02", "ELF image"), (b"\x50\xed\x55\xba\x01", "fatbin"), (b"\xff\xfe", "no text")],
)
def test_binaries_are_named(run, tmp_path, data, expected):
    (tmp_path / "x.bin").write_bytes(data)
    status, _, err = run("@x.bin")
    assert status == 1
    assert expected in err
