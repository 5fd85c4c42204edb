"""What a process writes while it runs, and how it is read back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.checking import bench
from va100.check.session import read_findings

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 n)
{
    .reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    ld.param.u32 %r2, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra DONE;
    mul.wide.u32 %d2, %r1, 4;
    add.s64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r1;
DONE:
    ret;
}
"""


def test_findings_are_written_after_each_launch(tmp_path):
    path = tmp_path / "findings"
    with bench(PTX, ["memcheck"]) as made:
        made.session.write_to(path)
        out = made.buffer(100)
        made.run("store", (1,), (64,), out, np.uint32(25))
        assert not path.exists()
        made.run("store", (1,), (64,), out, np.uint32(27))
        found, ended = read_findings(path)
        assert [(f.kind, f.count) for f in found] == [("out-of-bounds", 2)]
        assert not ended
        made.run("store", (1,), (64,), out, np.uint32(26))
        made.session.finish()
    found, ended = read_findings(path)
    assert ended
    assert [(f.kind, f.count) for f in found] == [("out-of-bounds", 3), ("leak", 1)]
    assert found[0].first.thread == (25, 0, 0)
    assert found[1].size_bytes == 100


def test_only_the_tools_asked_for_speak():
    with bench(PTX, ["racecheck"]) as made:
        made.run("store", (1,), (64,), made.buffer(4), np.uint32(2))
        assert made.found() == []


def test_a_line_cut_off_is_left_out(tmp_path, stray):
    path = tmp_path / "findings"
    line = json.dumps({"type": "finding", **stray.as_json()})
    path.write_text(line + "\n" + line[:50])
    assert read_findings(path) == ([stray], False)


def test_no_file_is_no_finding(tmp_path):
    assert read_findings(tmp_path / "none") == ([], False)


@pytest.mark.parametrize("count", [1, 64])
def test_a_store_in_bounds_is_silent(count):
    with bench(PTX) as made:
        made.run("store", (1,), (64,), made.buffer(4 * count), np.uint32(count))
        assert made.found() == []


def test_launches_that_were_not_asked_for(tmp_path, stray):
    path = tmp_path / "findings"
    entries = [{"type": "finding", **replace(stray, launch=k).as_json()} for k in (0, 1, 2, 3)]
    path.write_text("".join(json.dumps(e) + "\n" for e in entries))
    counts = {
        (first, last): sum(
            f.count for f in read_findings(path, first_launch=first, last_launch=last)[0]
        )
        for first, last in ((1, 0), (2, 0), (2, 2), (4, 0))
    }
    assert counts == {(1, 0): 4, (2, 0): 3, (2, 2): 2, (4, 0): 1}
