"""``nvidia-smi mig``: the life of instances, sentence by sentence."""

from __future__ import annotations

import pytest

from tests.helpers.smi import Smi
from va100.node import store


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """The tool on one card whose MIG mode is on."""
    tool = Smi(monkeypatch, tmp_path, "sxm-a100-40gb")
    assert tool("-mig", "1").text == "Enabled MIG Mode for GPU 00000000:07:00.0\nAll done.\n"
    return tool


class TestMode:
    def test_off_again(self, smi):
        assert smi("-mig", "0").text == "Disabled MIG Mode for GPU 00000000:07:00.0\nAll done.\n"
        result = smi("mig", "-lgip")
        assert (result.status, result.text) == (6, "No MIG-enabled devices found.\n")

    def test_utilisation_is_not_told_under_mig(self, smi):
        fields = "utilization.gpu,mig.mode.current,mig.mode.pending"
        result = smi(f"--query-gpu={fields}", "--format=csv,noheader")
        assert result.text == "[N/A], Enabled, Enabled\n"


class TestListings:
    @pytest.mark.parametrize("listing", ["lgip", "lgipp"])
    def test_of_an_empty_card(self, smi, golden, listing):
        golden(f"smi/mig-{listing}.txt", smi("mig", f"-{listing}").text)

    def test_of_80_gb(self, monkeypatch, tmp_path, golden):
        tool = Smi(monkeypatch, tmp_path, "sxm-a100-80gb")
        tool("-mig", "1")
        golden("smi/mig-lgip-80gb.txt", tool("mig", "-lgip").text)

    def test_of_instances(self, smi, golden):
        smi("mig", "-cgi", "9,3g.20gb")
        smi("mig", "-cci", "-gi", "1")
        smi("mig", "-cci", "0,0", "-gi", "2")
        golden("smi/mig-lgi.txt", smi("mig", "-lgi").text)
        golden("smi/mig-lci.txt", smi("mig", "-lci").text)
        golden("smi/mig-lcip.txt", smi("mig", "-lcip", "-gi", "2").text)

    def test_of_nothing(self, smi):
        assert smi("mig", "-lgi")[:] == (6, "No GPU instances found: Not Found\n")
        smi("mig", "-cgi", "0")
        assert smi("mig", "-lci")[:] == (6, "No compute instances found: Not Found\n")
        assert smi("mig", "-lgi", "-gi", "5")[:] == (6, "No GPU instances found: Not Found\n")


class TestLife:
    def test_the_guides_two_halves(self, smi):
        created = smi("mig", "-cgi", "9,3g.20gb", "-C")
        assert created.status == 0
        assert created.lines == [
            "Successfully created GPU instance ID  2 on GPU  0 using profile MIG 3g.20gb (ID  9)",
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  2 "
            "using profile MIG 3g.20gb (ID  2)",
            "Successfully created GPU instance ID  1 on GPU  0 using profile MIG 3g.20gb (ID  9)",
            "Successfully created compute instance ID  0 on GPU  0 GPU instance ID  1 "
            "using profile MIG 3g.20gb (ID  2)",
        ]
        assert smi("mig", "-cgi", "9")[:] == (
            23,
            "Unable to create a GPU instance on GPU  0 using profile 9: Insufficient Resources\n"
            "Failed to create GPU instances: Insufficient Resources\n",
        )

    def test_children_go_first(self, smi):
        smi("mig", "-cgi", "9", "-C")
        assert smi("mig", "-dgi", "-gi", "2")[:] == (
            19,
            "Unable to destroy GPU instance ID  2 from GPU  0: In use by another client\n"
            "Failed to destroy GPU instances: In use by another client\n",
        )
        assert smi("mig", "-dci", "-gi", "2", "-ci", "0").lines == [
            "Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID  2"
        ]
        assert smi("mig", "-dgi", "-gi", "2").lines == [
            "Successfully destroyed GPU instance ID  2 from GPU  0"
        ]

    @pytest.mark.parametrize(
        ("wishes", "ids"),
        [
            ("19,14,5", [13, 5, 1]),
            ("9,19,14,19", [2, 7, 4, 8]),
            ("14,19,19,19,19,19", [5, 13, 7, 8, 9, 10]),
            ("9,9", [2, 1]),
            ("9,5", [2, 1]),
        ],
    )
    def test_numbers_are_those_of_published_transcripts(self, smi, wishes, ids):
        lines = smi("mig", "-cgi", wishes).lines
        assert [int(line.partition("instance ID")[2].split()[0]) for line in lines] == ids

    def test_double_memory_leaves_no_room(self, smi):
        result = smi("mig", "-cgi", "15,15,15,15,19")
        assert result.status == 23
        assert len(result.lines) == 6
        assert result.lines[4] == (
            "Unable to create a GPU instance on GPU  0 using profile 19: Insufficient Resources"
        )

    def test_without_permission(self, smi):
        store.inject("box", 0, "no-permission", "nvmlDeviceCreateGpuInstance")
        assert smi("mig", "-cgi", "19")[:] == (
            4,
            "Unable to create a GPU instance on GPU  0 using profile 19: Insufficient Permissions\n"
            "Failed to create GPU instances: Insufficient Permissions\n",
        )

    def test_where_it_is_told(self, smi):
        result = smi("mig", "-cgi", "19:6,5:0")
        assert "GPU instance ID 13 " in result.lines[0]
        assert "GPU instance ID  1 " in result.lines[1]

    def test_a_place_that_is_taken(self, smi):
        smi("mig", "-cgi", "19:3")
        assert smi("mig", "-cgi", "5:0").status == 23

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["-cgi", "77"], 'No profile "77" on GPU  0; "mig -lgip" lists them.'),
            (["-cgi", "9:x"], '"9:x" of option "-cgi" is no PROFILE[:START].'),
            (["-lgi", "-lci"], "Invalid combination"),
            (["-C"], "Invalid combination"),
            (["-lgi", "-gi", "x"], '"x" of option "-gi" is no number'),
            (["-foo"], "not recognized"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_what_is_wrong_is_told(self, smi, words, told):
        result = smi("mig", *words)
        assert result.status == 2
        assert told in result.text
