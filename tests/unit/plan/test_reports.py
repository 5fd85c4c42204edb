"""Reports: pages that need nothing else, traces that other tools open, charts that are XML."""

from __future__ import annotations

import dataclasses
import json
import re
import xml.etree.ElementTree as ET

import pytest

from va100.plan.charts import Line, line_chart, stack_chart, timeline
from va100.plan.html import plain_page, scaling_curve, train_page
from va100.plan.machine import find_machine
from va100.plan.prices import given_price
from va100.plan.step_trace import step_trace
from va100.plan.train_report import train_document, train_text
from va100.plan.training import estimate_training
from va100.plan.training_options import TrainOptions
from va100.plan.workload import Transformer

NODE = find_machine("hgx-a100-8x80gb")
GPT = Transformer(
    name="gpt <&>", layers=24, hidden=2048, heads=16, kv_heads=16, head_dim=128, ffn=8192,
    vocab=51200,
)  # fmt: skip
OPTIONS = TrainOptions(
    tp=2, pp=4, dp=1, micro_batch=2, global_batch=16, seq=2048, chunks=2, sequence_parallel=True
)
PLAN = estimate_training(GPT, OPTIONS, NODE)
PRICE = given_price(2.0)


class TestPage:
    def test_needs_nothing_else_and_shows_all_five(self):
        document = train_document(PLAN, PRICE)
        text = train_page(PLAN, document, PRICE)
        assert not re.search(r"https?://|<script|<link|@import|src=", text)
        for title in ("Roofline", "Memory", "Timeline", "Scaling", "Cost"):
            assert title in text
        assert "gpt <&>" not in text
        assert text.count("<svg") == text.count("</svg>") == 6
        assert text == train_page(PLAN, document, PRICE)

    def test_charts_are_well_formed(self):
        text = train_page(PLAN, train_document(PLAN, None), None)
        for chart in re.findall(r"<svg.*?</svg>", text, re.S):
            ET.fromstring(chart)

    def test_other_plans_have_one_too(self):
        document = {"peak_parts_bytes": {"weights": 1e9}, "capacity_bytes_per_gpu": 2e9}
        assert "<svg" in plain_page("x", document)

    def test_scaling_loses_a_little(self):
        curve = scaling_curve(PLAN)
        rates = [rate / gpus for gpus, rate in curve]
        assert rates == sorted(rates, reverse=True)


class TestTrace:
    def test_is_a_chrome_trace_of_every_pass(self):
        trace = step_trace(PLAN)
        json.loads(json.dumps(trace))
        passes = [e for e in trace["traceEvents"] if e.get("cat") in ("forward", "backward")]
        slots = [e for e in passes if e["pid"] < 4]
        assert len(slots) == 2 * 4 * 8 * 2
        assert all(e["dur"] > 0 and e["ts"] >= 0 for e in slots)

    def test_no_stage_does_two_passes_at_once(self):
        events = [e for e in step_trace(PLAN)["traceEvents"] if e["ph"] == "X"]
        for stage in range(4):
            mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if e["pid"] == stage)
            assert all(a[1] <= b[0] + 0.01 for a, b in zip(mine, mine[1:], strict=False))  # noqa: RUF007

    def test_lasts_about_a_step(self):
        events = [e for e in step_trace(PLAN)["traceEvents"] if e["ph"] == "X"]
        end = max(e["ts"] + e["dur"] for e in events if e["pid"] < 4)
        fixed = PLAN.parts.fixed_s * 1e6
        assert end + fixed == pytest.approx(PLAN.step_s * 1e6, rel=0.02)


class TestText:
    def test_says_what_the_document_says(self):
        document = train_document(PLAN, PRICE)
        text = train_text(document)
        assert f"{document['mfu']:.1%}" in text
        assert "nine of ten" in text
        cheaper = train_document(dataclasses.replace(PLAN), given_price(1.0))
        assert cheaper["cost_usd"] == pytest.approx(document["cost_usd"] / 2)


class TestCharts:
    def test_an_empty_chart_is_nothing(self):
        assert line_chart("x", [Line("a", [])], ("x", "y")) == ""

    def test_titles_are_escaped(self):
        text = stack_chart("<b>", {"<a>": {"<c>": 1.0}}, 2.0, "GB")
        assert "<b>" not in text
        assert "<c>" not in text

    def test_a_timeline_has_a_box_for_each_span(self):
        text = timeline("t", [(0, 0.0, 1.0, "F0", 0), (1, 1.0, 2.0, "F0", 0)], 2)
        assert text.count("<rect") == 2
