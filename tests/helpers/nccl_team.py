"""One communicator on the first devices of this process, and calls on all its ranks.

For programs that tests start: importing this starts the driver.
"""

from __future__ import annotations

import ctypes

import numpy as np

from tests.helpers import collectives as oracle
from tests.helpers.collectives import Nccl, NcclError

nccl = Nccl()
NULL = ctypes.c_void_p(None)


class Team:
    """A communicator on the first devices, a buffer at a time."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.comms = nccl.init_all(ranks)

    def each(self, name: str, *per_rank: object) -> None:
        """Call on every rank in one group; each argument is a function of the rank, or a value."""
        nccl.call("GroupStart")
        for rank in range(self.ranks):
            nccl.use(rank)
            arguments = [item(rank) if callable(item) else item for item in per_rank]
            nccl.call(name, *arguments, self.comms[rank], NULL)
        nccl.call("GroupEnd")

    def put(self, arrays: list[np.ndarray]) -> list[int]:
        addresses = []
        for rank, array in enumerate(arrays):
            nccl.use(rank)
            addresses.append(nccl.put(array))
        return addresses

    def get(self, addresses: list[int], like: list[np.ndarray]) -> list[np.ndarray]:
        found = []
        for rank, (address, array) in enumerate(zip(addresses, like, strict=True)):
            nccl.use(rank)
            found.append(nccl.get(address, array))
        return found

    def free(self, *lists: list[int]) -> None:
        for addresses in lists:
            nccl.free(*addresses)

    def close(self) -> None:
        for comm in self.comms:
            nccl.call("CommDestroy", comm)


def pointer(addresses: list[int]):
    return lambda rank: ctypes.c_void_p(addresses[rank])


def same(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    assert found.dtype == wanted.dtype, what
    if found.tobytes() == wanted.tobytes():
        return
    wide = [oracle.widen(array).astype(np.float64) for array in (found, wanted)]
    both_nan = np.isnan(wide[0]) & np.isnan(wide[1])
    wrong = np.flatnonzero(~both_nan & (wide[0] != wide[1]))
    at = wrong[0] if len(wrong) else 0
    assert not len(wrong), f"{what}: {len(wrong)} wrong, at {at}: {found[at]}, not {wanted[at]}"


def fails(code: int, said: str, name: str, *arguments: object) -> None:
    try:
        nccl.call(name, *arguments)
    except NcclError as error:
        assert error.code == code, error
        assert said in str(error), error
        return
    raise AssertionError(f"{name} succeeded")


def elapsed_us(team: Team, *call: object, repeats: int = 4) -> float:
    """Virtual time of a call on rank 0's stream."""
    events = []
    nccl.use(0)
    for _ in range(2):
        event = ctypes.c_void_p()
        assert nccl.cuda.cuEventCreate(ctypes.byref(event), 0) == 0
        events.append(event)
    team.each(*call)
    nccl.use(0)
    assert nccl.cuda.cuEventRecord(events[0], NULL) == 0
    for _ in range(repeats):
        team.each(*call)
    nccl.use(0)
    assert nccl.cuda.cuEventRecord(events[1], NULL) == 0
    assert nccl.cuda.cuEventSynchronize(events[1]) == 0
    milliseconds = ctypes.c_float()
    assert nccl.cuda.cuEventElapsedTime(ctypes.byref(milliseconds), *events) == 0
    return milliseconds.value * 1e3 / repeats
