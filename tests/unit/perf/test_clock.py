"""Chips at other clocks than boost."""

import pytest

from va100.perf.clock import at_clock
from va100.spec.a100 import A100_SXM4_40GB


class TestAtClock:
    def test_what_goes_with_the_clock_goes_with_it(self):
        slow = at_clock(A100_SXM4_40GB, 705e6)
        assert slow.boost_clock_hz == 705_000_000
        assert slow.measured.l2_bytes_per_s == A100_SXM4_40GB.measured.l2_bytes_per_s / 2
        assert slow.measured.dram_read_bytes_per_s == A100_SXM4_40GB.measured.dram_read_bytes_per_s
        assert at_clock(A100_SXM4_40GB, 1410e6) == A100_SXM4_40GB

    @pytest.mark.parametrize("clock_hz", [1410, 100e6, 1500e6])
    def test_clocks_that_the_chip_does_not_have(self, clock_hz):
        with pytest.raises(ValueError, match=r"runs at .* MHz"):
            at_clock(A100_SXM4_40GB, clock_hz)
