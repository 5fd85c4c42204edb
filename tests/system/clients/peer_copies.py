"""Copies between devices: bytes, and the time that the node's links take.

``peer_copies.py between KIND`` for GPUs of one process; ``peer_copies.py shared KIND`` also opens
memory of another process.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np

from tests.helpers.collectives import Nccl
from va100.perf.links import peer_copy

gpus = Nccl()
cuda = gpus.cuda
STREAM = ctypes.c_void_p(None)
SIZES = (8, 4096, 1 << 20, 1 << 24)


def elapsed_us(run) -> float:
    events = []
    for _ in range(2):
        event = ctypes.c_void_p()
        assert cuda.cuEventCreate(ctypes.byref(event), 0) == 0
        events.append(event)
    assert cuda.cuEventRecord(events[0], STREAM) == 0
    run()
    assert cuda.cuEventRecord(events[1], STREAM) == 0
    assert cuda.cuEventSynchronize(events[1]) == 0
    found = ctypes.c_float()
    assert cuda.cuEventElapsedTime(ctypes.byref(found), *events) == 0
    return found.value * 1e3


def require(took_us: float, size: int, source: int, target: int, kind: str) -> None:
    wanted = peer_copy(size, source, target, node=kind).time_s * 1e6
    assert abs(took_us / wanted - 1) < 1e-3, (size, source, target, took_us, wanted)


def between(kind: str) -> None:
    count = gpus.device_count()
    for size in SIZES:
        data = np.arange(size, dtype=np.uint64).view(np.uint8)[:size]
        for source, target in ((0, 1), (1, 0), (0, count - 1)):
            gpus.use(source)
            out = ctypes.c_uint64(gpus.put(data))
            gpus.use(target)
            into = ctypes.c_uint64(gpus.put(np.zeros_like(data)))
            contexts = gpus.contexts[target], gpus.contexts[source]
            took = elapsed_us(
                lambda i=into, o=out, c=contexts, s=size: cuda.cuMemcpyPeerAsync(
                    i, c[0], o, c[1], ctypes.c_size_t(s), STREAM
                )
            )
            require(took, size, source, target, kind)
            assert (gpus.get(into.value, data) == data).all()
            took = elapsed_us(
                lambda i=into, o=out, s=size: cuda.cuMemcpyAsync(i, o, ctypes.c_size_t(s), STREAM)
            )
            require(took, size, source, target, kind)
            gpus.free(out.value, into.value)


class Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)


def shared(kind: str) -> None:
    """The child has memory on GPU 1, which it sees as its only one; this process reads it."""
    child = subprocess.Popen(
        [sys.executable, __file__, "export", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "1"},
    )
    handle = Handle.from_buffer_copy(child.stdout.read(64))
    for target in (0, 1):
        gpus.use(target)
        data = np.zeros(1 << 20, np.uint8)
        into, out = ctypes.c_uint64(gpus.put(data)), ctypes.c_uint64()
        assert cuda.cuIpcOpenMemHandle_v2(ctypes.byref(out), handle, 1) == 0
        took = elapsed_us(
            lambda i=into, o=out: cuda.cuMemcpyDtoDAsync_v2(i, o, ctypes.c_size_t(1 << 20), STREAM)
        )
        if target == 0:
            require(took, 1 << 20, 1, 0, kind)
        else:
            assert took < 4, took  # within GPU 1, as if it were one's own
        assert (gpus.get(into.value, data) == 7).all()
        assert cuda.cuIpcCloseMemHandle(out) == 0
    child.communicate(b"x")
    assert child.returncode == 0


def export(_: str) -> None:
    gpus.use(0)
    handle = Handle()
    address = gpus.put(np.full(1 << 20, 7, np.uint8))
    assert cuda.cuIpcGetMemHandle(ctypes.byref(handle), ctypes.c_uint64(address)) == 0
    sys.stdout.buffer.write(bytes(handle))
    sys.stdout.buffer.flush()
    sys.stdin.buffer.read(1)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2])
    if sys.argv[1] != "export":
        print("ok")
