"""Collectives in the format of nccl-tests: virtual A100 time, bandwidths, and wrong elements.

Run as ``python -m benchmarks.nccl_tests all_reduce -b 8 -e 128M -f 2 -g 8``.  Written from scratch;
the columns are what people and their scripts know.  Times are the streams' virtual time, which
events read; data really moves, and every element is checked on its first round.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from va100.gpu.native import NATIVE_DIR

NULL = ctypes.c_void_p(None)
TYPES = {
    "int8": (0, np.int8),
    "uint8": (1, np.uint8),
    "int32": (2, np.int32),
    "uint32": (3, np.uint32),
    "int64": (4, np.int64),
    "uint64": (5, np.uint64),
    "half": (6, np.float16),
    "float": (7, np.float32),
    "double": (8, np.float64),
}
OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Test:
    """One collective: its call, the elements a rank gives and gets, and what it should get.

    ``send`` and ``receive`` are in units of the count the call takes, of ``ranks`` when -1.
    """

    call: str
    send: int
    receive: int
    traits: str
    """``r``: it reduces; ``1``: it has a root."""
    bus: Callable[[int], float]
    in_place: Callable[[int, int], tuple[int, int]]
    """Where the two buffers lie in one, by rank and ranks, in units of the count."""
    wanted: Callable[[list[np.ndarray], int, int, int, str], np.ndarray | None]
    """Of inputs, rank, count, root and operation; none where a rank gets nothing."""

    @property
    def reduces(self) -> bool:
        """Whether it takes an operation."""
        return "r" in self.traits

    @property
    def rooted(self) -> bool:
        """Whether it takes a root."""
        return "1" in self.traits


def _combined(inputs: list[np.ndarray], op: str) -> np.ndarray:
    stack = np.stack(inputs)
    if op == "avg":
        mean = stack.sum(0, dtype=np.float64) / len(inputs)
        return (np.trunc(mean) if stack.dtype.kind in "iu" else mean).astype(stack.dtype)
    found: np.ndarray = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[
        op
    ].reduce(stack, axis=0, dtype=stack.dtype)
    return found


def _part(array: np.ndarray, index: int, count: int) -> np.ndarray:
    return array[index * count : (index + 1) * count]


TESTS = {
    "all_reduce": Test(
        "AllReduce", 1, 1, "r", lambda n: 2 * (n - 1) / n, lambda r, n: (0, 0),
        lambda i, r, c, root, op: _combined(i, op),
    ),
    "reduce": Test(
        "Reduce", 1, 1, "r1", lambda n: 1.0, lambda r, n: (0, 0),
        lambda i, r, c, root, op: _combined(i, op) if r == root else None,
    ),
    "broadcast": Test(
        "Broadcast", 1, 1, "1", lambda n: 1.0, lambda r, n: (0, 0),
        lambda i, r, c, root, op: i[root],
    ),
    "all_gather": Test(
        "AllGather", 1, -1, "", lambda n: (n - 1) / n, lambda r, n: (r, 0),
        lambda i, r, c, root, op: np.concatenate(i),
    ),
    "reduce_scatter": Test(
        "ReduceScatter", -1, 1, "r", lambda n: (n - 1) / n, lambda r, n: (0, r),
        lambda i, r, c, root, op: _part(_combined(i, op), r, c),
    ),
    "alltoall": Test(
        "AlltoAll", -1, -1, "", lambda n: (n - 1) / n, lambda r, n: (0, 0),
        lambda i, r, c, root, op: np.concatenate([_part(x, r, c) for x in i]),
    ),
    "gather": Test(
        "Gather", 1, -1, "1", lambda n: (n - 1) / n, lambda r, n: (r, 0),
        lambda i, r, c, root, op: np.concatenate(i) if r == root else None,
    ),
    "scatter": Test(
        "Scatter", -1, 1, "1", lambda n: (n - 1) / n, lambda r, n: (0, r),
        lambda i, r, c, root, op: _part(i[root], r, c),
    ),
}  # fmt: skip


class Board:
    """The GPUs, a communicator on each, and two events on the first one."""

    def __init__(self, gpus: int) -> None:
        self.cuda = ctypes.CDLL(str(NATIVE_DIR / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        self.nccl = ctypes.CDLL(str(NATIVE_DIR / "libnccl.so.2"))
        self.nccl.ncclGetLastError.restype = ctypes.c_char_p
        self.gpus = gpus
        self.driver("Init", 0)
        there = ctypes.c_int()
        self.driver("DeviceGetCount", ctypes.byref(there))
        if there.value < gpus:
            raise SystemExit(
                f"nccl_tests: {gpus} GPUs are asked for and there are {there.value}; "
                f"start it with VA100_GPUS={gpus}, or as va100 run --gpus {gpus}"
            )
        self.contexts = [ctypes.c_void_p() for _ in range(gpus)]
        for gpu, context in enumerate(self.contexts):
            self.driver("DevicePrimaryCtxRetain", ctypes.byref(context), gpu)
        comms = (ctypes.c_void_p * gpus)()
        self.call("CommInitAll", comms, gpus, None)
        self.comms = [ctypes.c_void_p(comm) for comm in comms]
        self.use(0)
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.driver("EventCreate", ctypes.byref(event), 0)

    def driver(self, name: str, *arguments: object) -> None:
        """Call the driver; anything but success ends the program with the call's name."""
        code = getattr(self.cuda, f"cu{name}")(*arguments)
        if code:
            raise SystemExit(f"nccl_tests: cu{name} returned {code}")

    def call(self, name: str, *arguments: object) -> None:
        """Call NCCL; likewise, with what it says."""
        code = getattr(self.nccl, f"nccl{name}")(*arguments)
        if code:
            text = self.nccl.ncclGetLastError(None).decode()
            raise SystemExit(f"nccl_tests: nccl{name} returned {code}: {text}")

    def use(self, gpu: int) -> None:
        """Make a GPU current."""
        self.driver("CtxSetCurrent", self.contexts[gpu])

    def describe(self, gpu: int) -> str:
        """Name and PCI bus of a GPU."""
        name, bus = ctypes.create_string_buffer(96), ctypes.create_string_buffer(16)
        self.driver("DeviceGetName", name, 96, gpu)
        self.driver("DeviceGetPCIBusId", bus, 16, gpu)
        return f"[0x{bus.value.decode()[5:7].lower()}] {name.value.decode()}"

    def each(self, function: Callable[[int], None]) -> None:
        """Call for every rank, all in one group."""
        self.call("GroupStart")
        for gpu in range(self.gpus):
            self.use(gpu)
            function(gpu)
        self.call("GroupEnd")


def size_of(text: str) -> int:
    """Bytes of ``8``, ``64K``, ``1G``."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.upper())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 8, 64K, 1G")
    return int(match[1]) * UNITS[match[2]]


class Buffers:
    """Inputs and outputs of all ranks, apart or in one."""

    def __init__(self, board: Board, test: Test, args: argparse.Namespace, count: int) -> None:
        self.board, self.test, self.args, self.count = board, test, args, count
        n = board.gpus
        self.number, self.dtype = TYPES[args.datatype]
        self.width = np.dtype(self.dtype).itemsize
        self.gives = count * (n if test.send < 0 else test.send)
        self.gets = count * (n if test.receive < 0 else test.receive)
        self.most = max(self.gives, self.gets)
        self.send = [self._allocate(gpu) for gpu in range(n)]
        self.receive = [self._allocate(gpu) for gpu in range(n)]
        rng = np.random.default_rng(count)
        high = 3 if args.op == "prod" else 8
        self.inputs = [rng.integers(1, high, self.gives).astype(self.dtype) for _ in range(n)]

    def _allocate(self, gpu: int) -> int:
        address = ctypes.c_uint64()
        self.board.use(gpu)
        self.board.driver(
            "MemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(self.most * self.width, 1))
        )
        return address.value

    def places(self, gpu: int, *, in_place: bool) -> tuple[int, int]:
        """Where a rank's call reads and writes."""
        if not in_place:
            return self.send[gpu], self.receive[gpu]
        read, write = self.test.in_place(gpu, self.board.gpus)
        step = self.count * self.width
        return self.receive[gpu] + read * step, self.receive[gpu] + write * step

    def fill(self, *, in_place: bool) -> None:
        """Copy the inputs to where they are read."""
        for gpu, data in enumerate(self.inputs):
            self.board.use(gpu)
            address = ctypes.c_uint64(self.places(gpu, in_place=in_place)[0])
            pointer = data.ctypes.data_as(ctypes.c_void_p)
            self.board.driver("MemcpyHtoD_v2", address, pointer, ctypes.c_size_t(data.nbytes))

    def run(self, *, in_place: bool) -> None:
        """Call once on every rank."""
        test, args = self.test, self.args
        more = [OPS[args.op]] if test.reduces else []
        more += [args.root] if test.rooted else []

        def one(gpu: int) -> None:
            read, write = self.places(gpu, in_place=in_place)
            self.board.call(
                test.call, ctypes.c_void_p(read), ctypes.c_void_p(write),
                ctypes.c_size_t(self.count), self.number, *more, self.board.comms[gpu], NULL,
            )  # fmt: skip

        self.board.each(one)

    def wrong(self, *, in_place: bool) -> int:
        """Elements that are not what they should be."""
        total = 0
        for gpu in range(self.board.gpus):
            wanted = self.test.wanted(self.inputs, gpu, self.count, self.args.root, self.args.op)
            if wanted is None:
                continue
            found = np.empty_like(wanted)
            self.board.use(gpu)
            address = ctypes.c_uint64(self.places(gpu, in_place=in_place)[1])
            pointer = found.ctypes.data_as(ctypes.c_void_p)
            self.board.driver("MemcpyDtoH_v2", pointer, address, ctypes.c_size_t(found.nbytes))
            if self.args.op == "avg" and found.dtype.kind == "f":
                close = np.isclose(found, wanted, rtol=4 * np.finfo(found.dtype).eps)
                total += int((~close).sum())
            else:
                total += int((found != wanted).sum())
        return total

    def time_us(self, *, in_place: bool) -> float:
        """Virtual time of one call, by events around several."""
        board, milliseconds = self.board, ctypes.c_float()
        for _ in range(self.args.warmup_iters):
            self.run(in_place=in_place)
        board.use(0)
        board.driver("EventRecord", board.events[0], NULL)
        for _ in range(self.args.iters):
            self.run(in_place=in_place)
        board.use(0)
        board.driver("EventRecord", board.events[1], NULL)
        board.driver("EventSynchronize", board.events[1])
        board.driver("EventElapsedTime", ctypes.byref(milliseconds), *board.events)
        return milliseconds.value * 1e3 / self.args.iters

    def free(self) -> None:
        """Give the memory back."""
        for address in (*self.send, *self.receive):
            self.board.driver("MemFree_v2", ctypes.c_uint64(address))


def sizes(args: argparse.Namespace) -> Iterator[int]:
    """From the least to the most, by factor or by step."""
    size = args.minbytes
    while size <= args.maxbytes:
        yield size
        size = size * args.stepfactor if args.stepfactor else size + args.stepbytes


def columns(buffers: Buffers, size: int, *, in_place: bool) -> tuple[str, float, int]:
    """Time, bandwidths and wrong elements as they are printed; bus bandwidth; wrong elements."""
    wrong = 0
    if buffers.args.check:
        buffers.fill(in_place=in_place)
        buffers.run(in_place=in_place)
        wrong = buffers.wrong(in_place=in_place)
    time_us = buffers.time_us(in_place=in_place)
    algorithm = size / time_us / 1e3
    bus = algorithm * buffers.test.bus(buffers.board.gpus)
    checked = f"{wrong:7d}" if buffers.args.check else "    N/A"
    return f"{time_us:8.2f}{algorithm:8.2f}{bus:8.2f}{checked}", bus, wrong


def head(board: Board, name: str, args: argparse.Namespace) -> str:
    """What nccl-tests prints before the table."""
    step = f"{args.stepfactor}(factor)" if args.stepfactor else f"{args.stepbytes}(bytes)"
    lines = [
        f"# Collective test starting: {name}_perf",
        f"# nThread 1 nGpus {board.gpus} minBytes {args.minbytes} maxBytes {args.maxbytes} "
        f"step: {step} warmup iters: {args.warmup_iters} iters: {args.iters} agg iters: 1 "
        f"validation: {int(args.check)} graph: 0",
        "#",
        "# Using devices",
        *(
            f"#  Rank {gpu:2d} Group  0 Pid {os.getpid():6d} on {'virtual':>10} device {gpu:2d} "
            f"{board.describe(gpu)}"
            for gpu in range(board.gpus)
        ),
        "#",
        f"#{'':56}{'out-of-place':^31} {'in-place':^31}",
        f"#{'size':>12}{'count':>14}{'type':>10}{'redop':>8}{'root':>8}"
        + f"    {'time':>8}{'algbw':>8}{'busbw':>8}{'#wrong':>7}" * 2,
        f"#{'(B)':>12}{'(elements)':>14}{'':>26}"
        + f"    {'(us)':>8}{'(GB/s)':>8}{'(GB/s)':>8}{'':7}" * 2,
    ]
    return "\n".join(lines)


def arguments(given: list[str] | None) -> argparse.Namespace:
    """Parse the command line; options are nccl-tests'."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.nccl_tests", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("test", choices=TESTS, help="which collective")
    parser.add_argument("-g", "--ngpus", type=int, help="GPUs; all there are by default")
    parser.add_argument("-b", "--minbytes", type=size_of, default=32 << 20)
    parser.add_argument("-e", "--maxbytes", type=size_of, default=32 << 20)
    parser.add_argument("-i", "--stepbytes", type=size_of, default=1 << 20)
    parser.add_argument("-f", "--stepfactor", type=int, default=0)
    parser.add_argument("-n", "--iters", type=int, default=2, help="virtual times do not scatter")
    parser.add_argument("-w", "--warmup_iters", type=int, default=1)
    parser.add_argument("-o", "--op", choices=OPS, default="sum")
    parser.add_argument("-d", "--datatype", choices=TYPES, default="float")
    parser.add_argument("-r", "--root", type=int, default=0)
    parser.add_argument("-c", "--check", type=int, choices=(0, 1), default=1)
    args = parser.parse_args(given)
    for name, least in (("stepfactor", 0), ("iters", 1), ("warmup_iters", 0), ("minbytes", 1)):
        if getattr(args, name) < least:
            parser.error(f"--{name} {getattr(args, name)} is less than {least}")
    if args.stepfactor == 1 or (not args.stepfactor and not args.stepbytes):
        parser.error("sizes would not grow; -f takes 2 or more, -i a size")
    if args.ngpus is None:
        args.ngpus = int(os.environ.get("VA100_GPUS", "1"))
    if not 0 <= args.root < args.ngpus:
        parser.error(f"--root {args.root} is not among ranks 0 to {args.ngpus - 1}")
    return args


def main(given: list[str] | None = None) -> int:
    """Print the table; 1 when an element is wrong."""
    args = arguments(given)
    board, test = Board(args.ngpus), TESTS[args.test]
    print(head(board, args.test, args), flush=True)
    width = np.dtype(TYPES[args.datatype][1]).itemsize
    rates, wrong = [], 0
    split = test.send < 0 or test.receive < 0
    for asked in sizes(args):
        count = asked // width // (board.gpus if split else 1)
        if not count:
            continue
        size = count * width * (board.gpus if split else 1)
        buffers = Buffers(board, test, args, count)
        op, root = args.op if test.reduces else "none", str(args.root) if test.rooted else "-1"
        line = f"{size:13d}{count:14d}{args.datatype:>10}{op:>8}{root:>8}"
        for in_place in (False, True):
            text, bus, bad = columns(buffers, size, in_place=in_place)
            line += f"    {text}"
            rates.append(bus)
            wrong += bad
        buffers.free()
        print(line, flush=True)
    print(f"# Out of bounds values : {wrong} {'OK' if not wrong else 'FAILED'}")
    print(f"# Avg bus bandwidth    : {sum(rates) / len(rates) if rates else 0:g}\n#")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
