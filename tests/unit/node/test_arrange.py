"""From what a GPU holds to what is wanted: legal, nothing used touched, as little as can be."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.node.arrange import (
    Held,
    Part,
    arrange,
    device_names,
    parts_placed,
    wanted_instances,
)
from va100.node.mig import Instance, is_legal
from va100.spec.mig import PROFILES_40GB

BY_NAME = {profile.name: profile for profile in PROFILES_40GB}
NAMES = sorted(BY_NAME)


def held(name, start, *parts, busy=False):
    profile = BY_NAME[name]
    whole = (Part(profile.compute_slice_count, 0, busy),)
    return Held(Instance(profile, start, busy), parts or whole)


def after(arrangement):
    """What is there in the end."""
    kept = tuple(
        Held(k.held.instance, (*(p for p in k.held.parts if p not in k.drop), *k.add))
        for k in arrangement.keep
    )
    return (*kept, *arrangement.create)


def all_layouts(names):
    """Every legal way to place instances of these names, by force."""
    for starts in product(*(BY_NAME[name].placement_starts for name in names)):
        placed = [Instance(BY_NAME[n], s) for n, s in zip(names, starts, strict=True)]
        if is_legal(placed):
            yield {(i.profile.name, i.start) for i in placed}


@st.composite
def layouts(draw):
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        start = draw(st.sampled_from(BY_NAME[name].placement_starts))
        one = held(name, start, busy=draw(st.integers(0, 3)) == 0)
        if is_legal(o.instance for o in [*found, one]):
            found.append(one)
    return found


@given(layouts(), st.lists(st.sampled_from(NAMES), max_size=5))
def test_agrees_with_a_search_by_force(before, names):
    wanted = wanted_instances(
        [(name, count) for name, count in Counter(names).items()], PROFILES_40GB
    )
    found = arrange(before, wanted)
    busy = {(o.instance.profile.name, o.instance.start) for o in before if o.instance.busy}
    there = {(o.instance.profile.name, o.instance.start) for o in before}
    possible = [layout for layout in all_layouts(names) if busy <= layout]
    assert bool(found.reason) == (not possible)
    if found.reason:
        return
    end = after(found)
    assert is_legal(one.instance for one in end)
    assert device_names(end) == Counter(names)
    assert busy <= {(o.instance.profile.name, o.instance.start) for o in end}
    assert len(found.destroy) == min(len(there - layout) for layout in possible)


@given(layouts())
def test_what_is_as_asked_is_left_alone(before):
    counts = list(device_names(before).items())
    assert arrange(before, wanted_instances(counts, PROFILES_40GB)).is_still


class TestComputeInstances:
    def test_share_gpu_instances(self):
        counts = [("1c.3g.20gb", 2), ("2c.3g.20gb", 1), ("1c.4g.20gb", 1)]
        wanted = wanted_instances(counts, PROFILES_40GB)
        assert [(w.profile.name, w.sizes) for w in wanted] == [
            ("3g.20gb", (2, 1)),
            ("3g.20gb", (1,)),
            ("4g.20gb", (1,)),
        ]

    def test_those_that_are_used_stay_and_others_give_way(self):
        used, idle = Part(1, 2, busy=True), Part(2, 0)
        before = [held("3g.20gb", 4, used, idle, busy=True)]
        (kept,) = arrange(before, wanted_instances([("1c.3g.20gb", 3)], PROFILES_40GB)).keep
        assert kept.drop == (idle,)
        assert [(part.slices, part.start) for part in kept.add] == [(1, 0), (1, 1)]

    def test_that_stand_in_the_way_are_told(self):
        before = [held("3g.20gb", 0, busy=True)]
        reason = arrange(before, wanted_instances([("4g.20gb", 1)], PROFILES_40GB)).reason
        assert reason == "what is used cannot stay as it is: 3g.20gb at 0"

    @pytest.mark.parametrize(
        ("name", "said"),
        [("5g.20gb", "there is no profile 5g.20gb"), ("3c.4g.20gb", "takes compute instances of")],
    )
    def test_that_there_are_not_are_refused(self, name, said):
        with pytest.raises(ValueError, match=said):
            wanted_instances([(name, 1)], PROFILES_40GB)

    def test_places_are_those_of_the_driver(self):
        assert parts_placed(7, (), (3, 4)) is None or parts_placed(7, (), (3, 4))[0].start == 0
        assert [p.start for p in parts_placed(7, (), (3, 3, 1))] == [0, 4, 3]
        assert parts_placed(3, (Part(1, 1),), (2,)) is None
