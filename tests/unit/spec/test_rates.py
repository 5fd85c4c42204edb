"""Headline figures derived from structure, against what the vendor prints."""

import pytest

from va100.spec import a100, hgx, rates
from va100.spec.model import MmaKind, Operation

TERA = 1e12

DENSE = {
    Operation.FP64_FMA: 9.7,
    Operation.FP32_FMA: 19.5,
    Operation.FP16_FMA: 78.0,
    Operation.BF16_FMA: 39.0,
    Operation.INT32_MUL: 19.5,
    MmaKind.FP64: 19.5,
    MmaKind.TF32: 156.0,
    MmaKind.BF16: 312.0,
    MmaKind.FP16: 312.0,
    MmaKind.INT8: 624.0,
    MmaKind.INT4: 1248.0,
    MmaKind.B1: 4992.0,
}
SPARSE = {
    MmaKind.TF32: 312.0,
    MmaKind.BF16: 624.0,
    MmaKind.FP16: 624.0,
    MmaKind.INT8: 1248.0,
    MmaKind.INT4: 2496.0,
}
EVERY_MODEL = pytest.mark.parametrize("chip", a100.MODELS, ids=lambda chip: chip.name)


class TestPeak:
    @EVERY_MODEL
    @pytest.mark.parametrize("kind", DENSE)
    def test_dense_rates_are_the_datasheets(self, chip, kind):
        assert rates.peak_flop_per_s(chip, kind) == pytest.approx(DENSE[kind] * TERA, rel=0.005)

    @EVERY_MODEL
    @pytest.mark.parametrize("kind", SPARSE)
    def test_sparse_rates_are_the_datasheets(self, chip, kind):
        rate = rates.peak_flop_per_s(chip, kind, sparse=True)
        assert rate == pytest.approx(SPARSE[kind] * TERA, rel=0.005)

    @pytest.mark.parametrize("kind", [MmaKind.FP64, MmaKind.B1, MmaKind.FP8, Operation.FP32_FMA])
    def test_what_has_no_sparse_form_has_no_sparse_rate(self, kind):
        assert rates.peak_flop_per_s(a100.A100_SXM4_80GB, kind, sparse=True) == 0

    def test_no_fp8(self):
        assert rates.peak_flop_per_s(a100.A100_SXM4_80GB, MmaKind.FP8) == 0


class TestBandwidth:
    @pytest.mark.parametrize(
        ("chip", "gigabytes_per_s"),
        [
            (a100.A100_PCIE_40GB, 1555),
            (a100.A100_PCIE_80GB, 1935),
            (a100.A100_SXM4_40GB, 1555),
            (a100.A100_SXM4_80GB, 2039),
        ],
        ids=lambda value: getattr(value, "name", None),
    )
    def test_memory(self, chip, gigabytes_per_s):
        assert rates.memory_bytes_per_s(chip) == pytest.approx(gigabytes_per_s * 1e9, rel=0.005)

    @EVERY_MODEL
    def test_nvlink_and_pcie(self, chip):
        assert rates.nvlink_bytes_per_s(chip) == pytest.approx(600e9)
        assert rates.pcie_bytes_per_s(chip.pcie) == pytest.approx(31.5e9, rel=0.005)

    def test_on_chip(self):
        chip = a100.A100_SXM4_80GB
        assert rates.l2_bytes_per_s(chip) == pytest.approx(5120 * 1.41e9)
        assert rates.shared_bytes_per_s(chip) == pytest.approx(19.5e12, rel=0.005)

    @EVERY_MODEL
    def test_nothing_measured_beats_its_peak(self, chip):
        seen = chip.measured
        assert seen.dram_read_bytes_per_s < rates.memory_bytes_per_s(chip)
        assert seen.l2_bytes_per_s < rates.l2_bytes_per_s(chip)
        assert seen.l1_bytes_per_s < rates.shared_bytes_per_s(chip)
        assert seen.bf16_gemm_flop_per_s < rates.peak_flop_per_s(chip, MmaKind.BF16)
        assert seen.pcie_copy_bytes_per_s < rates.pcie_bytes_per_s(chip.pcie)

    def test_measured_dram_rates_follow_the_memory_clocks(self):
        """Only some models were measured; the others must not inherit a faster card's rate."""
        shares = {
            chip.name: chip.measured.dram_read_bytes_per_s / rates.memory_bytes_per_s(chip)
            for chip in a100.MODELS
        }
        assert shares["A100-PCIE-80GB"] == pytest.approx(shares["A100-SXM4-80GB"])
        assert shares["A100-PCIE-40GB"] == pytest.approx(shares["A100-SXM4-40GB"])
        for chip in a100.MODELS:
            assert chip.measured.l2_curve_bytes_per_s[-1] == chip.measured.dram_read_bytes_per_s


class TestTotals:
    @EVERY_MODEL
    def test_cores(self, chip):
        assert rates.fp32_lane_total(chip) == 6912
        assert rates.tensor_core_total(chip) == 432


class TestBoards:
    def test_pairs(self):
        pairs = [rates.pair_bytes_per_s(board) / 1e9 for board in hgx.BOARDS]
        assert pairs == [100, 300, 300]

    def test_bisection(self):
        halves = [rates.bisection_bytes_per_s(board) / 1e9 for board in hgx.BOARDS]
        assert halves == [400, 1200, 2400]

    @pytest.mark.parametrize("board", hgx.BOARDS, ids=lambda board: board.name)
    def test_every_link_of_a_gpu_ends_somewhere(self, board):
        switches_seen = board.nvswitch_count // board.baseboard_count
        in_switches = switches_seen * board.links_per_switch_count
        in_peers = (board.gpu_count - 1) * board.links_per_peer_count
        assert in_switches + in_peers == board.links_per_gpu_count

    @pytest.mark.parametrize("row", hgx.FABRIC_PARTITIONS, ids=lambda row: str(row.gpu_count))
    def test_partitions_use_as_many_gpu_ports_as_links(self, row):
        trunks = 16 * row.nvswitch_count if row.gpu_count == 16 else 0
        in_switches = row.nvswitch_count * row.links_per_switch_count - trunks
        links = row.gpu_count * row.links_per_gpu_count
        # The guide prints six ports a switch for four GPUs, where their links need eight.
        printed = {4: 18}.get(row.gpu_count, links)
        assert in_switches == printed
