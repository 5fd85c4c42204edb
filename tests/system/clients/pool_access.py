"""Copies to and from memory of another device's pool, before and after it grants access."""

from __future__ import annotations

from ctypes import byref, c_int, c_uint64, c_void_p

from cases import case, run_cases

from tests.helpers.cuda_client import Cuda
from tests.helpers.virtual_memory import (
    DEVICE,
    NO_ACCESS,
    PINNED,
    READ_WRITE,
    Access,
    Location,
    PoolProperties,
)

INVALID_VALUE = 1
SIZE = 4096
cuda = Cuda()
cuda.Init(0)
contexts = [c_void_p(), c_void_p()]
for device, context in enumerate(contexts):
    cuda.DevicePrimaryCtxRetain(byref(context), device)


def use(device: int) -> None:
    cuda.CtxSetCurrent(contexts[device])


def pool_on(device: int) -> tuple[c_void_p, int]:
    """A pool, and memory of it."""
    use(device)
    pool, address = c_void_p(), c_uint64()
    cuda.MemPoolCreate(byref(pool), byref(PoolProperties(PINNED, 0, Location(DEVICE, device))))
    cuda.MemAllocFromPoolAsync(byref(address), SIZE, pool, None)
    cuda.MemsetD8_v2(address.value, 7, SIZE)
    return pool, address.value


def grant(pool: c_void_p, device: int, flags: int) -> None:
    cuda.MemPoolSetAccess(pool, byref(Access(Location(DEVICE, device), flags)), 1)


@case
def copies_follow_what_the_pool_grants():
    pool, theirs = pool_on(1)
    use(0)
    ours = cuda.allocate(SIZE)
    for flags, code in ((None, INVALID_VALUE), (READ_WRITE, 0), (NO_ACCESS, INVALID_VALUE)):
        if flags is not None:
            grant(pool, 0, flags)
        cuda.MemsetD8_v2(ours, 1, SIZE)
        assert cuda.code("MemcpyAsync", ours, theirs, SIZE, None) == code, flags
        assert cuda.read(ours, 2) == (b"\1\1" if code else b"\7\7")
        assert cuda.code("MemcpyDtoDAsync_v2", theirs, ours, SIZE, None) == code, flags
        assert cuda.code("MemcpyDtoH_v2", byref(c_int()), theirs, 4) == code, flags
        assert cuda.code("MemsetD8Async", theirs, 7, SIZE, None) == code, flags


@case
def its_own_device_is_never_refused():
    _, theirs = pool_on(1)
    assert cuda.read(theirs, 2) == b"\7\7"


@case
def the_threads_context_counts_and_not_the_streams():
    _, theirs = pool_on(1)
    stream = c_void_p()
    cuda.StreamCreate(byref(stream), 0)
    use(0)
    ours = cuda.allocate(SIZE)
    assert cuda.code("MemcpyAsync", ours, theirs, SIZE, stream) == INVALID_VALUE
    cuda.StreamCreate(byref(stream), 0)
    use(1)
    cuda.MemcpyAsync(ours, theirs, SIZE, stream)


@case
def default_pools_grant_nothing_either():
    use(1)
    theirs = c_uint64()
    cuda.MemAllocAsync(byref(theirs), SIZE, None)
    use(0)
    ours = cuda.allocate(SIZE)
    assert cuda.code("MemcpyAsync", ours, theirs.value, SIZE, None) == INVALID_VALUE


@case
def a_copy_between_peers_needs_no_grant():
    _, theirs = pool_on(1)
    use(0)
    ours = cuda.allocate(SIZE)
    cuda.MemcpyPeer(ours, contexts[0], theirs, contexts[1], SIZE)
    assert cuda.read(ours, 2) == b"\7\7"


@case
def memory_of_no_pool_is_not_asked_about():
    use(1)
    theirs = cuda.allocate(SIZE)
    use(0)
    cuda.MemcpyAsync(cuda.allocate(SIZE), theirs, SIZE, None)


run_cases()
