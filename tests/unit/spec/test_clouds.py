"""Cloud instances: plausibility that a slip of a column would break."""

import re

import pytest

from va100.spec import a100
from va100.spec.clouds import INSTANCES
from va100.spec.others import MODELS

EVERY_INSTANCE = pytest.mark.parametrize("row", INSTANCES, ids=lambda row: row.name)


@EVERY_INSTANCE
def test_gpus_are_models_we_know(row):
    assert row.gpu_model in {chip.name for chip in a100.MODELS}
    assert row.gpu_count in {1, 2, 4, 8, 16}


@EVERY_INSTANCE
def test_prices_are_dated_and_of_the_right_size(row):
    assert row.prices
    for price in row.prices:
        assert re.fullmatch(r"(?:by |before )?20\d\d(?:-\d\d){0,2}", price.date)
        assert 0.5 < price.price_usd_per_h / row.gpu_count < 6


@EVERY_INSTANCE
def test_spot_is_cheaper(row):
    by_market = {price.market: price.price_usd_per_h for price in reversed(row.prices)}
    assert set(by_market) <= {"on-demand", "spot"}
    if len(by_market) == 2:
        assert by_market["spot"] < by_market["on-demand"]


def test_one_row_an_instance():
    names = [(row.provider, row.name) for row in INSTANCES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_comparison_rates_halve_with_each_doubling_of_width(model):
    if model.fp16_tensor_flop_per_s and model.tf32_tensor_flop_per_s:
        ratio = model.fp16_tensor_flop_per_s / model.tf32_tensor_flop_per_s
        assert ratio == pytest.approx(2, rel=0.02)
    if model.int8_tensor_flop_per_s and model.name != "RTX-4090":
        ratio = model.int8_tensor_flop_per_s / model.fp16_tensor_flop_per_s
        assert ratio == pytest.approx(2, rel=0.03)
