"""Planted bugs, each found, and their correct twins, each clean, under all four tools at once.

Proof of the checker: every kind of race, wrong synchronisation, bounds and initialisation fault has
a kernel `<name>_bug` that has it and a kernel `<name>_fix` that differs in as little as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.checking import Bench, bench

HERE = Path(__file__).parent
INPUT = (np.arange(1024) % 2).astype(np.int32)


@dataclass(frozen=True)
class Case:
    """How a pair of kernels is launched, and what the wrong one is told of."""

    kind: str
    n: int = 64
    grid: int | tuple[int, ...] = 1
    block: int = 64
    in_bytes: int = 4096
    out_bytes: int = 4096
    in_defined: bool = True
    shared_bytes: int = 0
    severity: str = "error"
    leaks: bool = False
    frees: bool = False
    zero: bool = False


RACE = Case("race")
BLOCKS = Case("race", grid=4, n=256)
PAIR = Case("race", grid=2)

CASES = {
    "race_shared": {
        "shared_raw": RACE,
        "shared_war": RACE,
        "shared_waw": RACE,
        "warp_raw": RACE,
        "warp_war": RACE,
        "warp_waw": RACE,
        "reduce_tree": RACE,
        "reduce_warp": RACE,
        "volatile_warp": Case("race", severity="warn"),
        "tile_loop": Case("race", n=3),
        "half_mask": RACE,
        "atomic_read": RACE,
        "atomic_write": RACE,
        "halo": RACE,
        "transpose_tile": RACE,
        "bytes": RACE,
        "half_of_word": RACE,
        "overlap": RACE,
        "named_subset": Case("race", block=96),
        "ring": RACE,
        "histogram": RACE,
        "divergent_paths": RACE,
        "generic": RACE,
        "async_unwaited": RACE,
        "async_no_barrier": RACE,
        "async_group": RACE,
        "mbarrier": RACE,
    },
    "race_global": {
        "blocks_waw": BLOCKS,
        "blocks_raw": BLOCKS,
        "blocks_war": BLOCKS,
        "global_raw": RACE,
        "global_warp": RACE,
        "global_histogram": BLOCKS,
        "no_release": PAIR,
        "no_acquire": Case("race", grid=2, severity="warn"),
        "narrow_fence": PAIR,
        "early_fence": PAIR,
        "relaxed_store": PAIR,
        "plain_flag": PAIR,
        "last_block": BLOCKS,
        "block_scope": BLOCKS,
        "grid_sync": BLOCKS,
        "no_lock": BLOCKS,
        "unlock_unfenced": BLOCKS,
        "atomic_plain": BLOCKS,
        "result_element": BLOCKS,
        "prefix_ring": BLOCKS,
        "swap_loop": BLOCKS,
    },
    "idioms": {
        "hidden": RACE,
        "warp_partials": RACE,
        "scan_one_buffer": RACE,
        "bitonic": RACE,
        "room_reused": RACE,
        "loop_flag": RACE,
        "vote_of_a_warp": RACE,
        "bins_zeroed": RACE,
        "pipeline_full": RACE,
        "pipeline_empty": Case("race|deadlock"),
        "look_back": BLOCKS,
        "packed_flag": BLOCKS,
        "volatile_flag": PAIR,
        "narrow_acquire": PAIR,
        "rows_of_blocks": Case("race", grid=(2, 2)),
        "stencil_in_place": RACE,
        "early_break": Case("divergent-block"),
        "reduce_caller": Case("mask-without-caller|deadlock"),
        "syncwarp_diverged": Case("missing-lane|deadlock"),
        "last_vector": Case("out-of-bounds", n=250, out_bytes=1000),
        "double_at_word": Case("misaligned"),
        "shared_atomic_past": Case("out-of-bounds"),
        "index_overflow": Case("out-of-bounds"),
        "padding_column": Case("uninitialised"),
        "sum_not_zeroed": Case("uninitialised"),
        "half_of_double": Case("uninitialised", in_defined=False),
    },
    "sync": {
        "half_warp": Case("divergent-warp"),
        "one_warp": Case("divergent-block"),
        "trip_count": Case("deadlock|divergent-warp"),
        "both_branches": Case("divergent-warp"),
        "counts_differ": Case("barrier-count", block=96),
        "counts_in_turn": Case("barrier-count", block=96),
        "count_too_high": Case("deadlock"),
        "count_uneven": Case("illegal-instruction", n=40),
        "barrier_number": Case("illegal-instruction", n=17),
        "exited_warp": Case("deadlock"),
        "early_exit": Case("divergent-warp"),
        "guarded": Case("divergent-warp"),
        "syncwarp_caller": Case("mask-without-caller|deadlock"),
        "shuffle_caller": Case("mask-without-caller|deadlock"),
        "shuffle_diverged": Case("missing-lane|deadlock"),
        "ballot_masks": Case("masks-differ|deadlock"),
        "vote_caller": Case("mask-without-caller|deadlock"),
        "spin": Case("deadlock"),
        "crossed": Case("deadlock"),
    },
    "memory": {
        "past_end": Case("out-of-bounds", n=100, block=128, out_bytes=400),
        "past_end_byte": Case("out-of-bounds", n=101, block=128, out_bytes=101),
        "read_past_end": Case("out-of-bounds", n=50, in_bytes=200),
        "before_start": Case("out-of-bounds", in_bytes=256),
        "between": Case("out-of-bounds", in_bytes=256),
        "vector_across_end": Case("out-of-bounds", n=250, out_bytes=1000),
        "misaligned": Case("misaligned"),
        "misaligned_vector": Case("misaligned"),
        "shared_static": Case("out-of-bounds", n=8),
        "shared_dynamic": Case("out-of-bounds", shared_bytes=128),
        "shared_misaligned": Case("misaligned"),
        "local_index": Case("out-of-bounds", n=5),
        "null_pointer": Case("out-of-bounds"),
        "wild_pointer": Case("out-of-bounds"),
        "atomic_past_end": Case("out-of-bounds", out_bytes=256),
        "heap_past_end": Case("out-of-bounds"),
        "heap_after_free": Case("use-after-free"),
        "heap_after_reuse": Case("use-after-free"),
        "heap_double_free": Case("double-free"),
        "heap_leak": Case("leak", leaks=True),
        "after_free": Case("use-after-free", frees=True),
        "stack": Case("stack-overflow|out-of-bounds"),
        "foreign_local": Case("foreign"),
        "trap": Case("trap"),
    },
    "init": {
        "global": Case("uninitialised", in_defined=False),
        "shared": Case("uninitialised"),
        "local": Case("uninitialised", n=3),
        "part_of_vector": Case("uninitialised"),
        "half_filled": Case("uninitialised", in_defined=False),
        "atomic": Case("uninitialised", in_defined=False),
        "one_byte": Case("uninitialised", in_defined=False),
        "heap": Case("uninitialised"),
    },
}
PAIRS = [(module, name) for module, cases in CASES.items() for name in cases]


@cache
def text_of(module: str) -> str:
    """The PTX of a file of planted kernels."""
    return (HERE / f"{module}.ptx").read_text()


def launch(b: Bench, kernel: str, case: Case, *, bug: bool) -> None:
    """Run one kernel of a pair."""
    source = b.buffer(case.in_bytes, defined=case.in_defined)
    target = b.buffer(case.out_bytes)
    view = b.loaded.module.arena.view(source, case.in_bytes)
    view[:] = INPUT.view(np.uint8)[: case.in_bytes]
    if case.frees and bug:
        b.free(source)
    grid = case.grid if isinstance(case.grid, tuple) else (case.grid,)
    b.run(
        kernel, grid, (case.block,), source, target, np.int32(case.n),
        shared_bytes=case.shared_bytes,
    )  # fmt: skip
    if case.leaks:
        if not case.frees:
            b.free(source)
        b.free(target)
        b.session.leaks()


def test_there_are_many():
    assert len(PAIRS) >= 120
    for module, cases in CASES.items():
        source = (HERE / f"{module}.cu").read_text()
        assert source.count("\nBUG(") == source.count("\nFIX(") == len(cases)


@pytest.mark.parametrize(("module", "name"), PAIRS)
def test_bug_is_found(module, name):
    case = CASES[module][name]
    with bench(text_of(module)) as b:
        launch(b, f"{name}_bug", case, bug=True)
        found = b.found()
    kinds = case.kind.split("|")
    assert any(f.kind in kinds and f.severity == case.severity for f in found), found


@pytest.mark.parametrize(("module", "name"), PAIRS)
def test_twin_is_clean(module, name):
    case = CASES[module][name]
    with bench(text_of(module)) as b:
        launch(b, f"{name}_fix", case, bug=False)
        found = b.found()
    assert b.fault is None
    assert not [f for f in found if f.severity != "info"]
