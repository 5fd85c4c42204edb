"""Models by the names people type and write."""

import pytest

from va100.spec.names import MODELS, close_names, find_models, mentions, models_in


def names(models):
    return [model.name for model in models]


class TestFindModels:
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("sxm80", ["A100-SXM4-80GB"]),
            ("SXM40", ["A100-SXM4-40GB"]),
            ("a100-80g", ["A100-PCIE-80GB", "A100-SXM4-80GB"]),
            ("a10080gb", ["A100-PCIE-80GB", "A100-SXM4-80GB"]),
            ("A100 PCIe 40 GB", ["A100-PCIE-40GB"]),
            ("NVIDIA A100-SXM4-40GB", ["A100-SXM4-40GB"]),
            ("NVIDIA A100 80GB PCIe", ["A100-PCIE-80GB"]),
            ("h100", ["H100-SXM5-80GB", "H100-PCIE-80GB"]),
            ("4090", ["RTX-4090"]),
            ("rtx 4090", ["RTX-4090"]),
            ("a10", ["A10"]),
            ("tesla t4", ["T4"]),
            ("l4", ["L4"]),
            ("l40s", ["L40S"]),
            ("v100-32", ["V100-SXM2-32GB", "V100-PCIE-32GB"]),
        ],
    )
    def test_loose_names(self, query, found):
        assert names(find_models(query)) == found

    @pytest.mark.parametrize("query", ["", "a1000", "gpu", "a100-sxm4-64gb", "a100 h100", "what?"])
    def test_strangers(self, query):
        assert find_models(query) == ()

    @pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
    def test_every_model_answers_to_both_its_names(self, model):
        assert find_models(model.name) == (model,)
        assert find_models(model.product_name) == (model,)


class TestCloseNames:
    def test_a_slip_of_the_key(self):
        assert "A100-SXM4-80GB" in close_names("a100-smx4-80gb")

    def test_nothing_like_it(self):
        assert close_names("zzzz") == []


class TestModelsIn:
    @pytest.mark.parametrize(
        ("heading", "found"),
        [
            ("A100 80GB PCIe", ["A100-PCIE-80GB"]),
            ("**40 GB SXM** version", ["A100-SXM4-40GB"]),
            ("Tesla V100 (SXM2)", ["V100-SXM2-32GB"]),
            ("Notes", []),
        ],
    )
    def test_headings(self, heading, found):
        assert names(models_in(heading)) == found


class TestMentions:
    def test_models_in_a_sentence(self):
        found = mentions("An 80GB A100 beats the V100 and the A100 40GB PCIe.")
        assert [names(mention.models)[:2] for mention in found] == [
            ["A100-PCIE-80GB", "A100-SXM4-80GB"],
            ["V100-SXM2-32GB", "V100-PCIE-32GB"],
            ["A100-PCIE-40GB"],
        ]
