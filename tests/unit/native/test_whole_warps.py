"""Accesses of warps without idle lanes: groups of eight that follow one another, and others."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from va100 import errors
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to, .param .u64 input, .param .u64 output)
{{
  .reg .b64 %a<8>;
  .reg .b32 %t;
  .reg .b{bits} %v;
  .shared .align 8 .b8 room[2048];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %a0, %t, 8;
  ld.param.u64 %a1, [from];
  add.u64 %a1, %a1, %a0;
  ld.global.u64 %a1, [%a1];
  ld.param.u64 %a2, [to];
  add.u64 %a2, %a2, %a0;
  ld.global.u64 %a2, [%a2];
  ld.param.u64 %a3, [input];
  add.u64 %a3, %a3, %a1;
  ld.global.{type} %v, [%a3];
  mov.u64 %a4, room;
  add.u64 %a4, %a4, %a2;
  st.shared.{type} [%a4], %v;
  ld.shared.{type} %v, [%a4];
  ld.param.u64 %a5, [output];
  add.u64 %a5, %a5, %a2;
  st.global.{type} [%a5], %v;
  ret;
}}
"""
SLOTS = 64


@pytest.fixture
def arena() -> Arena:
    return Arena()


def run(arena: Arena, size: int, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Copy slots of ``size`` bytes from byte offsets to byte offsets; what came out."""
    text = PTX.format(bits=max(size * 8, 16), type=f"u{size * 8}")
    loaded = load(text, arena)
    try:
        data = np.arange(SLOTS, dtype=f"u{size}") + 1
        output = loaded.buffer(np.zeros(SLOTS, f"u{size}"))
        params = pack(
            loaded.buffer(source.astype("u8")),
            loaded.buffer(target.astype("u8")),
            loaded.buffer(data),
            output,
        )
        loaded.run(JitEngine(workers=1), "copy", (1,), (32,), params)
        return loaded.read(output, f"u{size}", SLOTS)
    finally:
        loaded.close()


ORDERS = {
    "in order": np.arange(32),
    "backwards": np.arange(32)[::-1],
    "rows of eight": np.concatenate([np.arange(8) + 16 * k for k in range(4)]),
    "a row among others": np.concatenate([np.arange(8), np.arange(63, 39, -1)]),
    "scattered": np.random.default_rng(5).permutation(SLOTS)[:32],
}


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("source", ORDERS)
@pytest.mark.parametrize("target", ORDERS)
def test_slots_arrive(arena: Arena, size: int, source: str, target: str) -> None:
    expected = np.zeros(SLOTS, f"u{size}")
    expected[ORDERS[target]] = ORDERS[source] + 1
    got = run(arena, size, ORDERS[source] * size, ORDERS[target] * size)
    np.testing.assert_array_equal(got, expected)


def test_highest_lane_wins(arena: Arena) -> None:
    got = run(arena, 4, np.arange(32) * 4, np.zeros(32))
    assert got[0] == 32
    assert not got[1:].any()


@pytest.mark.parametrize("lane", [0, 7, 8, 20, 31])
@pytest.mark.parametrize("order", ["in order", "scattered"])
def test_one_lane_outside(arena: Arena, lane: int, order: str) -> None:
    source = ORDERS[order] * 4
    source[lane] = 1 << 33
    with pytest.raises(errors.IllegalAddress) as caught:
        run(arena, 4, source, np.arange(32) * 4)
    assert caught.value.thread == (lane, 0, 0)


@pytest.mark.parametrize("lane", [0, 7, 8, 20, 31])
def test_one_lane_misaligned(arena: Arena, lane: int) -> None:
    source = ORDERS["scattered"] * 4
    source[lane] += 2
    with pytest.raises(errors.MisalignedAddress) as caught:
        run(arena, 4, source, np.arange(32) * 4)
    assert caught.value.thread == (lane, 0, 0)


@pytest.mark.parametrize("lane", [0, 13, 31])
def test_one_lane_outside_shared(arena: Arena, lane: int) -> None:
    target = ORDERS["backwards"] * 4
    target[lane] = 2048
    with pytest.raises(errors.IllegalAddress) as caught:
        run(arena, 4, np.arange(32) * 4, target)
    assert caught.value.thread == (lane, 0, 0)
