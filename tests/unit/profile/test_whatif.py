"""Launches elsewhere than they ran."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.helpers.launches import launch
from va100.errors import SetupError
from va100.profile.whatif import variations, what_if, whatif_json, whatif_text
from va100.spec.a100 import A100_PCIE_40GB, A100_SXM4_80GB


def at(word, base=None, chip=A100_SXM4_80GB):
    (place,) = variations([word], chip)
    return what_if(base or launch(), place)


class TestWhatIf:
    def test_less_memory_takes_longer(self):
        whole, half, eighth = (at(word).time_s for word in ("7g.80gb", "3g.40gb", "1g.10gb"))
        assert whole < half < eighth

    def test_a_lower_clock_saves_power(self):
        slow, fast = at("765MHz"), at("1410MHz")
        assert slow.time_s >= fast.time_s
        assert slow.energy_j / slow.time_s < fast.energy_j / fast.time_s

    def test_data_in_l2_is_faster(self):
        small = replace(launch(), counters=launch().counters | {"footprint_bytes": 12e6})
        assert at("warm", small).time_s < at("sxm80", small).time_s

    def test_what_does_not_fit_says_why(self):
        big = replace(launch(), shared_bytes=200_000)
        found = at("pcie40", big)
        assert found.time_s is None
        assert "shared memory" in found.bound

    def test_alone_it_is_every_model_slice_and_lower_clocks(self):
        names = [place.name for place in variations([], A100_SXM4_80GB)]
        assert names[:4] == ["A100-PCIE-40GB", "A100-PCIE-80GB", "A100-SXM4-40GB", "A100-SXM4-80GB"]
        assert "MIG 1g.10gb" in names
        assert names[-3:] == ["1095 MHz", "765 MHz", "data in L2"]

    @pytest.mark.parametrize("word", ["h100", "a100", "9g.99gb", "9000MHz", "x"])
    def test_what_is_not_known_is_refused(self, word):
        with pytest.raises(SetupError):
            variations([word], A100_PCIE_40GB)


def test_texts_hold_every_place():
    places = variations([], A100_SXM4_80GB)
    text = whatif_text([launch()], places)
    assert all(place.name in text for place in places)
    records = json.loads(whatif_json([launch()], places))
    assert [record["variation"] for record in records] == [place.name for place in places]
