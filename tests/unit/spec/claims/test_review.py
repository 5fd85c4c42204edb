"""Whole texts: every kind of popular mistake is named for what it is, right figures stand."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from va100.spec.claims.claim import Problem, Verdict
from va100.spec.claims.review import review


def wrong(text, suffix=""):
    """(label, problem) of every wrong claim."""
    found = review(text, suffix=suffix).findings
    return [(f.claim.label, f.problem) for f in found if f.verdict is Verdict.WRONG]


def verdicts(text, suffix=""):
    return [f.verdict for f in review(text, suffix=suffix).findings]


MIXED = """\
Our cards at a glance.

| | A100 PCIe 80 GB | A100 SXM 80 GB |
|:---|---:|---:|
| FP64 | 9.7 TFLOPS | 9.7 TFLOPS |
| **FP64 Tensor Core** | 19.5 TFLOPS | 19.5 TFLOPS |
| FP32 | 19.5 TFLOPS | 19.5 TFLOPS |
| TF32 | 156 TFLOPS | 312 TFLOPS |
| BFLOAT16 Tensor Core | 312 TFLOPS | 624 TFLOPS |
| FP16 Tensor Core | 312 TFLOPS | 624 TFLOPS |
| INT8 Tensor Core | 624 TOPS | 1,248 TOPS |
| GPU Memory | 80 GB HBM2e | 80 GB HBM2e |
| GPU Memory Bandwidth | 1,935 GB/s | 2,039 GB/s |
| Max TDP | 300 W | 400 W |
| Multi-Instance GPU | up to 7 MIGs @ 10 GB | up to 7 MIGs @ 10 GB |
| Form Factor | PCIe | SXM |
| Interconnect | NVLink: 600 GB/s, PCIe Gen4: 64 GB/s | NVLink: 600 GB/s |
"""

DATASHEET = """\
| | A100 80GB PCIe | A100 80GB SXM |
|---|---|---|
| TF32 | 156 TFLOPS \\| 312 TFLOPS* | 156 / 312* |
| BF16 Tensor Core | 312 TFLOPS \\| 624 TFLOPS* | 312 (624 with sparsity) |
| INT8 Tensor Core | 624 TOPS \\| 1248 TOPS* | 624 / 1248 TOPS |

\\* with sparsity
"""


class TestTables:
    def test_a_column_of_sparse_rates(self):
        result = review(MIXED)
        found = [f for f in result.findings if f.verdict is Verdict.WRONG]
        assert {f.problem for f in found} == {Problem.SPARSE_AS_DENSE}
        assert [f.claim.line for f in found] == [8, 9, 10, 11]
        assert {f.claim.subject for f in found} == {"A100 SXM 80 GB"}
        (pattern,) = result.patterns
        said = "A100 SXM 80 GB: 2:4 sparse rates listed as dense ones (TF32, BF16, FP16, INT8)"
        assert pattern.startswith(said)
        assert "beside it A100 PCIe 80 GB: dense" in pattern

    def test_all_else_in_it_is_confirmed(self):
        found = review(MIXED).findings
        assert sum(f.verdict is Verdict.RIGHT for f in found) == len(found) - 4

    def test_dual_cells(self):
        assert set(verdicts(DATASHEET)) == {Verdict.RIGHT}

    def test_a_sparse_column_that_says_so(self):
        text = "| | A100 | A100 (sparse) |\n|---|---|---|\n| TF32 | 156 | 312 |\n"
        assert set(verdicts(text)) == {Verdict.RIGHT}

    def test_dense_rates_under_a_sparse_heading(self):
        text = "| | A100 |\n|---|---|\n| TF32 with sparsity | 156 TFLOPS |\n"
        assert wrong(text) == [("TF32 with sparsity", Problem.DENSE_AS_SPARSE)]

    def test_rows_that_slipped(self):
        text = "| | A100 |\n|---|---|\n| FP64 | 19.5 |\n| FP64 Tensor | 156 |\n| TF32 | 156 |\n"
        result = review(text)
        assert [f.problem for f in result.findings[:2]] == [Problem.OTHER_ROW] * 2
        assert result.findings[2].verdict is Verdict.RIGHT
        assert "FP64, FP64 tensor look shifted by a row" in result.patterns[0]

    def test_anothers_bandwidth(self):
        text = "| | A100 40GB SXM |\n|---|---|\n| Memory bandwidth | 2039 GB/s |\n"
        assert wrong(text) == [("Memory bandwidth", Problem.OTHER_MODEL)]

    @pytest.mark.parametrize(
        ("row", "problem"),
        [
            ("| NVLink | 300 GB/s |", Problem.DIRECTION),
            ("| NVLink | 1200 GB/s |", Problem.DIRECTION),
            ("| NVLink | 600 GB |", Problem.UNIT),
            ("| NVLink | 4800 GB/s |", Problem.OTHER_ROW),
            ("| Memory bandwidth | 20.39 TB/s |", Problem.SCALE),
            ("| Memory bandwidth | 2039 TB/s |", Problem.SCALE),
            ("| Memory bandwidth | 2039 MB/s |", Problem.SCALE),
            ("| FP16 Tensor | 400 TFLOPS |", Problem.VALUE),
            ("| FP8 | 624 TFLOPS |", Problem.ABSENT),
            ("| FP64 with sparsity | 39 TFLOPS |", Problem.ABSENT),
            ("| Memory | 80 GB HBM3 |", Problem.VALUE),
            ("| TDP | 500 W |", Problem.VALUE),
            ("| SMs | 128 |", Problem.VALUE),
            ("| Launch | 2019 |", Problem.VALUE),
            ("| L2 Cache | 80 MB |", Problem.VALUE),
        ],
    )
    def test_single_mistakes(self, row, problem):
        text = f"| | A100-SXM4-80GB |\n|---|---|\n{row}\n"
        assert [found for _, found in wrong(text)] == [problem]

    @pytest.mark.parametrize(
        "row",
        [
            "| NVLink | 600 GB/s |",
            "| NVLink per direction | 300 GB/s |",
            "| NVLink per link | 50 GB/s |",
            "| PCIe | 64 GB/s |",
            "| PCIe | 31.5 GB/s |",
            "| Memory bandwidth | 2 TB/s |",
            "| Memory bandwidth (TB/s) | 2.04 |",
            "| Memory | 80 |",
            "| TDP | 400 |",
            "| CUDA Cores | 6,912 |",
            "| Tensor Cores | 432 |",
            "| L2 Cache | 40 MB |",
            "| L2 Cache | 40 |",
            "| Memory bus | 5120-bit |",
            "| Boost clock | 1410 MHz |",
            "| FP16 (non-tensor) | 78 |",
            "| INT4 | 1248 TOPS |",
            "| MIG | 7 |",
            "| FP8 | - |",
            "| NVLink | 2x V100 |",
            "| Compute capability | 8.0 |",
            "| Launch | November 2020 |",
        ],
    )
    def test_right_ones(self, row):
        assert verdicts(f"| | A100-SXM4-80GB |\n|---|---|\n{row}\n") == [Verdict.RIGHT]

    def test_what_is_not_known_is_said_and_not_counted(self):
        text = (
            "| | A100 | Gaudi 9 |\n|---|---|---|\n| FP32 | 19.5 | 7 |\n| Weight | 1 kg | 2 kg |\n"
        )
        found = review(text).findings
        assert len(found) == 3
        unchecked = [f.claim.label for f in found if f.verdict is Verdict.UNCHECKED]
        assert unchecked == ["Gaudi 9", "Weight"]

    def test_a_column_of_units(self):
        text = "| | Unit | A100 SXM 80GB |\n|---|---|---|\n| Memory bandwidth | TB/s | 2.039 |\n"
        assert verdicts(text) == [Verdict.RIGHT]

    def test_a_table_of_two_columns_is_about_the_a100(self):
        assert verdicts("| Spec | Value |\n|---|---|\n| FP32 | 19.5 TFLOPS |\n") == [Verdict.RIGHT]

    def test_models_down_the_side(self):
        rows = ("| GPU | FP32 | Memory |", "|---|---|---|", "| V100 | 15.7 | 32GB |")
        text = "\n".join((*rows, "| A100 | 312 | 80GB |"))
        assert wrong(text) == [("FP32", Problem.OTHER_ROW)]
        assert [f.claim.line for f in review(text).findings] == [3, 3, 4, 4]

    def test_other_gpus(self):
        text = "| | H100 SXM | T4 |\n|---|---|---|\n| FP16 Tensor | 1979 | 65 |\n"
        assert wrong(text) == [("FP16 Tensor", Problem.SPARSE_AS_DENSE)]


class TestOtherFormats:
    def test_csv(self):
        text = 'Spec,A100 PCIe 40GB,A100 SXM 40GB\nTF32,156,312\n"Bandwidth","1,555 GB/s",1555\n'
        assert wrong(text, ".csv") == [("TF32", Problem.SPARSE_AS_DENSE)]
        assert wrong(text) == wrong(text, ".csv")

    def test_tsv(self):
        text = "\tA100-SXM4-80GB\nFP64\t9.7 TFLOPS\nNVLink\t300 GB/s\n"
        assert wrong(text, ".tsv") == [("NVLink", Problem.DIRECTION)]

    @pytest.mark.parametrize(
        "data",
        [
            {"A100-SXM4-80GB": {"FP64": 9.7, "FP16 Tensor": "624 TFLOPS"}},
            {"FP64": {"A100-SXM4-80GB": "9.7"}, "FP16 Tensor": {"A100-SXM4-80GB": 624}},
            [{"model": "A100-SXM4-80GB", "FP64": 9.7, "FP16 Tensor": 624}],
            {"models": {"A100 80GB SXM": {"FP64": "9.7 TF", "FP16 Tensor": "624 TF"}}},
            {"FP64": 9.7, "FP16 Tensor": 624},
        ],
    )
    def test_json(self, data):
        text = json.dumps(data)
        assert [problem for _, problem in wrong(text)] == [Problem.SPARSE_AS_DENSE]
        assert verdicts(text, ".json").count(Verdict.RIGHT) == 1

    @pytest.mark.parametrize("text", ["{", "[1]", "7", "[]", "{}", "[" * 100_000])
    def test_json_that_is_no_table(self, text):
        with pytest.raises(ValueError, match="JSON"):
            review(text, suffix=".json")


class TestProse:
    def test_fp64_shifted_by_a_row(self):
        result = review("It does FP64 at 19.5 TFLOPS and FP64 Tensor at 156 TFLOPS.")
        assert [f.problem for f in result.findings] == [Problem.OTHER_ROW] * 2
        assert "shifted by a row" in result.patterns[0]

    def test_links_taken_for_a_ratio(self):
        text = "Its NVLink moves 600 GB/s, 6x V100."
        assert wrong(text) == [("NVLink", Problem.MULTIPLE)]
        (bad,) = [f for f in review(text).findings if f.verdict is Verdict.WRONG]
        assert "2x, not 6x" in bad.explanation
        assert "6 is V100's count of links (A100 has 12)" in bad.explanation

    @pytest.mark.parametrize(
        "text",
        [
            "NVLink is 6 times that of the V100.",
            "NVLink is six of V100; its bandwidth is 6\u00d7 the V100's.",
            "NVLink \u5e26\u5bbd\u662f V100 \u7684 6 \u500d\u3002",
        ],
    )
    def test_spellings_of_a_multiple(self, text):
        assert Problem.MULTIPLE in {problem for _, problem in wrong(text)}

    def test_doubled(self):
        text = "With 80 GB, memory capacity and bandwidth doubled over the V100."
        assert [problem for _, problem in wrong(text)] == [Problem.MULTIPLE] * 2

    def test_a_sparse_peak_sold_as_the_peak(self):
        assert wrong("INT8 reaches up to 1,248 TOPS in SXM form.") == [
            ("INT8", Problem.SPARSE_AS_DENSE)
        ]

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("The A100 offers 624 TFLOPS of FP8.", Problem.ABSENT),
            ("A100 NVLink has a bandwidth of 300 GB/s.", Problem.DIRECTION),
            ("A DGX has 72 NVLinks in total.", Problem.VALUE),
            ("The A100 40GB has 2 TB/s of memory bandwidth.", Problem.OTHER_MODEL),
            ("The A100 40GB SXM board has an aggregate memory of 640 GB.", Problem.OTHER_MODEL),
        ],
    )
    def test_single_mistakes(self, text, problem):
        assert [found for _, found in wrong(text)] == [problem]

    @pytest.mark.parametrize(
        "text",
        [
            "FP16 gives 312 TFLOPS (624 TFLOPS with sparsity).",
            "With sparsity, INT8 reaches 1248 TOPS with sparsity.",
            "The A100 delivers 19.5 TFLOPS of FP32 and 9.7 TFLOPS of FP64.",
            "NVLink carries 600 GB/s, 2x the V100.",
            "NVLink runs at 300 GB/s per direction.",
            "Six boards have an aggregate memory of 640 GB.",
            "HGX A100 has 6 NVSwitches and 4.8 TB/s of NVSwitch bandwidth.",
            "MIG cuts it into instances of 5 GB.",
            "Its TDP goes up to 400 W.",
            "The H100 PCIe has FP32 at 51 TFLOPS.",
            "Each has 108 SMs, 6912 CUDA cores and 432 Tensor Cores.",
        ],
    )
    def test_right_ones(self, text):
        assert set(verdicts(text)) == {Verdict.RIGHT}

    def test_figures_without_a_name_are_left_alone(self):
        assert verdicts("It is rated at 312 TFLOPS.") == [Verdict.UNCHECKED]

    def test_bandwidth_of_what(self):
        assert verdicts("Each GPU gets 600 GB/s of bandwidth.") == [Verdict.UNCHECKED]

    def test_the_second_of_a_pair_is_the_others(self):
        text = "Beside the V100, the A100 has FP16 at 312 TFLOPS vs 125 TFLOPS."
        assert verdicts(text) == [Verdict.RIGHT] * 2

    def test_a_list_without_punctuation(self):
        text = "NVLink: 600 GB/s (6x V100)\nGPU memory: 80 GB\nFP64 19.5 TFLOPS\nFP32 19.5 TFLOPS\n"
        assert wrong(text) == [("NVLink", Problem.MULTIPLE), ("FP64", Problem.OTHER_ROW)]

    def test_a_wrapped_sentence_is_one(self):
        text = (
            "Of all the things there are to say about this card, its rate in FP64\nis 19.5 TFLOPS."
        )
        assert wrong(text) == [("FP64", Problem.OTHER_ROW)]

    def test_lines_are_counted(self):
        found = review("One.\n\nTwo.\nFP64 is 19.5 TFLOPS.").findings
        assert [f.claim.line for f in found] == [4]

    def test_nothing_to_say(self):
        assert review("A pleasant day.").findings == ()


WORDS = st.sampled_from(
    [
        "FP64",
        "FP64-Tensor",
        "TF32",
        "tensor",
        "A100",
        "V100",
        "H100",
        "80GB",
        "SXM",
        "PCIe",
        "NVLink",
        "6x",
        "600",
        "GB/s",
        "TFLOPS",
        "312",
        "*",
        "1,248",
        "TOPS",
        "|",
        "/",
        ",",
        ";",
        ".",
        "\n",
        "|---|---|",
        "bandwidth",
        "memory",
        "doubled",
        "sparsity",
        "(",
        ")",
        "MIG",
        "7",
        "@",
        "per",
        "link",
        "W",
        "40",
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        "NVSwitch",
        "\u500d",
        "\u663e\u5b58",
        "\u212a",
        "\u0130",
    ]
)


class TestFuzz:
    @settings(max_examples=300, deadline=None)
    @given(st.text(max_size=300))
    def test_any_text(self, text):
        review(text)

    @settings(max_examples=600, deadline=None)
    @given(st.lists(WORDS, max_size=60))
    def test_any_mixture_of_our_words(self, words):
        for suffix in ("", ".csv", ".tsv", ".json"):
            with contextlib.suppress(ValueError) if suffix else contextlib.nullcontext():
                review(" ".join(words), suffix=suffix)

    @settings(max_examples=200, deadline=None)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | WORDS,
            lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
            max_leaves=20,
        )
    )
    def test_any_json(self, data):
        with contextlib.suppress(ValueError):
            review(json.dumps(data), suffix=".json")

    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_any_damage_to_a_table(self, data):
        cut = data.draw(st.integers(0, len(MIXED)))
        end = data.draw(st.integers(cut, len(MIXED)))
        review(MIXED[:cut] + data.draw(st.text(max_size=5)) + MIXED[end:])

    def test_a_long_text_takes_no_longer_than_its_length(self):
        found = review("FP64 9.7 TFLOPS NVLink 6x V100 " * 3000).findings
        assert len(found) > 5000

    @pytest.mark.parametrize(
        "unit",
        ["|   ", "- | ", " ", "\n ", "fp64 (", "80 ", "(", "1,", "*", "the of ", "6x the ", "< "],
    )
    def test_no_repetition_makes_it_slow(self, unit):
        many = unit * 15_000
        for text in (
            f"-|{many}x",
            f"a|b\n-|{many}x",
            f"{many}A100",
            f"| A100 |\n|---|\n| {many} |",
        ):
            for suffix in ("", ".csv"):
                review(text, suffix=suffix)
