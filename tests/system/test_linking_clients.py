"""Python libraries that link: they find our linker, whether or not NVIDIA's is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.linked_texts import CALLEE, CALLER
from tests.helpers.ptx_trees import HEADER

CLIENTS = Path(__file__).parent / "clients"
LIMIT_S = 300

MULTIPLY = """
.visible .func (.param .b32 r) mul_ext(.param .b64 out, .param .b32 a, .param .b32 b)
{
    .reg .b32 %r<4>;
    .reg .b64 %d;
    ld.param.u32 %r1, [a];
    ld.param.u32 %r2, [b];
    ld.param.u64 %d, [out];
    mul.lo.s32 %r3, %r1, %r2;
    st.u32 [%d], %r3;
    st.param.b32 [r], 0;
    ret;
}
"""


def run(*words):
    command = [sys.executable, "-m", "va100.cli", "run", "--quiet", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


def test_cuda_core(tmp_path):
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    texts = [tmp_path / "caller.ptx", tmp_path / "callee.ptx"]
    for path, text in zip(texts, (CALLER, CALLEE), strict=True):
        path.write_text(HEADER + text)
    lines = run(CLIENTS / "cuda_core_link.py", *texts).stdout.splitlines()
    assert lines[0] == "4"
    assert lines[1].endswith("`twice` is used, but defined nowhere")


def test_numba(tmp_path):
    pytest.importorskip("numba.cuda", reason="needs numba-cuda")
    text = tmp_path / "multiply.ptx"
    text.write_text(HEADER + MULTIPLY)
    assert run(CLIENTS / "numba_grid_sync.py", text).stdout == "True\n"


def test_numba_in_a_program_that_a_program_starts():
    pytest.importorskip("numba.cuda", reason="needs numba-cuda")
    printed = run(CLIENTS / "numba_child.py").stdout
    assert printed == str([f"{i} 999" for i in range(6)]) + "\n"
