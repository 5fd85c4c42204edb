"""MIG tables: figures read from real tools, and their consistency."""

from dataclasses import replace

import pytest

from va100.spec import a100, mig
from va100.units import MIB

EVERY_MODEL = pytest.mark.parametrize("chip", a100.MODELS, ids=lambda chip: chip.name)


class TestProfiles:
    def test_40gb_as_listed_by_the_tool(self):
        rows = {
            p.name: (p.profile_id, p.memory_bytes // MIB, p.sm_count) for p in mig.PROFILES_40GB
        }
        assert rows == {
            "1g.5gb": (19, 4864, 14),
            "1g.5gb+me": (20, 4864, 14),
            "1g.10gb": (15, 9856, 14),
            "2g.10gb": (14, 9856, 28),
            "3g.20gb": (9, 19968, 42),
            "4g.20gb": (5, 19968, 56),
            "7g.40gb": (0, 40192, 98),
        }

    @EVERY_MODEL
    def test_instances_fit_the_chip(self, chip):
        for profile in mig.profiles(chip):
            assert profile.memory_bytes * profile.instance_count <= chip.memory_bytes
            assert profile.sm_count * profile.instance_count <= 98
            assert profile.l2_bytes * profile.instance_count <= chip.l2_bytes
            assert profile.nvdec_count <= chip.nvdec_count

    @EVERY_MODEL
    def test_placements_stay_on_the_chip(self, chip):
        for profile in mig.profiles(chip):
            ends = [start + profile.memory_slice_count for start in profile.placement_starts]
            assert max(ends) <= mig.MEMORY_SLICES
            assert len(ends) >= profile.instance_count

    def test_numbers_are_unique(self):
        for table in (mig.PROFILES_40GB, mig.PROFILES_80GB):
            assert len({p.profile_id for p in table}) == len({p.nvml_id for p in table}) == 7

    def test_a_chip_without_mig_has_none(self):
        assert mig.profiles(replace(a100.A100_PCIE_40GB, mig_instance_count=0)) == ()

    def test_an_unknown_chip_is_refused_by_name(self):
        with pytest.raises(ValueError, match="no MIG table for A30"):
            mig.profiles(replace(a100.A100_PCIE_40GB, name="A30", memory_bytes=24 << 30))


class TestComputeProfiles:
    def test_no_three_of_four_slices(self):
        three = next(p for p in mig.COMPUTE_PROFILES if p.compute_slice_count == 3)
        assert three.gpu_instance_slices_count == (3, 7)

    def test_every_gpu_instance_takes_its_full_size(self):
        for table in (mig.PROFILES_40GB, mig.PROFILES_80GB):
            for profile in table:
                slices = profile.compute_slice_count
                full = [p for p in mig.COMPUTE_PROFILES if p.compute_slice_count == slices]
                assert slices in full[0].gpu_instance_slices_count
