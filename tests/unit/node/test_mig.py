"""MIG layouts: the planner against brute force, and the native rules against the planner's."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.helpers.nvml_calls import IN_USE, LIBRARY, NO_ROOM, NOT_FOUND, Nvml, Refused
from va100.node.mig import Instance, is_legal, plan
from va100.spec.mig import COMPUTE_PROFILES, PROFILES_40GB, PROFILES_80GB

BY_NAME = {profile.name: profile for profile in PROFILES_40GB}
BY_ID = {profile.profile_id: profile for profile in PROFILES_40GB}


def wishes(*names):
    return [BY_NAME[name] for name in names]


def every_layout():
    """All sets of placements that one GPU may hold, with their profiles."""
    places = [Instance(p, start) for p in PROFILES_40GB for start in p.placement_starts]
    layouts = [()]
    for place in places:
        layouts += [(*held, place) for held in layouts if is_legal((*held, place))]
    return layouts


class TestPlan:
    def test_is_exact(self):
        possible = {tuple(sorted(i.profile.name for i in held)) for held in every_layout()}
        assert len(possible) > 50
        names = [p.name for p in PROFILES_40GB]
        for count in range(1, 8):
            for wanted in itertools.combinations_with_replacement(names, count):
                made = plan([()], wishes(*wanted))
                assert (not made.reason) == (tuple(sorted(wanted)) in possible), wanted
                if not made.reason:
                    placed = made.gpus[0].create
                    assert is_legal(placed)
                    assert sorted(i.profile.name for i in placed) == sorted(wanted)

    def test_says_which_slices_are_short(self):
        reason = plan([()], wishes(*["1g.10gb"] * 4, *["1g.5gb"] * 3)).reason
        assert "8 memory slices, 11 are wanted: 4 x 1g.10gb takes 8, 3 x 1g.5gb takes 3" in reason

    def test_puts_4g_in_front_of_3g_in_either_order(self):
        for wanted in (("3g.20gb", "4g.20gb"), ("4g.20gb", "3g.20gb")):
            placed = plan([()], wishes(*wanted)).gpus[0].create
            assert {i.profile.name: i.start for i in placed} == {"4g.20gb": 0, "3g.20gb": 4}

    def test_moves_what_stands_in_the_way_if_it_is_idle(self):
        idle, busy = Instance(BY_NAME["3g.20gb"], 0), Instance(BY_NAME["3g.20gb"], 0, busy=True)
        made = plan([(idle,)], wishes("4g.20gb")).gpus[0]
        assert [(a.start, b.start) for a, b in made.moves] == [(0, 4)]
        assert made.create[0].start == 0
        assert "in use: 3g.20gb at 0" in plan([(busy,)], wishes("4g.20gb")).reason

    def test_moves_as_few_as_can_be(self):
        held = tuple(Instance(BY_NAME["1g.5gb"], start) for start in (0, 4, 5))
        made = plan([held], wishes("4g.20gb")).gpus[0]
        assert len(made.moves) == 1
        assert is_legal((*made.stay, *(b for _, b in made.moves), *made.create))

    def test_deals_wishes_out_to_several_gpus(self):
        made = plan([(), ()], wishes(*["3g.20gb"] * 3, "4g.20gb"))
        assert sum(len(gpu.create) for gpu in made.gpus) == 4
        assert plan([(), ()], wishes(*["3g.20gb"] * 5)).reason


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    if not LIBRARY.exists():
        pytest.skip("the native core is not built")
    monkeypatch.setenv("VA100_HOME", str(tmp_path))
    monkeypatch.setenv("VA100_NODE", "hgx-a100-4x40gb")
    with Nvml() as library:
        yield library


class History:
    """One GPU's instances, kept twice: by the library, and as a list that is searched by force."""

    def __init__(self, nvml, rng):
        self.nvml, self.rng = nvml, rng
        self.gpu = nvml.gpu()
        self.held = []  # (Instance, compute instances as (id, start, slices))

    def layout(self):
        return [instance for instance, _ in self.held]

    def step(self):
        self.rng.choice(
            [self.create, self.create, self.place, self.destroy, self.divide, self.join]
        )()
        self.compare()

    def fits(self, instance):
        return is_legal((*self.layout(), instance))

    def create(self):
        profile = self.rng.choice(PROFILES_40GB)
        possible = [Instance(profile, s) for s in profile.placement_starts]
        possible = [i for i in possible if self.fits(i)]
        try:
            made = self.nvml.info(self.nvml.create(self.gpu, profile.profile_id))
        except Refused as refused:
            assert refused.code == NO_ROOM
            assert possible == []
            return
        chosen = Instance(profile, made.placement.start)
        assert chosen in possible
        assert made.id == chosen.identifier
        left = {i.start: len(self.left_beside(i)) for i in possible}
        assert left[chosen.start] == max(left.values())
        assert chosen.start == min(s for s, n in left.items() if n == left[chosen.start])
        self.held.append((chosen, []))

    def left_beside(self, instance):
        """Placements whose memory is free beside the layout and one more instance."""
        taken = sum(i.span for i in self.layout()) | instance.span
        every = (Instance(p, s) for p in PROFILES_40GB for s in p.placement_starts)
        return [i for i in every if not i.span & taken]

    def place(self):
        profile = self.rng.choice(PROFILES_40GB)
        wanted = Instance(profile, self.rng.choice(profile.placement_starts))
        try:
            self.nvml.create(self.gpu, profile.profile_id, wanted.start)
        except Refused as refused:
            assert refused.code == NO_ROOM
            assert not self.fits(wanted)
            return
        assert self.fits(wanted)
        self.held.append((wanted, []))

    def handle(self, instance):
        return self.nvml.handle("nvmlDeviceGetGpuInstanceById", self.gpu, instance.identifier)

    def destroy(self):
        if not self.held:
            return
        at = self.rng.randrange(len(self.held))
        instance, computes = self.held[at]
        handle = self.handle(instance)
        code = self.nvml.code("nvmlGpuInstanceDestroy", handle)
        assert code == (IN_USE if computes else 0)
        if not code:
            assert self.nvml.code("nvmlGpuInstanceDestroy", handle) == NOT_FOUND
            del self.held[at]

    def divide(self):
        if not self.held:
            return
        instance, computes = self.rng.choice(self.held)
        slices = instance.profile.compute_slice_count
        profile = self.rng.choice(
            [p for p in COMPUTE_PROFILES if slices in p.gpu_instance_slices_count]
        )
        size = profile.compute_slice_count
        taken = {s for _, start, n in computes for s in range(start, start + n)}
        step = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}[size]
        free = [s for s in range(0, slices - size + 1, step) if not taken & set(range(s, s + size))]
        try:
            made = self.nvml.handle(
                "nvmlGpuInstanceCreateComputeInstance", self.handle(instance), profile.profile_id
            )
        except Refused as refused:
            assert refused.code == NO_ROOM
            assert free == []
            return
        found = self.compute_info(made)
        assert found.placement.start in free
        assert found.placement.size == size
        assert found.id == min(set(range(8)) - {number for number, _, _ in computes})
        computes.append((found.id, found.placement.start, size))

    def compute_info(self, handle):
        import ctypes

        from tests.helpers.nvml_calls import Placement

        class Info(ctypes.Structure):
            _fields_ = [
                ("device", ctypes.c_void_p),
                ("gpu_instance", ctypes.c_void_p),
                ("id", ctypes.c_uint),
                ("profile_id", ctypes.c_uint),
                ("placement", Placement),
            ]

        found = Info()
        self.nvml.call("nvmlComputeInstanceGetInfo_v2", handle, ctypes.byref(found))
        return found

    def join(self):
        divided = [(i, computes) for i, computes in self.held if computes]
        if not divided:
            return
        instance, computes = self.rng.choice(divided)
        number, _, _ = gone = self.rng.choice(computes)
        name = "nvmlGpuInstanceGetComputeInstanceById"
        handle = self.nvml.handle(name, self.handle(instance), number)
        self.nvml.call("nvmlComputeInstanceDestroy", handle)
        assert self.nvml.code("nvmlComputeInstanceDestroy", handle) == NOT_FOUND
        computes.remove(gone)

    def compare(self):
        seen = {}
        for profile in PROFILES_40GB:
            for handle in self.nvml.instances(self.gpu, profile.profile_id):
                info = self.nvml.info(handle)
                seen[info.id] = (profile.name, info.placement.start)
        assert seen == {i.identifier: (i.profile.name, i.start) for i in self.layout()}
        assert is_legal(self.layout())
        profile = self.rng.choice(PROFILES_40GB)
        name = "nvmlDeviceGetGpuInstanceRemainingCapacity"
        told = self.nvml.number(name, self.gpu, profile.profile_id)
        assert told == self.most_more(profile)

    def most_more(self, profile):
        places = [Instance(profile, s) for s in profile.placement_starts]
        for count in range(len(places), 0, -1):
            for more in itertools.combinations(places, count):
                if is_legal((*self.layout(), *more)):
                    return count
        return 0


class TestHistories:
    def test_a_thousand_of_them_agree_with_brute_force(self, nvml):
        gpu = nvml.gpu()
        assert nvml.set_mig(gpu, 1) == 0
        for seed in range(1000):
            history = History(nvml, random.Random(seed))
            for _ in range(8):
                history.step()
            for instance, computes in history.held:
                handle = history.handle(instance)
                for number, _, _ in computes:
                    name = "nvmlGpuInstanceGetComputeInstanceById"
                    nvml.call("nvmlComputeInstanceDestroy", nvml.handle(name, handle, number))
                nvml.call("nvmlGpuInstanceDestroy", handle)

    @pytest.mark.parametrize(
        ("profiles", "identifiers"),
        [
            ([19, 14, 5], [13, 5, 1]),
            ([9, 19, 14, 19], [2, 7, 4, 8]),
            ([14, 19, 19, 19, 19, 19], [5, 13, 7, 8, 9, 10]),
            ([9, 9], [2, 1]),
        ],
    )
    def test_the_driver_chooses_as_transcripts_show(self, nvml, profiles, identifiers):
        gpu = nvml.gpu()
        nvml.set_mig(gpu, 1)
        made = [nvml.info(nvml.create(gpu, profile)).id for profile in profiles]
        assert made == identifiers

    def test_an_impossible_layout_is_refused_and_changes_nothing(self, nvml):
        gpu = nvml.gpu()
        nvml.set_mig(gpu, 1)
        for _ in range(4):
            nvml.create(gpu, 15)
        with pytest.raises(Refused) as refused:
            nvml.create(gpu, 19)
        assert refused.value.code == NO_ROOM
        assert len(nvml.instances(gpu, 15)) == 4
        assert nvml.instances(gpu, 19) == []


def test_both_sizes_of_memory_have_the_same_geometry():
    def geometry(profile):
        return profile.profile_id, profile.memory_slice_count, profile.placement_starts

    assert [geometry(p) for p in PROFILES_40GB] == [geometry(p) for p in PROFILES_80GB]
