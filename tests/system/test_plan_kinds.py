"""``va100 plan`` but train and serve: names, statuses, refusals, the same bytes each time."""

from __future__ import annotations

import json

import pytest

from va100.cli.main import main


@pytest.fixture
def plan(capsys):
    def call(*words):
        try:
            status = main(["plan", *map(str, words)])
        except SystemExit as stop:
            status = stop.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


ASKED = {
    "vision": ("vision", "--model", "resnet50", "--batch", 64, "--train"),
    "recsys": ("recsys", "--model", "dlrm-small", "--train"),
    "science": ("science", "--kind", "stencil", "--size", "points=1e8"),
    "cost": ("cost", "--machine", "hgx-a100-8x80gb"),
    "compare": ("compare", "--task", "vision", "--model", "resnet50", "--machine", "t4=0.35",
                "--machine", "a100-sxm4-40gb=2.93"),
}  # fmt: skip
NAMES = {
    "vision": {"fits", "latency_s", "per_s", "peak_bytes_per_gpu", "energy_j", "basis"},
    "recsys": {"fits", "step_s", "records_per_s", "placement", "energy_j", "basis"},
    "science": {"fits", "time_s", "per_s", "bound", "energy_j", "cost_usd", "basis"},
    "cost": {"own", "offers", "sensitivity_usd_per_used_h", "assumed"},
    "compare": {"fits", "rows", "cheapest", "quickest"},
}


class TestKinds:
    @pytest.mark.parametrize("kind", ASKED)
    def test_json_has_its_names_and_is_the_same_twice(self, kind, plan):
        first, second = plan(*ASKED[kind], "--json"), plan(*ASKED[kind], "--json")
        assert first == second
        assert first[0] == 0
        assert NAMES[kind] <= set(json.loads(first[1]))

    @pytest.mark.parametrize("kind", ASKED)
    def test_text_csv_and_html_come_too(self, kind, plan, tmp_path):
        page = tmp_path / "report.html"
        assert plan(*ASKED[kind], "--html", page)[0] == 0
        assert "</html>" in page.read_text()
        status, out, _ = plan(*ASKED[kind], "--csv")
        assert status == 0
        assert out.startswith("name,value\n")

    def test_four_old_cards_against_one_new(self, plan):
        # predict_pv_yield 58: 4 x T4 at $1.40 or one A100 at $2.93.
        status, out, _ = plan(
            "compare", "--task", "vision", "--train", "--model", "resnet50", "--batch", 64,
            "--machine", "4x-t4=1.40", "--machine", "a100-sxm4-40gb=2.93", "--json",
        )  # fmt: skip
        assert status == 0
        four, one = json.loads(out)["rows"]
        assert four["basis"].startswith("vendor peak")
        assert one["basis"] == "measured-calibrated"
        assert four["tensor_flop_per_s"] == 4 * 65e12
        assert one["memory_bytes_per_gpu"] > 2 * four["memory_bytes_per_gpu"]
        for row in (four, one):
            assert row["usd_per_million"] == pytest.approx(
                row["usd_per_h"] / 3600 / row["per_s"] * 1e6
            )

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("vision", "--model", "resnet50", "--batch", 20000, "--train"), "does not fit"),
            (("recsys", "--model", "dlrm"), "fewest that hold them: 2"),
            (("science", "--kind", "hpl", "--size", "n=200000"), "fewest GPUs: 4"),
        ],
    )
    def test_what_does_not_fit_has_status_1(self, words, said, plan):
        status, out, _ = plan(*words, "--machine", "a100-sxm4-80gb")
        assert status == 1
        assert said in out


class TestWrongInput:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("vision", "--model", "lenet"), "no network 'lenet'"),
            (("vision", "--model", "resnet50", "--image", 225), "no multiple of 32"),
            (("vision", "--model", "resnet50", "--train", "--precision", "int8"), "int8"),
            (
                ("vision", "--model", "resnet50", "--train", "--runtime", "tensorrt"),
                "does not train",
            ),
            (("recsys", "--model", "none.yaml"), "no recommender"),
            (("recsys", "--model", "dlrm", "--batch", 7, "--gpus", 2), "is not shared"),
            (("science", "--kind", "fft", "--size", "k=3"), "fft has no k"),
            (("science", "--kind", "fft", "--size", "n"), "is no NAME=N"),
            (("cost", "--pue", "0.5"), "pue is 0.5"),
            (("cost", "--utilization", "2"), "a share is above 1"),
            (("mix", "none.yaml"), "none.yaml"),
            (
                ("compare", "--model", "resnet50", "--task", "vision", "--machine", "t4=free"),
                "free",
            ),
        ],
    )
    def test_is_named_with_status_2_and_what_to_do(self, words, said, plan):
        status, _, err = plan(*words)
        assert status == 2
        assert said in err
        assert "Traceback" not in err

    def test_a_portfolio_is_read_and_solved_or_the_solver_named(self, plan, root):
        status, out, err = plan("mix", root / "examples" / "plans" / "portfolio.yaml", "--json")
        if status == 0:
            document = json.loads(out)
            assert set(document["served_share"].values()) == {1.0}
        else:
            assert "pip install 'va100[plan]'" in err
