"""What an instance finds: one node of its own, with the cards or the slice that it rents."""

from __future__ import annotations

import subprocess

import pytest

from va100.cli.cloud_devices import devices, node_kind
from va100.cloud.drivers.base import Assignment
from va100.cloud.models import Place, Shape
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR

SXM = "A100-SXM4-80GB"
pytestmark = pytest.mark.skipif(
    not (NATIVE_DIR / "smi" / "nvidia-smi").exists()
    or not (NATIVE_DIR / "libnvidia-ml.so.1").exists(),
    reason="the native core is not built",
)


def found(tmp_path, shape, place):
    one = Assignment(instance="i", generation=1, tenant="t", name="n", shape=shape, place=place,
                     command=("true",))  # fmt: skip
    settings = Settings.from_environment({"HOME": str(tmp_path)})
    return dict(devices(settings, one, str(tmp_path), tmp_path))


def listed(variables):
    tool = NATIVE_DIR / "smi" / "nvidia-smi"
    done = subprocess.run([tool, "-L"], env=variables, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_slice_is_cut_at_its_place(tmp_path):
    place = Place("hgx-1", (5,), "2g.20gb", 4)
    variables = found(tmp_path, Shape(SXM, "2g.20gb"), place)
    assert "CUDA_VISIBLE_DEVICES" not in variables, "the only slice is what CUDA takes"
    lines = listed(variables)
    assert len(lines) == 2
    assert "MIG 2g.20gb" in lines[1]
    again = listed(found(tmp_path, Shape(SXM, "1g.10gb"), Place("hgx-1", (1,), "1g.10gb", 6)))
    assert "MIG 1g.10gb" in again[1], "another start, another slice"


def test_whole_cards_are_as_many_as_rented(tmp_path):
    variables = found(tmp_path, Shape(SXM, cards=2), Place("hgx-1", (3, 4)))
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert variables["VA100_GPUS"] == "2"
    one = found(tmp_path, Shape(SXM), Place("hgx-1", (7,)))
    assert len(listed(one)) == 1


def test_the_smallest_node_is_taken():
    assert node_kind(SXM, 1) == "sxm-a100-80gb"
    assert node_kind("A100-PCIE-40GB", 2) == "pcie-a100-40gb-x2"
    with pytest.raises(SetupError, match="no node of 99"):
        node_kind(SXM, 99)
