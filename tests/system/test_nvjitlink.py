"""Our nvJitLink: PTX is joined by the driver's linker, and misuse is answered as by NVIDIA's.

The codes below are what NVIDIA's nvJitLink 13.5 answers to the same calls, where not said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.linked_texts import CALLEE, CALLER
from tests.helpers.ptx_trees import HEADER
from va100.gpu.native import COMPANIONS, NATIVE_DIR, nvjitlinks

CLIENTS = Path(__file__).parent / "clients"
UNRECOGNIZED, NO_ARCH, INVALID, NVVM, INTERNAL, NULL, INCOMPATIBLE, WRONG_TYPE = (
    1, 2, 3, 5, 6, 10, 11, 12
)  # fmt: skip
LIMIT_S = 300

pytestmark = pytest.mark.skipif(
    not all((NATIVE_DIR / name).exists() for name in COMPANIONS),
    reason="the companions are not built",
)


def run(*words):
    command = [sys.executable, "-m", "va100.cli", "run", "--quiet", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    paths = [folder / "caller.ptx", folder / "callee.ptx"]
    for path, text in zip(paths, (CALLER, CALLEE), strict=True):
        path.write_text(HEADER + text)
    return paths


@pytest.fixture(scope="module")
def answers(texts):
    done = run(CLIENTS / "nvjitlink_client.py", *texts)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_script_finds_ours_under_either_name(answers):
    # Without NVIDIA's, no version that links LTO-IR: clients would hand over nothing else.
    assert answers["versions"] == [[0, 12, 2, True]] * 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("none", NO_ARCH), ("chip", 0), ("unknown", UNRECOGNIZED), ("level", UNRECOGNIZED),
        ("lto", 0), ("ptx alone", INCOMPATIBLE), ("virtual", INCOMPATIBLE), ("many", 0),
    ],
)  # fmt: skip
def test_options(answers, words, code):
    assert answers[words] == [code, code != 0]  # and the log says why


@pytest.mark.parametrize(
    ("calls", "codes"),
    [
        ("early", [INTERNAL]), ("add", [0, INVALID]), ("wrong type", [WRONG_TYPE] * 3),
        ("complete", [0, INTERNAL, INTERNAL]), ("destroy", [0, None, NULL]), ("null", [NULL] * 3),
        ("empty", [0]),
    ],
)  # fmt: skip
def test_what_calls_answer(answers, calls, codes):
    assert answers[calls] == codes


def test_texts_are_joined(answers):
    added, completed, product, log = answers["joined"]
    assert (added, completed, log) == ([0, 0], 0, "")
    assert product.count(".entry k") == 1
    assert product.endswith("\0")
    assert ".func (.param .b32 r) twice" in product


def test_what_others_call_a_cubin_is_a_text_and_limits_are_kept(answers):
    added, completed, product, _ = answers["as cubins"]
    assert (added, completed) == ([0, 0], 0)
    assert ".maxnreg 40" in product


def test_what_is_missing_is_in_the_log(answers):
    added, completed, product, log = answers["missing"]
    assert (added, completed, product) == ([0], INTERNAL, INTERNAL)
    assert "`twice` is used, but defined nowhere" in log


def test_lto_ir_is_refused_by_name_without_nvidias(answers):
    added, completed, _, log = answers["lto-ir"]
    assert (added, completed) == ([0, 0], NVVM)
    assert "pip install nvidia-nvjitlink" in log


def test_lto_ir_of_cuda_core_runs_with_nvidias():
    pytest.importorskip("cuda.core", reason="needs cuda-core")
    if not any(nvjitlinks()):
        pytest.skip("needs nvidia-nvjitlink")
    done = run(CLIENTS / "cuda_core_lto.py")
    assert done.stdout == "42 0 True\n", done.stderr
