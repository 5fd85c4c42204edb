"""Chips by name: all models, slices of A100s, what is derived of each."""

from __future__ import annotations

import pytest

from va100.perf.operators.chips import Basis, find_chip
from va100.spec import mig
from va100.spec.a100 import A100_SXM4_80GB
from va100.spec.a100 import MODELS as A100S
from va100.spec.names import MODELS


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_model_is_a_chip(model):
    chip = find_chip(model.name)
    assert chip.name == model.name
    assert 0 < chip.idle_w < chip.power_limit_w
    assert 0 < chip.dram_reached_bytes_per_s < chip.dram_bytes_per_s
    assert chip.l2_bytes > 0
    assert chip.energy_ratio > 0
    assert chip.basis is (Basis.CALIBRATED if model in A100S else Basis.VENDOR_PEAK)


@pytest.mark.parametrize("profile", mig.profiles(A100_SXM4_80GB), ids=lambda one: one.name)
def test_a_slice_holds_its_share(profile):
    whole = find_chip("a100-sxm4-80gb")
    part = find_chip(f"a100-sxm4-80gb:{profile.name}")
    assert part.sm_count == profile.sm_count
    assert part.basis is Basis.MODEL
    assert part.least_error_ratio > whole.least_error_ratio == 0.0
    assert part.memory_bytes == profile.memory_bytes
    assert part.dram_bytes_per_s == whole.dram_bytes_per_s * profile.memory_slice_count / 8
    for unit, peak in part.peak_flop_per_s.items():
        assert peak / whole.peak_flop_per_s[unit] == pytest.approx(profile.sm_count / 108)


def test_a_chip_is_one_object():
    assert find_chip("a100-sxm4-80gb") is find_chip("a100-sxm4-80gb")
