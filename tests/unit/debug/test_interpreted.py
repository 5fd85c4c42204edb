"""Launches that are watched: by which engine they run, and what the driver learns of them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest

from tests.helpers.engines import Loaded, load, pack
from tests.helpers.watching import TEXT
from va100.debug.interpreted import (
    INTERPRETED,
    Relay,
    Structures,
    WatchedCompiler,
    WatchedVariant,
)
from va100.debug.trace import Tracer, read_options
from va100.errors import IllegalAddress
from va100.gpu.arena import Arena
from va100.jit.compiler import JitCompiler
from va100.jit.engine import JitEngine
from va100.jit.native import Fault, Launch, Variant
from va100.reference.engine import ReferenceEngine
from va100.work import Dim3, LaunchConfig

STRUCTURES = Structures(variant=Variant, launch=Launch)
CONFIG = LaunchConfig(grid=Dim3(1), block=Dim3(32))


class Watched:
    """A kernel compiled to be watched, and what was traced of it."""

    def __init__(self, arena: Arena, options: str, text: str = TEXT) -> None:
        self.lines: list[str] = []
        self.told: list[str] = []
        self.loaded: Loaded = load(text, arena)
        relay = Relay([Tracer(read_options(options), self.lines.append)])
        compiler = WatchedCompiler(
            JitCompiler(JitEngine()), ReferenceEngine(watcher=relay), relay, STRUCTURES,
            self.told.append,
        )  # fmt: skip
        self.variant = compiler.variant(self.loaded.module, "scale", CONFIG.block)

    def launch(self, params: bytes) -> tuple[Launch, int]:
        """Launch as the driver does; the record and the number of the launch."""
        assert isinstance(self.variant, WatchedVariant)
        counter = (ctypes.c_uint64 * 1)()
        buffer = ctypes.create_string_buffer(params, len(params))
        record = Launch(
            params=ctypes.cast(buffer, ctypes.c_void_p),
            grid=(ctypes.c_uint32 * 3)(*CONFIG.grid),
            block=(ctypes.c_uint32 * 3)(*CONFIG.block),
            workers=1,
            sm_count=108,
            counters=counter,
        )
        self.variant.launch(ctypes.addressof(record))
        return record, int(counter[0])


@pytest.fixture
def watched(arena: Arena) -> Iterator[Watched]:
    made = Watched(arena, "thread=1")
    yield made
    made.loaded.close()


def params(loaded: Loaded) -> tuple[int, bytes]:
    address = loaded.buffer(np.full(32, 0.5, np.float32))
    return address, pack(address, np.uint32(3))


def test_the_variant_says_that_it_is_interpreted(watched: Watched) -> None:
    native = watched.variant.native
    assert native.flags & INTERPRETED  # type: ignore[attr-defined]
    assert native.counter_count == 1  # type: ignore[attr-defined]


def test_a_watched_launch(watched: Watched) -> None:
    address, block = params(watched.loaded)
    record, number = watched.launch(block)
    assert record.fault.kind == 0
    assert watched.loaded.read(address, np.float32, 3).tolist() == [0.5, 2.5, 4.5]
    assert watched.lines
    assert watched.variant.counters([number], CONFIG).cta_count == 1


def test_both_engines_count_alike(arena: Arena, watched: Watched) -> None:
    other = Watched(arena, "kernel=elsewhere")
    counts = []
    for each in (watched, other):
        address, block = params(each.loaded)
        _, number = each.launch(block)
        assert each.loaded.read(address, np.float32, 3).tolist() == [0.5, 2.5, 4.5]
        counts.append(each.variant.counters([number], CONFIG))
    assert not other.lines
    assert counts[0].warp_count == counts[1].warp_count == 1
    assert counts[0].global_store_bytes == counts[1].global_store_bytes == 12
    other.loaded.close()


def test_a_fault(arena: Arena, watched: Watched) -> None:
    record, number = watched.launch(pack(4, np.uint32(3)))
    assert (record.fault.kind, record.fault.address) == (1, 4)
    assert tuple(record.fault.tid) == (0, 0, 0)
    assert number == 0
    error = watched.variant.explain("scale", Fault(), arena)
    assert isinstance(error, IllegalAddress)
    assert "faulted" in watched.lines[-1]


def test_what_cannot_be_watched_runs_as_machine_code(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise IllegalAddress(space="none", address=0, size=0)

    monkeypatch.setattr(ReferenceEngine, "prepare", refuse)
    made = Watched(arena, "1")
    assert not isinstance(made.variant, WatchedVariant)
    assert made.told[0].startswith("kernel scale cannot be watched")
    made.loaded.close()
