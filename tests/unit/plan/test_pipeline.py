"""Schedules as events against the closed form, and the order Megatron-LM gives them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.plan.pipeline import StageTime, bubble_ratio, pipeline_s, schedule, stage_order

EVEN = [StageTime(1.0, 2.0)] * 4


class TestPipelineTime:
    def test_even_stages_wait_for_one_less_than_there_are(self):
        assert pipeline_s(EVEN, 8) == pytest.approx((8 + 3) * 3.0)
        assert bubble_ratio(EVEN, 8) == pytest.approx(3 / 11)

    def test_chunks_divide_the_ramp(self):
        assert pipeline_s(EVEN, 8, 2) == pytest.approx(8 * 3.0 + 3 * 3.0 / 2)

    def test_the_slowest_stage_decides(self):
        uneven = [StageTime(1.0, 2.0), StageTime(2.0, 4.0), StageTime(1.0, 2.0)]
        assert pipeline_s(uneven, 10) == pytest.approx(10 * 6.0 + 6.0)


class TestSchedule:
    @given(st.integers(1, 6), st.integers(1, 12))
    def test_takes_what_the_closed_form_says(self, stages, micro_batches):
        times = [StageTime(1.0, 2.0)] * stages
        slots = schedule(times, micro_batches)
        assert max(slot.end_s for slot in slots) == pytest.approx(pipeline_s(times, micro_batches))
        assert len(slots) == 2 * stages * micro_batches

    @given(st.integers(2, 4), st.integers(1, 3), st.integers(2, 3))
    def test_interleaved_takes_what_the_closed_form_says(self, stages, groups, chunks):
        times = [StageTime(1.0, 2.0)] * stages
        slots = schedule(times, groups * stages, chunks)
        whole = pipeline_s(times, groups * stages, chunks)
        assert max(slot.end_s for slot in slots) == pytest.approx(whole)

    @given(
        st.lists(st.floats(0.5, 2.0), min_size=1, max_size=5), st.integers(1, 8), st.floats(0, 0.3)
    )
    def test_no_stage_does_two_things_and_none_comes_before_its_need(self, each, count, hop_s):
        times = [StageTime(t, 2 * t) for t in each]
        slots = schedule(times, count, hop_s=hop_s)
        ends = {(s.stage, s.micro_batch, s.backward): s.end_s for s in slots}
        for stage in range(len(times)):
            mine = sorted((s for s in slots if s.stage == stage), key=lambda s: s.start_s)
            assert all(a.end_s <= b.start_s + 1e-9 for a, b in pairwise(mine))
        for slot in slots:
            if not slot.backward and slot.stage:
                before = ends[slot.stage - 1, slot.micro_batch, False]
                assert slot.start_s >= before + hop_s - 1e-9

    def test_memory_in_flight_is_what_the_order_holds(self):
        from va100.plan.memory import in_flight_count
        from va100.plan.training_options import TrainOptions

        for pp, chunks, count in ((4, 1, 8), (4, 1, 2), (4, 2, 8), (3, 3, 6), (2, 2, 2)):
            options = TrainOptions(pp=pp, chunks=chunks, global_batch=count)
            for stage in range(pp):
                alive = most = 0
                for _, _, backward in stage_order(stage, pp, count, chunks):
                    alive += -1 if backward else 1
                    most = max(most, alive)
                assert in_flight_count(options, stage) == most
