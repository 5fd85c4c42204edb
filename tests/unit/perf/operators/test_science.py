"""Scientific kernels: limits of peak and bandwidth, growth, refusals."""

from __future__ import annotations

import pytest

from va100.perf.operators import science
from va100.perf.operators.chips import DEFAULT, Basis, find_chip
from va100.spec.model import MmaKind, Operation

A100 = find_chip(DEFAULT)
EXAMPLES = {
    "fft": {"n": 1 << 20, "batch": 8},
    "stencil": {"points": 1 << 26},
    "spmv": {"rows": 1 << 20, "cols": 1 << 20, "nnz": 27 << 20},
    "nbody": {"bodies": 65536},
    "pair_force": {"atoms": 100_000, "neighbours": 300},
    "hpl": {"n": 40_000},
}


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(science.KINDS)


@pytest.mark.parametrize(("kind", "sizes"), EXAMPLES.items())
def test_keeps_to_peak_and_bandwidth(kind, sizes):
    found = science.estimate(kind, **sizes)
    peak = max(A100.peak_flop_per_s[unit] for unit in (MmaKind.FP64, Operation.FP32_FMA))
    assert 0 < found.flop_per_s < peak
    assert found.time_s > found.dram_bytes / A100.dram_bytes_per_s
    assert found.kind == kind


@pytest.mark.parametrize(("kind", "sizes"), EXAMPLES.items())
def test_twice_the_size_takes_longer(kind, sizes):
    first = next(iter(sizes))
    larger = {**sizes, first: 2 * sizes[first]}
    assert science.estimate(kind, **larger).time_s > science.estimate(kind, **sizes).time_s


def test_hpl_is_near_what_a_card_reaches():
    found = science.estimate("hpl", n=80_000)
    assert 12e12 < found.flop_per_s < 17e12
    assert found.clock_hz < 1410e6


@pytest.mark.parametrize(
    ("chip", "measured"), [("a100-sxm4-80gb", 10228e6), ("a100-sxm4-40gb", 8522e6)]
)
def test_a_lattice_method_is_as_measured(chip, measured):
    """FluidX3D, D3Q19 in single precision: 153 bytes a cell."""
    found = science.estimate("stencil", points=256**3, reads=19, writes=19, flops=300, chip=chip)
    assert 256**3 / found.time_s == pytest.approx(measured, rel=0.1)


def test_only_some_are_calibrated():
    assert science.estimate("spmv", **EXAMPLES["spmv"]).basis is Basis.CALIBRATED
    assert science.estimate("nbody", **EXAMPLES["nbody"]).basis is Basis.MODEL


@pytest.mark.parametrize(
    ("kind", "sizes", "named"),
    [
        ("sorting", {}, "kind 'sorting'"),
        ("fft", {}, "n too"),
        ("fft", {"n": 8, "m": 8}, "no m"),
        ("hpl", {"n": 0}, "n must be"),
    ],
)
def test_refusals(kind, sizes, named):
    with pytest.raises(ValueError, match=named):
        science.estimate(kind, **sizes)
