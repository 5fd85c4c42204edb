"""MIG slices as chips."""

import pytest

from va100.perf.slices import slice_of
from va100.spec.a100 import A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.rates import memory_bytes_per_s
from va100.units import MIB


class TestSliceOf:
    def test_the_smallest_has_an_eighth_of_memory_and_fourteen_sms(self):
        found = slice_of(A100_SXM4_40GB, "1g.5gb")
        assert (found.sm_count, found.l2_bytes, found.memory_bus_bits) == (14, 5 * MIB, 640)
        assert memory_bytes_per_s(found) == pytest.approx(memory_bytes_per_s(A100_SXM4_40GB) / 8)
        measured = A100_SXM4_40GB.measured
        assert found.measured.dram_read_bytes_per_s == measured.dram_read_bytes_per_s / 8

    def test_the_largest_has_all_of_memory(self):
        found = slice_of(A100_SXM4_80GB, "7g.80gb")
        assert (found.sm_count, found.memory_bus_bits) == (98, A100_SXM4_80GB.memory_bus_bits)

    def test_what_is_not_offered_is_named(self):
        with pytest.raises(ValueError, match=r"no MIG profile '1g.5gb'; it has 1g.10gb"):
            slice_of(A100_SXM4_80GB, "1g.5gb")
