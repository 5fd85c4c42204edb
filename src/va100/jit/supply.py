"""Chunks of compiled functions: which are there, and how the others come when they are needed."""

from __future__ import annotations

import ctypes
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

from va100.jit.code import MachineCode
from va100.jit.compile import ChunkedFunction
from va100.jit.native import SUPPLY, Chunked

Compile = Callable[[ChunkedFunction, int], bytes]
"""Gives the object of a masked chunk; the number after the last: what all lanes waiting need."""


class Supply:
    """The chunks of one kernel's machine code.

    The native core calls it on the thread that launched, the first time lanes part in a chunk.
    """

    def __init__(
        self, functions: Sequence[ChunkedFunction], code: MachineCode, compile_chunk: Compile
    ) -> None:
        self._functions = functions
        self._code = code
        self._compile = compile_chunk
        self._loaded: list[MachineCode] = []
        self._tables = [self._table(function) for function in functions]
        self._facts = [ctypes.create_string_buffer(f.facts, len(f.facts)) for f in functions]
        self.chunked = (Chunked * max(len(functions), 1))()
        for native, table, facts in zip(self.chunked, self._tables, self._facts, strict=False):
            native.table = ctypes.addressof(table)
            native.facts = ctypes.addressof(facts)
        self.callback = SUPPLY(self._supply)

    def _table(self, function: ChunkedFunction) -> ctypes.Array[ctypes.c_uint64]:
        count = block_count(function)
        table = (ctypes.c_uint64 * (2 * count + 1))()
        for chunk, (first, end) in enumerate(pairwise((*function.chunks, count))):
            address = self._code.address(f"{function.symbol}.F{chunk}")
            table[first:end] = [address] * (end - first)
        return table

    def _supply(self, number: int, code: int, why: int, capacity: int) -> int:
        try:
            self.load(number, code)
        except Exception as error:  # noqa: BLE001  nothing may leave a native function
            text = f"{type(error).__name__}: {error}".encode()[: capacity - 1] + b"\0"
            ctypes.memmove(why, text, len(text))
            return 0
        return 1

    def load(self, number: int, code: int) -> None:
        """Compile and enter the chunk that a masked block, or the end of all, belongs to."""
        function, table = self._functions[number], self._tables[number]
        count = block_count(function)
        if table[code]:
            return
        last = code == 2 * count
        chunk = len(function.masked) if last else bisect_right(function.masked, code - count) - 1
        loaded = MachineCode(self._compile(function, chunk), self._code)
        self._loaded.append(loaded)
        address = loaded.address(f"{function.symbol}.M{chunk}")
        if last:
            table[code] = address
            return
        first, end = (*function.masked, count)[chunk : chunk + 2]
        table[count + first : count + end] = [address] * (end - first)


def block_count(function: ChunkedFunction) -> int:
    """Blocks of a function: the first of its facts."""
    return int(struct.unpack_from("<I", function.facts)[0])
