"""Facts refuse to exist without sources, and travel between interpreters."""

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from va100.spec import a100
from va100.spec.model import Confidence, MmaKind, Operation, PcieSpec, Source, cited
from va100.work import Pipe

SOURCE = Source(key="A100-WP", where="a page", confidence=Confidence.DATASHEET)
FIELDS = "pcie_generation lane_count lane_bytes_per_s encoding_ratio"


def pcie(names: str) -> PcieSpec:
    return PcieSpec(
        pcie_generation=4,
        lane_count=16,
        lane_bytes_per_s=2e9,
        encoding_ratio=1.0,
        sources=cited((SOURCE, names)),
    )


class TestSpec:
    def test_a_fact_without_source_is_refused(self):
        with pytest.raises(ValueError, match=r"without source.*encoding_ratio"):
            pcie(FIELDS.replace(" encoding_ratio", ""))

    def test_a_source_without_fact_is_refused(self):
        with pytest.raises(ValueError, match=r"source without field.*colour"):
            pcie(FIELDS + " colour")

    def test_frozen(self):
        with pytest.raises(FrozenInstanceError):
            pcie(FIELDS).lane_count = 8

    @pytest.mark.parametrize("chip", a100.MODELS, ids=lambda chip: chip.name)
    def test_pickles_with_its_sources_and_hashes(self, chip):
        copy = pickle.loads(pickle.dumps(chip))
        assert copy == chip
        assert hash(copy) == hash(chip)
        assert dict(copy.sources) == dict(chip.sources)

    def test_a_changed_chip_keeps_its_sources(self):
        smaller = replace(a100.A100_SXM4_80GB, sm_count=98)
        assert smaller != a100.A100_SXM4_80GB
        assert smaller.sources["sm_count"] == a100.A100_SXM4_80GB.sources["sm_count"]


class TestCited:
    def test_twice_is_refused(self):
        with pytest.raises(ValueError, match="twice"):
            cited((SOURCE, "a b"), (SOURCE, "b"))

    def test_revision_of_an_unknown_field_is_refused(self):
        with pytest.raises(ValueError, match="no such"):
            cited((SOURCE, "a")).revised((SOURCE, "b"))


class TestSm:
    def test_every_operation_and_kind_has_a_rate(self):
        sm = a100.GA100_SM
        assert all(sm.throughput.per_cycle(operation) > 0 for operation in Operation)
        assert {kind for kind in MmaKind if not sm.mma.fma_per_cycle(kind)} == {MmaKind.FP8}

    def test_lanes(self):
        lanes = {pipe: a100.GA100_SM.lane_count(pipe) for pipe in (Pipe.FMA, Pipe.FP64, Pipe.XU)}
        assert lanes == {Pipe.FMA: 64, Pipe.FP64: 32, Pipe.XU: 16}
        with pytest.raises(ValueError, match="tensor"):
            a100.GA100_SM.lane_count(Pipe.TENSOR)

    def test_limits_agree_with_each_other(self):
        sm = a100.GA100_SM
        assert sm.resident_warp_count * 32 == sm.resident_thread_count
        assert sm.shared_block_optin_bytes + sm.shared_reserved_bytes == sm.shared_bytes
        assert max(sm.shared_carveout_bytes) == sm.shared_bytes < sm.l1_shared_bytes

    @pytest.mark.parametrize("chip", a100.MODELS, ids=lambda chip: chip.name)
    def test_l2_curve_falls_to_dram(self, chip):
        curve = chip.measured.l2_curve_bytes_per_s
        assert list(curve) == sorted(curve, reverse=True)
        assert curve[-1] == chip.measured.dram_read_bytes_per_s
        assert len(curve) == len(chip.measured.l2_curve_footprint_bytes)
