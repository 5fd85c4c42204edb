"""The cache on disk: whole entries or none, whoever writes."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.gpu.arena import Arena
from va100.jit import llvm
from va100.jit.cache import ObjectCache, generation, key_of
from va100.jit.engine import JitEngine

KEY = key_of("some", "kernel")
STORE = kernel("test", "u64", "add.s64 %d1, %d60, %d0; st.global.u32 [%d1], %r3; ret;")


def _files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def test_gives_back_what_was_put(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, b"object")
    assert cache.get(KEY) == b"object"
    assert len(_files(tmp_path)) == 1


def test_without_a_folder_nothing_is_kept() -> None:
    cache = ObjectCache(None)
    cache.put(KEY, b"object")
    assert cache.get(KEY) is None


@pytest.mark.parametrize("damage", ["empty", "short", "flipped", "longer", "foreign"])
def test_damaged_entries_are_ignored(tmp_path: Path, damage: str) -> None:
    cache = ObjectCache(tmp_path)
    cache.put(KEY, bytes(range(100)))
    (file,) = _files(tmp_path)
    data = file.read_bytes()
    flipped = bytearray(data)
    flipped[60] ^= 1
    file.write_bytes(
        {
            "empty": b"",
            "short": data[:50],
            "flipped": bytes(flipped),
            "longer": data + b"x",
            "foreign": b"x" * 200,
        }[damage]
    )
    assert cache.get(KEY) is None
    cache.put(KEY, b"anew")
    assert cache.get(KEY) == b"anew"


def test_a_folder_that_cannot_be_made_costs_nothing_but_speed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = ObjectCache(tmp_path / "file")
    cache.put(KEY, b"object")
    assert cache.get(KEY) is None


def test_writers_at_the_same_time_leave_one_whole_entry(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    contents = [bytes([k]) * 200_000 for k in range(6)]
    wrong: list[bytes] = []

    def write(data: bytes) -> None:
        for _ in range(20):
            cache.put(KEY, data)
            got = cache.get(KEY)
            if got not in contents:
                wrong.append(got or b"")

    threads = [threading.Thread(target=write, args=(c,)) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.get(KEY) in contents
    assert len(_files(tmp_path)) == 1


def test_keys_tell_parts_from_each_other() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("a") == key_of(b"a")
    assert generation() == generation()


def test_second_engine_compiles_nothing(
    tmp_path: Path, arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch() -> np.ndarray:
        loaded = load(STORE, arena)
        try:
            place = loaded.buffer(np.zeros(32, np.uint32))
            loaded.run(JitEngine(tmp_path, workers=1), "test", (1,), (32,), pack(place))
            return loaded.read(place, np.uint32, 32)
        finally:
            loaded.close()

    def refuse(text: str, level: int) -> bytes:
        raise AssertionError("compiled again")

    np.testing.assert_array_equal(launch(), np.arange(32))
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "compile_object", refuse)
        np.testing.assert_array_equal(launch(), np.arange(32))
    for file in _files(tmp_path):
        file.write_bytes(file.read_bytes()[:-7])
    np.testing.assert_array_equal(launch(), np.arange(32))
