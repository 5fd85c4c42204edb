"""Placing commands in virtual time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.perf.timeline import (
    LEGACY_STREAM,
    PENDING_KERNELS,
    Activity,
    Command,
    copy_s,
    launch_gap_ns,
    schedule,
)
from va100.spec.a100 import A100_SXM4_80GB as CHIP
from va100.units import GB, US

GAP_NS = launch_gap_ns(CHIP)


def kernel(stream=1, duration_us=10.0, share=1.0, **kwargs):
    return Command(
        activity=Activity.KERNEL,
        stream=stream,
        duration_s=duration_us * US,
        sm_share=share,
        **kwargs,
    )


def placed(*commands):
    return [(event.start_ns, event.end_ns) for event in schedule(commands, CHIP)]


class TestSchedule:
    def test_back_to_back_kernels_have_a_stream_s_period(self):
        first, second = placed(kernel(), kernel())
        assert second[0] - first[1] == GAP_NS == 1300

    def test_streams_share_a_chip_that_has_room(self):
        assert placed(kernel(1, share=0.5), kernel(2, share=0.5)) == [(GAP_NS, GAP_NS + 10_000)] * 2

    def test_streams_wait_for_a_full_chip(self):
        first, second = placed(kernel(1, share=0.6), kernel(2, share=0.6))
        assert second[0] == first[1]

    def test_room_must_last(self):
        long, later, wide = placed(
            kernel(1, 100, share=0.5),
            kernel(2, 10, share=0.5, submit_ns=20_000),
            kernel(3, 30, share=0.5),
        )
        # would overlap the second, submitted before it, so it starts after it
        assert wide[0] == later[1]
        assert long[1] > wide[1]

    def test_copies_overlap_kernels_and_the_other_direction(self):
        up = Command(activity=Activity.HOST_TO_DEVICE, stream=1, moved_bytes=10**6)
        down = Command(activity=Activity.DEVICE_TO_HOST, stream=2, moved_bytes=10**6)
        again = Command(activity=Activity.HOST_TO_DEVICE, stream=3, moved_bytes=10**6)
        a, b, c, k = placed(up, down, again, kernel(4))
        assert a[0] == b[0] == 0
        assert c[0] == a[1]
        assert k[0] == GAP_NS

    def test_legacy_stream_waits_for_all_and_all_for_it(self):
        one, legacy, two = placed(
            kernel(1, share=0.1), kernel(LEGACY_STREAM, share=0.1), kernel(2, share=0.1)
        )
        assert legacy[0] == one[1] + GAP_NS
        assert two[0] == legacy[1] + GAP_NS

    def test_events_order_streams(self):
        _, record, wait, after = placed(
            kernel(1),
            Command(activity=Activity.RECORD, stream=1, event=7),
            Command(activity=Activity.WAIT, stream=2, event=7),
            kernel(2, share=0.1),
        )
        assert record[0] == wait[1] == GAP_NS + 10_000
        assert after[0] == wait[1] + GAP_NS

    def test_nothing_starts_before_it_is_submitted(self):
        assert placed(kernel(submit_ns=5000))[0][0] == 5000 + GAP_NS

    @pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
    def test_impossible_share(self, share):
        with pytest.raises(ValueError, match="sm_share"):
            placed(kernel(share=share))

    @given(
        st.lists(
            st.tuples(
                st.integers(1, 4),
                st.floats(0.001, 100, allow_nan=False),
                st.sampled_from([0.1, 0.25, 0.5, 1.0]),
            ),
            max_size=PENDING_KERNELS + 20,
        )
    )
    def test_streams_keep_order_and_shares_never_exceed_the_chip(self, kernels):
        commands = [kernel(stream, length, share) for stream, length, share in kernels]
        events = schedule(commands, CHIP)
        for event in events:
            running = [
                other.command.sm_share
                for other in events
                if other.start_ns <= event.start_ns < other.end_ns
            ]
            assert sum(running) <= 1 + 1e-6
            assert isinstance(event.start_ns, int)
        for stream in range(1, 5):
            own = [event for event in events if event.command.stream == stream]
            for before, after in itertools.pairwise(own):
                assert after.start_ns >= before.end_ns + GAP_NS


class TestCopyS:
    def test_rates(self):
        assert copy_s(Activity.HOST_TO_DEVICE, 26.2 * GB, CHIP) == pytest.approx(1.0)
        assert copy_s(Activity.DEVICE_TO_DEVICE, 1732 * GB, CHIP) == pytest.approx(2.0)
        assert copy_s(Activity.PEER_TO_PEER, 300 * GB, CHIP) == pytest.approx(1.0)
        assert copy_s(Activity.FILL, 1890 * GB, CHIP) == pytest.approx(1.0)
