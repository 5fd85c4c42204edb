"""What holds of every map from lanes and registers to a matrix, whatever it is for."""

from __future__ import annotations

import numpy as np

from va100.numerics.fragments import Fragment


def check_holds_every_element_once(fragment: Fragment) -> None:
    """Its places are all places of the matrix, each of them once."""
    rows, columns = fragment.shape
    places = (fragment.rows * columns + fragment.columns).reshape(-1)
    assert np.array_equal(np.sort(places), np.arange(rows * columns))


def check_round_trip(fragment: Fragment) -> None:
    """A matrix put into registers and taken out again is the same."""
    rng = np.random.default_rng(3)
    kind = np.uint64 if fragment.element_bits == 64 else np.uint32
    most = (1 << fragment.element_bits) - 1
    matrix = rng.integers(0, most, fragment.shape, kind, endpoint=True)
    packed = fragment.scatter(matrix)
    assert len(packed) == fragment.registers
    np.testing.assert_array_equal(fragment.gather(packed), matrix)
