"""NVIDIA's own Python binding of NCCL, nccl4py, on four virtual GPUs of one process."""

from __future__ import annotations

import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device
from nccl import core as nccl
from nccl.bindings.nccl import NCCLError

CASES = []
RANKS = 4


def case(function):
    CASES.append(function)
    return function


class Array:
    """Memory of a device, as the array interface tells it."""

    def __init__(self, device: int, data: np.ndarray) -> None:
        Device(device).set_current()
        code, address = driver.cuMemAlloc(data.nbytes)
        assert code == 0
        self.address, self.like = address, data
        assert driver.cuMemcpyHtoD(address, data.ctypes.data, data.nbytes)[0] == 0
        self.__cuda_array_interface__ = {
            "shape": data.shape,
            "typestr": data.dtype.str,
            "data": (int(address), False),
            "version": 3,
        }

    def get(self) -> np.ndarray:
        out = np.empty_like(self.like)
        assert driver.cuCtxSynchronize()[0] == 0
        assert driver.cuMemcpyDtoH(out.ctypes.data, self.address, out.nbytes)[0] == 0
        return out


def arrays(*data: np.ndarray) -> list[Array]:
    return [Array(rank, array) for rank, array in enumerate(data)]


def streams() -> list:
    found = []
    for rank in range(RANKS):
        device = Device(rank)
        device.set_current()
        found.append(device.create_stream())
    return found


@case
def says_its_version():
    assert str(nccl.get_version().libnccl.version) == "2.28.3"


@case
def all_reduces():
    comms = nccl.Communicator.init_all(RANKS)
    assert [comm.rank for comm in comms] == list(range(RANKS))
    assert {comm.nranks for comm in comms} == {RANKS}
    data = arrays(*(np.full(1000, rank + 1, np.float32) for rank in range(RANKS)))
    lanes = streams()
    with nccl.group():
        for comm, array, lane in zip(comms, data, lanes, strict=True):
            comm.allreduce(array, array, nccl.SUM, stream=lane)
    for rank, (array, lane) in enumerate(zip(data, lanes, strict=True)):
        Device(rank).set_current()
        assert driver.cuStreamSynchronize(int(lane.handle))[0] == 0
        assert (array.get() == 10).all()
    for comm in comms:
        comm.destroy()


@case
def gathers_scatters_and_exchanges():
    comms = nccl.Communicator.init_all(RANKS)
    lanes = streams()
    small = arrays(*(np.arange(5, dtype=np.int64) + 100 * rank for rank in range(RANKS)))
    large = arrays(*(np.zeros(5 * RANKS, np.int64) for _ in range(RANKS)))
    with nccl.group():
        for comm, one, all_, lane in zip(comms, small, large, lanes, strict=True):
            comm.allgather(one, all_, stream=lane)
    wanted = np.concatenate([array.like for array in small])
    assert all((array.get() == wanted).all() for array in large)
    with nccl.group():
        for comm, one, all_, lane in zip(comms, small, large, lanes, strict=True):
            comm.reduce_scatter(all_, one, nccl.MAX, stream=lane)
    for rank, array in enumerate(small):
        assert (array.get() == wanted[5 * rank : 5 * rank + 5]).all()


@case
def sends_and_receives():
    comms = nccl.Communicator.init_all(RANKS)
    lanes = streams()
    out = arrays(*(np.full(7, rank, np.float64) for rank in range(RANKS)))
    into = arrays(*(np.zeros(7) for _ in range(RANKS)))
    with nccl.group():
        for rank, comm in enumerate(comms):
            comm.send(out[rank], peer=(rank + 1) % RANKS, stream=lanes[rank])
            comm.recv(into[rank], peer=(rank - 1) % RANKS, stream=lanes[rank])
    for rank, array in enumerate(into):
        assert (array.get() == (rank - 1) % RANKS).all()


@case
def splits():
    comms = nccl.Communicator.init_all(RANKS)
    with nccl.group():
        halves = [comm.split(color=rank % 2, key=rank) for rank, comm in enumerate(comms)]
    assert [half.nranks for half in halves] == [2] * RANKS
    assert [half.rank for half in halves] == [0, 0, 1, 1]


@case
def errors_are_told():
    comms = nccl.Communicator.init_all(RANKS)
    data = arrays(*(np.zeros(4, np.float32) for _ in range(RANKS)))
    try:
        comms[0].broadcast(data[0], data[0], root=9, stream=streams()[0])
    except NCCLError as error:
        assert "invalid argument" in str(error).lower(), error
        assert "root 9" in comms[0].get_last_error()
        return
    raise AssertionError("a root that is none was taken")


if __name__ == "__main__":
    worst = 0
    for test in CASES:
        try:
            test()
        except Exception as error:  # noqa: BLE001 any failure is a case that is not well
            print(f"FAILED {test.__name__}: {type(error).__name__}: {error}")
            worst = 1
        else:
            print(f"ok {test.__name__}")
    sys.exit(worst)
