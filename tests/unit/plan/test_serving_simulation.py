"""The event simulation against what can be reckoned by hand, and its conservation laws."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.plan_requests import MODELS
from va100.errors import PlanError
from va100.plan.load import Chance, PoissonLoad, Request, read_trace
from va100.plan.machine import find_machine
from va100.plan.serve_load import play_load
from va100.plan.serving import estimate_serving
from va100.plan.serving_options import ServeOptions
from va100.plan.serving_simulation import Replica, summary


class FixedSteps:
    """Steps of a second, and a tenth more for each prompt token."""

    def step(self, prefills, decodes, context):
        return 1.0 + 0.1 * sum(new for new, _ in prefills), 1.0


def replica(cache=10_000, chunk=1000, most=16):
    return Replica(
        steps=FixedSteps(), cache_tokens=cache, most_sequences=most, chunk=chunk, block=1
    )


class TestReplica:
    def test_one_request_alone(self):
        found = replica().play([Request(5.0, 10, 4)])
        (one,) = found.served
        assert one.first_token_s == pytest.approx(5.0 + 2.0)
        assert one.done_s == pytest.approx(7.0 + 3.0)
        assert one.tpot_s == pytest.approx(1.0)

    def test_two_that_come_together_share_steps(self):
        found = replica().play([Request(0.0, 10, 3), Request(0.0, 10, 5)])
        assert [one.done_s for one in found.served] == pytest.approx([3.0 + 2, 3.0 + 4])
        assert found.busy_s == pytest.approx(7.0)

    def test_a_late_one_is_filled_in_beside_the_batch(self):
        found = replica().play([Request(0.0, 10, 10), Request(4.5, 10, 2)])
        first, late = found.served
        # The first runs in whole seconds from 2; at 5 the late one's prompt is taken in.
        assert late.first_token_s == pytest.approx(7.0)
        assert late.done_s == pytest.approx(8.0)
        assert first.done_s == pytest.approx(2.0 + 9 + 1.0)

    def test_long_prompts_are_cut(self):
        found = replica(chunk=10).play([Request(0.0, 25, 1)])
        assert found.served[0].done_s == pytest.approx(3 * 1.0 + 2.5)

    def test_a_request_beyond_the_cache_is_refused(self):
        found = replica(cache=20).play([Request(0.0, 15, 10), Request(0.0, 5, 5)])
        assert found.refused == 1
        assert len(found.served) == 1

    def test_a_full_cache_takes_sequences_back(self):
        found = replica(cache=40).play([Request(0.0, 10, 20), Request(0.0, 10, 20)])
        assert found.preempted >= 1
        assert len(found.served) == 2

    @given(
        st.lists(
            st.tuples(st.floats(0, 50), st.integers(1, 60), st.integers(1, 40)),
            min_size=1, max_size=30,
        ),
        st.integers(110, 400), st.integers(1, 8),
    )  # fmt: skip
    def test_all_are_served_once_in_their_time(self, shapes, cache, most):
        requests = sorted((Request(*shape) for shape in shapes), key=lambda r: r.arrival_s)
        found = replica(cache=cache, most=most, chunk=50).play(requests)
        assert len(found.served) == len(requests)
        assert sorted(one.output for one in found.served) == sorted(r.output for r in requests)
        for one in found.served:
            assert one.arrival_s < one.first_token_s <= one.done_s
            assert one.done_s - one.first_token_s >= (one.output - 1) * 1.0 - 1e-6
        assert found.busy_s <= found.end_s + 1e-6


class TestLoad:
    def test_arrivals_are_poisson(self):
        found = list(PoissonLoad(per_s=100, duration_s=100, prompt=10, output=5).requests())
        assert len(found) == pytest.approx(10_000, rel=0.03)
        gaps = [b.arrival_s - a.arrival_s for a, b in pairwise(found)]
        mean = sum(gaps) / len(gaps)
        deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
        assert deviation == pytest.approx(mean, rel=0.05)

    def test_lengths_have_their_mean(self):
        load = PoissonLoad(per_s=100, duration_s=100, prompt=500, output=200, variation=0.5)
        found = list(load.requests())
        assert sum(r.prompt for r in found) / len(found) == pytest.approx(500, rel=0.03)

    def test_a_seed_is_a_load(self):
        loads = [PoissonLoad(per_s=5, duration_s=9, prompt=9, output=9, seed=s) for s in (1, 1, 2)]
        one, again, other = (list(load.requests()) for load in loads)
        assert one == again != other

    def test_chance_is_even(self):
        chance = Chance(7)
        values = [chance.uniform() for _ in range(20_000)]
        assert 0 < min(values) < max(values) <= 1
        assert sum(values) / len(values) == pytest.approx(0.5, abs=0.01)

    def test_reads_the_trace_form(self, tmp_path):
        path = tmp_path / "trace.csv"
        path.write_text(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n"
        )
        first, second = read_trace(path)
        assert (first.arrival_s, first.prompt, first.output) == (0.0, 4808, 10)
        assert second.arrival_s == pytest.approx(0.052)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a,b\n1,2\n", "no column"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "no requests"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\nnow,1,1\n", r"t\.csv:2"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,1\n", r"t\.csv:2"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,-1,1\n", "below 0"),
        ],
    )
    def test_refuses_another_form(self, text, said, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text(text)
        with pytest.raises(PlanError, match=said):
            read_trace(path)


ESTIMATE = estimate_serving(
    MODELS["meta-llama/Meta-Llama-3-8B"], ServeOptions(), find_machine("a100-sxm4-80gb")
)
REQUESTS = list(
    PoissonLoad(per_s=4, duration_s=30, prompt=512, output=64, variation=0.5).requests()
)


class TestPools:
    def test_more_replicas_answer_sooner(self):
        one, two = (play_load(ESTIMATE, REQUESTS, n) for n in (1, 2))
        assert two.latency.p99 < one.latency.p99
        assert one.served == two.served == len(REQUESTS)

    def test_prompts_apart_leave_tokens_even(self):
        together = play_load(ESTIMATE, REQUESTS, 2)
        apart = play_load(ESTIMATE, REQUESTS, 2, prefill_replicas=1)
        assert apart.served == len(REQUESTS)
        spread = apart.tpot.p99 / apart.tpot.p50
        assert spread < together.tpot.p99 / together.tpot.p50

    def test_the_same_load_is_the_same_answer(self):
        assert play_load(ESTIMATE, REQUESTS, 2) == play_load(ESTIMATE, REQUESTS, 2)

    def test_a_pool_without_decoders_is_refused(self):
        with pytest.raises(PlanError, match="fill prompts in"):
            play_load(ESTIMATE, REQUESTS, 2, prefill_replicas=2)

    def test_light_load_is_what_a_request_alone_takes(self):
        found = play_load(ESTIMATE, [Request(0.0, 1024, 256)], 1)
        assert found.ttft.mean == pytest.approx(ESTIMATE.ttft_s, rel=0.05)
        assert found.tpot.mean == pytest.approx(ESTIMATE.tpot_s, rel=0.05)


def test_summary_takes_nearest_ranks():
    found = summary([float(n) for n in range(1, 101)])
    assert (found.p50, found.p90, found.p99, found.largest) == (50, 90, 99, 100)
