"""Why a launch takes as long as it does: each sentence where it is true, and not where it isn't."""

from __future__ import annotations

import pytest

from tests.helpers.launches import CHIP, COUNTERS, FIT, LINES, PARTS, launch, report, work
from va100.perf.kernel import Bound
from va100.profile.launch import launches_of
from va100.profile.reasons import band_text, line_text, reasons, together, top_lines
from va100.profile.report_schema import LineCounters
from va100.work import Dim3

CLEAN = COUNTERS | {
    "shared_requests": 0.0, "shared_wavefronts": 0.0, "shared_store_requests": 0.0,
    "shared_store_wavefronts": 0.0, "opcode_instructions": {},
}  # fmt: skip


def said(**changes):
    return reasons(launch(**{"counters": CLEAN} | changes), CHIP)


def counted(**changes):
    return said(counters=CLEAN | changes)


class TestBound:
    def test_dram(self):
        first = said()[0]
        assert first.startswith("DRAM-bound: 77% of 2,039 GB/s")
        assert first.endswith("; 4 sectors/request, which is ideal")

    def test_launch(self):
        text = said(bound_by="launch", duration_s=1.6e-6)[0]
        assert text.startswith("launch-bound: ")
        assert "of 1.6 us is what any launch takes" in text

    def test_latency_names_the_busiest_part(self):
        text = said(bound_by="latency")[0]
        assert "the busiest part is DRAM bandwidth, 82% of the time" in text

    @pytest.mark.parametrize("bound", Bound)
    def test_every_bound_has_a_sentence(self, bound):
        text = said(bound_by=bound.value, parts=PARTS | {bound.value: 7.2e-6})[0]
        assert "-bound: " in text

    def test_a_bound_of_a_later_version_has_one_too(self):
        assert said(bound_by="wormhole pipe")[0].startswith("wormhole-bound")


def test_without_counters_the_bound_is_told_all_the_same():
    assert said(counters={}, parts={"DRAM bandwidth": 4e-6})[0] == (
        "DRAM-bound: DRAM bandwidth busy 50% of the time"
    )


class TestSectors:
    WORSE = LINES[1].counters | {"global_sectors": 393216.0 * 4}

    def test_scattered_accesses_name_the_line(self):
        scattered = LineCounters(file="/src/a.cu", line=41, counters=self.WORSE)
        text = said(counters=CLEAN | {"global_sectors": 393216.0 * 4}, lines=(LINES[0], scattered))[
            0
        ]
        assert text.endswith("16 sectors/request, 4 is ideal at a.cu:41")

    def test_what_was_not_counted_is_not_spoken_of(self):
        assert "sectors/request" not in " ".join(counted(sampled_fraction=0.0))

    def test_the_error_of_a_sample_is_told(self):
        text = counted(sector_error=0.07)[0]
        assert text.endswith("4 (give or take 7%) sectors/request, which is ideal")
        assert "give or take" not in counted(sector_error=0.004)[0]

    def test_one_sector_a_request_is_the_least(self):
        few = counted(global_sectors=98304.0, global_load_bytes=4.0, global_store_bytes=4.0)
        assert "1 sector/request, which is ideal" in few[0]


class TestFill:
    @pytest.mark.parametrize(
        ("grid", "waves", "text"),
        [
            (1, 1 / 864, "grid: 1 CTA leaves 107 of 108 SMs idle"),
            (64, 64 / 864, "grid: 64 CTAs leave 44 of 108 SMs idle"),
            (216, 0.25, "grid: 216 CTAs for 864 places, so SMs are 25% full"),
            (1037, 1.2, "tail: the last of 2 waves fills 20% of its places"),
            (864, 1.0, None),
            (8600, 9.95, None),
        ],
    )
    def test_fill(self, grid, waves, text):
        found = [r for r in said(grid=Dim3(grid), waves=waves) if r.startswith(("grid", "tail"))]
        assert found == ([text] if text else [])


class TestCaches:
    def test_of_a_launch_whose_ctas_were_all_observed(self):
        assert (
            "caches: L1 holds 25% of the sectors that are loaded, L2 10% of those it is asked for"
            in said()
        )

    def test_of_a_sample_nothing_is_said_of_l2(self):
        assert "caches: L1 holds 25% of the sectors that are loaded" in counted(
            observed_cta_count=64
        )

    def test_of_l2_alone(self):
        found = counted(l1_hit_sectors=0.0)
        assert "caches: L2 holds 10% of the sectors it is asked for" in found
        assert not [t for t in counted(l1_hit_sectors=0.0, l2_hit_sectors=0.0) if "caches" in t]

    def test_of_no_ctas_nothing_is_said(self):
        assert not [text for text in counted(observed_cta_count=0) if "caches" in text]


class TestOthers:
    def test_occupancy_names_what_limits_it(self):
        fit = FIT | {"fraction": 0.375, "ctas_per_sm": 3, "limiter": "registers"}
        assert "occupancy: registers, 72 a thread, let 3 CTAs on an SM, 38% of its warps" in said(
            occupancy=fit, registers=72
        )

    def test_bank_conflicts_name_the_line(self):
        line = LineCounters(
            file="/src/t.cu", line=31,
            counters={"shared_requests": 100.0, "shared_wavefronts": 3200.0},
        )  # fmt: skip
        found = reasons(launch(lines=(*LINES, line)), CHIP)
        assert "bank conflicts: 64% of shared memory's turns; 32 turns/request at t.cu:31" in found

    def test_no_conflicts_no_word(self):
        assert not [r for r in said() if r.startswith("bank")]

    def test_divergence_names_the_line_with_most_idle_lanes(self):
        idle = LINES[0].counters | {"thread_instructions": 66912.0}
        lines = (LineCounters(file="", line=7, counters=idle), LINES[1])
        text = said(counters=CLEAN | {"thread_instructions": 2e6}, lines=lines)[-1]
        assert text == "divergence: 10.1 of 32 lanes take part; 1 at PTX line 7"

    def test_a_small_block_is_no_divergence(self):
        lanes = {"thread_instructions": 8.0 * 197984}
        assert not [r for r in said(block=Dim3(8), counters=CLEAN | lanes) if "divergence" in r]


class TestLines:
    def test_the_line_with_most_of_what_binds_comes_first(self):
        (line, issues, sectors), *rest = top_lines(launch())
        assert (line_text(line), sectors) == ("saxpy.cu:12", 1.0)
        assert issues == pytest.approx(131072 / 197984)
        assert rest == []
        assert [line_text(line) for line, _, _ in top_lines(launch(bound_by="issue slots"))] == [
            "saxpy.cu:12", "saxpy.cu:11",
        ]  # fmt: skip

    def test_none_without_line_information(self):
        assert top_lines(launch(lines=())) == []


def test_band_says_where_it_comes_from():
    assert band_text(launch()) == (
        "7.04 us to 9.26 us (nine of ten measured: one double a thread, by occupancy)"
    )


def test_together_keeps_shapes_apart():
    found = launches_of(report(work(), work(), work(kernel="b"), work(occupancy=FIT)))
    assert [len(group) for group in together(found).values()] == [3, 1]
