"""Microseconds that a copy of 64 MiB from the host to GPU 0 takes on the node of VA100_NODE."""

from __future__ import annotations

import ctypes

from tests.helpers.nccl_team import NULL, nccl

BYTES = 1 << 26

if __name__ == "__main__":
    nccl.use(0)
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    address, host = ctypes.c_uint64(), ctypes.c_void_p()
    assert nccl.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(BYTES)) == 0
    assert nccl.cuda.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(BYTES), 0) == 0
    for event in events:
        assert nccl.cuda.cuEventCreate(ctypes.byref(event), 0) == 0
    assert nccl.cuda.cuEventRecord(events[0], NULL) == 0
    assert nccl.cuda.cuMemcpyHtoDAsync_v2(address, host, ctypes.c_size_t(BYTES), NULL) == 0
    assert nccl.cuda.cuEventRecord(events[1], NULL) == 0
    assert nccl.cuda.cuEventSynchronize(events[1]) == 0
    found = ctypes.c_float()
    assert nccl.cuda.cuEventElapsedTime(ctypes.byref(found), *events) == 0
    print(found.value * 1e3)
