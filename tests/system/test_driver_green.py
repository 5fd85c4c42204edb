"""Green contexts: an A100's SMs in parts."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import Cuda, FakeCompiler, FakeKernel

INVALID_VALUE, INVALID_DEVICE, INVALID_CONTEXT, NOT_SUPPORTED = 1, 101, 201, 801
INVALID_TYPE, INVALID_CONFIGURATION = 914, 915
SM, WORKQUEUES = 1, 1000
NON_BLOCKING = 1


class Resource(ctypes.Structure):
    """``CUdevResource``, of SMs."""

    _fields_ = (
        ("type", c_int), ("inner", ctypes.c_ubyte * 92), ("count", c_uint32), ("least", c_uint32),
        ("alignment", c_uint32), ("flags", c_uint32), ("room", ctypes.c_ubyte * 24),
        ("next", c_void_p),
    )  # fmt: skip


class Group(ctypes.Structure):
    _fields_ = (
        ("count", c_uint32), ("coscheduled", c_uint32), ("preferred", c_uint32),
        ("flags", c_uint32), ("domain", c_uint32), ("reserved", c_uint32 * 11),
    )  # fmt: skip


def whole() -> tuple[Cuda, Resource]:
    cuda, resource = Cuda(), Resource()
    cuda.Init(0)
    cuda.DeviceGetDevResource(0, byref(resource), SM)
    return cuda, resource


def split(
    cuda: Cuda, resource: Resource, groups: int, least: int
) -> tuple[list[Resource], Resource]:
    parts, count, rest = (Resource * groups)(), c_uint32(groups), Resource()
    cuda.DevSmResourceSplitByCount(parts, byref(count), byref(resource), byref(rest), 0, least)
    return list(parts[: count.value]), rest


@contextmanager
def green(least: int = 8) -> Iterator[tuple[Cuda, c_void_p]]:
    cuda, resource = whole()
    (part,), _ = split(cuda, resource, 1, least)
    descriptor, handle = c_void_p(), c_void_p()
    cuda.DevResourceGenerateDesc(byref(descriptor), byref(part), 1)
    cuda.GreenCtxCreate(byref(handle), descriptor, 0, 1)
    try:
        yield cuda, handle
    finally:
        cuda.GreenCtxDestroy(handle)


class TestResources:
    def test_a_device_has_all_its_sms(self):
        _, resource = whole()
        assert (resource.count, resource.alignment) == (108, 2)

    def test_workqueues_are_told(self):
        cuda, resource = whole()
        cuda.DeviceGetDevResource(0, byref(resource), WORKQUEUES)
        assert resource.type == WORKQUEUES
        assert cuda.code("DeviceGetDevResource", 0, byref(resource), 7) == INVALID_TYPE
        assert cuda.code("DeviceGetDevResource", 99, byref(resource), SM) == INVALID_DEVICE

    @pytest.mark.parametrize(
        ("least", "groups", "size", "rest"),
        [(16, 6, 16, 12), (10, 10, 10, 8), (3, 27, 4, 0), (0, 27, 4, 0), (108, 1, 108, 0)],
    )
    def test_split_by_count(self, least, groups, size, rest):
        cuda, resource = whole()
        count = c_uint32()
        cuda.DevSmResourceSplitByCount(None, byref(count), byref(resource), None, 0, least)
        assert count.value == groups
        parts, left = split(cuda, resource, groups + 3, least)
        assert [part.count for part in parts] == [size] * groups
        assert left.count == rest
        assert left.type == (SM if rest else 0)

    def test_one_group_leaves_the_rest(self):
        cuda, resource = whole()
        (part,), rest = split(cuda, resource, 1, 8)
        assert (part.count, rest.count) == (8, 100)

    def test_what_cannot_be_split(self):
        cuda, resource = whole()
        count, part = c_uint32(1), Resource()

        def code(from_, flags, least):
            return cuda.code(
                "DevSmResourceSplitByCount", byref(part), byref(count), byref(from_), None, flags,
                least,
            )  # fmt: skip

        assert code(resource, 0, 109) == INVALID_VALUE
        assert code(resource, 8, 8) == INVALID_VALUE
        assert code(resource, 2, 8) == NOT_SUPPORTED
        assert code(Resource(), 0, 8) == INVALID_TYPE
        assert code(Resource(type=SM), 0, 8) == INVALID_VALUE
        (once,), _ = split(cuda, resource, 1, 16)
        assert code(once, 0, 4) == INVALID_VALUE

    def test_groups_of_their_own_sizes(self):
        cuda, resource = whole()
        wanted = (Group * 3)(Group(10, 2), Group(20), Group(0, 4))
        parts, rest = (Resource * 3)(), Resource()
        cuda.DevSmResourceSplit(parts, 3, byref(resource), byref(rest), 0, wanted)
        assert [part.count for part in parts] == [10, 20, 76]
        assert rest.count == 2
        assert wanted[2].count == 76

    @pytest.mark.parametrize("group", [Group(11, 2), Group(10, 3), Group(110), Group(6, 4)])
    def test_sizes_that_no_group_has(self, group):
        cuda, resource = whole()
        code = cuda.code(
            "DevSmResourceSplit", byref(Resource()), 1, byref(resource), None, 0, byref(group)
        )
        assert code == INVALID_CONFIGURATION

    def test_a_description_takes_each_sm_once(self):
        cuda, resource = whole()
        parts, _ = split(cuda, resource, 2, 8)
        descriptor = c_void_p()
        both = (Resource * 2)(*parts)
        cuda.DevResourceGenerateDesc(byref(descriptor), both, 2)
        twice = (Resource * 2)(parts[0], parts[0])
        code = cuda.code("DevResourceGenerateDesc", byref(descriptor), twice, 2)
        assert code == INVALID_CONFIGURATION
        assert cuda.code("DevResourceGenerateDesc", byref(descriptor), both, 0) == INVALID_VALUE


class TestContext:
    def test_it_has_its_part(self):
        with green(8) as (cuda, handle):
            resource, name, ids = Resource(), c_void_p(), [c_uint64(), c_uint64()]
            cuda.GreenCtxGetDevResource(handle, byref(resource), SM)
            assert resource.count == 8
            cuda.CtxFromGreenCtx(byref(name), handle)
            cuda.CtxGetDevResource(name, byref(resource), SM)
            assert resource.count == 8
            parts, _ = split(cuda, resource, 2, 4)
            assert [part.count for part in parts] == [4, 4]
            cuda.GreenCtxGetId(handle, byref(ids[0]))
            cuda.CtxGetId(name, byref(ids[1]))
            assert ids[0].value != ids[1].value

    def test_work_in_it_is_done_in_the_primary_context(self):
        kernel = FakeKernel("touch")
        with FakeCompiler((kernel,)).registered(), green() as (cuda, handle):
            name, now, stream, primary = c_void_p(), c_void_p(), c_void_p(), c_void_p()
            cuda.CtxFromGreenCtx(byref(name), handle)
            cuda.CtxPushCurrent_v2(name)
            cuda.CtxGetCurrent(byref(now))
            assert now.value == name.value
            address = cuda.allocate(64)
            cuda.GreenCtxStreamCreate(byref(stream), handle, NON_BLOCKING, 0)
            cuda.launch(cuda.function(cuda.module(), "touch"), stream=stream)
            cuda.StreamSynchronize(stream)
            cuda.StreamDestroy_v2(stream)
            cuda.CtxPopCurrent_v2(None)
            cuda.DevicePrimaryCtxRetain(byref(primary), 0)
            cuda.CtxPushCurrent_v2(primary)
            cuda.write(address, b"seen")
            assert cuda.read(address, 4) == b"seen"
            cuda.MemFree_v2(address)
            cuda.CtxPopCurrent_v2(None)
            cuda.DevicePrimaryCtxRelease_v2(0)

    def test_its_streams_know_it(self):
        with green(12) as (cuda, handle):
            stream, other, found, name, seen = (c_void_p() for _ in range(5))
            resource = Resource()
            cuda.GreenCtxStreamCreate(byref(stream), handle, NON_BLOCKING, -2)
            cuda.StreamGetGreenCtx(stream, byref(found))
            assert found.value == handle.value
            cuda.CtxFromGreenCtx(byref(name), handle)
            cuda.StreamGetCtx(stream, byref(seen))
            assert seen.value == name.value
            cuda.StreamGetDevResource(stream, byref(resource), SM)
            assert resource.count == 12
            cuda.CtxPushCurrent_v2(name)
            cuda.StreamCreate(byref(other), 0)
            cuda.StreamGetCtx_v2(other, byref(seen), byref(found))
            assert (seen.value, found.value) == (name.value, handle.value)
            cuda.StreamGetCtx(None, byref(seen))
            assert seen.value == name.value
            cuda.CtxPopCurrent_v2(None)
            for each in (stream, other):
                cuda.StreamDestroy_v2(each)
            assert cuda.code("GreenCtxStreamCreate", byref(stream), handle, 0, 0) == INVALID_VALUE

    def test_events_pass_between_it_and_others(self):
        with green() as (cuda, handle):
            name, event = c_void_p(), c_void_p()
            cuda.CtxFromGreenCtx(byref(name), handle)
            cuda.CtxPushCurrent_v2(name)
            cuda.EventCreate(byref(event), 0)
            cuda.GreenCtxRecordEvent(handle, event)
            cuda.GreenCtxWaitEvent(handle, event)
            cuda.EventSynchronize(event)
            cuda.EventDestroy_v2(event)
            cuda.CtxPopCurrent_v2(None)

    def test_a_destroyed_one_is_no_crash(self):
        with green() as (cuda, handle):
            name = c_void_p()
            cuda.CtxFromGreenCtx(byref(name), handle)
            other = c_void_p(handle.value + 16)
            assert cuda.code("GreenCtxDestroy", other) == INVALID_CONTEXT
        assert cuda.code("GreenCtxDestroy", handle) == INVALID_CONTEXT
        assert cuda.code("CtxFromGreenCtx", byref(name), handle) == INVALID_CONTEXT
        assert cuda.code("CtxSetCurrent", name) == 709
        assert cuda.code("GreenCtxCreate", byref(handle), None, 0, 1) == INVALID_VALUE
