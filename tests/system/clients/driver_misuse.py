"""Call the driver with everything wrong: ``driver_misuse.py TOOLS SEED COUNT``.

First each handle of each function is null, made up, stale and of another kind in turn.  Then
anything may be any of these, or out of range; pointers lead to zeroed memory or nowhere.  Prints
how often which result came, and whether the driver still works.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections import Counter

sys.path.insert(0, sys.argv[1])

from driver_tables import generate
from va100.driver.api import driver, result_name

ROOM = 4096
SMALL = (0, 1, 2, 3, 64)
ODD = (-1, 4, 99, 0x7FFFFFFF)
CALLED = {"CUhostFn", "CUstreamCallback", "CUoccupancyB2DSize", "CUasyncCallback",
          "CUlogsCallback"}  # fmt: skip
LEFT_OUT = {
    "cuLogsDumpToFile",  # would write a file
    "cuCoredumpSetAttributeGlobal",  # would do so at a fault
}


class Misuse:
    """Made-up calls from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lib = driver()
        self.handles: list[int | None] = [None, 8, 0xFFFF_FFFF_FFFF_FFF0, 0x1230_0000_0100_0000]
        self.addresses = [0]
        self.rooms = [ctypes.create_string_buffer(ROOM) for _ in range(8)]
        self.context = ctypes.c_void_p()

    def prepare(self) -> None:
        """Live and stale objects of every kind."""
        lib, out = self.lib, ctypes.c_void_p()
        lib.cuInit(0)
        lib.cuCtxCreate_v2(ctypes.byref(out), 0, 0)
        self.handles.append(out.value)
        lib.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0)
        for name in ("cuStreamCreate", "cuEventCreate", "cuGraphCreate"):
            for _ in range(3):
                getattr(lib, name)(ctypes.byref(out), 0)
                self.handles.append(out.value)
        lib.cuStreamDestroy_v2(self.handles[-7])
        lib.cuEventDestroy_v2(self.handles[-4])
        address = ctypes.c_uint64()
        for _ in range(3):
            lib.cuMemAlloc_v2(ctypes.byref(address), ROOM)
            self.addresses += [address.value, address.value + ROOM - 1]
        lib.cuMemFree_v2(self.addresses[-2])
        lib.cuMemAddressReserve(ctypes.byref(address), 2 << 20, 0, 0, 0)
        self.addresses.append(address.value)

    def argument(self, parameter, c_type):
        """Something for a parameter."""
        kind = parameter.c_type.removeprefix("const ")
        if kind.endswith("*"):
            return self.random.choice([None, ctypes.addressof(self.random.choice(self.rooms))])
        if kind == "CUdeviceptr":
            return self.random.choice(self.addresses)
        if kind in CALLED:
            return None
        if c_type is ctypes.c_void_p or kind.startswith(("CUmemGeneric", "CUtex", "CUsurf")):
            value = self.random.choice(self.handles)
            return value if c_type is ctypes.c_void_p else value or 0
        if c_type is ctypes.c_float:
            return 1.5
        if issubclass(c_type, ctypes.Structure):
            return c_type()
        wild = kind.startswith("CU") or parameter.name in {"flags", "ordinal", "priority"}
        value = self.random.choice(SMALL + ODD if wild else SMALL)
        return value & 0xFFFFFFFF if c_type in {ctypes.c_uint, ctypes.c_uint64} else value

    def recover(self) -> None:
        """A context, and no heed of streams that calls left capturing."""
        if self.lib.cuCtxSetCurrent(self.context):
            self.lib.cuCtxCreate_v2(ctypes.byref(self.context), 0, 0)
        self.lib.cuThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(2)))

    def call(self, row, place: int | None = None, value: int | None = None) -> int:
        """One call with arguments made up, or one of them given."""
        self.recover()
        function = getattr(self.lib, row.name)
        pairs = zip(row.parameters, function.argtypes, strict=True)
        words = [self.argument(parameter, c_type) for parameter, c_type in pairs]
        if place is not None:
            words[place] = value
        return function(*words)

    def each_handle(self, row):
        """Where a row's handles are, and what each may be."""
        types = getattr(self.lib, row.name).argtypes
        for place, parameter in enumerate(row.parameters):
            kind = parameter.c_type
            if types[place] is ctypes.c_void_p and not kind.endswith("*") and kind not in CALLED:
                for value in self.handles:
                    yield place, value

    def wipe(self) -> None:
        """What calls wrote into the rooms is not for others to read."""
        for room in self.rooms:
            ctypes.memset(room, 0, ROOM)


def main() -> None:
    """Call, count, and try whether it still works."""
    misuse = Misuse(int(sys.argv[2]))
    misuse.prepare()
    rows = [row for row in generate.driver_rows() if row.has_body and row.name not in LEFT_OUT]
    results: Counter[int] = Counter()
    for row in rows:
        for place, value in misuse.each_handle(row):
            print(row.name, file=sys.stderr)
            results[misuse.call(row, place, value)] += 1
            misuse.wipe()
    for _ in range(int(sys.argv[3])):
        row = misuse.random.choice(rows)
        print(row.name, file=sys.stderr)
        results[misuse.call(row)] += 1
        misuse.wipe()
    unknown = [code for code in results if result_name(code) == str(code)]
    context, address, byte = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_ubyte()
    lib = misuse.lib
    misuse.recover()
    codes = [
        lib.cuCtxCreate_v2(ctypes.byref(context), 0, 0),
        lib.cuMemAlloc_v2(ctypes.byref(address), 64),
        lib.cuMemsetD8_v2(address.value, 7, 64),
        lib.cuMemcpyDtoH_v2(ctypes.addressof(byte), address.value + 63, 1),
        lib.cuCtxDestroy_v2(context),
    ]
    print(f"unknown {unknown} successes {results[0]} works {codes == [0] * 5 and byte.value == 7}")


main()
