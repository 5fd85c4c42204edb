"""``va100 plan train`` as scripts call it: names, statuses, refusals, the same bytes each time."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import dataclass

import pytest

from va100.cli.main import main

LLAMA_7B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 32000, "max_position_embeddings": 4096,
}  # fmt: skip
NAMES = (
    "fits", "step_s", "step_s_band", "tokens_per_s_per_gpu", "mfu", "hfu", "peak_bytes_per_gpu",
    "energy_j", "cost_usd",
)  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def plan(capsys):
    """Run the command in this process: a Python and its imports cost more than most plans."""

    def call(*words):
        try:
            status = main(["plan", *map(str, words)])
        except SystemExit as stop:
            status = stop.code
        said = capsys.readouterr()
        return Finished(status, said.out, said.err)

    return call


def plan_apart(*words):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "va100.cli", "plan", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def llama(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_7B))
    return path


@pytest.fixture
def asked(llama):
    return [
        "train", "--model", llama, "--machine", "hgx-a100-8x80gb", "--nodes", 1, "--tp", 2,
        "--pp", 1, "--dp", 4, "--micro-batch", 2, "--global-batch", 64, "--seq", 4096, "--zero", 1,
        "--recompute", "none",
    ]  # fmt: skip


class TestTrain:
    def test_json_has_the_names_and_says_the_same_twice(self, plan, asked):
        first, second = plan(*asked, "--json"), plan_apart(*asked, "--json")
        assert first.returncode == 0, first.stderr
        assert first.stdout == second.stdout
        document = json.loads(first.stdout)
        assert set(NAMES) <= set(document)
        assert document["fits"] is True
        assert sum(document["peak_parts_bytes"].values()) == document["peak_bytes_per_gpu"]
        assert sum(document["step_parts_s"].values()) == pytest.approx(document["step_s"])

    def test_csv_and_text_say_what_json_says(self, plan, asked):
        document = json.loads(plan(*asked, "--json").stdout)
        table = dict(csv.reader(io.StringIO(plan(*asked, "--csv").stdout)))
        assert float(table["step_s"]) == document["step_s"]
        assert "tokens/s a GPU" in plan(*asked).stdout

    def test_what_does_not_fit_is_refused_with_the_smallest_plan_that_does(self, plan, llama):
        words = ["train", "--model", llama, "--nodes", 1, "--micro-batch", 2]
        found = plan(*words, "--global-batch", 128, "--seq", 4096, "--json")
        assert found.returncode == 1
        document = json.loads(found.stdout)
        assert document["fits"] is False
        smallest = document["smallest_fit"]
        assert smallest["fits"] is True
        assert smallest["device_bytes_per_gpu"] <= smallest["capacity_bytes_per_gpu"]
        assert smallest["gpus"] <= 8

    def test_scaling_loses_a_little(self, plan, asked):
        rows = json.loads(plan(*asked, "--scaling", "--json").stdout)["scaling"]
        assert [row["gpus"] for row in rows] == [8, 16, 32, 64, 128]
        left = [row["efficiency"] for row in rows]
        assert left == sorted(left, reverse=True)
        assert left[-1] > 0.7

    def test_a_budget_says_days_and_dollars(self, plan, asked):
        document = json.loads(plan(*asked, "--tokens", "1e12", "--json").stdout)
        budget = document["budget"]
        assert budget["steps"] == -(-(10**12) // (64 * 4096))
        assert budget["days"] > budget["compute_days"] > 0
        assert budget["cost_usd"] == pytest.approx(
            budget["gpu_hours"] * document["price"]["usd_per_gpu_h"]
        )

    def test_search_finds_nothing_slower_than_what_was_given(self, plan, asked, llama):
        given = json.loads(plan(*asked, "--json").stdout)
        found = plan(
            "train", "--model", llama, "--nodes", 1, "--global-batch", 64, "--seq", 4096,
            "--search", "--json",
        )  # fmt: skip
        document = json.loads(found.stdout)
        assert document["step_s"] <= given["step_s"]
        assert document["tried"] > 100


class TestWrongInput:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--model", "no-such.json"], "no-such.json"),
            (["--machine", "hgx-b300"], "no machine 'hgx-b300'"),
            (["--machine", "a100"], "may be"),
            (["--machine", "t4:1g.5gb"], "no MIG table"),
            (["--machine", "a100-sxm4-80gb:1g.5gb"], "no MIG profile"),
            (["--tp", "3"], "--tp 3 does not divide"),
            (["--tp", "0"], "0 is no whole number above 0"),
            (["--global-batch", "7", "--dp", "2"], "is no multiple"),
            (["--stage-layers", "1,2"], "--stage-layers"),
            (["--usd-per-gpu-h", "nan"], "nan is no number above 0"),
            (["--precision", "fp8"], "invalid choice"),
            (["--machine", "v100-sxm2-32gb", "--precision", "bf16"], "bf16"),
        ],
    )
    def test_is_named_with_status_2_and_no_traceback(self, plan, words, said, llama):
        found = plan("train", "--model", llama, "--micro-batch", 1, *words)
        assert found.returncode == 2
        assert said in found.stderr
        assert "Traceback" not in found.stderr

    def test_a_file_that_is_no_model(self, plan, tmp_path):
        for name, text in (("a.json", "{"), ("b.json", "[1]"), ("c.yaml", "layers: 1\n")):
            path = tmp_path / name
            path.write_text(text)
            found = plan("train", "--model", path)
            assert found.returncode == 2
            assert str(path) in found.stderr
            assert "Traceback" not in found.stderr


def test_the_documents_python_runs(root, monkeypatch):
    import re

    monkeypatch.chdir(root)
    text = (root / "docs" / "planning.md").read_text()
    names = {}
    exec(re.search(r"```python\n(.*?)```", text, re.S)[1], names)
    assert names["plan"].fits
