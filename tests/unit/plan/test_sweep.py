"""A search gives the same wherever it runs: in this process, in several, on a local Ray."""

from __future__ import annotations

import json

import pytest

from va100.errors import PlanError
from va100.plan.machine import find_machine
from va100.plan.search import search_plans
from va100.plan.sweep import Where, sweep_plans
from va100.plan.train_report import train_document
from va100.plan.training_options import TrainOptions
from va100.plan.workload import Transformer

NODE = find_machine("hgx-a100-8x80gb")
GPT = Transformer(
    name="gpt", layers=24, hidden=2048, heads=16, kv_heads=16, head_dim=128, ffn=8192,
    vocab=51200, rms_norm=True,
)  # fmt: skip
BASE = TrainOptions(global_batch=64, seq=2048)
GPUS = [8, 16]


def said(results):
    return json.dumps(
        [[train_document(estimate, None) for estimate in result.best] for result in results]
    )


def test_in_parts_as_in_one():
    found = sweep_plans(GPT, BASE, NODE, GPUS)
    whole = [search_plans(GPT, BASE, NODE, count) for count in GPUS]
    assert said(found) == said(whole)
    assert [r.tried for r in found] == [r.tried for r in whole]
    assert [r.fitting for r in found] == [r.fitting for r in whole]


def test_in_two_processes_as_in_one():
    assert said(sweep_plans(GPT, BASE, NODE, GPUS, where=Where("here", 2))) == said(
        sweep_plans(GPT, BASE, NODE, GPUS)
    )


def test_on_a_local_ray_as_here():
    ray = pytest.importorskip("ray", reason="needs the extra va100[ray]")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        assert said(sweep_plans(GPT, BASE, NODE, [8], where=Where("ray"))) == said(
            sweep_plans(GPT, BASE, NODE, [8])
        )
    finally:
        ray.shutdown()


def test_an_unknown_place_is_named():
    with pytest.raises(PlanError, match="no place 'moon'"):
        sweep_plans(GPT, BASE, NODE, [8], where=Where("moon"))


def test_progress_is_told_to_the_end():
    told = []
    sweep_plans(GPT, BASE, NODE, [8], progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1]
