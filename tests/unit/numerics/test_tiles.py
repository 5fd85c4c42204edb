"""Tiles of ``wmma``, their copies and words in memory, 8 x 8 matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.fragment_checks import check_holds_every_element_once, check_round_trip
from va100.numerics import fragments, tiles

WMMA = [  # shape, operand bits, registers of a and of b
    ((16, 16, 16), 16, 4, 4), ((32, 8, 16), 16, 8, 2), ((8, 32, 16), 16, 2, 8),
    ((16, 16, 16), 8, 2, 2), ((32, 8, 16), 8, 4, 1), ((8, 32, 16), 8, 1, 4),
    ((16, 16, 8), 32, 4, 4), ((8, 8, 4), 64, 1, 1), ((8, 8, 32), 4, 1, 1), ((8, 8, 128), 1, 1, 1),
]  # fmt: skip


def _all():
    for shape, bits, _, _ in WMMA:
        yield tiles.wmma_fragment("a", shape, bits)
        yield tiles.wmma_fragment("b", shape, bits)
        yield tiles.wmma_fragment("c", shape, max(bits, 32))
        if bits == 16:
            yield tiles.wmma_fragment("c", shape, 16)
    for transposed in (False, True):
        yield tiles.eight_by_eight(transposed=transposed)


@pytest.mark.parametrize("fragment", list(_all()), ids=lambda f: f"{f.shape}x{f.element_bits}")
class TestEveryTile:
    def test_holds_every_element_once(self, fragment):
        check_holds_every_element_once(fragment)

    def test_round_trip(self, fragment):
        check_round_trip(fragment)

    @pytest.mark.parametrize("layout", ["row", "col"])
    def test_words_cover_the_tile_in_memory(self, fragment, layout):
        walk = tiles.walk(fragment, layout)
        rows, columns = fragment.shape
        lines = (rows, columns) if layout == "row" else (columns, rows)
        assert (walk.line_count, walk.line_elements) == lines
        per_word = walk.bits // fragment.element_bits
        first = (walk.line * walk.line_elements + walk.along).reshape(-1)
        covered = (first[:, None] + np.arange(per_word)).reshape(-1)
        assert np.array_equal(np.sort(covered), np.arange(rows * columns))
        assert len(walk.line) == fragment.registers * walk.per_register


class TestWmma:
    @pytest.mark.parametrize(("shape", "bits", "a", "b"), WMMA)
    def test_registers(self, shape, bits, a, b):
        assert tiles.wmma_fragment("a", shape, bits).registers == a
        assert tiles.wmma_fragment("b", shape, bits).registers == b

    def test_half_operands_have_copies(self):
        once = tiles.wmma_fragment("a", (8, 32, 16), 16)
        packed = tiles.with_copies(once, 8).scatter(np.arange(128, dtype=np.uint32).reshape(8, 16))
        assert len(packed) == 8
        for copy in range(2, 8):
            np.testing.assert_array_equal(packed[copy], packed[copy % 2])

    def test_slabs_are_operands_of_mma(self):
        b = np.random.default_rng(5).integers(0, 1 << 16, (16, 16), np.uint32)
        packed = tiles.wmma_fragment("b", (16, 16, 16), 16).scatter(b)
        for slab in (0, 1):
            part = fragments.fragment_b(16, 16).gather(packed[2 * slab : 2 * slab + 2])
            np.testing.assert_array_equal(part, b[:, 8 * slab : 8 * slab + 8])

    def test_the_wide_tile_is_the_transpose_of_the_tall_one(self):
        b = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
        wide = tiles.wmma_fragment("b", (8, 32, 16), 16).scatter(b)
        tall = tiles.wmma_fragment("a", (32, 8, 16), 16).scatter(b.T)
        np.testing.assert_array_equal(wide, tall)

    def test_words_are_as_wide_as_the_layout_allows(self):
        a = tiles.wmma_fragment("a", (16, 16, 16), 16)
        assert tiles.walk(a, "row").bits == 32
        assert tiles.walk(a, "col").bits == 16
        assert tiles.walk(a, "col").per_register == 2
