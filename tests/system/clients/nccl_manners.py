"""NCCL in one process: order, capture, time, refusals.  The case is the first argument."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np

from tests.helpers import collectives as oracle
from tests.helpers.nccl_team import NULL, Team, elapsed_us, fails, nccl, pointer


def captured() -> None:
    """A graph a device, each launched three times, from one thread."""
    team, n = Team(4), 4
    inputs = [np.full(5, rank + 1, np.int64) for rank in range(n)]
    buffers = team.put(inputs)
    streams, graphs = [], []
    for rank in range(n):
        nccl.use(rank)
        stream = ctypes.c_void_p()
        assert nccl.cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        assert nccl.cuda.cuStreamBeginCapture_v2(stream, 2) == 0
        streams.append(stream)
    for _ in range(2):
        nccl.call("GroupStart")
        for rank in range(n):
            nccl.call(
                "AllReduce",
                ctypes.c_void_p(buffers[rank]),
                ctypes.c_void_p(buffers[rank]),
                ctypes.c_size_t(5),
                4,
                0,
                team.comms[rank],
                streams[rank],
            )
        nccl.call("GroupEnd")
    for rank in range(n):
        nccl.use(rank)
        graph, launchable = ctypes.c_void_p(), ctypes.c_void_p()
        assert nccl.cuda.cuStreamEndCapture(streams[rank], ctypes.byref(graph)) == 0
        assert (
            nccl.cuda.cuGraphInstantiateWithFlags(
                ctypes.byref(launchable), graph, ctypes.c_uint64(0)
            )
            == 0
        )
        assert nccl.cuda.cuGraphDestroy(graph) == 0
        graphs.append(launchable)
    for found in team.get(buffers, inputs):
        assert found[0] in (1, 2, 3, 4), "captured calls ran"
    for _ in range(3):
        for rank in range(n):
            nccl.use(rank)
            assert nccl.cuda.cuGraphLaunch(graphs[rank], streams[rank]) == 0
    for rank in range(n):
        nccl.use(rank)
        assert nccl.cuda.cuStreamSynchronize(streams[rank]) == 0
        found = nccl.get(buffers[rank], inputs[rank])
        assert (found == 10 * n**5).all(), found
        assert nccl.cuda.cuGraphExecDestroy(graphs[rank]) == 0


def virtual_time() -> None:
    """Times are those of va100.perf.collectives, whichever way they are asked for."""
    from va100.perf.collectives import estimate

    team = Team(8)
    rows = (
        ("all_reduce", "AllReduce", 1, (7, 0)),
        ("all_gather", "AllGather", 8, (7,)),
        ("reduce_scatter", "ReduceScatter", 8, (7, 0)),
        ("all_to_all", "AlltoAll", 8, (7,)),
        ("broadcast", "Broadcast", 1, (7, 3)),
    )
    for count in (8, 8192, 1 << 19):
        inputs = [np.zeros(8 * count, np.float32)] * 8
        sends, outs = team.put(inputs), team.put(inputs)
        for op, name, parts, more in rows:
            took = elapsed_us(
                team, name, pointer(sends), pointer(outs), ctypes.c_size_t(count), *more
            )
            wanted = estimate(op, 4 * count * parts, 8, dtype="float32").time_s * 1e6
            assert abs(took / wanted - 1) < 1e-3, (op, count, took, wanted)
        team.free(sends, outs)


def cliff() -> None:
    """Cards under bridges: two have NVLink, three go over PCIe."""
    from va100.perf.collectives import estimate

    for ranks in (2, 3):
        team = Team(ranks)
        count = 1 << 18
        buffers = team.put([np.zeros(count, np.float32)] * ranks)
        size = ctypes.c_size_t(count)
        took = elapsed_us(team, "AllReduce", pointer(buffers), pointer(buffers), size, 7, 0)
        wanted = estimate("all_reduce", 4 * count, ranks, "pcie-a100-80gb-x4", dtype="float32")
        assert abs(took / (wanted.time_s * 1e6) - 1) < 1e-3, (ranks, took, wanted)
        team.close()


def refusals() -> None:
    team = Team(2)
    comm = team.comms[0]
    nccl.use(0)
    buffer = ctypes.c_void_p(nccl.put(np.zeros(16, np.float32)))
    size = ctypes.c_size_t(16)
    host = (ctypes.c_float * 16)()
    fails(4, "no communicator", "AllReduce", buffer, buffer, size, 7, 0, ctypes.c_void_p(1), NULL)
    fails(4, "data type 12 is none", "AllReduce", buffer, buffer, size, 12, 0, comm, NULL)
    fails(4, "operation 9 is none", "AllReduce", buffer, buffer, size, 7, 9, comm, NULL)
    fails(4, "compute capability 9.0", "AllReduce", buffer, buffer, size, 10, 0, comm, NULL)
    fails(
        4, "root 2 is not among ranks 0 to 1", "Broadcast", buffer, buffer, size, 7, 2, comm, NULL
    )
    fails(4, "the send buffer is NULL", "AllReduce", NULL, buffer, size, 7, 0, comm, NULL)
    fails(4, "not memory that GPUs reach", "AllReduce", host, buffer, size, 7, 0, comm, NULL)
    fails(
        4,
        "not memory that GPUs reach",
        "AllReduce",
        buffer,
        buffer,
        ctypes.c_size_t(1 << 20),
        7,
        0,
        comm,
        NULL,
    )
    fails(4, "peer -1 is not among", "Send", buffer, size, 7, -1, comm, NULL)
    fails(
        4,
        "9 devices are asked for, and there are 8",
        "CommInitAll",
        (ctypes.c_void_p * 9)(),
        9,
        None,
    )
    fails(5, "Duplicate GPU", "CommInitAll", (ctypes.c_void_p * 2)(), 2, (ctypes.c_int * 2)(1, 1))
    fails(
        4,
        "not made by ncclGetUniqueId",
        "CommInitRank",
        ctypes.byref(ctypes.c_void_p()),
        2,
        oracle.UniqueId(),
        0,
    )
    fails(
        4,
        "rank 2 is not among 0 to 1",
        "CommInitRank",
        ctypes.byref(ctypes.c_void_p()),
        2,
        nccl.unique_id(),
        2,
    )
    fails(5, "not supported", "CommWindowRegister", comm, buffer, size, None, 0)
    version = ctypes.c_int()
    nccl.call("GetVersion", ctypes.byref(version))
    assert version.value == 22803
    assert nccl.library.ncclGetErrorString(5).startswith(b"invalid usage")
    assert nccl.library.pncclGetVersion(ctypes.byref(version)) == 0
    team.each("AllReduce", buffer, buffer, ctypes.c_size_t(0), 7, 0)  # nothing to do is no error


def disagreement() -> None:
    """Ranks that call different things are told, and the communicator stays in error."""
    team = Team(2)
    buffers = team.put([np.zeros(16, np.float32)] * 2)
    nccl.call("GroupStart")
    for rank in range(2):
        nccl.use(rank)
        nccl.call(
            "AllReduce",
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_size_t(8 + rank),
            7,
            0,
            team.comms[rank],
            NULL,
        )
    fails(5, "different collectives", "GroupEnd")
    error = ctypes.c_int()
    nccl.call("CommGetAsyncError", team.comms[1], ctypes.byref(error))
    assert error.value == 5
    fails(
        5,
        "different collectives",
        "AllReduce",
        ctypes.c_void_p(buffers[1]),
        ctypes.c_void_p(buffers[1]),
        ctypes.c_size_t(8),
        7,
        0,
        team.comms[1],
        NULL,
    )
    other = Team(2)
    nccl.call("GroupStart")
    for rank in range(2):
        nccl.use(rank)
        name = ("Send", "Recv")[rank]
        nccl.call(
            name,
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_size_t(4 + rank),
            7,
            1 - rank,
            other.comms[rank],
            NULL,
        )
    fails(5, "do not agree: 16 bytes sent, 20 expected", "GroupEnd")


def abort() -> None:
    """A rank that waits is let go."""
    team = Team(2)
    buffers = team.put([np.zeros(16, np.float32)] * 2)
    nccl.use(0)
    nccl.call(
        "AllReduce",
        ctypes.c_void_p(buffers[0]),
        ctypes.c_void_p(buffers[0]),
        ctypes.c_size_t(8),
        7,
        0,
        team.comms[0],
        NULL,
    )
    for comm in team.comms:
        nccl.call("CommAbort", comm)
    nccl.get(buffers[0], np.zeros(16, np.float32))


def simulate() -> None:
    from va100.perf.collectives import estimate

    class Info(ctypes.Structure):
        _fields_ = (
            ("size", ctypes.c_size_t),
            ("magic", ctypes.c_uint),
            ("version", ctypes.c_uint),
            ("time", ctypes.c_float),
        )

    team = Team(8)
    buffers = team.put([np.ones(1024, np.float32)] * 8)
    nccl.call("GroupStart")
    for rank in range(8):
        nccl.use(rank)
        nccl.call(
            "AllReduce",
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_size_t(1024),
            7,
            0,
            team.comms[rank],
            NULL,
        )
    info = Info(ctypes.sizeof(Info), 0x74685283, 22803, -1)
    nccl.call("GroupSimulateEnd", ctypes.byref(info))
    wanted = estimate("all_reduce", 4096, 8).time_s * 1e6
    assert abs(info.time / wanted - 1) < 1e-4, (info.time, wanted)
    assert (team.get(buffers, [np.ones(1024, np.float32)] * 8)[3] == 1).all()


def early_ranks_do_not_wait() -> None:
    """One thread, no group: calls return, and all is done when the last rank has called."""
    team = Team(3)
    inputs = [np.full(9, rank, np.float32) for rank in range(3)]
    buffers = team.put(inputs)
    for _ in range(3):
        for rank in range(3):
            nccl.use(rank)
            nccl.call(
                "AllReduce",
                ctypes.c_void_p(buffers[rank]),
                ctypes.c_void_p(buffers[rank]),
                ctypes.c_size_t(9),
                7,
                0,
                team.comms[rank],
                NULL,
            )
    for found in team.get(buffers, inputs):
        assert (found == 27).all(), found


def streams_wait() -> None:
    """What a stream does after a collective sees its result, though other ranks come later."""
    team = Team(2)
    inputs = [np.full(9, rank + 1, np.float32) for rank in range(2)]
    buffers = team.put(inputs)
    seen: list[np.ndarray] = []

    def first() -> None:
        nccl.use(0)
        nccl.call(
            "AllReduce",
            ctypes.c_void_p(buffers[0]),
            ctypes.c_void_p(buffers[0]),
            ctypes.c_size_t(9),
            7,
            0,
            team.comms[0],
            NULL,
        )
        seen.append(nccl.get(buffers[0], inputs[0]))

    thread = threading.Thread(target=first)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive(), "nothing to wait for"
    nccl.use(1)
    nccl.call(
        "AllReduce",
        ctypes.c_void_p(buffers[1]),
        ctypes.c_void_p(buffers[1]),
        ctypes.c_size_t(9),
        7,
        0,
        team.comms[1],
        NULL,
    )
    thread.join(30)
    assert (seen[0] == 3).all()


if __name__ == "__main__":
    case, *arguments = sys.argv[1:]
    globals()[case](*arguments)
    print(f"{case}: ok")
