"""Times of a kernel that copies 64 MiB into memory of its own GPU, from there and from GPU 1.

Prints microseconds of both, and KiB that GPU 1 sent over NVLink, as NVML has it.
"""

from __future__ import annotations

import ctypes

from tests.helpers.nccl_team import NULL, nccl
from tests.system.clients.node_links import received_kib

COUNT = 1 << 24
BYTES = 4 * COUNT
PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry move(.param .u64 out, .param .u64 in)
{
  .reg .b32 %r<6>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4; mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
  ld.global.u32 %r1, [%rd5]; st.global.u32 [%rd4], %r1; ret;
}
"""


def allocate() -> ctypes.c_uint64:
    address = ctypes.c_uint64()
    assert nccl.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(BYTES)) == 0
    return address


def move_us(function: ctypes.c_void_p, out: ctypes.c_uint64, source: ctypes.c_uint64) -> float:
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        assert nccl.cuda.cuEventCreate(ctypes.byref(event), 0) == 0
    slots = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(source))
    assert nccl.cuda.cuEventRecord(events[0], NULL) == 0
    shape = (COUNT // 256, 1, 1, 256, 1, 1, 0, NULL)
    assert nccl.cuda.cuLaunchKernel(function, *shape, slots, None) == 0
    assert nccl.cuda.cuEventRecord(events[1], NULL) == 0
    assert nccl.cuda.cuEventSynchronize(events[1]) == 0
    found = ctypes.c_float()
    assert nccl.cuda.cuEventElapsedTime(ctypes.byref(found), *events) == 0
    return found.value * 1e3


if __name__ == "__main__":
    nccl.use(1)
    far = allocate()
    peer = ctypes.c_void_p()
    assert nccl.cuda.cuCtxGetCurrent(ctypes.byref(peer)) == 0
    nccl.use(0)
    assert nccl.cuda.cuCtxEnablePeerAccess(peer, 0) == 0
    near, out = allocate(), allocate()
    module, move = ctypes.c_void_p(), ctypes.c_void_p()
    assert nccl.cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert nccl.cuda.cuModuleGetFunction(ctypes.byref(move), module, b"move") == 0
    print(move_us(move, out, near), move_us(move, out, far), received_kib())
