"""Results and counters are the same with the checker and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.checking import ALL_TOOLS, Bench
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine

PLANTED = Path(__file__).resolve().parents[2] / "check"
KERNELS = [
    ("race_shared", "reduce_tree_fix"),
    ("race_shared", "divergent_paths_fix"),
    ("race_shared", "ring_fix"),
    ("race_shared", "shared_raw_bug"),
    ("race_global", "last_block_fix"),
    ("sync", "trip_count_fix"),
]


def values():
    return np.random.default_rng(7).integers(0, 1000, 1024, dtype=np.int32)


def plain(text, kernel):
    loaded = load(text, Arena())
    source, target = loaded.buffer(values()), loaded.buffer(np.zeros(1024, np.int32))
    outcome = loaded.run(
        JitEngine(workers=1), kernel, (2,), (64,), pack(source, target, np.int32(3))
    )
    result = loaded.read(target, np.int32, 1024)
    loaded.close()
    return outcome, result


def checked(text, kernel):
    made = Bench(text, ALL_TOOLS)
    source, target = made.buffer(4096), made.buffer(4096)
    made.loaded.module.arena.view(source, 4096)[:] = values().view(np.uint8)
    outcome = made.loaded.run(made.engine, kernel, (2,), (64,), pack(source, target, np.int32(3)))
    result = made.loaded.read(target, np.int32, 1024)
    made.free(source)
    made.free(target)
    made.loaded.close()
    made.session.close()
    return outcome, result


@pytest.mark.parametrize(("module", "kernel"), KERNELS)
def test_unchanged(module, kernel):
    text = (PLANTED / f"{module}.ptx").read_text()
    before, result = plain(text, kernel)
    after, again = checked(text, kernel)
    assert np.array_equal(result, again)
    assert before.counters == after.counters
    assert before.output == after.output
