"""NVIDIA's assembler, where there is one, takes every matrix instruction that we execute."""

from __future__ import annotations

import subprocess

import pytest

from tests.helpers.builders import executed_forms, spellings
from va100.config import Settings, find_program
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family
from va100.ptx.isa.tiles import Tile, product_of, tiles_of

HEAD = """.version 9.0
.target sm_80
.address_size 64
.visible .entry all(.param .u64 unused)
{
    .reg .b32 %r<40>;
    .reg .f32 %f<40>;
    .reg .b64 %d<4>;
    .reg .f64 %g<40>;
"""


def _vector(tile: Tile, first: int) -> str:
    prefix = {"f64": "%g", "f32": "%f"}.get(tile.type.value, "%r")
    return "{" + ", ".join(f"{prefix}{first + i}" for i in range(tile.registers)) + "}"


def _instruction(text: str) -> str:
    operation = decode(text)
    vectors = [_vector(tile, 8 * i) for i, tile in enumerate(tiles_of(operation))]
    place = "[%r39]" if ".shared" in text else "[%d0]"
    if operation.opcode == "movmatrix":
        operands = ["%r0", "%r1"]
    elif operation.opcode == "ldmatrix":
        operands = [vectors[0], place]
    elif "load" in operation.modifiers:
        operands = [vectors[0], place, "%r38"]
    elif "store" in operation.modifiers:
        operands = [place, vectors[0], "%r38"]
    else:
        operands = vectors
        if operation.opcode == "mma" and product_of(operation).sparse:
            operands += ["%r39", "0"]
    return f"    {text} {', '.join(operands)};\n"


def _is_of_today(text: str) -> bool:
    """Whether it is no form that only versions before the one above have."""
    floating = text.startswith("wmma.mma") and ".s32" not in text
    return ".aligned" in text and not (floating and ".satfinite" in text)


def test_matrix_instructions(tmp_path):
    ptxas = find_program("ptxas", Settings.from_environment())
    if ptxas is None:
        pytest.skip("needs NVIDIA's ptxas")
    forms = [form for form in executed_forms() if form.family is Family.MATRIX]
    texts = [text for form in forms for text in spellings(form)]
    lines = [_instruction(text) for text in texts if _is_of_today(text)]
    assert len(lines) > len(texts) // 3
    source = tmp_path / "all.ptx"
    source.write_text(HEAD + "".join(lines) + "    ret;\n}\n")
    command = [str(ptxas), "-arch=sm_80", str(source), "-o", str(tmp_path / "all.cubin")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
