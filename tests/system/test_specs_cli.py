"""``va100 specs`` as a person uses it."""

import argparse
import io
import json
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from va100.cli import specs

BAD = "| | A100 SXM |\n|---|---|\n| FP64 | 9.7 TFLOPS |\n| TF32 | 312 TFLOPS |\n"
GOOD = "| | A100 SXM |\n|---|---|\n| FP64 | 9.7 TFLOPS |\n| TF32 | 156 TFLOPS |\n"


def run(*words):
    """Exit status of the verb."""
    parser = argparse.ArgumentParser()
    specs.add_parser(parser.add_subparsers())
    return specs.run(parser.parse_args(["specs", *words]))


class TestShow:
    def test_the_four_a100s_side_by_side(self, capsys):
        assert run() == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == [
            "A100-PCIE-40GB",
            "A100-PCIE-80GB",
            "A100-SXM4-40GB",
            "A100-SXM4-80GB",
        ]
        rows = {line[:26].strip(): line[26:].split("  ") for line in lines}
        assert "156 TFLOPS" in rows["TF32 tensor, dense"][-1]
        assert "312 TFLOPS" in rows["TF32 tensor, 2:4 sparse"][-1]
        assert "2,039 GB/s" in rows["Memory bandwidth"][-1]

    def test_loose_names(self, capsys):
        assert run("sxm80", "h100") == 0
        heading = capsys.readouterr().out.splitlines()[0].split()
        assert heading == ["A100-SXM4-80GB", "H100-SXM5-80GB", "H100-PCIE-80GB"]

    def test_a_stranger_and_what_was_meant(self, capsys):
        assert run("a100-smx4-80gb") == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "A100-SXM4-80GB" in captured.err

    def test_json_in_base_units(self, capsys):
        assert run("sxm80", "--json") == 0
        model = json.loads(capsys.readouterr().out)["models"]["A100-SXM4-80GB"]
        assert model["memory_bytes_per_s"] == pytest.approx(2039.04e9)
        assert model["fp16_tensor_flop_per_s"] == pytest.approx(312e12, rel=0.005)
        assert model["structure"]["sm"]["register_allocation_count"] == 256
        assert "sources" not in model

    def test_json_with_sources_for_counting(self, capsys):
        assert run("sxm80", "--json", "--sources") == 0
        model = json.loads(capsys.readouterr().out)["models"]["A100-SXM4-80GB"]
        confidences = {source["confidence"] for source in model["field_sources"].values()}
        assert confidences == {"datasheet", "measured", "derived", "assumed"}
        assert model["field_sources"]["sm.register_count"]["key"] == "CUDA-PG"
        assert set(model["sources"]["memory_bytes_per_s"]) == {"memory_bus_bits", "memory_clock_hz"}

    def test_sources_for_people(self, capsys):
        assert run("sxm80", "--sources") == 0
        assert "Memory bandwidth: memory_bus_bits [A100-WP" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("topic", "words"),
        [
            ("mig", ["1g.5gb+me", "{0,2,4,6}:2", "80896"]),
            ("hgx", ["HGX A100 16-GPU", "2,400"]),
            ("clouds", ["p4d.24xlarge", "21.96", "2026-09-25"]),
        ],
    )
    def test_topics(self, topic, words, capsys):
        assert run(topic) == 0
        out = capsys.readouterr().out
        assert [word for word in words if word not in out] == []

    def test_all_of_it(self, capsys):
        assert run("--all", "--json") == 0
        data = json.loads(capsys.readouterr().out)
        assert len(data["models"]) == 18
        assert len(data["mig"]) == 19
        assert data["clouds"][0]["prices"][0]["date"] == "2026-09-25"
        assert run("--all") == 0
        assert "RTX-4090" in capsys.readouterr().out


class TestCheck:
    def test_discrepancies(self, tmp_path, capsys):
        table = tmp_path / "table.md"
        table.write_text(BAD, encoding="utf-8")
        assert run("--check", str(table)) == 1
        out = capsys.readouterr().out
        assert "line 4: TF32 of A100 SXM (312 TFLOPS): 312 TFLOPS is the 2:4 sparse rate" in out
        assert "right: 1" in out

    def test_all_right(self, tmp_path, capsys):
        table = tmp_path / "table.md"
        table.write_text(GOOD, encoding="utf-8")
        assert run("--check", str(table)) == 0
        assert "wrong" not in capsys.readouterr().out

    def test_json(self, tmp_path, capsys):
        table = tmp_path / "table.md"
        table.write_text(BAD, encoding="utf-8")
        assert run("--check", str(table), "--json") == 1
        data = json.loads(capsys.readouterr().out)
        assert data["counts"] == {"right": 1, "wrong": 1, "unchecked": 0}
        assert data["findings"][1]["problem"] == "sparse_as_dense"
        assert data["findings"][1]["matches"] == "tf32_tensor_sparse_flop_per_s"

    def test_standard_input(self, monkeypatch, capsys):
        stream = io.TextIOWrapper(io.BytesIO(b"NVLink is 600 GB/s, 6x V100."), encoding="utf-8")
        monkeypatch.setattr(sys, "stdin", stream)
        assert run("--check", "-") == 1
        assert "count of links" in capsys.readouterr().out

    def test_windows_line_ends_and_a_byte_order_mark(self, tmp_path):
        table = tmp_path / "table.md"
        table.write_bytes(b"\xef\xbb\xbf" + BAD.replace("\n", "\r\n").encode())
        assert run("--check", str(table)) == 1

    @pytest.mark.parametrize(
        ("name", "content", "reason"),
        [
            ("table.md", b"\xff\xfe\x00", "not UTF-8 text"),
            ("table.json", b"{", "not JSON"),
            ("table.md", b"nothing here", "nothing in it could be checked"),
            ("table.csv", b"", "nothing in it could be checked"),
            ("table.md", b" " * (3 << 20), "larger than"),
        ],
    )
    def test_unreadable(self, tmp_path, capsys, name, content, reason):
        table = tmp_path / name
        table.write_bytes(content)
        assert run("--check", str(table)) == 2
        assert reason in capsys.readouterr().err

    def test_missing_file_and_folder(self, tmp_path, capsys):
        assert run("--check", str(tmp_path / "none.md")) == 2
        assert run("--check", str(tmp_path)) == 2
        assert "cannot check" in capsys.readouterr().err

    @settings(
        max_examples=200,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(content=st.binary(max_size=200), ending=st.sampled_from(["md", "csv", "tsv", "json"]))
    def test_any_bytes(self, tmp_path, content, ending):
        table = tmp_path / f"table.{ending}"
        table.write_bytes(content)
        assert run("--check", str(table)) in (0, 1, 2)
