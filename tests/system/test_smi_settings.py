"""Options of ``nvidia-smi`` that change a GPU: the sentence, and that another look sees it."""

from __future__ import annotations

import pytest

from tests.helpers.smi import Smi
from va100.node import store

BUS = "00000000:07:00.0"


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """The tool on one card."""
    return Smi(monkeypatch, tmp_path, "sxm-a100-40gb")


CHANGES = [
    (["-pm", "0"], f"Disabled persistence mode for GPU {BUS}.", "persistence_mode", "Disabled"),
    (
        ["-pl", "250"],
        f"Power limit for GPU {BUS} was set to 250.00 W from 400.00 W.",
        "power.limit",
        "250.00 W",
    ),
    (
        ["-ac", "1215,1410"],
        f'Applications clocks set to "(MEM 1215, SM 1410)" for GPU {BUS}',
        "clocks.applications.graphics",
        "1410 MHz",
    ),
    (
        ["-c", "EXCLUSIVE_PROCESS"],
        f"Set compute mode to EXCLUSIVE_PROCESS for GPU {BUS}.",
        "compute_mode",
        "Exclusive_Process",
    ),
    (["-am", "1"], f"Enabled Accounting Mode for GPU {BUS}.", "accounting.mode", "Enabled"),
    (
        ["-e", "0"],
        f"Disabled ECC support for GPU {BUS}.\nReboot required.",
        "ecc.mode.pending",
        "Disabled",
    ),
]


@pytest.mark.parametrize(
    ("words", "told", "field", "value"), CHANGES, ids=[change[0][0] for change in CHANGES]
)
def test_a_change_is_told_and_stays(smi, words, told, field, value):
    assert smi(*words)[:] == (0, f"{told}\nAll done.\n")
    assert smi(f"--query-gpu={field}", "--format=csv,noheader").text == f"{value}\n"


def test_what_is_so_already(smi):
    assert smi("-pm", "1").lines[0] == f"Persistence mode is already Enabled for GPU {BUS}."
    assert smi("-c", "0").lines[0] == f"Compute mode is already set to DEFAULT for GPU {BUS}."


def test_locked_clocks(smi):
    result = smi("-lgc", "300,1200")
    assert result.lines[0] == f'GPU clocks set to "(gpuClkMin 300, gpuClkMax 1200)" for GPU {BUS}'
    assert smi("-rgc").status == 0


def test_a_reset_brings_what_was_pending(smi):
    smi("-e", "0")
    assert smi("--gpu-reset")[:] == (0, f"GPU {BUS} was successfully reset.\nAll done.\n")
    assert smi("--query-gpu=ecc.mode.current", "--format=csv,noheader").text == "Disabled\n"


@pytest.mark.parametrize(
    ("words", "function", "told"),
    [
        (["-mig", "1"], "nvmlDeviceSetMigMode", "Unable to enable MIG Mode"),
        (["-pm", "0"], "nvmlDeviceSetPersistenceMode", "Unable to set persistence mode"),
        (["-lgc", "900"], "nvmlDeviceSetGpuLockedClocks", "Unable to set GPU clocks"),
    ],
    ids=["mig", "pm", "lgc"],
)
def test_without_permission(smi, words, function, told):
    store.inject("box", 0, "no-permission", function)
    assert smi(*words)[:] == (
        4,
        f"{told} for GPU {BUS}: Insufficient Permissions\n"
        "Terminating early due to previous errors.\n",
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-pl", "900"], "should be between 100.00 W and 400.00 W"),
        (["-pl", "much"], "no power in watts"),
        (["-ac", "1215,1411"], "is not supported for GPU"),
        (["-ac", "1215"], "no MEMORY,GRAPHICS"),
        (["-lgc", "1200,300"], "no MIN,MAX"),
        (["-lgc", "fast"], "no clock in MHz"),
        (["-c", "7"], "no value of option"),
        (["-mig", "2"], "no value of option"),
        (["-pm", "1", "-pl", "300"], "does not go with"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_told(smi, words, told):
    result = smi(*words)
    assert result.status == 2
    assert told in result.text
