"""Copies between hosts and GPUs, and between GPUs."""

from __future__ import annotations

import pytest

from va100.perf.links import host_copy, peer_copy
from va100.units import GB, GIB, MB


class TestHostCopy:
    @pytest.mark.parametrize(
        ("choice", "rate"),
        [
            ({}, 26.2 * GB),
            ({"pinned": False}, 12.7 * GB),
            ({"both_ways": True}, 24.7 * GB),
            ({"node": "aws-p4d.24xlarge"}, 13.1 * GB),
        ],
    )
    def test_rates(self, choice, rate):
        assert host_copy(4 * GIB, **choice).rate_bytes_per_s == pytest.approx(rate, rel=0.01)

    def test_small_ones_wait(self):
        assert host_copy(8).bound == "latency"


class TestPeerCopy:
    def test_measured_points(self):
        assert peer_copy(40 * MB, 0, 5).rate_bytes_per_s == pytest.approx(262 * GB, rel=0.02)
        assert peer_copy(4 * GIB, 0, 5).rate_bytes_per_s == pytest.approx(279 * GB, rel=0.01)
        both = peer_copy(4 * GIB, 0, 1, both_ways=True)
        assert 2 * both.rate_bytes_per_s == pytest.approx(531 * GB, rel=0.01)

    def test_paths_differ(self):
        mesh = peer_copy(GIB, 0, 1, node="hgx-a100-4x80gb")
        assert (mesh.links_count, mesh.bound) == (4, "NVLink")
        apart = peer_copy(GIB, 0, 2, node="pcie-a100-80gb-x4")
        assert (apart.links_count, apart.bound) == (0, "PCIe")

    @pytest.mark.parametrize(
        ("source", "target", "said"), [(0, 0, "both GPU 0"), (0, 8, "GPUs 0 to 7, not 8")]
    )
    def test_refusals(self, source, target, said):
        with pytest.raises(ValueError, match=said):
            peer_copy(1, source, target)
