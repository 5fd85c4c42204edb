"""Metrics by the profiler's names: each row can be computed, and what has none is refused."""

from __future__ import annotations

import re

import pytest

from tests.helpers.launches import CHIP, COUNTERS, launch
from va100.errors import SetupError
from va100.profile.metrics import METRICS, Metric, chosen, help_text, near, values
from va100.profile.quantities import quantities

NAME = re.compile(
    r"(launch__\w+|sm__maximum_\w+|[a-z0-9]+__\w+\.(sum|avg|max|min|pct|ratio)[\w.]*)"
)


@pytest.fixture(scope="module")
def known():
    opcodes = COUNTERS["opcode_instructions"]
    return quantities(launch(counters=COUNTERS | {"opcode_instructions": opcodes}), CHIP)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_row_is_named_and_computed(metric, known):
    assert NAME.fullmatch(metric.name)
    value = metric.value(known)
    assert value is not None
    assert value >= 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpu__time_duration.sum", 8000),
        ("sm__cycles_elapsed.avg", 8.0e-6 * 1410e6),
        ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 100 * 12582912 / (8e-6 * 2039.04e9)),
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 262144),
        ("l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", 4),
        ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", 100),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", 8000),
        ("smsp__inst_executed.sum", 197984),
        ("smsp__inst_executed_op_global_ld.sum", 65536),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 1048576),
        ("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", 2.5),
        ("launch__registers_per_thread", 32),
        ("launch__shared_mem_per_block_static", 1024),
        ("launch__occupancy_limit_registers", 8),
        ("sm__maximum_warps_per_active_cycle_pct", 100),
    ],
)
def test_values(name, value, known):
    assert METRICS[name].value(known) == pytest.approx(value, rel=1e-4)


def test_no_share_of_a_peak_is_above_it(known):
    shares = [m for m in METRICS.values() if "pct_of_peak" in m.name]
    assert len(shares) > 10
    assert all(0 <= m.value(known) <= 100 for m in shares)


def test_what_was_not_counted_has_no_value():
    metric = METRICS["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    unknown = quantities(launch(counters=COUNTERS | {"sampled_fraction": 0.0}), CHIP)
    assert values([metric], unknown) == {metric.name: None}


def test_nothing_over_nothing_is_nothing():
    assert Metric("a", "", "", "x", "y").value({"x": 0.0, "y": 0.0}) == 0.0


class TestChosen:
    def test_in_the_order_asked_for(self):
        names = ["launch__grid_size", "dram__bytes.sum"]
        assert [metric.name for metric in chosen(names)] == names

    def test_one_without_a_row_is_refused_with_near_ones(self):
        with pytest.raises(SetupError, match=r"dram__bytes\.avg is not computed.*dram__bytes\.sum"):
            chosen(["dram__bytes.avg"])
        with pytest.raises(SetupError, match="nothing computed here is called so"):
            chosen(["?"])

    def test_by_expressions(self):
        found = [metric.name for metric in chosen(["regex:dram__bytes.*sum$", "dram__bytes.sum"])]
        assert found == ["dram__bytes.sum", "dram__bytes_read.sum", "dram__bytes_write.sum"]
        with pytest.raises(SetupError, match="regex:nothing is not computed"):
            chosen(["regex:nothing"])
        with pytest.raises(SetupError, match="no regular expression"):
            chosen(["regex:("])

    def test_near_ones_are_the_same_metric_first(self):
        assert near("gpu__time_duration.median")[:2] == [
            "gpu__time_duration.sum", "gpu__time_duration.avg",
        ]  # fmt: skip


def test_help_lists_every_metric_once():
    text = help_text()
    names = re.findall(r"^  (\S+)", text, re.MULTILINE)
    assert sorted(names) == sorted(METRICS)
    assert "100 * dram_bytes / peak_memory_bytes" in text
