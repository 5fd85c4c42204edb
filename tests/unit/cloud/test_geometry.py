"""What fits on a card, against a search that knows the rules of MIG only."""

from __future__ import annotations

import itertools

import pytest

from va100.cloud import geometry
from va100.cloud.geometry import EMPTY, PROFILES, WHOLE, arrange, capacity, fit

MODEL = "A100-SXM4-80GB"
NAMES = [spec.name for spec in PROFILES[MODEL]]


def legal(parts):
    """Whether GPU instances at starts may be on one card together, from the published rules."""
    slices = [s for needs, start in parts for s in range(start, start + needs.memory)]
    compute = sum(needs.compute for needs, _ in parts)
    media = sum(needs.media for needs, _ in parts)
    return len(slices) == len(set(slices)) and compute <= 7 and media <= 1


def brute_force(names):
    """Whether any starts let GPU instances be on one card together."""
    wanted = [fit(MODEL, name) for name in names]
    return any(
        legal(list(zip(wanted, chosen, strict=True)))
        for chosen in itertools.product(*(needs.starts for needs in wanted))
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_an_arrangement_is_found_exactly_when_there_is_one(count):
    for names in itertools.combinations_with_replacement(NAMES, count):
        found = arrange(EMPTY, tuple(fit(MODEL, name) for name in names))
        assert (found is not None) == brute_force(names), names
        if found is not None:
            parts = [(fit(MODEL, name), start) for name, start in zip(names, found, strict=True)]
            assert legal(parts)


def test_the_published_capacities_are_reached():
    assert {spec.name: capacity(EMPTY, fit(MODEL, spec.name)) for spec in PROFILES[MODEL]} == {
        spec.name: spec.instance_count for spec in PROFILES[MODEL]
    }


def test_eight_memory_slices_are_too_many_for_four_wide_and_three_narrow_ones():
    wide, narrow = fit(MODEL, "1g.20gb"), fit(MODEL, "1g.10gb")
    assert arrange(EMPTY, (wide,) * 4) is not None
    assert arrange(EMPTY, (wide,) * 4 + (narrow,) * 3) is None


def test_a_three_and_a_four_fit_in_either_order():
    three, four = fit(MODEL, "3g.40gb"), fit(MODEL, "4g.40gb")
    assert arrange(EMPTY, (three, four)) == (4, 0)
    assert arrange(EMPTY, (four, three)) == (0, 4)


def test_adding_and_removing_are_inverse():
    for needs in (fit(MODEL, name) for name in [WHOLE, *NAMES]):
        for start, after in geometry.starts(EMPTY, needs):
            assert geometry.removed(after, needs, start) == EMPTY


def test_the_best_start_leaves_most_room():
    start, lost = geometry.best_start(EMPTY, MODEL, fit(MODEL, "3g.40gb"))
    assert start == 4, "the only place of a 4g.40gb stays free"
    assert lost == geometry.room(EMPTY, MODEL) - geometry.room(
        geometry.added(EMPTY, fit(MODEL, "3g.40gb"), 4), MODEL
    )


def test_a_state_of_overlapping_parts_is_refused():
    with pytest.raises(ValueError, match="does not fit"):
        geometry.state_of([(fit(MODEL, "3g.40gb"), 0), (fit(MODEL, "4g.40gb"), 0)])


def test_the_largest_that_fits_is_named():
    state = geometry.state_of([(fit(MODEL, "4g.40gb"), 0), (fit(MODEL, "1g.10gb"), 4)])
    assert geometry.largest(state, MODEL).name == "1g.20gb"
    assert geometry.largest(geometry.FULL, MODEL) is None
