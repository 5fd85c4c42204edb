"""``va100 node`` and ``va100 mig plan``: what they print, their JSON, their statuses."""

from __future__ import annotations

import json

import pytest

from tests.helpers.nvml_calls import LIBRARY, Nvml
from va100.cli.main import main

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the native core is not built")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_HOME", str(tmp_path / "home"))
    for name in ("VA100_NODE", "VA100_MODEL", "VA100_GPUS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(capsys, *words):
    status = main(list(words))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


class TestNode:
    def test_a_life(self, capsys):
        status, out, _ = run(capsys, "node", "create", "box", "--kind", "pcie-a100-80gb-x2")
        assert (status, out) == (0, "made node box: export VA100_NODE=box\n")
        status, out, _ = run(capsys, "node", "list", "--json")
        (node,) = json.loads(out)
        assert (node["name"], node["gpu_count"], node["model"]) == ("box", 2, "A100-PCIE-80GB")
        status, out, _ = run(capsys, "node", "inject", "thermal", "--gpu", "1", "--node", "box")
        assert status == 0
        _, out, _ = run(capsys, "node", "show", "box", "--json")
        assert [gpu["faults"]["thermal"] for gpu in json.loads(out)["gpus"]] == [False, True]
        _, out, _ = run(capsys, "node", "show", "box")
        assert "faults: thermal=True" in out
        assert run(capsys, "node", "clear", "box")[0] == 0
        assert run(capsys, "node", "reset", "box", "--gpu", "0")[0] == 0
        assert run(capsys, "node", "delete", "box")[:2] == (0, "deleted node box\n")
        assert run(capsys, "node", "list")[1] == ""

    def test_a_file_of_cards(self, capsys, home):
        path = home / "two.json"
        path.write_text('{"board": "bridged", "gpus": ["pcie40", "pcie40"]}')
        assert run(capsys, "node", "create", "two", "--kind", str(path))[0] == 0
        _, out, _ = run(capsys, "node", "show", "two", "--json")
        assert [gpu["bus_id"] for gpu in json.loads(out)["gpus"]] == [
            "00000000:07:00.0",
            "00000000:0F:00.0",
        ]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{", "two.json: "),
            ("[]", "it holds no mapping"),
            ('{"gpus": ["h100"]}', "gpus[0].model: h100 names"),
            ('{"board": "round", "gpus": ["pcie40"]}', "board: round is none of"),
            ('{"gpus": [{"model": "pcie40", "bus": "x"}]}', "gpus[0].bus: x is no PCI address"),
        ],
    )
    def test_a_file_that_makes_no_node_is_said_with_status_2(self, capsys, home, text, said):
        path = home / "two.json"
        path.write_text(text)
        status, _, err = run(capsys, "node", "create", "two", "--kind", str(path))
        assert status == 2
        assert said in err

    def test_a_switch_is_the_node_s_and_clears_with_it(self, capsys):
        run(capsys, "node", "create", "box", "--kind", "hgx-a100-8x40gb")
        assert run(capsys, "node", "inject", "switch", "5", "--node", "box")[0] == 0
        told = json.loads(run(capsys, "node", "show", "box", "--json")[1])
        assert told["switches_down"] == 1 << 5
        assert {gpu["faults"]["last_xid"] for gpu in told["gpus"]} == {74}
        assert "NVSwitches that failed: 5\n" in run(capsys, "node", "show", "box")[1]
        run(capsys, "node", "clear", "box", "--gpu", "3")
        assert json.loads(run(capsys, "node", "show", "box", "--json")[1])["switches_down"]
        run(capsys, "node", "clear", "box")
        assert not json.loads(run(capsys, "node", "show", "box", "--json")[1])["switches_down"]

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("switch", "6"), "a switch is a number from 0 to 5"),
            (("link", "12"), "a link is a number from 0 to 11"),
            (("xid", "94", "--instance", "3"), "has no GPU instance 3"),
            (("xid", "94", "--pid", "1"), "process 1 does not use the GPU"),
            (("xid", "79", "--pid", "1"), "does not use the GPU"),
            (("lost", "--instance", "0"), "is the whole GPU's"),
        ],
    )
    def test_what_cannot_be_injected_is_said_with_status_2(self, capsys, words, said):
        run(capsys, "node", "create", "box", "--kind", "hgx-a100-8x40gb")
        status, _, err = run(capsys, "node", "inject", *words, "--node", "box")
        assert status == 2
        assert said in err

    def test_a_node_without_switches_has_none_to_fail(self, capsys):
        run(capsys, "node", "create", "box", "--kind", "hgx-a100-4x40gb")
        status, _, err = run(capsys, "node", "inject", "switch", "0", "--node", "box")
        assert (status, "has no NVSwitch" in err) == (2, True)

    def test_kinds_are_listed(self, capsys):
        _, out, _ = run(capsys, "node", "list", "--kinds", "--json")
        kinds = {kind["kind"]: kind for kind in json.loads(out)}
        assert kinds["hgx-a100-8x80gb"]["gpu_count"] == 8
        assert kinds["hgx-a100-4x40gb"]["board"] == "meshed"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("create", "box", "--kind", "toaster"), "toaster is no kind of node"),
            (("create", "../box", "--kind", "sxm-a100-40gb"), "no name of a node"),
            (("show", "nowhere"), "there is no node"),
            (("delete", "nowhere"), "there is no node"),
            (("reset", "--gpu", "7"), "there is no GPU 7"),
            (("inject", "xid", "many"), "an Xid is a number"),
            (("inject", "thermal", "--count", "0"), "no count from 1"),
        ],
    )
    def test_what_is_wrong_is_said_with_status_2(self, capsys, words, said):
        status, _, err = run(capsys, "node", *words)
        assert status == 2
        assert said in err

    def test_every_verb_explains_itself(self, capsys):
        for verb in ("create", "show", "list", "reset", "delete", "inject", "clear"):
            with pytest.raises(SystemExit) as stopped:
                main(["node", verb, "--help"])
            assert stopped.value.code == 0
            assert "usage" in capsys.readouterr().out


class TestMigPlan:
    def test_fits(self, capsys):
        status, out, _ = run(capsys, "mig", "plan", "3g.40gb", "4g.40gb", "--json")
        told = json.loads(out)
        assert status == 0
        assert told["fits"]
        made = {i["profile"]: (i["start"], i["gpu_instance_id"]) for i in told["gpus"][0]["create"]}
        assert made == {"4g.40gb": (0, 1), "3g.40gb": (4, 2)}

    def test_does_not_fit(self, capsys):
        status, out, _ = run(capsys, "mig", "plan", "4x1g.20gb", "3x1g.10gb")
        assert status == 1
        assert "11 are wanted" in out

    def test_beside_what_is_there(self, capsys, monkeypatch):
        monkeypatch.setenv("VA100_NODE", "hgx-a100-4x40gb")
        with Nvml() as nvml:
            gpu = nvml.gpu(1)
            nvml.set_mig(gpu, 1)
            nvml.create(gpu, 9, start=0)
        status, out, _ = run(capsys, "mig", "plan", "4g.20gb", "--gpu", "1", "--json")
        part = json.loads(out)["gpus"][0]
        assert status == 0
        assert part["gpu"] == 1
        assert [(m["from"]["start"], m["to"]["start"]) for m in part["move"]] == [(0, 4)]
        assert part["create"][0]["start"] == 0

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("9g.90gb",), "no profile of A100-SXM4-80GB"),
            (("3g.40gb", "--gpus", "0"), "no count"),
            (("3g.40gb", "--gpus", "2", "--gpu", "0"), "leave out"),
            (("3g.40gb", "--gpu", "4"), "there is no GPU 4"),
            (("3g.40gb", "--gpu", "0", "--node", "nowhere"), "no node"),
        ],
    )
    def test_what_is_wrong_is_said_with_status_2(self, capsys, words, said):
        status, _, err = run(capsys, "mig", "plan", *words)
        assert status == 2
        assert said in err
