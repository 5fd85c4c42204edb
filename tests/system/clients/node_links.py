"""Times of peer copies and all-reduces on the node that VA100_NODE names: ``node_links.py``.

Prints microseconds of a 16 MiB copy from GPU 0 to GPU 1, and of a 64 KiB all-reduce of all GPUs.
"""

from __future__ import annotations

import ctypes

import numpy as np

from tests.helpers.nccl_team import NULL, Team, elapsed_us, nccl, pointer

SIZE = 1 << 24


def copy_us() -> float:
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    addresses = []
    for gpu in (1, 0):
        nccl.use(gpu)
        addresses.append(ctypes.c_uint64(nccl.put(np.zeros(SIZE, np.uint8))))
    for event in events:
        assert nccl.cuda.cuEventCreate(ctypes.byref(event), 0) == 0
    assert nccl.cuda.cuEventRecord(events[0], NULL) == 0
    assert nccl.cuda.cuMemcpyAsync(*addresses, ctypes.c_size_t(SIZE), NULL) == 0
    assert nccl.cuda.cuEventRecord(events[1], NULL) == 0
    assert nccl.cuda.cuEventSynchronize(events[1]) == 0
    found = ctypes.c_float()
    assert nccl.cuda.cuEventElapsedTime(ctypes.byref(found), *events) == 0
    return found.value * 1e3


if __name__ == "__main__":
    team = Team(nccl.device_count())
    buffers = team.put([np.zeros(1 << 14, np.float32)] * team.ranks)
    where, size = pointer(buffers), ctypes.c_size_t(1 << 14)
    reduce_us = elapsed_us(team, "AllReduce", where, where, size, 7, 0)
    print(team.ranks, copy_us(), reduce_us)
