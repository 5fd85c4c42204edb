"""Recommenders and problems of science: placements that fit, sizes that scale."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.errors import PlanError
from va100.plan.compute import PROBLEMS, estimate_problem
from va100.plan.machine import find_machine
from va100.plan.recommend import (
    RECOMMENDERS,
    Recommender,
    RecommendOptions,
    estimate_recommender,
    place_tables,
    read_recommender,
)

GPU = find_machine("a100-sxm4-80gb")
NODE = find_machine("hgx-a100-8x80gb")


class TestRecommenders:
    def test_dlrm_has_its_published_widths(self):
        model = RECOMMENDERS["dlrm"]
        assert model.top_in == 27 * 26 // 2 + 128
        assert model.table_params == pytest.approx(24.06e9, rel=0.01)

    @given(st.lists(st.integers(1, 10**7), min_size=1, max_size=30), st.sampled_from([1, 2, 4, 8]))
    def test_every_column_of_every_table_is_placed_once(self, rows, gpus):
        model = Recommender(name="m", rows=tuple(rows), dim=64)
        room = 2.0 * sum(rows) * 64 * 4 / gpus + 1e9
        shards = place_tables(model, RecommendOptions(gpus=gpus, batch=gpus), room)
        for table, count in enumerate(rows):
            mine = [shard for shard in shards if shard.table == table]
            assert sum(shard.columns for shard in mine) == 64
            assert all(shard.rows == count for shard in mine)
        held = [0] * gpus
        for shard in shards:
            held[shard.gpu] += shard.rows * shard.columns * 4
        assert max(held) <= room

    def test_a_table_too_large_for_one_gpu_is_cut(self):
        model = Recommender(name="m", rows=(4 * 10**8,), dim=128)
        found = estimate_recommender(model, RecommendOptions(gpus=8, batch=64), NODE)
        assert found.fits
        assert len({shard.gpu for shard in found.shards}) >= 4

    def test_what_does_not_fit_says_how_many_would(self):
        found = estimate_recommender(RECOMMENDERS["dlrm"], RecommendOptions(), GPU)
        assert not found.fits
        assert found.smallest_gpus == 2

    def test_more_gpus_are_quicker_but_exchange(self):
        one, eight = (
            estimate_recommender(
                RECOMMENDERS["dlrm-small"],
                RecommendOptions(gpus=g, training=True, batch=65536),
                NODE,
            )
            for g in (1, 8)
        )
        assert one.parts_s["exchange"] == 0 < eight.parts_s["exchange"]
        assert 1 < eight.records_per_s / one.records_per_s < 8

    @pytest.mark.parametrize(
        "text",
        [
            "dim: 4\n",
            "rows: [1, x]\ndim: 4\n",
            "tables: 3\n",
            "rows: 3\ndim: 4\n",
            "rows: [3]\ndim: 4\npooling: no\n",
            "rows: [3]\ndim: 4\nnumerical: x\n",
        ],
    )
    def test_refuses_files_that_describe_none(self, text, tmp_path):
        path = tmp_path / "m.yaml"
        path.write_text(text)
        with pytest.raises(PlanError, match=r"m\.yaml"):
            read_recommender(str(path))


class TestProblems:
    @pytest.mark.parametrize("kind", PROBLEMS)
    def test_a_larger_problem_takes_longer(self, kind):
        sizes = PROBLEMS[kind].sizes
        name = next(iter(sizes))
        small = estimate_problem(kind, {}, GPU)
        large = estimate_problem(kind, {name: 2 * sizes[name]}, GPU)
        assert small.time_s < large.time_s
        assert small.fits
        assert small.band[0] < small.time_s < small.band[1]

    @pytest.mark.parametrize("kind", [k for k, p in PROBLEMS.items() if p.exchange])
    def test_several_gpus_exchange_and_never_beat_their_count(self, kind):
        one, eight = (estimate_problem(kind, {}, NODE, gpus=g) for g in (1, 8))
        assert eight.exchange_s > 0
        assert eight.time_s > one.time_s / 8.5

    def test_never_beyond_the_peak(self):
        found = estimate_problem("hpl", {}, GPU)
        assert 0.5 * 19.5e12 < found.flop_per_s < 19.5e12
        stencil = estimate_problem("stencil", {"points": 10**9}, GPU)
        assert stencil.per_s * 8 < 2.04e12

    def test_a_chain_too_long_for_the_memory_is_refused(self):
        small = find_machine("a100-sxm4-40gb")
        assert estimate_problem("alphafold", {"residues": 2000}, small).fits
        assert not estimate_problem("alphafold", {"residues": 4000}, small).fits

    def test_wrong_sizes_are_named(self):
        with pytest.raises(PlanError, match="has no cells"):
            estimate_problem("stencil", {"cells": 4}, GPU)
        with pytest.raises(PlanError, match="no problem"):
            estimate_problem("chess", {}, GPU)
        with pytest.raises(PlanError, match="points is 0"):
            estimate_problem("stencil", {"points": 0}, GPU)
