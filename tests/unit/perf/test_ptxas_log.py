"""Summaries as assemblers of several years print them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.ptxas_log import read_log
from va100.work import KernelResources

CUDA_13 = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5tilesPf' for 'sm_80'
ptxas info    : Function properties for _Z5tilesPf
    24 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 47 registers, used 1 barriers, 56 bytes cumulative stack size, \
1024 bytes smem, 360 bytes cmem[0], 12 bytes cmem[2]
ptxas info    : Compile time = 7.5 ms
ptxas info    : Function properties for _Z4halff
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""


def test_a_summary_of_cuda_13() -> None:
    log = read_log(CUDA_13)
    kernel, function = log.functions
    assert (kernel.name, kernel.architecture, kernel.is_kernel) == ("_Z5tilesPf", "sm_80", True)
    assert (kernel.registers, kernel.barriers, kernel.shared_bytes) == (47, 1, 1024)
    assert (kernel.stack_bytes, kernel.spill_store_bytes, kernel.spill_load_bytes) == (24, 4, 8)
    assert kernel.constant_bytes == ((0, 360), (2, 12))
    assert kernel.compile_time_s == 0.0075
    assert kernel.spills
    assert kernel.resources == KernelResources(
        registers_per_thread=47, static_shared_bytes=1024, local_bytes=56, barrier_count=1
    )
    assert (function.name, function.is_kernel, function.registers) == ("_Z4halff", False, None)
    assert not function.spills
    assert not log.notes


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("Used 14 registers, 368 bytes cmem[0]", {"registers": 14, "barriers": None}),
        ("Used 8 registers, 2112+16 bytes smem, 1 textures", {"shared_bytes": 2128, "textures": 1}),
        ("Used 1 register, 40+0 bytes lmem", {"registers": 1, "local_bytes": 40}),
        ("Used 9 registers, used 16 barriers", {"barriers": 16}),
        ("Used 9 registers, 3 samplers, 2 surfaces", {"samplers": 3, "surfaces": 2}),
    ],
)
def test_wordings(line: str, facts: dict[str, int | None]) -> None:
    log = read_log(
        f"ptxas info    : Compiling entry function 'k' for 'sm_80'\nptxas info    : {line}\n"
    )
    kernel = log.kernel("k")
    assert {name: getattr(kernel, name) for name in facts} == facts
    assert not log.notes


def test_what_is_not_known_is_noted() -> None:
    text = CUDA_13.replace("used 1 barriers", "used 3 flux capacitors") + (
        "ptxas warning : Registers are spilled\nptxas info    : (C7511) Something new\n"
        "nvcc says hello\n"
    )
    log = read_log(text)
    assert log.kernel("_Z5tilesPf").registers == 47
    assert log.notes == (
        "_Z5tilesPf: used 3 flux capacitors",
        "warning: Registers are spilled",
        "(C7511) Something new",
        "_Z4halff: nvcc says hello",
    )


def test_several_architectures_and_the_linker() -> None:
    text = CUDA_13 + CUDA_13.replace("sm_80", "sm_90").replace("Used 47", "Used 32")
    text += (
        "nvlink info    : Function properties for 'late':\n"
        "nvlink info    : used 6 registers, 0 stack, 4 bytes smem, 324 bytes cmem[0]\n"
    )
    log = read_log(text)
    found = {(f.name, f.architecture): f.registers for f in log.functions}
    assert found["_Z5tilesPf", "sm_80"] == 47
    assert found["_Z5tilesPf", "sm_90"] == 32
    late = log.kernel("late")
    assert (late.registers, late.stack_bytes, late.shared_bytes) == (6, 0, 4)


def test_no_registers_no_resources() -> None:
    with pytest.raises(ValueError, match="no registers of _Z4halff"):
        _ = read_log(CUDA_13).functions[1].resources


@given(st.text() | st.lists(st.sampled_from(CUDA_13.split(" "))).map(" ".join))
def test_no_text_is_an_error(text: str) -> None:
    read_log(text)
    read_log("ptxas info : Used " + text)
    read_log(CUDA_13 + text)


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas here")
def test_what_the_assembler_at_hand_says(tmp_path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        ".shared .b8 s[512]; .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n"
        "mov.u32 %r, s; st.shared.u32 [%r], %r; bar.sync 0; ld.shared.u32 %r, [%r+4];\n"
        "st.global.u32 [%d], %r; ret; }\n"
    )
    command = ["ptxas", "-v", "-arch=sm_80", str(source), "-o", str(tmp_path / "k.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    log = read_log(done.stdout + done.stderr)
    kernel = log.kernel("k")
    assert kernel.shared_bytes == 512
    assert kernel.registers
    assert not log.notes
