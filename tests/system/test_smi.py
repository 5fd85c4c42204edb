"""``nvidia-smi`` on nodes of ours: what it prints, what it changes, what it refuses."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET

import pytest

from tests.helpers.smi import Smi, anonymous
from va100.node import store

BUS = "00000000:07:00.0"
GPUTIL = (
    "index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,"
    "gpu_serial,display_active,display_mode,temperature.gpu"
)


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """The tool on a board of four."""
    return Smi(monkeypatch, tmp_path)


@pytest.fixture
def one(monkeypatch, tmp_path):
    """The tool on one card, as the capture's."""
    return Smi(monkeypatch, tmp_path, "sxm-a100-40gb")


def rows(text):
    return list(csv.reader(io.StringIO(text), skipinitialspace=True))


class TestList:
    def test_a_line_a_gpu_and_a_mig_device(self, smi, golden):
        assert smi("-mig", "1", "-i", "1").status == 0
        assert smi("mig", "-i", "1", "-cgi", "9,14,19", "-C").status == 0
        assert smi("mig", "-i", "1", "-gi", "2", "-dci").status == 0
        assert smi("mig", "-i", "1", "-gi", "2", "-cci", "0,1").status == 0
        golden("smi/list.txt", anonymous(smi("-L").text))

    def test_scripts_find_the_uuid_in_field_8(self, one):
        one("-mig", "1")
        one("mig", "-cgi", "7g.40gb", "-C")
        fields = one("-L").lines[1].split(" ")
        device = one("-L").lines[1]
        assert device[: device.index("Device")] == "  MIG 7g.40gb     "
        assert any(field.startswith("MIG-") for field in fields)


class TestTable:
    def test_the_whole_board(self, smi, golden):
        golden("smi/table.txt", smi().text.partition("\n")[2])

    def test_mig(self, smi, golden):
        smi("-mig", "1", "-i", "0")
        smi("mig", "-cgi", "3g.20gb,1g.5gb", "-C")
        golden("smi/table-mig.txt", smi("-i", "0").text.partition("\n")[2])

    def test_mig_without_instances_says_so(self, one):
        one("-mig", "1")
        assert "|  No MIG devices found  " in one().text

    def test_all_lines_are_as_wide(self, smi):
        smi("-mig", "1", "-i", "0")
        smi("mig", "-cgi", "7g.40gb", "-C")
        widths = {len(line) for line in smi().lines[1:] if line}
        assert widths == {91}

    def test_the_time_stands_first(self, one):
        first = one().lines[0]
        assert re.fullmatch(r"\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d 2026 {7}", first)

    def test_of_chosen_gpus(self, smi):
        uuid = smi("--query-gpu=uuid", "--format=csv,noheader", "-i", "2").text.strip()
        for chosen in ("2", uuid, "00000000:47:00.0", "0000:47:00.0", "47:00.0"):
            text = smi("-i", chosen).text
            assert text.count("NVIDIA A100-SXM4-40GB") == 1
            assert "|   2  NVIDIA" in text

    @pytest.mark.parametrize("chosen", ["9", "GPU-no", "0000:99:00.0"])
    def test_of_no_gpu(self, smi, chosen):
        result = smi("-i", chosen)
        assert (result.status, result.text) == (6, "No devices were found\n")


class TestQuery:
    def test_gputils_question(self, smi):
        table = rows(smi(f"--query-gpu={GPUTIL}", "--format=csv,noheader,nounits").text)
        assert [row[0] for row in table] == ["0", "1", "2", "3"]
        for row in table:
            assert row[2:6] == ["0", "40960", "0", "40442"]
            assert row[7] == "NVIDIA A100-SXM4-40GB"
            assert row[9:] == ["Disabled", "Enabled", row[11]]
            assert float(row[11]) < 50

    def test_heads_are_canonical_and_have_units(self, one):
        text = one(
            "--query-gpu=gpu_name,clocks.sm,memory.total,fan.speed,power.limit", "--format=csv"
        )
        assert text.lines == [
            "name, clocks.current.sm [MHz], memory.total [MiB], fan.speed [%], power.limit [W]",
            "NVIDIA A100-SXM4-40GB, 210 MHz, 40960 MiB, [N/A], 400.00 W",
        ]

    def test_formats_in_any_order(self, one):
        wanted = one("--query-gpu=power.limit", "--format=csv,noheader,nounits").text
        assert wanted == "400.00\n"
        assert one("--query-gpu=power.limit", "--format=noheader,nounits,csv").text == wanted

    def test_every_field_gives_one_cell(self, one):
        names = [
            line.partition('"')[2].partition('"')[0] for line in one("--help-query-gpu").lines[1:]
        ]
        table = rows(one("--query-gpu=" + ",".join(names), "--format=csv").text)
        assert len(names) > 150
        assert [len(row) for row in table] == [len(names)] * 2
        assert "" not in table[1]

    @pytest.mark.parametrize(
        "source", ["compute-apps", "accounted-apps", "supported-clocks", "remapped-rows"]
    )
    def test_other_questions_list_their_fields(self, one, source):
        lines = one(f"--help-query-{source}").lines[1:]
        names = [line.partition('"')[2].partition('"')[0] for line in lines]
        heads = one(f"--query-{source}={','.join(names)}", "--format=csv").lines[0]
        assert [head.partition(" [")[0] for head in heads.split(", ")] == names

    def test_a_loop_prints_heads_once(self, one):
        one.most_waits = 3
        result = one("--query-gpu=index", "--format=csv", "-lms", "100")
        assert result.lines == ["index", "0", "0", "0"]
        assert one.waits == [0.1] * 3

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["--query-gpu=foo", "--format=csv"], 'Field "foo" is not a valid field to query.'),
            (["--query-gpu=name"], "--format=csv"),
            (["--query-gpu=name", "--format=json"], '"--format=csv" is needed'),
            (["--query-gpu=name", "--format=csv,foo"], '"foo" is no format'),
            (["--format=csv"], "goes with one of the queries"),
            (["-q", "-L"], "Invalid combination"),
            (["-q", "-d", "FOO"], '"FOO" is no part to display'),
            (["-l", "0"], "no whole number"),
            (["--foo"], "not recognized"),
            (["vgpu", "-q"], '"vgpu" is not there'),
            (["-q", "-x", "--dtd"], "NVIDIA's"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_what_is_wrong_is_told(self, one, words, told):
        result = one(*words)
        assert result.status == 2
        assert told in result.text

    def test_no_processes_are_no_rows(self, one):
        result = one("--query-compute-apps=pid,name,used_memory", "--format=csv")
        assert result.lines == ["pid, process_name, used_gpu_memory [MiB]"]

    def test_remapped_rows_follow_what_was_injected(self, one):
        store.inject("box", 0, "remap", "pending")
        fields = "remapped_rows.uncorrectable,remapped_rows.pending,remapped_rows.histogram.high"
        result = one(f"--query-remapped-rows={fields}", "--format=csv,noheader")
        assert result.text == "1, Yes, 1\n"

    def test_supported_clocks(self, one):
        result = one("--query-supported-clocks=mem,gr", "--format=csv,noheader,nounits")
        assert result.lines[0] == "1215, 1410"
        assert result.lines[-1] == "1215, 210"
        assert len(result.lines) == 81


class TestReport:
    def test_text(self, one, golden):
        golden("smi/query.txt", anonymous(one("-q").text.partition("Driver")[2]))

    def test_parts(self, one, golden):
        words = "MEMORY,UTILIZATION,ECC,POWER,SUPPORTED_CLOCKS,PIDS"
        golden("smi/query-parts.txt", one("-q", "-d", words).text.partition("Driver")[2])

    def test_mig_devices(self, one, golden):
        one("-mig", "1")
        one("mig", "-cgi", "9", "-C")
        text = one("-q").text
        start, end = text.index("    MIG Mode"), text.index("    Accounting Mode ")
        golden("smi/query-mig.txt", text[start:end])
        device = ET.fromstring(one("-q", "-x").text).find("gpu/mig_devices/mig_device")
        assert device.findtext("gpu_instance_id") == "2"
        assert device.findtext("device_attributes/shared/multiprocessor_count") == "42"
        assert device.findtext("fb_memory_usage/total") == "19968 MiB"

    def test_errors_are_told(self, one):
        store.inject("box", 0, "ecc", "dram uncorrected", 3)
        gpu = ET.fromstring(one("-q", "-x").text).find("gpu")
        assert gpu.findtext("ecc_errors/volatile/dram_uncorrectable") == "3"

    def test_xml_has_the_elements_of_a_real_one(self, one, shared, root):
        real = ET.parse(shared("data/nvidia-smi-q-x-a100-sxm4-40gb.xml")).getroot()
        ours = ET.fromstring(one("-q", "-x").text)
        told, printed = leaves(real), leaves(ours)
        assert [path for path, _ in printed] == [path for path, _ in told]
        page = (root / "docs" / "nvidia-smi.md").read_text(encoding="utf-8")
        listed = set(re.findall(r"^\| `([^`]*)` \|", page, re.MULTILINE))
        differing = {path for (path, a), (_, b) in zip(told, printed, strict=True) if a != b}
        assert differing == listed & {path for path, _ in told}


def leaves(element, prefix=""):
    """Paths of all elements in order, each with its text; those that hold others have none."""
    found = []
    for child in element:
        path = f"{prefix}{child.tag}"
        found.append((path, None if len(child) else (child.text or "").strip()))
        found += leaves(child, f"{path}/")
    return found


class TestFaults:
    def test_a_lost_gpu(self, smi):
        store.inject("box", 1, "lost")
        result = smi("-L")
        assert result.status == 15
        assert "Unable to determine the device handle for GPU1: GPU is lost" in result.text
        assert len(result.lines) == 4

    def test_a_call_without_permission(self, one):
        store.inject("box", 0, "no-permission", "nvmlDeviceGetTemperature")
        result = one("--query-gpu=temperature.gpu,power.limit", "--format=csv,noheader")
        assert result.text == "[Insufficient Permissions], 400.00 W\n"
        assert "| N/A  ERR!    P0 " in one().text
        gpu = ET.fromstring(one("-q", "-x").text).find("gpu")
        assert gpu.findtext("temperature/gpu_temp") == "Insufficient Permissions"
