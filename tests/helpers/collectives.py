"""NCCL by its C interface, and what NumPy says each collective gives.

The sums follow the rule of docs/nccl.md: block ``b`` of as many blocks as there are ranks is added
up around the ring from rank ``b + 1`` on, each step rounded to the type.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

NATIVE = Path(__file__).parents[2] / "src" / "va100" / "_native"
TYPES = {
    "int8": 0,
    "uint8": 1,
    "int32": 2,
    "uint32": 3,
    "int64": 4,
    "uint64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
BFLOAT16 = np.dtype([("raw", np.uint16)])
"""Sixteen bits that NumPy has no arithmetic for."""
SUCCESS, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR = 0, 4, 5, 6


def numpy_type(name: str) -> np.dtype:
    """NumPy's type of NCCL's name."""
    return BFLOAT16 if name == "bfloat16" else np.dtype(name)


def widen(array: np.ndarray) -> np.ndarray:
    """Brain floats as floats, which hold them; everything else as it is."""
    if array.dtype != BFLOAT16:
        return array
    return (array["raw"].astype(np.uint32) << 16).view(np.float32)


def narrow(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Round to the nearest value of a type, ties to even."""
    if dtype != BFLOAT16:
        return array.astype(dtype)
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FFF), rounded).view(BFLOAT16)


class UniqueId(ctypes.Structure):
    """NCCL's 128 bytes."""

    _fields_ = (("internal", ctypes.c_char * 128),)


class NcclError(RuntimeError):
    """A call that failed: its number, and what the library says of it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Nccl:
    """The library, and devices to use it on."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL(str(NATIVE / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(NATIVE / "libnccl.so.2"))
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        self.library.ncclGetLastError.restype = ctypes.c_char_p
        assert self.cuda.cuInit(0) == 0
        self.contexts: dict[int, ctypes.c_void_p] = {}

    def call(self, name: str, *arguments: object) -> None:
        """Call; fail with the library's own words."""
        code = getattr(self.library, f"nccl{name}")(*arguments)
        if code:
            raise NcclError(code, self.library.ncclGetLastError(None).decode())

    def device_count(self) -> int:
        """Devices of this process."""
        count = ctypes.c_int()
        assert self.cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
        return count.value

    def use(self, device: int) -> None:
        """Make a device current."""
        if device not in self.contexts:
            context = ctypes.c_void_p()
            assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
            self.contexts[device] = context
        assert self.cuda.cuCtxSetCurrent(self.contexts[device]) == 0

    def unique_id(self) -> UniqueId:
        """Make an id."""
        found = UniqueId()
        self.call("GetUniqueId", ctypes.byref(found))
        return found

    def init_rank(self, ranks: int, id_: UniqueId, rank: int) -> ctypes.c_void_p:
        """Join a communicator on the current device."""
        comm = ctypes.c_void_p()
        self.call("CommInitRank", ctypes.byref(comm), ranks, id_, rank)
        return comm

    def init_all(self, ranks: int) -> list[ctypes.c_void_p]:
        """One communicator on each of the first devices."""
        comms = (ctypes.c_void_p * ranks)()
        self.call("CommInitAll", comms, ranks, None)
        return [ctypes.c_void_p(comm) for comm in comms]

    def put(self, array: np.ndarray) -> int:
        """Copy to the current device; at least one byte is allocated."""
        address = ctypes.c_uint64()
        assert (
            self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
            == 0
        )
        data = np.ascontiguousarray(array)
        assert (
            self.cuda.cuMemcpyHtoD_v2(
                address, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes)
            )
            == 0
        )
        return address.value

    def get(self, address: int, like: np.ndarray) -> np.ndarray:
        """Copy from any device; waits for the current one."""
        out = np.empty_like(like)
        assert self.cuda.cuCtxSynchronize() == 0
        assert (
            self.cuda.cuMemcpyDtoH_v2(
                out.ctypes.data_as(ctypes.c_void_p),
                ctypes.c_uint64(address),
                ctypes.c_size_t(out.nbytes),
            )
            == 0
        )
        return out

    def free(self, *addresses: int) -> None:
        """Give memory back."""
        for address in addresses:
            assert self.cuda.cuMemFree_v2(ctypes.c_uint64(address)) == 0


def _step(a: np.ndarray, b: np.ndarray, op: str) -> np.ndarray:
    apply = {"sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.fmax, "min": np.fmin}[op]
    with np.errstate(all="ignore"):
        return narrow(apply(widen(a), widen(b)), a.dtype)


def _scaled(inputs: list[np.ndarray], op: str, factor: np.ndarray | None) -> list[np.ndarray]:
    kind = inputs[0].dtype
    if factor is None and op == "avg" and kind.kind not in "iu":
        wide = np.float32 if kind == BFLOAT16 else np.float64
        factor = narrow(np.array([1.0 / len(inputs)], wide), kind)
    if factor is None:
        return inputs
    with np.errstate(all="ignore"):
        return [narrow(widen(array) * widen(factor), kind) for array in inputs]


def _chain(inputs: list[np.ndarray], last: int, op: str, part: slice) -> np.ndarray:
    ranks = len(inputs)
    total = inputs[(last + 1) % ranks][part]
    for step in range(2, ranks + 1):
        total = _step(total, inputs[(last + step) % ranks][part], op)
    return total


def _divided(total: np.ndarray, op: str, ranks: int, factor: np.ndarray | None) -> np.ndarray:
    if op != "avg" or factor is not None or total.dtype.kind not in "iu":
        return total
    exact = [int(value) for value in total]
    return np.array([abs(v) // ranks * (-1 if v < 0 else 1) for v in exact], total.dtype)


def reduced(inputs: list[np.ndarray], op: str, factor: np.ndarray | None = None) -> np.ndarray:
    """What an all-reduce leaves in every rank."""
    ranks, count = len(inputs), len(inputs[0])
    given = _scaled(inputs, op, factor)
    block = -(-count // ranks)
    parts = [
        _chain(given, rank, op, slice(rank * block, (rank + 1) * block)) for rank in range(ranks)
    ]
    return _divided(np.concatenate(parts), op, ranks, factor)


def reduced_to(inputs: list[np.ndarray], op: str, root: int) -> np.ndarray:
    """What a reduce leaves in its root, which comes last."""
    given = _scaled(inputs, op, None)
    return _divided(_chain(given, root, op, slice(None)), op, len(inputs), None)


def scattered(inputs: list[np.ndarray], op: str) -> list[np.ndarray]:
    """What a reduce-scatter leaves in each rank."""
    given = _scaled(inputs, op, None)
    ranks = len(inputs)
    count = len(inputs[0]) // ranks
    return [
        _divided(_chain(given, r, op, slice(r * count, (r + 1) * count)), op, ranks, None)
        for r in range(ranks)
    ]


def random_array(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Values of a type, among them some that overflow and, of floats, a few that are no number."""
    dtype = numpy_type(kind)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
    values = rng.normal(size=count).astype(np.float32)
    if count > 8:
        values[rng.integers(count)] = np.inf
        values[rng.integers(count)] = 1e-7
        values[rng.integers(count)] = np.nan
    return narrow(values, dtype)
