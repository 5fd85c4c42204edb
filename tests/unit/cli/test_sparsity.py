"""``va100 sparsity``: files in, files out, positions of what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from va100.cli.main import main


@pytest.fixture
def weight(tmp_path):
    path = tmp_path / "w.npy"
    np.save(path, np.random.default_rng(0).standard_normal((20, 36)).astype(np.float16))
    return path


def run(*words):
    return main(["sparsity", *map(str, words)])


def test_the_whole_way(weight, tmp_path, capsys):
    pruned, packed, again = (tmp_path / name for name in ("p.npy", "p.npz", "a.npy"))
    assert run("prune", weight, pruned, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["zeroed"] == 360
    assert 0.5 < facts["kept_magnitude"] < 1
    assert run("check", pruned) == 0
    assert "keeps 2:4" in capsys.readouterr().out
    assert run("compress", pruned, packed, "--json") == 0
    assert json.loads(capsys.readouterr().out)["registers"] == [2, 1, 32]
    assert run("expand", packed, again) == 0
    assert (np.load(again) == np.load(pruned)).all()


def test_check_names_positions(tmp_path, capsys):
    bad = np.zeros((20, 16), np.float32)
    bad[17, 8:11] = 1
    np.save(tmp_path / "bad.npy", bad)
    assert run("check", tmp_path / "bad.npy") == 1
    assert "row 17, columns 8-11 hold 3 non-zeros" in capsys.readouterr().out
    assert run("check", tmp_path / "bad.npy", "--json") == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["violations"] == [{"row": 17, "first_column": 8, "last_column": 11, "count": 3}]
    assert run("compress", tmp_path / "bad.npy", tmp_path / "x.npz") == 1
    assert "prune it first" in capsys.readouterr().err


def test_multiply_says_what_is_inferred(weight, tmp_path, capsys):
    pruned, packed, out = (tmp_path / name for name in ("p.npy", "p.npz", "d.npy"))
    other = tmp_path / "b.npy"
    np.save(other, np.ones((36, 3), np.float16))
    run("prune", weight, pruned, "--method", "tile")
    run("compress", pruned, packed)
    capsys.readouterr()
    for a in (pruned, packed):
        assert run("multiply", a, other, out, "--kind", "f16.f32") == 0
        assert "inferred: how mma.sp adds" in capsys.readouterr().out
        sums = np.load(pruned).astype(np.float64).sum(axis=1, keepdims=True)
        assert np.allclose(np.load(out), sums, atol=1e-4)


def test_bfloat16_as_raw_bits(tmp_path):
    bits = np.array([[0x3F80, 0xC080, 0x4040, 0x8000]], np.uint16)  # 1, -4, 3, -0
    np.save(tmp_path / "w.npy", bits)
    assert run("prune", tmp_path / "w.npy", tmp_path / "p.npy", "--bf16") == 0
    assert np.load(tmp_path / "p.npy").tolist() == [[0, 0xC080, 0x4040, 0]]
    assert run("compress", tmp_path / "p.npy", tmp_path / "p.npz", "--bf16") == 0
    np.save(tmp_path / "b.npy", np.full((4, 1), 0x3F80, np.uint16))
    files = [tmp_path / name for name in ("p.npz", "b.npy", "d.npy")]
    assert run("multiply", *files, "--kind", "bf16.f32", "--bf16") == 0
    assert np.load(tmp_path / "d.npy").tolist() == [[-1]]


def test_wrong_metadata_is_refused_with_its_position(weight, tmp_path, capsys):
    pruned, packed, broken = (tmp_path / name for name in ("p.npy", "p.npz", "broken.npz"))
    run("prune", weight, pruned)
    run("compress", pruned, packed)
    with np.load(packed) as data:
        parts = dict(data)
    parts["nibbles"][3, 2] = 0
    np.savez(broken, **parts)
    assert run("expand", broken, tmp_path / "x.npy") == 1
    assert "row 3, columns 8-11: metadata 0x0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "has 1 dimensions, not two"),
        (np.zeros((2, 2), np.complex64), "holds no numbers"),
    ],
)
def test_unsuitable_files(array, message, tmp_path, capsys):
    np.save(tmp_path / "x.npy", array)
    assert run("check", tmp_path / "x.npy") == 1
    assert message in capsys.readouterr().err


def test_missing_and_foreign_files(weight, tmp_path, capsys):
    assert run("check", tmp_path / "none.npy") == 1
    assert run("expand", weight, tmp_path / "x.npy") == 1
    assert "is no compressed matrix" in capsys.readouterr().err


def test_advise(capsys):
    assert run("advise", 4096, 1, 4096) == 0
    assert "will not pay" in capsys.readouterr().out
    assert run("advise", 4096, 4096, 4096, "--json") == 0
    assert json.loads(capsys.readouterr().out)["pays"] is True
    assert run("advise", 1, 1, 1, "--kind", "f64") == 1
