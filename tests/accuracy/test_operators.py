"""Operators against published measurements that were not fitted to; fails past its budget."""

from __future__ import annotations

import pytest

from tests.helpers.operator_accuracy import FAMILIES, all_cases, regions, summaries, table

BUDGETS = {
    "products, bf16: vllm": 0.08,
    "products, bf16: trtllm": 0.08,
    "products, bf16: sglang": 0.075,
    "products, int8": 0.12,
    "products, 8-bit weights": 0.095,
    "products, 4-bit weights": 0.12,
    "products, fp32, batched": 0.04,
    "products, fp32, linear": 0.095,
    "products, fp16, odd sizes": 0.09,
    "products, fp16, few large": 0.14,
    "attention, prefill: vllm": 0.095,
    "attention, prefill: sglang": 0.065,
    "attention, prefill: trtllm": 0.08,
    "attention, decode: vllm": 0.08,
    "attention, decode: sglang": 0.10,
    "attention, decode: trtllm": 0.17,
    "attention, decode: 2023 paged": 0.10,
    "attention, forward and backward": 0.03,
    "experts, bf16: vllm": 0.19,
    "experts, bf16: sglang": 0.12,
    "experts, bf16: trtllm": 0.15,
    "experts, 4-bit weights": 0.13,
    "convolutions, fp32": 0.22,
    "element-wise, fp32": 0.035,
    "softmax and layer norm, fp32": 0.12,
    "sparse matrix times vector": 0.18,
}
"""Most mean error of each family."""


@pytest.fixture(scope="module")
def measured(request):
    return []


@pytest.fixture
def cases(shared, measured):
    if not measured:
        measured.extend(all_cases(shared("data/measured")))
    return measured


class TestOperators:
    def test_mean_errors_keep_their_budgets(self, cases):
        found = {row.family.name: row for row in summaries(cases)}
        assert set(found) == set(BUDGETS) == {family.name for family in FAMILIES}
        over = {name for name, row in found.items() if row.mean > BUDGETS[name]}
        assert not over, "\n" + table(cases)
        assert all(row.count >= 6 for row in found.values())

    def test_better_than_the_rooflines(self, cases):
        for row in summaries(cases):
            assert row.mean < row.roofline, row.family.name
            assert row.mean < row.scaled or row.family.peer == "LLMCompass 10.9", row.family.name

    def test_sizes_rank_as_measured(self, cases):
        """Alignment and waves: the order of 1,095 odd products is nearly the measured one."""
        odd = [one for one in cases if one.family == "products, fp16, odd sizes"]
        assert (
            rank_correlation([one.estimated_s for one in odd], [one.measured_s for one in odd])
            > 0.99
        )

    def test_page_shows_the_tables(self, cases, root):
        page = (root / "docs" / "operators.md").read_text(encoding="utf-8")
        assert table(cases) in page
        assert regions(cases) in page


def rank_correlation(first, second):
    """Spearman's, without ties."""
    count = len(first)
    ranks = [sorted(range(count), key=values.__getitem__) for values in (first, second)]
    places = [[0] * count, [0] * count]
    for place, order in zip(places, ranks, strict=True):
        for rank, index in enumerate(order):
            place[index] = rank
    squares = sum((a - b) ** 2 for a, b in zip(*places, strict=True))
    return 1 - 6 * squares / (count * (count**2 - 1))
