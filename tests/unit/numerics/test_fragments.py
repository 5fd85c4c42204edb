"""Fragment maps: every element once, round trips, and places read off by hand."""

from __future__ import annotations

import pytest

from tests.helpers.fragment_checks import check_holds_every_element_once, check_round_trip
from va100.numerics import fragments
from va100.numerics.tiles import quad_lanes

SHAPES = [  # m, k, operand bits
    (16, 8, 16), (16, 16, 16), (16, 4, 32), (16, 8, 32), (8, 4, 64), (8, 16, 8), (16, 16, 8),
    (16, 32, 8), (8, 32, 4), (16, 32, 4), (16, 64, 4), (8, 128, 1), (16, 128, 1), (16, 256, 1),
]  # fmt: skip


def _all():
    for m, k, bits in SHAPES:
        yield fragments.fragment_a(m, k, bits)
        yield fragments.fragment_b(k, bits)
    for m in (8, 16):
        for bits in (16, 32, 64):
            yield fragments.fragment_c(m, bits)
    for row_major in (True, False):
        yield from fragments.volta_a(row_major=row_major)
        yield from fragments.volta_b(row_major=row_major)
    for bits in (16, 32):
        yield from fragments.volta_c(bits)


@pytest.mark.parametrize("fragment", list(_all()), ids=lambda f: f"{f.shape}x{f.element_bits}")
class TestEveryFragment:
    def test_holds_every_element_once(self, fragment):
        check_holds_every_element_once(fragment)

    def test_round_trip(self, fragment):
        check_round_trip(fragment)


def _places(fragment, lane):
    """(row, column) by register and element."""
    return [
        list(zip(rows, columns, strict=True))
        for rows, columns in zip(
            fragment.rows[:, lane].tolist(), fragment.columns[:, lane].tolist(), strict=True
        )
    ]


def _flat(places):
    """Over all registers."""
    return [place for register in places for place in register]


class TestPlaces:
    """Lane 13 is g = 3, t = 1."""

    def test_a_of_m16n8k16(self):
        assert _places(fragments.fragment_a(16, 16, 16), 13) == [
            [(3, 2), (3, 3)], [(11, 2), (11, 3)], [(3, 10), (3, 11)], [(11, 10), (11, 11)],
        ]  # fmt: skip

    def test_b_of_m16n8k16(self):
        found = _places(fragments.fragment_b(16, 16), 13)
        assert found == [[(2, 3), (3, 3)], [(10, 3), (11, 3)]]

    def test_c(self):
        wide = _places(fragments.fragment_c(16, 32), 13)
        assert wide == [[(3, 2)], [(3, 3)], [(11, 2)], [(11, 3)]]
        half = _places(fragments.fragment_c(16, 16), 13)
        assert half == [[(3, 2), (3, 3)], [(11, 2), (11, 3)]]

    def test_b1_of_m16n8k256(self):
        found = _places(fragments.fragment_a(16, 256, 1), 13)
        assert found[0] == [(3, 32 + i) for i in range(32)]
        assert found[2][0] == (3, 160)

    def test_int8_of_m16n8k32(self):
        found = _places(fragments.fragment_a(16, 32, 8), 13)
        assert found[1] == [(11, 4 + i) for i in range(4)]
        assert found[3][0] == (11, 20)

    def test_volta(self):
        """Lane 22 is product 1, q = 2, upper half."""
        at = quad_lanes(1).index(22)
        a_row, a_col = (fragments.volta_a(row_major=r)[1] for r in (True, False))
        assert _flat(_places(a_row, at)) == [(6, k) for k in range(4)]
        assert _flat(_places(a_col, at)) == [(row, 2) for row in (4, 5, 6, 7)]
        b_row, b_col = (fragments.volta_b(row_major=r)[1] for r in (True, False))
        assert _flat(_places(b_row, at)) == [(2, n) for n in (4, 5, 6, 7)]
        assert _flat(_places(b_col, at)) == [(k, 6) for k in range(4)]
        assert _flat(_places(fragments.volta_c(16)[1], at)) == [(6, n) for n in range(8)]
        assert _flat(_places(fragments.volta_c(32)[1], at)) == [
            (4, 2), (4, 3), (6, 2), (6, 3), (4, 6), (4, 7), (6, 6), (6, 7),
        ]  # fmt: skip
