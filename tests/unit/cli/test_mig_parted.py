"""``va100 mig apply``, ``assert`` and ``export`` on a node, in statuses and words."""

from __future__ import annotations

import json

import pytest

from tests.helpers.nvml_calls import LIBRARY
from va100.cli.main import main
from va100.node import store
from va100.node.kinds import BY_NAME

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")

LAYOUTS = {
    "version": "v1",
    "mig-configs": {
        "off": [{"devices": "all", "mig-enabled": False}],
        "on": [{"devices": "all", "mig-enabled": True, "mig-devices": {}}],
        "balanced": [
            {
                "device-filter": "0x20B010DE",
                "devices": "all",
                "mig-enabled": True,
                "mig-devices": {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
            }
        ],
        "small": [
            {"devices": [0], "mig-enabled": True, "mig-devices": {"1g.5gb": 3, "3g.20gb": 1}}
        ],
        "too-much": [
            {"devices": [0], "mig-enabled": False},
            {"devices": [1], "mig-enabled": True, "mig-devices": {"1g.10gb": 4, "1g.5gb": 3}},
        ],
        "too-far": [{"devices": [4], "mig-enabled": True}],
        "other-card": [{"devices": [0], "mig-enabled": True, "mig-devices": {"1g.20gb": 1}}],
    },
}


@pytest.fixture
def mig(tmp_path, monkeypatch, capsys):
    """The command on a node of four 40 GB cards: status, output, errors."""
    monkeypatch.setenv("VA100_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("VA100_NODE", "box")
    store.create_kind("box", BY_NAME["hgx-a100-4x40gb"])
    path = tmp_path / "layouts.json"
    path.write_text(json.dumps(LAYOUTS))

    def run(verb, *words, label=None):
        named = () if label is None else ("-f", str(path), "-c", label)
        status = main(["mig", verb, *named, *words])
        return status, *capsys.readouterr()

    return run


def starts(index=0):
    return {(gi["profile"], gi["start"]) for gi in store.describe()["gpus"][index]["gpu_instances"]}


def test_a_layout_is_applied_asserted_and_exported(mig):
    assert mig("assert", label="balanced")[0] == 1
    status, out, _ = mig("apply", label="balanced")
    assert status == 0
    assert out.endswith("MIG configuration applied successfully: 4 of 4 GPUs changed\n")
    assert mig("assert", label="balanced")[:2] == (
        0,
        "Selected MIG configuration currently applied\n",
    )
    exported = json.loads(mig("export", "-o", "json", "-l", "balanced")[1])
    told = {k: v for k, v in LAYOUTS["mig-configs"]["balanced"][0].items() if k != "device-filter"}
    assert exported == {"version": "v1", "mig-configs": {"balanced": [told]}}
    assert mig("apply", label="off")[0] == 0
    assert [gpu["mig"] for gpu in store.describe()["gpus"]] == [False] * 4


def test_what_is_there_already_stays(mig):
    mig("apply", label="balanced")
    before = starts()
    assert mig("apply", label="balanced")[1].endswith("all was as asked\n")
    mig("apply", label="small")
    assert before - starts() == {("2g.10gb", 2)}
    assert starts(1) == before


def test_the_mode_alone(mig):
    mig("apply", label="balanced")
    before = starts()
    assert mig("apply", "-m", label="on")[0] == 0
    assert starts() == before
    assert mig("assert", "-m", label="on")[0] == 0
    assert mig("assert", label="on")[0] == 1


def test_a_layout_that_cannot_be_changes_nothing_on_any_gpu(mig):
    mig("apply", label="balanced")
    before = [starts(index) for index in range(4)]
    status, _, said = mig("apply", label="too-much")
    assert status == 1
    assert "GPU 1: the GPU has 8 memory slices, 11 are wanted" in said
    assert [starts(index) for index in range(4)] == before


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("too-far", "there is no GPU 4; the node has 4"),
        ("other-card", "there is no profile 1g.20gb"),
        ("nothing", "holds no layout nothing"),
    ],
)
def test_what_is_wrong_is_said_with_status_2(mig, label, said):
    status, _, err = mig("apply", label=label)
    assert status == 2
    assert said in err


def test_a_dry_run_changes_nothing(mig):
    status, out, _ = mig("apply", "--dry-run", "--json", label="small")
    told = json.loads(out)
    assert (status, told["applied"], told["changes"][0]["gpu"]) == (0, False, 0)
    assert not store.describe()["gpus"][0]["mig"]


def test_a_valid_file_is_said_to_be_one(mig):
    assert mig("assert", "-a", label="too-much")[0] == 0


def test_a_node_that_is_not_there(mig):
    status, _, err = mig("export", "--node", "nowhere")
    assert status == 2
    assert "there is no node" in err


def test_export_into_a_file(mig, tmp_path):
    assert mig("export", "-f", str(tmp_path / "now.yaml"))[0] == 0
    assert "mig-enabled: false" in (tmp_path / "now.yaml").read_text()
    assert mig("export", "-f", str(tmp_path / "no" / "now.yaml"))[0] == 2
