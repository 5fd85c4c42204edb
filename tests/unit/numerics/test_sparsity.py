"""2:4 matrices: what is kept, what is refused and where, and metadata in lanes."""

from __future__ import annotations

import json
from itertools import combinations, product

import numpy as np
import pytest

from tests.helpers.tensor_numbers import random_operands
from va100.numerics import sparsity
from va100.numerics.mma import mma
from va100.numerics.mma_rules import RULES, Procedure, rule
from va100.numerics.sparse_metadata import (
    metadata_layout,
    metadata_registers,
    pack_metadata,
    unpack_metadata,
)
from va100.numerics.sparsity import ONE_OF_TWO, PAIRS, TWO_OF_FOUR, Compressed

PATTERNS = (TWO_OF_FOUR, ONE_OF_TWO, PAIRS)
SPARSE_KINDS = [
    kind for kind, row in RULES.items() if row.procedure in (Procedure.ALIGNED, Procedure.INTEGER)
]


def matrix(rows, columns, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


# ------------------------------------------------------------------ pruning


def test_strip_keeps_the_largest_and_of_equals_the_first():
    given = np.array([[1, -4, 3, 2], [5, 5, -5, 5], [0, 0, 0, 1]], np.float32)
    kept = np.array([[0, -4, 3, 0], [5, 5, 0, 0], [0, 0, 0, 1]], np.float32)
    assert (sparsity.prune(given) == kept).all()


def test_pairs_are_kept_by_their_sum():
    given = np.array([[9, 0, 5, 5, 6, 6, 0, 1]], np.int8)
    assert sparsity.prune(given, PAIRS).tolist() == [[0, 0, 5, 5, 6, 6, 0, 0]]


def test_one_of_two():
    given = np.array([[1, -2, 3, 0, -7]], np.float32)
    assert sparsity.prune(given, ONE_OF_TWO).tolist() == [[0, -2, 3, 0, -7]]


def test_tile_is_the_best_choice_by_exhaustion():
    given = np.abs(matrix(4, 4, seed=3))
    best = 0.0
    rows = list(combinations(range(4), 2))
    for choice in product(rows, repeat=4):
        mask = np.zeros((4, 4))
        for i, chosen in enumerate(choice):
            mask[i, list(chosen)] = 1
        if (mask.sum(axis=0) == 2).all():
            best = max(best, float((mask * given).sum()))
    assert sparsity.prune(given, method="tile").sum() == pytest.approx(best)


@pytest.mark.parametrize("pattern", [TWO_OF_FOUR, ONE_OF_TWO])
def test_tile_leaves_the_transpose_sparse(pattern):
    pruned = sparsity.prune(matrix(36, 44), pattern, method="tile")
    assert not list(sparsity.violations(pruned, pattern))
    assert not list(sparsity.violations(np.ascontiguousarray(pruned.T), pattern))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 7), (16, 32), (17, 33)])
def test_what_strip_leaves_is_in_the_pattern(pattern, rows, columns):
    pruned = sparsity.prune(matrix(rows, columns), pattern)
    assert not list(sparsity.violations(pruned, pattern))
    assert (sparsity.prune(pruned, pattern) == pruned).all()


def test_a_nan_is_never_pruned():
    given = np.array([[np.nan, 1, 2, np.inf]], np.float32)
    kept = sparsity.prune(given)
    assert np.isnan(kept[0, 0])
    assert kept[0, 1:].tolist() == [0, 0, np.inf]


@pytest.mark.parametrize(
    ("pattern", "method", "message"),
    [(TWO_OF_FOUR, "best", "no method 'best'"), (PAIRS, "tile", "4:8 keeps pairs")],
)
def test_pruning_refusals(pattern, method, message):
    with pytest.raises(ValueError, match=message):
        sparsity.prune(matrix(4, 8), pattern, method=method)


# ------------------------------------------------------------------ checking and compressing


def test_says_where_a_matrix_breaks_the_pattern():
    given = np.zeros((20, 16), np.float16)
    given[17, 8:11] = 1
    given[2, 0:4] = -1
    found = [str(v) for v in sparsity.violations(given)]
    assert found == [
        "row 2, columns 0-3 hold 4 non-zeros",
        "row 17, columns 8-11 hold 3 non-zeros",
    ]
    with pytest.raises(ValueError, match=r"row 2, columns 0-3 hold 4 non-zeros; 2:4 allows 2"):
        sparsity.compress(given)


def test_a_short_last_group_is_named_by_its_own_columns():
    given = np.ones((1, 7), np.float32)
    assert str(list(sparsity.violations(given))[1]) == "row 0, columns 4-6 hold 3 non-zeros"


def test_negative_zero_is_zero():
    given = np.array([[-0.0, 1, 2, -0.0]], np.float32)
    assert not list(sparsity.violations(given))
    assert sparsity.compress(given).nibbles.tolist() == [[0b1001]]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 32), (17, 35)])
def test_compressed_and_expanded_again(pattern, rows, columns):
    pruned = sparsity.prune(matrix(rows, columns, seed=5), pattern)
    pruned[rng_mask(pruned.shape)] = 0
    packed = sparsity.compress(pruned, pattern)
    assert packed.values.shape == (rows, -(-columns // pattern.width) * pattern.width // 2)
    assert packed.shape == pruned.shape
    assert (sparsity.expand(packed) == pruned).all()
    assert sparsity.places(packed.nibbles, pattern, ordered=True).shape == packed.values.shape


def rng_mask(shape):
    return np.random.default_rng(8).random(shape) < 0.3


@pytest.mark.parametrize(
    ("pattern", "nibble", "ordered", "message"),
    [
        (TWO_OF_FOUR, 0x5, False, r"row 3, columns 8-11: metadata 0x5 names one of the elements"),
        (TWO_OF_FOUR, 0x1, True, r"row 3, columns 8-11: metadata 0x1 names no two elements in asc"),
        (ONE_OF_TWO, 0x0, False, r"row 3, columns 4-5: metadata 0x0 is neither 0x4"),
        (PAIRS, 0xF, False, r"row 3, columns 16-23: metadata 0xF names one of the pairs twice"),
        (TWO_OF_FOUR, 0x24, False, "metadata 0x24"),
    ],
)
def test_wrong_metadata_is_refused_with_its_place(pattern, nibble, ordered, message):
    nibbles = np.full((5, 4), 0x4, np.uint8)
    nibbles[3, 2] = nibble
    with pytest.raises(ValueError, match=message):
        sparsity.places(nibbles, pattern, ordered=ordered)


def test_descending_metadata_gathers():
    assert sparsity.places(np.array([[0x1]], np.uint8), TWO_OF_FOUR).tolist() == [[1, 0]]


def test_values_must_fit_metadata():
    with pytest.raises(ValueError, match=r"values of \(2, 6\) do not fit metadata"):
        sparsity.expand(Compressed(np.zeros((2, 6)), np.full((2, 4), 4, np.uint8), 16, TWO_OF_FOUR))


@pytest.mark.parametrize("kind", ["f64", "b1.xor", "m8n8k4.f16.f32"])
def test_kinds_without_a_sparse_form(kind):
    with pytest.raises(ValueError, match=f"{kind} has no sparse form"):
        sparsity.pattern_of(kind)


# ------------------------------------------------------------------ metadata


SHAPES = [(8, 32), (16, 32), (16, 16), (32, 16), (32, 8), (64, 8), (64, 4), (128, 4)]


@pytest.mark.parametrize(("k", "bits"), SHAPES)
def test_every_bit_of_the_registers_is_used_once(k, bits):
    layout = metadata_layout(k, bits)
    assert layout.confirmed == ((k, bits) in [(16, 32), (32, 16), (64, 8), (128, 4)])
    slots = list(zip(layout.lanes.ravel(), layout.shifts.ravel(), strict=True))
    assert sorted(slots) == [(lane, shift) for lane in range(32) for shift in range(0, 32, 4)]


@pytest.mark.parametrize(("k", "bits"), SHAPES)
def test_metadata_there_and_back(k, bits):
    rng = np.random.default_rng(k)
    layout = metadata_layout(k, bits)
    for selector in range(layout.selectors):
        nibbles = rng.integers(0, 16, layout.lanes.shape[1:]).astype(np.uint8)
        words = pack_metadata(nibbles, k, bits, selector)
        assert (unpack_metadata(words, k, bits, selector) == nibbles).all()


def test_metadata_places_by_hand():
    nibbles = np.zeros((16, 8), np.uint8)
    nibbles[3, 5] = 0x9  # row 3, second word of the row, its second nibble
    words = pack_metadata(nibbles, 32, 16, selector=1)
    assert np.flatnonzero(words).tolist() == [4 * 3 + 2 + 1]
    assert words[15] == 0x90
    nibbles = np.zeros((16, 8), np.uint8)
    nibbles[11, 0] = 0x4  # row g + 8: the upper half
    assert pack_metadata(nibbles, 32, 16)[12] == 0x40000


def test_registers_of_a_whole_matrix():
    packed = sparsity.compress(sparsity.prune(matrix(33, 70)))
    registers = metadata_registers(packed, 16)
    assert registers.shape == (3, 2, 32)
    second_step = unpack_metadata(registers[0, 0], 32, 16, selector=1)
    assert (second_step == packed.nibbles[:16, 8:16]).all()
    with pytest.raises(ValueError, match=r"no mma\.sp has 2:4 with 32-bit elements"):
        metadata_registers(packed, 32)


def test_unknown_shapes_have_no_layout():
    with pytest.raises(ValueError, match=r"no mma\.sp has k = 64 with elements of 16 bits"):
        metadata_layout(64, 16)


# ------------------------------------------------------------------ multiplying


@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_products_are_those_of_gathered_rows(kind):
    row, pattern = rule(kind), sparsity.pattern_of(kind)
    rng = np.random.default_rng(4)
    a, b, c = (x[0] for x in random_operands(row, 1, 5, 6, 64, rng))
    values = a[:, :32]
    nibbles = np.full((5, 64 // pattern.width), 0x4, np.uint8)
    nibbles[1:] = 0xE if pattern is ONE_OF_TWO else 0x1
    index = sparsity.places(nibbles, pattern)
    result = sparsity.multiply(row, values, b, c, index)
    for i in range(5):
        alone = mma(values[i : i + 1], b[index[i]], c[i : i + 1], kind=kind)
        assert (result[i] == alone[0]).all()


def test_inferred_vectors(shared):
    vectors = json.loads(shared("facts/numerics_vectors.json").read_text(encoding="utf-8"))
    for v in vectors["mma_sp_inferred"]:
        d, a = v["instr"].split(".")[-4:-2]
        row = rule(f"{a}.{d}")
        pattern = sparsity.pattern_of(row.kind)
        values, b = ([int(x, 16) for x in v[side]] for side in ("a_compressed", "b"))
        meta = int(v["meta_row"], 16)
        nibbles = [meta >> 4 * i & 15 for i in range(len(b) // pattern.width)]
        got = sparsity.multiply(
            row,
            np.array([values], row.operand.dtype),
            np.array(b, row.operand.dtype)[:, None],
            np.array([[int(v["c"], 16)]], row.accumulator.dtype),
            sparsity.places(np.array([nibbles], np.uint8), pattern),
        )
        assert int(got[0, 0]) == int(v["d"], 16), v
