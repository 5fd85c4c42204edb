"""Fragment maps: every element once, round trips, and places read off by hand."""

from __future__ import annotations

import numpy as np
import pytest

from va100.numerics import fragments

SHAPES = [  # m, k, operand bits
    (16, 8, 16), (16, 16, 16), (16, 4, 32), (16, 8, 32), (8, 4, 64), (8, 16, 8), (16, 16, 8),
    (16, 32, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4), (8, 128, 1), (16, 128, 1), (16, 256, 1),
]  # fmt: skip
WMMA = [  # shape, operand bits, registers of a and of b
    ((16, 16, 16), 16, 4, 4), ((32, 8, 16), 16, 8, 2), ((8, 32, 16), 16, 2, 8),
    ((16, 16, 16), 8, 2, 2), ((32, 8, 16), 8, 4, 1), ((8, 32, 16), 8, 1, 4),
    ((16, 16, 8), 32, 4, 4), ((8, 8, 4), 64, 1, 1), ((8, 8, 32), 4, 1, 1), ((8, 8, 128), 1, 1, 1),
]  # fmt: skip


def _all():
    for m, k, bits in SHAPES:
        yield fragments.mma_a(m, k, bits)
        yield fragments.mma_b(k, 8, bits)
    for m in (8, 16):
        for bits in (16, 32, 64):
            yield fragments.mma_c(m, 8, bits)
    for layout in ("row", "col"):
        yield fragments.quad_a(layout)
        yield fragments.quad_b(layout)
    for bits in (16, 32):
        yield fragments.quad_c(bits)
        for shape in ((16, 16, 16), (32, 8, 16), (8, 32, 16)):
            yield fragments.wmma("c", shape, bits)
    for shape, bits, _, _ in WMMA:
        yield fragments.wmma("a", shape, bits)
        yield fragments.wmma("b", shape, bits)
    for transposed in (False, True):
        yield fragments.eight_by_eight(transposed=transposed)


@pytest.mark.parametrize("fragment", list(_all()), ids=lambda f: f"{f.shape}x{f.bits}")
class TestEveryFragment:
    def test_holds_every_element_once(self, fragment):
        places = fragment.index.reshape(-1)
        assert np.array_equal(np.sort(places), np.arange(np.prod(fragment.shape)))
        assert fragment.needed == fragment.registers

    def test_round_trip(self, fragment):
        rng = np.random.default_rng(3)
        most = (1 << fragment.bits) - 1
        matrix = rng.integers(0, most, fragment.shape, np.uint64, endpoint=True)
        packed = fragments.pack(fragment, matrix)
        assert packed.shape == (fragment.registers, 32)
        assert packed.dtype.itemsize * 8 == fragment.register_bits
        np.testing.assert_array_equal(fragments.unpack(fragment, packed), matrix)


class TestPlaces:
    """Lane 13 is g = 3, t = 1."""

    def test_a_of_m16n8k16(self):
        index = fragments.mma_a(16, 16, 16).index[:, 13]
        rows_columns = [[(3, 2), (3, 3)], [(11, 2), (11, 3)], [(3, 10), (3, 11)],
                        [(11, 10), (11, 11)]]  # fmt: skip
        assert index.tolist() == [[r * 16 + c for r, c in pair] for pair in rows_columns]

    def test_b_of_m16n8k16(self):
        index = fragments.mma_b(16, 8, 16).index[:, 13]
        assert index.tolist() == [[2 * 8 + 3, 3 * 8 + 3], [10 * 8 + 3, 11 * 8 + 3]]

    def test_c(self):
        assert fragments.mma_c(16, 8, 32).index[:, 13, 0].tolist() == [26, 27, 90, 91]
        assert fragments.mma_c(16, 8, 16).index[:, 13].tolist() == [[26, 27], [90, 91]]

    def test_b1_of_m16n8k256(self):
        index = fragments.mma_a(16, 256, 1).index[:, 13]
        assert index[0].tolist() == [3 * 256 + 32 + i for i in range(32)]
        assert index[2, 0] == 3 * 256 + 32 + 128

    def test_int8_of_m16n8k32(self):
        index = fragments.mma_a(16, 32, 8).index[:, 13]
        assert index[1].tolist() == [11 * 32 + 4 + i for i in range(4)]
        assert index[3, 0] == 11 * 32 + 20

    def test_quads(self):
        """Lane 22 is product 1, q = 2, upper half."""
        assert fragments.quad_a("row").index[:, 22].ravel().tolist() == [56, 57, 58, 59]
        assert fragments.quad_a("col").index[:, 22].ravel().tolist() == [
            32 + row * 4 + 2 for row in (4, 5, 6, 7)
        ]
        assert fragments.quad_b("col").index[:, 22].ravel().tolist() == [
            32 + k * 8 + 6 for k in range(4)
        ]
        assert fragments.quad_b("row").index[:, 22].ravel().tolist() == [
            32 + 2 * 8 + n for n in (4, 5, 6, 7)
        ]
        assert fragments.quad_c(16).index[:, 22].ravel().tolist() == [64 + 48 + n for n in range(8)]
        rows_columns = [(4, 2), (4, 3), (6, 2), (6, 3), (4, 6), (4, 7), (6, 6), (6, 7)]
        assert fragments.quad_c(32).index[:, 22, 0].tolist() == [
            64 + r * 8 + c for r, c in rows_columns
        ]


class TestWmma:
    @pytest.mark.parametrize(("shape", "bits", "a", "b"), WMMA)
    def test_registers(self, shape, bits, a, b):
        assert fragments.wmma("a", shape, bits).registers == a
        assert fragments.wmma("b", shape, bits).registers == b

    def test_half_operands_have_copies(self):
        whole = fragments.wmma("a", (8, 32, 16), 16, 8)
        assert (whole.registers, whole.needed) == (8, 2)
        matrix = np.arange(8 * 16, dtype=np.uint16).reshape(8, 16)
        packed = fragments.pack(whole, matrix)
        for copy in range(2, 8):
            np.testing.assert_array_equal(packed[copy], packed[copy % 2])
        np.testing.assert_array_equal(fragments.unpack(whole, packed[:2]), matrix)

    def test_tiles_are_products_of_mma(self):
        """A 16 x 16 tile's slabs are the operands of two ``mma.m16n8k16``."""
        rng = np.random.default_rng(5)
        b = rng.integers(0, 1 << 16, (16, 16), np.uint16)
        packed = fragments.pack(fragments.wmma("b", (16, 16, 16), 16), b)
        for slab in (0, 1):
            part = fragments.unpack(fragments.mma_b(16, 8, 16), packed[2 * slab : 2 * slab + 2])
            np.testing.assert_array_equal(part, b[:, 8 * slab : 8 * slab + 8])

    def test_wide_tile_is_the_transpose_of_the_tall_one(self):
        b = np.arange(16 * 32, dtype=np.uint16).reshape(16, 32)
        wide = fragments.pack(fragments.wmma("b", (8, 32, 16), 16), b)
        tall = fragments.pack(fragments.wmma("a", (32, 8, 16), 16), b.T)
        np.testing.assert_array_equal(wide, tall)


class TestMetadata:
    @pytest.mark.parametrize(
        ("k", "bits", "selectors"),
        [(16, 16, 4), (32, 16, 2), (8, 32, 4), (16, 32, 2), (32, 8, 2), (64, 8, 1), (64, 4, 2),
         (128, 4, 1)],
    )  # fmt: skip
    def test_selectors_share_out_the_lanes(self, k, bits, selectors):
        assert fragments.sparse_selectors(k, bits) == selectors
        used = set()
        for selector in range(selectors):
            found = fragments.sparse_metadata(k, bits, selector)
            places = set(zip(found.lane.ravel().tolist(), found.bit.ravel().tolist(), strict=True))
            assert len(places) == found.lane.size
            assert not places & used
            used |= places
        assert used == {(lane, bit) for lane in range(32) for bit in range(0, 32, 4)}

    def test_places(self):
        found = fragments.sparse_metadata(32, 16, 1)
        assert (found.lane[11, 5], found.bit[11, 5]) == (4 * 3 + 2 + 1, 16 + 4)
        found = fragments.sparse_metadata(64, 8, 0)
        assert (found.lane[11, 13], found.bit[11, 13]) == (4 * 3 + 1 + 2, 20)
