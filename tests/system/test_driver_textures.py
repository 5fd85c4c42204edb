"""Arrays, texture and surface objects through the driver's C ABI: answers, copies, misuse."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
import pytest

from tests.helpers.cuda_client import context
from va100.driver.api import driver
from va100.gpu.texture import find_texture

INVALID_VALUE, INVALID_HANDLE, NOT_SUPPORTED = 1, 400, 801
U8, F32 = 0x01, 0x20
LAYERED, SURFACE, CUBE = 1, 2, 4
HOST, DEVICE, ARRAY = 1, 2, 3


class Array2D(ctypes.Structure):
    _fields_ = (("width", c_size_t), ("height", c_size_t), ("format", c_uint),
                ("channels", c_uint))  # fmt: skip


class Array3D(ctypes.Structure):
    _fields_ = (("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
                ("format", c_uint), ("channels", c_uint), ("flags", c_uint))  # fmt: skip


class Resource(ctypes.Structure):
    """The union of a resource as 16 words of 64 bits."""

    _fields_ = (("type", c_uint), ("words", c_uint64 * 16), ("flags", c_uint))


class Sampling(ctypes.Structure):
    _fields_ = (("address", c_uint * 3), ("filter", c_uint), ("flags", c_uint),
                ("anisotropy", c_uint), ("mipmap_filter", c_uint), ("levels", c_float * 3),
                ("border", c_float * 4), ("reserved", c_int * 12))  # fmt: skip


class Copy2D(ctypes.Structure):
    _fields_ = (
        ("src_x", c_size_t), ("src_y", c_size_t), ("src_type", c_uint), ("src_host", c_void_p),
        ("src_device", c_uint64), ("src_array", c_void_p), ("src_pitch", c_size_t),
        ("dst_x", c_size_t), ("dst_y", c_size_t), ("dst_type", c_uint), ("dst_host", c_void_p),
        ("dst_device", c_uint64), ("dst_array", c_void_p), ("dst_pitch", c_size_t),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


class Calls:
    """The driver's calls by their names; each gives its result code."""

    def __init__(self, cuda):
        self.cuda = cuda

    def __getattr__(self, name):
        return lambda *arguments: self.cuda.code(name.removeprefix("cu"), *arguments)


@pytest.fixture
def cu():
    with context() as cuda:
        yield Calls(cuda)


def array(cu, *, width=5, height=4, depth=0, kind=F32, channels=1, flags=0):
    handle = c_void_p()
    shape = Array3D(width, height, depth, kind, channels, flags)
    return cu.cuArray3DCreate_v2(byref(handle), byref(shape)), handle


def upload(cu, handle, data):
    copy = Copy2D(
        src_type=HOST, src_host=data.ctypes.data, src_pitch=data.strides[0], dst_type=ARRAY,
        dst_array=handle, width=data.shape[1] * data.itemsize, height=data.shape[0],
    )  # fmt: skip
    return cu.cuMemcpy2D_v2(byref(copy))


def texture(cu, resource, **sampling):
    number = c_uint64()
    status = cu.cuTexObjectCreate(byref(number), byref(resource), byref(Sampling(**sampling)), None)
    return status, number.value


def resource_of(handle):
    return Resource(0, (c_uint64 * 16)(handle.value))


class TestArrays:
    def test_describe_themselves(self, cu):
        status, handle = array(cu, depth=3, flags=LAYERED | SURFACE, channels=4)
        assert status == 0
        shape, plane = Array3D(), Array2D()
        assert cu.cuArray3DGetDescriptor_v2(byref(shape), handle) == 0
        assert (shape.width, shape.height, shape.depth) == (5, 4, 3)
        assert (shape.format, shape.channels, shape.flags) == (F32, 4, LAYERED | SURFACE)
        assert cu.cuArrayGetDescriptor_v2(byref(plane), handle) == 0
        assert (plane.width, plane.height, plane.channels) == (5, 4, 4)
        assert cu.cuArrayDestroy(handle) == 0
        assert cu.cuArrayDestroy(handle) == INVALID_HANDLE
        assert cu.cuArray3DGetDescriptor_v2(byref(shape), handle) == INVALID_HANDLE

    @pytest.mark.parametrize(
        ("wrong", "status"),
        [
            ({"width": 0}, INVALID_VALUE),
            ({"channels": 3}, INVALID_VALUE),
            ({"kind": 0x77}, NOT_SUPPORTED),
            ({"width": 1 << 20}, INVALID_VALUE),
            ({"height": 0, "depth": 3}, INVALID_VALUE),
            ({"depth": 6, "flags": CUBE}, INVALID_VALUE),
            ({"flags": LAYERED}, INVALID_VALUE),
            ({"flags": 0x40}, NOT_SUPPORTED),
            ({"flags": 0x1000}, INVALID_VALUE),
        ],
    )
    def test_of_no_kind_are_not_made(self, cu, wrong, status):
        assert array(cu, **wrong)[0] == status

    def test_rectangles_go_in_and_out(self, cu):
        _, handle = array(cu)
        data = np.arange(20, dtype=np.float32).reshape(4, 5)
        assert upload(cu, handle, data) == 0
        back = np.zeros((2, 3), np.float32)
        copy = Copy2D(
            src_type=ARRAY, src_array=handle, src_x=8, src_y=1, dst_type=HOST,
            dst_host=back.ctypes.data, dst_pitch=12, width=12, height=2,
        )  # fmt: skip
        assert cu.cuMemcpy2D_v2(byref(copy)) == 0
        assert back.tolist() == data[1:3, 2:5].tolist()
        for field, value in (("src_x", 12), ("src_y", 3), ("src_x", 2), ("width", 10)):
            bad = Copy2D.from_buffer_copy(copy)
            setattr(bad, field, value)
            assert cu.cuMemcpy2D_v2(byref(bad)) == INVALID_VALUE, field
        assert cu.cuArrayDestroy(handle) == 0
        assert cu.cuMemcpy2D_v2(byref(copy)) == INVALID_VALUE

    def test_runs_go_from_row_to_row(self, cu):
        _, first = array(cu)
        _, second = array(cu)
        data = np.arange(20, dtype=np.float32)
        back = np.zeros(20, np.float32)
        assert cu.cuMemcpyHtoA_v2(first, c_size_t(0), data.ctypes.data_as(c_void_p), 80) == 0
        assert cu.cuMemcpyAtoA_v2(second, c_size_t(8), first, c_size_t(0), c_size_t(72)) == 0
        pointer = back.ctypes.data_as(c_void_p)
        assert cu.cuMemcpyAtoH_v2(pointer, second, c_size_t(8), c_size_t(72)) == 0
        assert back.tolist() == [*range(18), 0, 0]
        assert cu.cuMemcpyAtoH_v2(pointer, second, c_size_t(8), c_size_t(76)) == INVALID_VALUE
        assert cu.cuMemcpyAtoH_v2(pointer, second, c_size_t(3), c_size_t(4)) == INVALID_VALUE
        for handle in (first, second):
            assert cu.cuArrayDestroy(handle) == 0


def mipmap(cu, levels, *, width=5, height=4, depth=0, flags=0):
    handle, shape = c_void_p(), Array3D(width, height, depth, F32, 1, flags)
    return cu.cuMipmappedArrayCreate(byref(handle), byref(shape), levels), handle


def level_of(cu, handle, number):
    level = c_void_p()
    return cu.cuMipmappedArrayGetLevel(byref(level), handle, number), level


class TestMipmaps:
    @pytest.mark.parametrize(
        ("shape", "told"),
        [
            ({}, [(5, 4, 0), (2, 2, 0), (1, 1, 0)]),
            ({"height": 0}, [(5, 0, 0), (2, 0, 0), (1, 0, 0)]),
            ({"depth": 9}, [(5, 4, 9), (2, 2, 4), (1, 1, 2), (1, 1, 1)]),
            ({"depth": 9, "flags": LAYERED}, [(5, 4, 9), (2, 2, 9), (1, 1, 9)]),
        ],
    )
    def test_levels_halve_down_to_one_texel(self, cu, shape, told):
        """More levels than there are is as many as there are."""
        status, handle = mipmap(cu, 100, **shape)
        assert status == 0
        found = []
        while (level := level_of(cu, handle, len(found)))[0] == 0:
            own = Array3D()
            assert cu.cuArray3DGetDescriptor_v2(byref(own), level[1]) == 0
            found.append((own.width, own.height, own.depth))
        assert (found, level[0]) == (told, INVALID_VALUE)
        assert cu.cuMipmappedArrayDestroy(handle) == 0

    def test_levels_go_with_the_whole(self, cu):
        lib = driver()
        lib.va_arena_used.restype = c_uint64
        before = lib.va_arena_used(0)
        _, handle = mipmap(cu, 2)
        _, level = level_of(cu, handle, 1)
        data, back = np.arange(4, dtype=np.float32).reshape(2, 2), np.zeros(4, np.float32)
        assert upload(cu, level, data) == 0
        pointer = back.ctypes.data_as(c_void_p)
        assert cu.cuMemcpyAtoH_v2(pointer, level, c_size_t(0), c_size_t(16)) == 0
        assert back.tolist() == [0, 1, 2, 3]
        assert cu.cuArrayDestroy(level) == INVALID_HANDLE
        assert cu.cuMipmappedArrayDestroy(handle) == 0
        assert cu.cuMipmappedArrayDestroy(handle) == INVALID_HANDLE
        assert level_of(cu, handle, 0)[0] == INVALID_HANDLE
        assert cu.cuArray3DGetDescriptor_v2(byref(Array3D()), level) == INVALID_HANDLE
        assert lib.va_arena_used(0) == before

    def test_those_that_arrays_are_not_made_of(self, cu):
        assert mipmap(cu, 2, width=0)[0] == INVALID_VALUE
        assert mipmap(cu, 2, flags=0x40)[0] == NOT_SUPPORTED

    def test_textures_of_them_are_refused(self, cu):
        _, handle = mipmap(cu, 2)
        resource = Resource(1, (c_uint64 * 16)(handle.value))
        assert texture(cu, resource)[0] == NOT_SUPPORTED
        assert cu.cuMipmappedArrayDestroy(handle) == 0

    def test_they_may_outlive_their_context(self, cu):
        with context() as other:
            _, handle = mipmap(Calls(other), 2)
        assert cu.cuMipmappedArrayDestroy(handle) == 0


class TestTextures:
    def test_become_what_kernels_read(self, cu):
        _, handle = array(cu, depth=2, flags=LAYERED, kind=U8, channels=4)
        status, number = texture(
            cu, resource_of(handle), address=(c_uint * 3)(0, 3, 1), filter=1, flags=2
        )
        assert status == 0
        found = find_texture(number)
        assert (found.width, found.height, found.layers, found.depth) == (5, 4, 2, 0)
        assert (list(found.address), found.linear, found.normalized) == ([0, 3, 1], 1, 1)
        resource, sampling = Resource(), Sampling()
        assert cu.cuTexObjectGetResourceDesc(byref(resource), c_uint64(number)) == 0
        assert (resource.type, resource.words[0]) == (0, handle.value)
        assert cu.cuTexObjectGetTextureDesc(byref(sampling), c_uint64(number)) == 0
        assert (sampling.filter, sampling.flags, list(sampling.address)) == (1, 2, [0, 3, 1])
        assert cu.cuTexObjectDestroy(c_uint64(number)) == 0
        assert cu.cuTexObjectDestroy(c_uint64(number)) == INVALID_VALUE
        assert cu.cuTexObjectGetTextureDesc(byref(sampling), c_uint64(number)) == INVALID_VALUE
        assert find_texture(number) is None
        assert cu.cuArrayDestroy(handle) == 0

    @pytest.mark.parametrize(
        ("sampling", "status"),
        [
            ({"address": (c_uint * 3)(4, 0, 0)}, INVALID_VALUE),
            ({"filter": 2}, INVALID_VALUE),
            ({"filter": 1, "flags": 1}, INVALID_VALUE),  # integers are not interpolated
            ({"flags": 0x100}, INVALID_VALUE),
            ({"flags": 0x10}, NOT_SUPPORTED),  # sRGB
        ],
    )
    def test_are_sampled_in_known_ways_only(self, cu, sampling, status):
        _, handle = array(cu, kind=U8)
        assert texture(cu, resource_of(handle), **sampling)[0] == status
        assert cu.cuArrayDestroy(handle) == 0

    def test_of_nothing_are_not_made(self, cu):
        assert texture(cu, Resource(0, (c_uint64 * 16)(12345)))[0] == INVALID_VALUE
        assert texture(cu, Resource(1, (c_uint64 * 16)(12345)))[0] == NOT_SUPPORTED
        assert texture(cu, Resource(9))[0] == INVALID_VALUE

    @pytest.mark.parametrize(
        ("offset", "bytes_", "status"),
        [(0, 4096, 0), (256, 512, INVALID_VALUE), (0, 8192, INVALID_VALUE), (0, 3, INVALID_VALUE)],
    )
    def test_of_linear_memory(self, cu, offset, bytes_, status):
        address = c_uint64()
        assert cu.cuMemAlloc_v2(byref(address), c_size_t(4096)) == 0
        words = (c_uint64 * 16)(address.value + offset, F32 | 1 << 32, bytes_)
        got, number = texture(cu, Resource(2, words))
        assert got == status
        if not got:
            assert find_texture(number).width == 1024
            assert cu.cuTexObjectDestroy(c_uint64(number)) == 0
        assert cu.cuMemFree_v2(address) == 0

    @pytest.mark.parametrize(
        ("extent", "status"),
        [((16, 8, 64), 0), ((16, 8, 60), INVALID_VALUE), ((17, 8, 64), INVALID_VALUE),
         ((16, 65, 64), INVALID_VALUE), ((0, 8, 64), INVALID_VALUE)],
    )  # fmt: skip
    def test_of_pitched_memory(self, cu, extent, status):
        address = c_uint64()
        assert cu.cuMemAlloc_v2(byref(address), c_size_t(4096)) == 0
        words = (c_uint64 * 16)(address.value, F32 | 1 << 32, *extent)
        got, number = texture(cu, Resource(3, words))
        assert got == status
        if not got:
            assert cu.cuTexObjectDestroy(c_uint64(number)) == 0
        assert cu.cuMemFree_v2(address) == 0


class TestSurfaces:
    def test_need_an_array_that_allows_them(self, cu):
        for flags, status in ((0, INVALID_VALUE), (SURFACE, 0)):
            _, handle = array(cu, flags=flags)
            number = c_uint64()
            resource = resource_of(handle)
            assert cu.cuSurfObjectCreate(byref(number), byref(resource)) == status
            if not status:
                assert cu.cuTexObjectDestroy(number) == INVALID_VALUE
                assert cu.cuSurfObjectGetResourceDesc(byref(resource), number) == 0
                assert cu.cuSurfObjectDestroy(number) == 0
                assert cu.cuSurfObjectDestroy(number) == INVALID_VALUE
            assert cu.cuArrayDestroy(handle) == 0


def test_a_context_takes_its_arrays_and_objects_along():
    lib = driver()
    lib.va_arena_used.restype = c_uint64
    before = lib.va_arena_used(0)
    with context() as cuda:
        cu = Calls(cuda)
        _, handle = array(cu)
        _, number = texture(cu, resource_of(handle))
        assert find_texture(number) is not None
        assert lib.va_arena_used(0) > before
    assert find_texture(number) is None
    assert lib.va_arena_used(0) == before
    with context() as cuda:
        assert Calls(cuda).cuArrayDestroy(handle) == INVALID_HANDLE
