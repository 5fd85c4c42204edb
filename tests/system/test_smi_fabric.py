"""``topo``, ``nvlink``, ``dmon`` and ``pmon`` on boards of every kind."""

from __future__ import annotations

import pytest

from tests.helpers.smi import Smi, anonymous
from va100.node import store


def matrix(result):
    """Cells of ``topo -m`` by row and column."""
    head, *body = result.text.partition("\n\nLegend")[0].splitlines()
    names = head.split("\t")[1:]
    return {
        line.split("\t")[0]: dict(zip(names, map(str.strip, line.split("\t")[1:]), strict=False))
        for line in body
    }


class TestTopology:
    def test_a_dgx(self, monkeypatch, tmp_path, golden):
        golden("smi/topo.txt", Smi(monkeypatch, tmp_path, "dgx-a100-640gb")("topo", "-m").text)

    def test_bridged_pairs(self, monkeypatch, tmp_path):
        cells = matrix(Smi(monkeypatch, tmp_path, "pcie-a100-80gb-x4")("topo", "-m"))
        assert cells["GPU0"]["GPU1"] == cells["GPU2"]["GPU3"] == "NV12"
        assert cells["GPU0"]["GPU2"] == "SYS"

    def test_a_link_that_is_down_is_not_counted(self, monkeypatch, tmp_path):
        smi = Smi(monkeypatch, tmp_path)
        assert matrix(smi("topo", "-m"))["GPU0"]["GPU1"] == "NV4"
        store.inject("box", 0, "link", "0")
        after = matrix(smi("topo", "-m"))
        assert sorted(after["GPU0"][f"GPU{peer}"] for peer in (1, 2, 3)) == ["NV3", "NV4", "NV4"]
        assert "\t Link 0: <inactive>" in smi("nvlink", "-s", "-i", "0").lines

    def test_a_gpu_that_switches_dropped_is_near_by_pcie_alone(self, monkeypatch, tmp_path):
        smi = Smi(monkeypatch, tmp_path, "hgx-a100-8x40gb")
        store.inject("box", 0, "link", "3")
        after = matrix(smi("topo", "-m"))
        assert after["GPU0"]["GPU1"] == "PXB"
        assert after["GPU0"]["GPU7"] == "SYS"
        assert after["GPU1"]["GPU7"] == "NV12"

    def test_escapes_are_for_terminals(self, monkeypatch, tmp_path):
        smi = Smi(monkeypatch, tmp_path)
        assert smi("topo", "-m").text.startswith("\tGPU0\t")
        assert smi("topo", "-m", is_terminal=True).text.startswith("\t\x1b[4mGPU0\t")


class TestNvlink:
    @pytest.mark.parametrize("words", [["-s"], ["-c", "-l", "0"], ["-e", "-l", "0"]], ids=" ".join)
    def test_prints(self, monkeypatch, tmp_path, golden, words):
        result = Smi(monkeypatch, tmp_path)("nvlink", *words, "-i", "0")
        golden(f"smi/nvlink{words[0]}.txt", anonymous(result.text))

    def test_what_is_wrong_is_told(self, monkeypatch, tmp_path):
        smi = Smi(monkeypatch, tmp_path)
        assert smi("nvlink", "-s", "-l", "12").status == 2
        assert smi("nvlink", "-s", "-c").status == 2


class TestMonitors:
    def test_devices(self, monkeypatch, tmp_path):
        smi = Smi(monkeypatch, tmp_path)
        smi.most_waits = 9
        lines = smi("dmon", "-c", "2", "-d", "3").lines
        assert smi.waits == [3]
        assert lines[0].split() == (
            "# gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk".split()
        )
        assert [line.split()[0] for line in lines[2:]] == ["0", "1", "2", "3"] * 2
        assert len({len(line) for line in lines}) == 1

    def test_processes(self, monkeypatch, tmp_path):
        lines = Smi(monkeypatch, tmp_path)("pmon", "-c", "1", "-s", "um").lines
        assert lines[0] == (
            "# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm"
            "    command "
        )
        assert lines[2] == (
            "    0          -     -      -      -      -      -      -      -      -      -"
            "    -               "
        )

    def test_csv(self, monkeypatch, tmp_path):
        lines = Smi(monkeypatch, tmp_path)("dmon", "-c", "1", "-s", "c", "--format", "csv").lines
        assert lines[:3] == ["#gpu, mclk, pclk", "#Idx, MHz, MHz", "0, 1215, 210"]

    @pytest.mark.parametrize(
        "words", [["-s", "z"], ["-c", "0"], ["-o", "X"], ["-d", "x"]], ids=" ".join
    )
    def test_what_is_wrong_is_told(self, monkeypatch, tmp_path, words):
        assert Smi(monkeypatch, tmp_path)("dmon", *words).status == 2
