"""Shares of GPU instances and of their GPU: they sum, whatever the layout and whoever works."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.node.mig import Instance, is_legal
from va100.nvml import exporter
from va100.spec.mig import COMPUTE_SLICES, MEMORY_SLICES, PROFILES_80GB

UNITS = ("any", "memory", "tensor", "fp64", "fp32", "fp16")
FAMILIES = {metric.name: metric for metric in exporter.METRICS}
COMPUTE = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "any",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor",
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": "fp64",
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": "fp32",
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": "fp16",
}


class Card:
    """A GPU of which only the mode is asked for."""

    def __init__(self, is_mig_enabled):
        self.is_mig_enabled = is_mig_enabled


def told_of(instance):
    return {
        "id": instance.identifier,
        "profile": instance.profile.name,
        "start": instance.start,
        "size": instance.profile.memory_slice_count,
    }


@st.composite
def boards(draw):
    """A legal layout, and processes on its instances."""
    layout = []
    for profile in draw(st.lists(st.sampled_from(PROFILES_80GB), min_size=1, max_size=7)):
        one = Instance(profile, draw(st.sampled_from(profile.placement_starts)))
        if is_legal([*layout, one]):
            layout.append(one)
    shares = st.fixed_dictionaries({unit: st.floats(0, 1) for unit in UNITS})
    used = draw(st.lists(st.tuples(st.sampled_from(layout), shares), max_size=6))
    processes = [{"gpu_instance": one.identifier, "active": active} for one, active in used]
    return layout, {"gpu_instances": [told_of(one) for one in layout], "processes": processes}


def read(name, told, instance=None):
    device = None
    if instance is not None:
        device = exporter.Instance(instance.identifier, instance.profile.name, 0, None)
    return FAMILIES[name].read(exporter.Part(Card(is_mig_enabled=True), told, device))


@given(boards())
def test_instances_sum_to_the_board_by_the_slices_they_have(board):
    layout, told = board
    for name in COMPUTE:
        parts = (read(name, told, i) * i.profile.compute_slice_count for i in layout)
        assert read(name, told) == pytest.approx(sum(parts) / COMPUTE_SLICES)
    name = "DCGM_FI_PROF_DRAM_ACTIVE"
    parts = (read(name, told, i) * i.profile.memory_slice_count for i in layout)
    assert read(name, told) == pytest.approx(sum(parts) / MEMORY_SLICES)


@given(boards())
def test_no_share_is_more_than_all(board):
    layout, told = board
    for name in (*COMPUTE, "DCGM_FI_PROF_DRAM_ACTIVE"):
        for one in (None, *layout):
            assert 0 <= read(name, told, one) <= 1


def test_processes_without_instances_are_the_whole_card_s():
    active = dict.fromkeys(UNITS, 0.25)
    told = {"processes": [{"gpu_instance": None, "active": active}] * 2, "gpu_instances": []}
    part = exporter.Part(Card(is_mig_enabled=False), told)
    assert FAMILIES["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"].read(part) == 0.5
