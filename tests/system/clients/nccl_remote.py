"""One process of a communicator of several: ``nccl_remote.py CASE RANKS PER_PROCESS FIRST FILE``.

The processes meet by the unique id that the first one writes to FILE.  Every process knows every
rank's input, so each checks its own ranks' results.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

import numpy as np

from tests.helpers import collectives as oracle
from tests.helpers.collectives import OPS, TYPES, Nccl, NcclError, UniqueId, random_array

nccl = Nccl()
NULL = ctypes.c_void_p(None)
RANKS, HERE, FIRST = (int(text) for text in sys.argv[2:5])
MINE = range(FIRST, FIRST + HERE)


def exchanged_id(path: Path) -> UniqueId:
    """Made by the first process, read by the others."""
    if FIRST == 0:
        made = nccl.unique_id()
        beside = path.with_suffix(".part")
        beside.write_bytes(bytes(made))
        beside.rename(path)
        return made
    while not path.exists():
        os.sched_yield()
    return UniqueId.from_buffer_copy(path.read_bytes())


def join() -> dict[int, ctypes.c_void_p]:
    unique = exchanged_id(Path(sys.argv[5]))
    comms = {rank: ctypes.c_void_p() for rank in MINE}
    nccl.call("GroupStart")
    for rank, comm in comms.items():
        nccl.use(rank)
        nccl.call("CommInitRank", ctypes.byref(comm), RANKS, unique, rank)
    nccl.call("GroupEnd")
    return comms


def each(comms: dict[int, ctypes.c_void_p], name: str, *per_rank: object) -> None:
    nccl.call("GroupStart")
    for rank, comm in comms.items():
        nccl.use(rank)
        nccl.call(name, *[a(rank) if callable(a) else a for a in per_rank], comm, NULL)
    nccl.call("GroupEnd")


def put(arrays: list[np.ndarray]) -> dict[int, int]:
    addresses = {}
    for rank in MINE:
        nccl.use(rank)
        addresses[rank] = nccl.put(arrays[rank])
    return addresses


def get(addresses: dict[int, int], like: np.ndarray) -> dict[int, np.ndarray]:
    found = {}
    for rank in MINE:
        nccl.use(rank)
        found[rank] = nccl.get(addresses[rank], like)
    return found


def at(addresses: dict[int, int]):
    return lambda rank: ctypes.c_void_p(addresses[rank])


def same(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    if found.tobytes() != wanted.tobytes():
        wide = [oracle.widen(array).astype(np.float64) for array in (found, wanted)]
        wrong = (wide[0] != wide[1]) & ~(np.isnan(wide[0]) & np.isnan(wide[1]))
        assert not wrong.any(), f"{what}: {wrong.sum()} of {len(found)} wrong"


def all_collectives() -> None:
    comms = join()
    rng = np.random.default_rng(RANKS)  # the same in every process
    kinds = list(TYPES)
    for turn, count in enumerate((1, 5, 1000, 70001, 200003)):
        kind, op = kinds[(3 * turn + RANKS) % len(kinds)], list(OPS)[turn % len(OPS)]
        size, root = ctypes.c_size_t(count), turn % RANKS
        small = [random_array(rng, kind, count) for _ in range(RANKS)]
        large = [random_array(rng, kind, count * RANKS) for _ in range(RANKS)]
        a, b, c, d = put(small), put(small), put(large), put(large)
        what = f"{kind} {op} {count}"
        each(comms, "AllReduce", at(a), at(b), size, TYPES[kind], OPS[op])
        wanted = oracle.reduced(small, op)
        for found in get(b, small[0]).values():
            same(found, wanted, f"all-reduce {what}")
        each(comms, "Reduce", at(a), at(b), size, TYPES[kind], OPS[op], root)
        if root in MINE:
            same(get(b, small[0])[root], oracle.reduced_to(small, op, root), f"reduce {what}")
        each(comms, "ReduceScatter", at(c), at(b), size, TYPES[kind], OPS[op])
        wanted_parts = oracle.scattered(large, op)
        for rank, found in get(b, small[0]).items():
            same(found, wanted_parts[rank], f"reduce-scatter {what}")
        each(comms, "AllGather", at(a), at(d), size, TYPES[kind])
        for found in get(d, large[0]).values():
            same(found, np.concatenate(small), f"all-gather {what}")
        each(comms, "AlltoAll", at(c), at(d), size, TYPES[kind])
        for rank, found in get(d, large[0]).items():
            parts = [array[rank * count : (rank + 1) * count] for array in large]
            same(found, np.concatenate(parts), f"all-to-all {what}")
        each(comms, "AlltoAll", at(d), at(d), size, TYPES[kind])  # in place, and back again
        for rank, found in get(d, large[0]).items():
            same(found, large[rank], f"all-to-all in place {what}")
        each(comms, "Scatter", at(c), at(b), size, TYPES[kind], root)
        for rank, found in get(b, small[0]).items():
            same(found, large[root][rank * count : (rank + 1) * count], f"scatter {what}")
        each(comms, "Gather", at(a), at(d), size, TYPES[kind], root)
        if root in MINE:
            same(get(d, large[0])[root], np.concatenate(small), f"gather {what}")
        each(comms, "Broadcast", at(a), at(b), size, TYPES[kind], root)
        for found in get(b, small[0]).values():
            same(found, small[root], f"broadcast {what}")
        for addresses in (a, b, c, d):
            nccl.free(*addresses.values())
    for comm in comms.values():
        nccl.call("CommDestroy", comm)


def peers() -> None:
    """Everybody sends to everybody, more than a queue holds, and twice."""
    comms = join()
    rng = np.random.default_rng(7)
    count = 60001
    data = [[random_array(rng, "int32", count) for _ in range(RANKS)] for _ in range(RANKS)]
    for _ in range(2):
        sends, outs = {}, {}
        for rank in MINE:
            nccl.use(rank)
            sends[rank] = [nccl.put(array) for array in data[rank]]
            outs[rank] = [nccl.put(np.zeros(count, np.int32)) for _ in range(RANKS)]
        nccl.call("GroupStart")
        for rank, comm in comms.items():
            nccl.use(rank)
            for peer in range(RANKS):
                out, into = (ctypes.c_void_p(x[rank][peer]) for x in (sends, outs))
                nccl.call("Send", out, ctypes.c_size_t(count), 2, peer, comm, NULL)
                nccl.call("Recv", into, ctypes.c_size_t(count), 2, peer, comm, NULL)
        nccl.call("GroupEnd")
        for rank in MINE:
            nccl.use(rank)
            for peer in range(RANKS):
                same(nccl.get(outs[rank][peer], data[0][0]), data[peer][rank], "exchange")


def chain() -> None:
    """A pipeline without groups: each rank receives, adds one, and sends on."""
    comms = join()
    rank, comm = next(iter(comms.items()))
    count = 50000
    size = ctypes.c_size_t(count)
    for turn in range(5):
        data = np.full(count, turn, np.int32)
        buffer = nccl.put(data)
        if rank:
            nccl.call("Recv", ctypes.c_void_p(buffer), size, 2, rank - 1, comm, NULL)
            found = nccl.get(buffer, data)
            assert (found == turn + rank).all()
            nccl.free(buffer)
        buffer = nccl.put(np.full(count, turn + rank + 1, np.int32))
        if rank + 1 < RANKS:
            nccl.call("Send", ctypes.c_void_p(buffer), size, 2, rank + 1, comm, NULL)


def split() -> None:
    comms = join()
    made = {rank: ctypes.c_void_p() for rank in MINE}
    nccl.call("GroupStart")
    for rank, comm in comms.items():
        nccl.call("CommSplit", comm, rank % 2, rank, ctypes.byref(made[rank]), None)
    nccl.call("GroupEnd")
    inputs = [np.full(3, 10**rank, np.int64) for rank in range(RANKS)]
    buffers = put(inputs)
    each(made, "AllReduce", at(buffers), at(buffers), ctypes.c_size_t(3), 4, 0)
    for rank, found in get(buffers, inputs[0]).items():
        wanted = sum(10**other for other in range(rank % 2, RANKS, 2))
        assert (found == wanted).all(), (rank, found, wanted)


def clocks(case: str = "collective") -> None:
    """Who needs others waits for them in virtual time, too."""
    comms = join()
    rank, comm = next(iter(comms.items()))
    size = 1 << 26
    buffer, other = (nccl.put(np.zeros(size, np.uint8)) for _ in range(2))
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        assert nccl.cuda.cuEventCreate(ctypes.byref(event), 0) == 0
    each(
        comms,
        "AllReduce",
        ctypes.c_void_p(buffer),
        ctypes.c_void_p(buffer),
        ctypes.c_size_t(1),
        0,
        0,
    )
    assert nccl.cuda.cuEventRecord(events[0], NULL) == 0
    if rank == 0:
        for _ in range(10):
            copied = nccl.cuda.cuMemcpyDtoDAsync_v2(
                ctypes.c_uint64(other), ctypes.c_uint64(buffer), ctypes.c_size_t(size), NULL
            )
            assert copied == 0
    where, few = ctypes.c_void_p(buffer), ctypes.c_size_t(8)
    if case == "collective":
        nccl.call("AllReduce", where, where, few, 0, 0, comm, NULL)
    else:
        if rank:
            nccl.call("Recv", where, few, 0, rank - 1, comm, NULL)
        if rank + 1 < RANKS:
            nccl.call("Send", where, few, 0, rank + 1, comm, NULL)
    assert nccl.cuda.cuEventRecord(events[1], NULL) == 0
    assert nccl.cuda.cuEventSynchronize(events[1]) == 0
    took = ctypes.c_float()
    assert nccl.cuda.cuEventElapsedTime(ctypes.byref(took), *events) == 0
    assert took.value > 10 * 2 * size / 2.1e12 * 1e3, took.value  # ten copies, read and written


def clocks_of_peers() -> None:
    clocks("peers")


def peer_dies() -> None:
    """The last process ends without a word; the others are told."""
    comms = join()
    buffers = put([np.zeros(9, np.float32)] * RANKS)
    each(comms, "AllReduce", at(buffers), at(buffers), ctypes.c_size_t(9), 7, 0)
    if RANKS - 1 in MINE:
        os._exit(0)
    try:
        each(comms, "AllReduce", at(buffers), at(buffers), ctypes.c_size_t(9), 7, 0)
    except NcclError as error:
        assert error.code == oracle.REMOTE_ERROR, error
        comm = comms[FIRST]
        found = ctypes.c_int()
        nccl.call("CommGetAsyncError", comm, ctypes.byref(found))
        assert found.value == oracle.REMOTE_ERROR
        nccl.call("CommAbort", comm)
        return
    raise AssertionError("nobody noticed")


def disagree() -> None:
    comms = join()
    buffers = put([np.zeros(99, np.float32)] * RANKS)
    count = ctypes.c_size_t(9 if FIRST else 10)
    try:
        each(comms, "AllReduce", at(buffers), at(buffers), count, 7, 0)
    except NcclError as error:
        assert error.code in (oracle.INVALID_USAGE, oracle.REMOTE_ERROR), error
        return
    raise AssertionError("nobody noticed")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("ok")
