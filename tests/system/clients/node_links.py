"""Times of peer copies and all-reduces on the node that VA100_NODE names: ``node_links.py``.

Prints how many GPUs there are, microseconds of a 16 MiB copy from GPU 0 to GPU 1 and of a 64 KiB
all-reduce of all GPUs, and what GPU 0 sent over NVLink meanwhile, in KiB, as NVML has it.
"""

from __future__ import annotations

import ctypes

import numpy as np

from tests.helpers.collectives import NATIVE
from tests.helpers.nccl_team import NULL, Team, elapsed_us, nccl, pointer

SIZE = 1 << 24


class FieldValue(ctypes.Structure):
    """NVML's, of which the fields of links are asked for."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_uint),
        ("result", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


def sent_kib() -> int:
    return _link_kib(138)


def received_kib() -> int:
    return _link_kib(139)


def _link_kib(field: int) -> int:
    nvml = ctypes.CDLL(str(NATIVE / "libnvidia-ml.so.1"))
    assert nvml.nvmlInit_v2() == 0
    device = ctypes.c_void_p()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    asked = FieldValue(field=field, scope=0xFFFFFFFF)
    assert nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(asked)) == 0
    return asked.value if asked.result == 0 else 0


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
    print(team.ranks, copy_us(), reduce_us, sent_kib())
