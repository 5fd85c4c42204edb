"""NCCL within one process: what arrives where.  The case's name is the first argument."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np

from tests.helpers import collectives as oracle
from tests.helpers.collectives import OPS, TYPES, random_array
from tests.helpers.nccl_team import NULL, Team, fails, nccl, pointer, same

COUNTS = (1, 2, 3, 7, 64, 1000, 20011)


def reductions(ranks: str, tries: str) -> None:
    team = Team(int(ranks))
    rng = np.random.default_rng(int(ranks))
    combinations = [(kind, op) for kind in TYPES for op in OPS]
    for number in range(max(int(tries), len(combinations))):
        kind, op = combinations[number % len(combinations)]
        count = COUNTS[rng.integers(len(COUNTS))]
        size = ctypes.c_size_t(count)
        inputs = [random_array(rng, kind, count) for _ in range(team.ranks)]
        sends = team.put(inputs)
        outs = team.put([np.zeros_like(array) for array in inputs])
        team.each("AllReduce", pointer(sends), pointer(outs), size, TYPES[kind], OPS[op])
        wanted = oracle.reduced(inputs, op)
        for found in team.get(outs, inputs):
            same(found, wanted, f"all-reduce {op} {kind} {count}")
        root = int(rng.integers(team.ranks))
        team.each("Reduce", pointer(sends), pointer(outs), size, TYPES[kind], OPS[op], root)
        same(
            team.get(outs, inputs)[root],
            oracle.reduced_to(inputs, op, root),
            f"reduce {op} {kind} {count} to {root}",
        )
        team.free(sends, outs)
        parts = [random_array(rng, kind, count * team.ranks) for _ in range(team.ranks)]
        sends, outs = team.put(parts), team.put(inputs)
        team.each("ReduceScatter", pointer(sends), pointer(outs), size, TYPES[kind], OPS[op])
        for found, wanted in zip(team.get(outs, inputs), oracle.scattered(parts, op), strict=True):
            same(found, wanted, f"reduce-scatter {op} {kind} {count}")
        team.free(sends, outs)
    team.close()
    print("reductions agree")


def moves(ranks: str) -> None:
    team = Team(int(ranks))
    n = team.ranks
    rng = np.random.default_rng(n)
    for kind, number in [*TYPES.items(), ("uint8", 10), ("uint8", 11)]:  # the last are FP8
        for count in (1, 5, 4099):
            size = ctypes.c_size_t(count)
            root = int(rng.integers(n))
            small = [random_array(rng, kind, count) for _ in range(n)]
            large = [random_array(rng, kind, count * n) for _ in range(n)]
            small_in, large_in = team.put(small), team.put(large)
            small_out = team.put([np.zeros_like(a) for a in small])
            large_out = team.put([np.zeros_like(a) for a in large])
            team.each("Broadcast", pointer(small_in), pointer(small_out), size, number, root)
            for found in team.get(small_out, small):
                same(found, small[root], f"broadcast {kind}")
            team.each("AllGather", pointer(small_in), pointer(large_out), size, number)
            for found in team.get(large_out, large):
                same(found, np.concatenate(small), f"all-gather {kind}")
            team.each("AlltoAll", pointer(large_in), pointer(large_out), size, number)
            for rank, found in enumerate(team.get(large_out, large)):
                wanted = np.concatenate([a[rank * count : (rank + 1) * count] for a in large])
                same(found, wanted, f"all-to-all {kind}")
            team.each("Scatter", pointer(large_in), pointer(small_out), size, number, root)
            for rank, found in enumerate(team.get(small_out, small)):
                same(found, large[root][rank * count : (rank + 1) * count], f"scatter {kind}")
            team.each("Gather", pointer(small_in), pointer(large_out), size, number, root)
            same(team.get(large_out, large)[root], np.concatenate(small), f"gather {kind}")
            team.each("Bcast", pointer(small_in), size, number, root)
            for found in team.get(small_in, small):
                same(found, small[root], f"broadcast in place {kind}")
            team.free(small_in, small_out, large_in, large_out)
    team.close()
    print("moves agree")


def in_place() -> None:
    team = Team(4)
    count = 1003
    size = ctypes.c_size_t(count)
    rng = np.random.default_rng(1)
    inputs = [random_array(rng, "float32", count) for _ in range(4)]
    buffers = team.put(inputs)
    team.each("AllReduce", pointer(buffers), pointer(buffers), size, 7, 0)
    for found in team.get(buffers, inputs):
        same(found, oracle.reduced(inputs, "sum"), "all-reduce in place")
    parts = [random_array(rng, "float32", 4 * count) for _ in range(4)]
    buffers = team.put(parts)
    mine = lambda rank: ctypes.c_void_p(buffers[rank] + rank * count * 4)  # noqa: E731
    team.each("ReduceScatter", pointer(buffers), mine, size, 7, 0)
    for rank, found in enumerate(team.get(buffers, parts)):
        part = slice(rank * count, (rank + 1) * count)
        same(found[part], oracle.scattered(parts, "sum")[rank], "reduce-scatter in place")
    buffers = team.put(parts)
    team.each("AllGather", mine, pointer(buffers), size, 7)
    wanted = np.concatenate([parts[r][r * count : (r + 1) * count] for r in range(4)])
    for found in team.get(buffers, parts):
        same(found, wanted, "all-gather in place")
    buffers = team.put(parts)
    team.each("AlltoAll", pointer(buffers), pointer(buffers), size, 7)
    for rank, found in enumerate(team.get(buffers, parts)):
        same(
            found,
            np.concatenate([a[rank * count : (rank + 1) * count] for a in parts]),
            "exchange in place",
        )


def factors() -> None:
    team = Team(2)
    rng = np.random.default_rng(2)
    for kind in ("float32", "float16", "bfloat16", "int32", "int8"):
        inputs = [random_array(rng, kind, 501) for _ in range(2)]
        factor = oracle.narrow(np.array([3.0], np.float32), oracle.numpy_type(kind))
        sends, outs = team.put(inputs), team.put(inputs)
        for residence in (0, 1):
            ops = []
            for rank in range(2):
                nccl.use(rank)
                op = ctypes.c_int()
                where = (
                    ctypes.c_void_p(nccl.put(factor))
                    if residence == 0
                    else factor.ctypes.data_as(ctypes.c_void_p)
                )
                nccl.call(
                    "RedOpCreatePreMulSum",
                    ctypes.byref(op),
                    where,
                    TYPES[kind],
                    residence,
                    team.comms[rank],
                )
                ops.append(op)
            team.each(
                "AllReduce",
                pointer(sends),
                pointer(outs),
                ctypes.c_size_t(501),
                TYPES[kind],
                ops.__getitem__,
            )
            wanted = oracle.reduced(inputs, "sum", factor)
            for found in team.get(outs, inputs):
                same(found, wanted, f"sum of {kind} times 3")
            for rank in range(2):
                nccl.call("RedOpDestroy", ops[rank], team.comms[rank])
    fails(4, "none of this communicator's", "RedOpDestroy", ctypes.c_int(5), team.comms[0])
    fails(4, "NCCL's own", "RedOpDestroy", ctypes.c_int(0), team.comms[0])


def groups() -> None:
    """Several collectives of several communicators in one group, and groups within groups."""
    team, pair = Team(4), Team(2)
    ones = [np.full(10, rank + 1, np.int32) for rank in range(4)]
    a, b, c = team.put(ones), team.put(ones), team.put(ones[:2])
    size = ctypes.c_size_t(10)
    nccl.call("GroupStart")
    for rank in range(4):
        nccl.use(rank)
        nccl.call("GroupStart")
        nccl.call(
            "AllReduce",
            ctypes.c_void_p(a[rank]),
            ctypes.c_void_p(a[rank]),
            size,
            2,
            0,
            team.comms[rank],
            NULL,
        )
        nccl.call(
            "AllReduce",
            ctypes.c_void_p(b[rank]),
            ctypes.c_void_p(b[rank]),
            size,
            2,
            1,
            team.comms[rank],
            NULL,
        )
        nccl.call("GroupEnd")
        if rank < 2:
            nccl.call(
                "Broadcast",
                ctypes.c_void_p(c[rank]),
                ctypes.c_void_p(c[rank]),
                size,
                2,
                1,
                pair.comms[rank],
                NULL,
            )
    nccl.call("GroupEnd")
    for rank in range(4):
        nccl.use(rank)
        assert (nccl.get(a[rank], ones[0]) == 10).all()
        assert (nccl.get(b[rank], ones[0]) == 24).all()
    nccl.use(0)
    assert (nccl.get(c[0], ones[0]) == 2).all()
    fails(5, "not in a group", "GroupEnd")


def ring_of_pairs() -> None:
    """Everybody sends to the next one, twice, and to itself."""
    team = Team(5)
    n, rng = 5, np.random.default_rng(3)
    first = [random_array(rng, "float64", 777) for _ in range(n)]
    second = [random_array(rng, "int8", 33) for _ in range(n)]
    sends, more = team.put(first), team.put(second)
    outs, more_outs, own = team.put(first), team.put(second), team.put(first)
    nccl.call("GroupStart")
    for rank in range(n):
        nccl.use(rank)
        to, of, comm = (rank + 1) % n, (rank - 1) % n, team.comms[rank]
        nccl.call("Send", ctypes.c_void_p(sends[rank]), ctypes.c_size_t(777), 8, to, comm, NULL)
        nccl.call("Send", ctypes.c_void_p(more[rank]), ctypes.c_size_t(33), 0, to, comm, NULL)
        nccl.call("Recv", ctypes.c_void_p(outs[rank]), ctypes.c_size_t(777), 8, of, comm, NULL)
        nccl.call("Recv", ctypes.c_void_p(more_outs[rank]), ctypes.c_size_t(33), 0, of, comm, NULL)
        nccl.call("Send", ctypes.c_void_p(sends[rank]), ctypes.c_size_t(777), 8, rank, comm, NULL)
        nccl.call("Recv", ctypes.c_void_p(own[rank]), ctypes.c_size_t(777), 8, rank, comm, NULL)
    nccl.call("GroupEnd")
    for rank, found in enumerate(team.get(outs, first)):
        same(found, first[rank - 1], "ring")
    for rank, found in enumerate(team.get(more_outs, second)):
        same(found, second[rank - 1], "ring, second message")
    for rank, found in enumerate(team.get(own, first)):
        same(found, first[rank], "to itself")


def threads() -> None:
    """A thread a rank, no groups, many rounds of different collectives."""
    n, rounds = 4, 60
    unique = nccl.unique_id()
    wrong: list[object] = []

    def work(rank: int) -> None:
        try:
            nccl.use(rank)
            comm = nccl.init_rank(n, unique, rank)
            stream = ctypes.c_void_p()
            assert nccl.cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
            for turn in range(rounds):
                data = np.arange(turn + 1, dtype=np.int64) + rank
                buffer = nccl.put(data)
                size = ctypes.c_size_t(len(data))
                if turn % 3 == 0:
                    nccl.call(
                        "AllReduce",
                        ctypes.c_void_p(buffer),
                        ctypes.c_void_p(buffer),
                        size,
                        4,
                        0,
                        comm,
                        stream,
                    )
                    wanted = n * np.arange(turn + 1) + n * (n - 1) // 2
                elif turn % 3 == 1:
                    nccl.call(
                        "Broadcast",
                        ctypes.c_void_p(buffer),
                        ctypes.c_void_p(buffer),
                        size,
                        4,
                        turn % n,
                        comm,
                        stream,
                    )
                    wanted = np.arange(turn + 1) + turn % n
                else:
                    peer = rank ^ 1
                    call = ("Send", "Recv") if rank < peer else ("Recv", "Send")
                    other = nccl.put(np.zeros_like(data))
                    for name in call:
                        nccl.call(
                            name,
                            ctypes.c_void_p(buffer if name == "Send" else other),
                            size,
                            4,
                            peer,
                            comm,
                            stream,
                        )
                    buffer, wanted = other, np.arange(turn + 1) + peer
                assert nccl.cuda.cuStreamSynchronize(stream) == 0
                same(nccl.get(buffer, data), wanted, f"round {turn}")
            nccl.call("CommDestroy", comm)
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    running = [threading.Thread(target=work, args=(rank,)) for rank in range(n)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert not wrong, wrong
    assert not any(thread.is_alive() for thread in running)


def splits() -> None:
    team = Team(6)
    made = [ctypes.c_void_p() for _ in range(6)]
    nccl.call("GroupStart")
    for rank in range(6):
        color = -1 if rank == 5 else rank % 2
        nccl.call("CommSplit", team.comms[rank], color, -rank, ctypes.byref(made[rank]), None)
    nccl.call("GroupEnd")
    assert made[5].value is None
    counts, places = [], []
    for comm in made[:5]:
        count, place = ctypes.c_int(), ctypes.c_int()
        nccl.call("CommCount", comm, ctypes.byref(count))
        nccl.call("CommUserRank", comm, ctypes.byref(place))
        counts.append(count.value)
        places.append(place.value)
    assert counts == [3, 2, 3, 2, 3]
    assert places == [2, 1, 1, 0, 0]  # keys fall
    inputs = [np.full(4, 10**rank, np.int32) for rank in range(6)]
    buffers = team.put(inputs)
    nccl.call("GroupStart")
    for rank in range(5):
        nccl.use(rank)
        nccl.call(
            "AllReduce",
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_void_p(buffers[rank]),
            ctypes.c_size_t(4),
            2,
            0,
            made[rank],
            NULL,
        )
    nccl.call("GroupEnd")
    found = team.get(buffers, inputs)
    assert [int(array[0]) for array in found] == [10101, 1010, 10101, 1010, 10101, 100000]
    for comm in made[:5]:
        nccl.call("CommDestroy", comm)


def shrinks() -> None:
    team = Team(4)
    made = [ctypes.c_void_p() for _ in range(4)]
    gone = (ctypes.c_int * 1)(1)
    nccl.call("GroupStart")
    for rank in (0, 2, 3):
        nccl.call("CommShrink", team.comms[rank], gone, 1, ctypes.byref(made[rank]), None, 0)
    nccl.call("GroupEnd")
    place = ctypes.c_int()
    nccl.call("CommUserRank", made[3], ctypes.byref(place))
    assert place.value == 2
    fails(4, "cannot make", "CommShrink", team.comms[1], gone, 1, ctypes.byref(made[1]), None, 0)


def stress(rounds: str) -> None:
    """Groups of several operations on two communicators, ranks in any order, again and again."""
    teams, n, rng = (Team(4), Team(4)), 4, np.random.default_rng(11)
    for turn in range(int(rounds)):
        jobs = []
        for _ in range(rng.integers(1, 6)):
            team, count = teams[rng.integers(2)], int(rng.integers(1, 3000))
            kind = list(TYPES)[rng.integers(len(TYPES))]
            inputs = [random_array(rng, kind, count) for _ in range(n)]
            what = ("AllReduce", "Broadcast", "AllGather", "shift")[rng.integers(4)]
            zeros = np.zeros(count * (n if what == "AllGather" else 1), inputs[0].dtype)
            root, shift = int(rng.integers(n)), int(rng.integers(n))
            jobs.append((what, team, kind, inputs, [zeros] * n, root, shift))
        buffers = [(job[1].put(job[3]), job[1].put(job[4])) for job in jobs]
        nccl.call("GroupStart")
        for rank in rng.permutation(n):
            nccl.use(int(rank))
            for job, (send, out) in zip(jobs, buffers, strict=True):
                issue(job, int(rank), ctypes.c_void_p(send[rank]), ctypes.c_void_p(out[rank]))
        nccl.call("GroupEnd")
        for job, (send, out) in zip(jobs, buffers, strict=True):
            what, team, kind, inputs, zeros, root, shift = job
            for rank, found in enumerate(team.get(out, zeros)):
                wanted = {
                    "AllReduce": lambda i=inputs: oracle.reduced(i, "sum"),
                    "Broadcast": lambda i=inputs, r=root: i[r],
                    "AllGather": lambda i=inputs: np.concatenate(i),
                    "shift": lambda i=inputs, r=rank, by=shift: i[(r - by) % n],
                }[what]()
                same(found, wanted, f"round {turn}: {what} {kind}")
            team.free(send, out)
    print("stress agrees")


def issue(job: tuple, rank: int, send: ctypes.c_void_p, out: ctypes.c_void_p) -> None:
    what, team, kind, inputs, _, root, shift = job
    size, comm, n = ctypes.c_size_t(len(inputs[0])), team.comms[rank], team.ranks
    if what == "shift":
        nccl.call("Send", send, size, TYPES[kind], (rank + shift) % n, comm, NULL)
        nccl.call("Recv", out, size, TYPES[kind], (rank - shift) % n, comm, NULL)
        return
    more = {"AllReduce": [0], "Broadcast": [root], "AllGather": []}[what]
    nccl.call(what, send, out, size, TYPES[kind], *more, comm, NULL)


if __name__ == "__main__":
    case, *arguments = sys.argv[1:]
    globals()[case](*arguments)
    print(f"{case}: ok")
