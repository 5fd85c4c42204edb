"""``va100 exporter``: what Prometheus is told, under the names that dashboards know."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request

import pytest

from tests.helpers.smi import Smi
from va100.cli import exporter
from va100.cli.main import main
from va100.errors import SetupError
from va100.node import store
from va100.node.kinds import BY_NAME

SERIES = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
USUAL = """
DEV_SM_CLOCK DEV_MEM_CLOCK DEV_MEMORY_TEMP DEV_GPU_TEMP DEV_POWER_USAGE
DEV_TOTAL_ENERGY_CONSUMPTION DEV_PCIE_REPLAY_COUNTER DEV_GPU_UTIL DEV_MEM_COPY_UTIL DEV_ENC_UTIL
DEV_DEC_UTIL DEV_XID_ERRORS DEV_FB_FREE DEV_FB_USED DEV_FB_RESERVED DEV_NVLINK_BANDWIDTH_TOTAL
DEV_VGPU_LICENSE_STATUS DEV_UNCORRECTABLE_REMAPPED_ROWS DEV_CORRECTABLE_REMAPPED_ROWS
DEV_ROW_REMAP_FAILURE PROF_GR_ENGINE_ACTIVE PROF_PIPE_TENSOR_ACTIVE PROF_PIPE_FP64_ACTIVE
PROF_PIPE_FP32_ACTIVE PROF_PIPE_FP16_ACTIVE PROF_DRAM_ACTIVE
PROF_PCIE_TX_BYTES PROF_PCIE_RX_BYTES
"""
"""What dcgm-exporter serves where nobody chose, and the pipes that it serves when asked to."""


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """The tool on a board of four, whose node the exporter reads."""
    return Smi(monkeypatch, tmp_path)


def series(text):
    """Value by name and labels."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SERIES.fullmatch(line)
            assert match, line
            found[match[1], tuple(LABEL.findall(match[2]))] = float(match[3])
    return found


def of(found, name, **labels):
    """Values of the series of a name that have these labels."""
    wanted = {(key, str(value)) for key, value in labels.items()}
    return [v for (n, ls), v in found.items() if n == f"DCGM_FI_{name}" and wanted <= set(ls)]


class TestScrape:
    def test_every_usual_family_with_its_help(self, smi):
        text = exporter.metrics()
        for name in USUAL.split():
            assert f"# HELP DCGM_FI_{name} " in text
            assert re.search(rf"^# TYPE DCGM_FI_{name} (gauge|counter)$", text, re.MULTILINE)
            assert len(of(series(text), name)) == 4

    def test_labels_in_their_order(self, smi):
        name, labels = next(iter(series(exporter.metrics())))
        assert name == "DCGM_FI_DEV_SM_CLOCK"
        assert [label for label, _ in labels] == (
            "gpu UUID pci_bus_id device modelName Hostname DCGM_FI_DRIVER_VERSION".split()
        )
        told = dict(labels)
        assert told["UUID"] in smi("-L", "-i", "0").text
        assert (told["device"], told["pci_bus_id"]) == ("nvidia0", "00000000:07:00.0")

    def test_figures_are_those_of_nvml(self, smi):
        found = series(exporter.metrics())
        fields = "clocks.sm,clocks.mem,temperature.gpu,power.draw,memory.free,memory.reserved"
        told = smi(f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-i", "3").text
        names = "SM_CLOCK MEM_CLOCK GPU_TEMP POWER_USAGE FB_FREE FB_RESERVED".split()
        ours = [of(found, f"DEV_{name}", gpu=3)[0] for name in names]
        assert ours == pytest.approx([float(cell) for cell in told.split(", ")], abs=0.01)

    def test_faults(self, smi):
        store.inject("box", 1, "xid", "43")
        store.inject("box", 2, "remap", "failed")
        found = series(exporter.metrics())
        assert of(found, "DEV_XID_ERRORS") == [0, 43, 64, 0]
        assert of(found, "DEV_ROW_REMAP_FAILURE") == [0, 0, 1, 0]

    def test_a_lost_gpu_has_no_series(self, smi):
        store.inject("box", 1, "lost")
        assert of(series(exporter.metrics()), "DEV_SM_CLOCK", gpu=1) == []


class TestMig:
    @pytest.fixture
    def found(self, smi):
        """Series of a board whose first GPU is divided."""
        smi("-mig", "1", "-i", "0")
        smi("mig", "-cgi", "9,14,19", "-C")
        return series(exporter.metrics())

    def test_utilisation_is_absent_of_that_gpu_alone(self, found):
        for name in ("DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL", "DEV_ENC_UTIL", "DEV_DEC_UTIL"):
            assert of(found, name, gpu=0) == []
            assert of(found, name, gpu=1) == [0]

    @pytest.mark.parametrize(
        ("profile", "instance", "mebibytes"),
        [("3g.20gb", 2, 19968), ("2g.10gb", 3, 9856), ("1g.5gb", 9, 4864)],
    )
    def test_instances_have_series(self, found, profile, instance, mebibytes):
        labels = {"gpu": 0, "GPU_I_PROFILE": profile, "GPU_I_ID": instance}
        parts = [of(found, f"DEV_FB_{part}", **labels) for part in ("FREE", "USED", "RESERVED")]
        assert [len(part) for part in parts] == [1, 1, 1]
        assert sum(part[0] for part in parts) == mebibytes
        for name in ("GR_ENGINE_ACTIVE", "DRAM_ACTIVE", "PIPE_TENSOR_ACTIVE"):
            assert of(found, f"PROF_{name}", **labels) == [0]

    def test_an_instance_without_a_device_has_them_too(self, smi):
        smi("-mig", "1", "-i", "2")
        smi("mig", "-cgi", "5")
        found = series(exporter.metrics())
        labels = {"gpu": 2, "GPU_I_PROFILE": "4g.20gb", "GPU_I_ID": 1}
        assert of(found, "DEV_FB_FREE", **labels) == [19968]
        assert of(found, "DEV_FB_USED", **labels) == [0]
        assert of(found, "PROF_GR_ENGINE_ACTIVE", **labels) == [0]

    def test_what_adds_up_is_told_once(self, found):
        for name in ("DEV_POWER_USAGE", "DEV_TOTAL_ENERGY_CONSUMPTION"):
            assert len(of(found, name, gpu=0)) == 1


class TestServer:
    @pytest.fixture
    def url(self):
        """A server of a text, and where it is."""
        answers = ["DCGM_FI_DEV_SM_CLOCK 210\n"]
        server = exporter.serve(("127.0.0.1", 0), lambda: _answer(answers), quiet=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield answers, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
        server.server_close()

    def test_metrics(self, url):
        with urllib.request.urlopen(f"{url[1]}/metrics") as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert response.read() == b"DCGM_FI_DEV_SM_CLOCK 210\n"

    def test_health(self, url):
        with urllib.request.urlopen(f"{url[1]}/health") as response:
            assert response.read() == b"OK\n"

    def test_what_cannot_be_read_is_said(self, url):
        url[0].clear()
        with pytest.raises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(f"{url[1]}/metrics")
        assert failed.value.code == 503
        assert b"make setup" in failed.value.read()
        failed.value.close()

    def test_other_paths(self, url):
        with pytest.raises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(f"{url[1]}/other")
        assert failed.value.code == 404
        failed.value.close()

    @pytest.mark.parametrize("address", ["9400", "host:", ":99999", "host:http"])
    def test_an_address_that_is_none(self, address, capsys):
        assert main(["exporter", "--address", address]) == 2
        assert "no [HOST]:PORT" in capsys.readouterr().err


def test_once(smi, capsys):
    assert main(["exporter", "--once"]) == 0
    assert capsys.readouterr().out.startswith("# HELP DCGM_FI_DEV_SM_CLOCK ")


def test_of_another_node(smi, capsys):
    store.create_kind("other", BY_NAME["pcie-a100-40gb"])
    assert main(["exporter", "--once", "--node", "other"]) == 0
    assert 'modelName="NVIDIA A100-PCIE-40GB"' in capsys.readouterr().out


def test_of_a_node_that_is_not_there(smi, capfd):
    assert main(["exporter", "--once", "--node", "nowhere"]) == 1
    assert "nowhere" in capfd.readouterr().err


def _answer(answers):
    if not answers:
        raise SetupError("the native core is not built", remedy="make setup")
    return answers[0]
