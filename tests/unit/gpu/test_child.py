"""Records of grids that device code launches: how they are laid out, checked and ordered."""

from __future__ import annotations

import numpy as np
import pytest

from va100.errors import LaunchError
from va100.gpu import child
from va100.gpu.arena import Arena
from va100.gpu.place import FUNCTION_BASE
from va100.ptx.devicelib import RECORD_BYTES
from va100.ptx.parser import parse
from va100.work import Dim3

MODULE = """.version 8.0
.target sm_80
.address_size 64
.func f() { ret; }
.entry k() { ret; }
"""


def grid(*, blocks=(2, 3, 4), threads=(32, 2, 1), stream=0, function=FUNCTION_BASE + 16):
    return child.ChildGrid(function, Dim3(*blocks), Dim3(*threads), 48, stream)


@pytest.fixture
def arena():
    return Arena()


@pytest.fixture
def stored(arena):
    """Write records; what is left of them is freed."""
    places = []

    def store(given, parameters=b""):
        raw = child.RECORD.pack(
            given.function, *given.grid, *given.block, given.dynamic_shared_bytes, given.stream
        )
        places.append(arena.upload(np.frombuffer(raw + parameters, np.uint8)))
        return places[-1]

    yield store
    for place in places:
        arena.free(place)


def test_a_record_is_as_long_as_device_code_makes_it():
    assert child.RECORD.size == RECORD_BYTES


def test_what_was_written_is_read(arena, stored):
    place = stored(grid(stream=7), b"abcd")
    assert child.read(arena, place) == grid(stream=7)
    assert child.parameters(arena, place, 4) == b"abcd"
    assert child.parameters(arena, place, 0) == b""


@pytest.mark.parametrize(
    ("blocks", "threads", "code"),
    [
        ((1, 1, 1), (1024, 1, 1), 0),
        ((0x7FFFFFFF, 65535, 65535), (1, 1, 64), 0),
        ((1, 1, 1), (1025, 1, 1), 9),
        ((1, 1, 1), (512, 3, 1), 9),
        ((1, 1, 1), (1, 1, 65), 9),
        ((1, 1, 1), (0, 1, 1), 9),
        ((0, 1, 1), (1, 1, 1), 9),
        ((1, 65536, 1), (1, 1, 1), 9),
        ((0x80000000, 1, 1), (1, 1, 1), 9),
    ],
)
def test_shapes_that_no_gpu_takes(blocks, threads, code):
    assert child.problem_of(grid(blocks=blocks, threads=threads)) == code


def test_tail_launches_are_last_and_keep_their_order(arena, stored):
    places = [stored(grid(stream=stream)) for stream in (3, 0, 3, 4)]
    assert child.in_turn(arena, places) == [places[1], places[3], places[0], places[2]]


def test_kernels_are_known_by_address():
    module = parse(MODULE)
    assert child.kernel_of(module, grid()) == "k"
    for wrong in (FUNCTION_BASE, FUNCTION_BASE + 32):
        with pytest.raises(LaunchError, match=f"0x{wrong:x}, where no kernel is"):
            child.kernel_of(module, grid(function=wrong))


class TestRunDescendants:
    def test_children_come_before_siblings_and_each_is_released_once(self):
        family = {1: [11, 12], 2: [], 11: [111], 12: [], 111: []}
        ran, released = [], []

        def run(record):
            ran.append(record)
            return family[record]

        child.run_descendants([1, 2], run, released.append)
        assert ran == [1, 11, 111, 12, 2]
        assert sorted(released) == sorted(ran)

    def test_after_a_fault_the_rest_is_released_too(self):
        released = []

        def run(_record):
            raise LaunchError("wrong")

        with pytest.raises(LaunchError):
            child.run_descendants([1, 2, 3], run, released.append)
        assert sorted(released) == [1, 2, 3]
