"""Call the runtime with everything wrong: ``runtime_misuse.py TOOLS ROUNDS``.

Each function of the table, and of each its handles null, made up, destroyed, and of another kind in
turn; pointers lead to zeroed memory or nowhere.  Prints results that are no error's number, and
whether the runtime still works.
"""

from __future__ import annotations

import ctypes
import random
import sys
from ctypes import byref, c_void_p

sys.path.insert(0, sys.argv[1])

from driver_tables import generate
from va100.gpu.native import NATIVE_DIR, library

ROOM = 8192
NUMBERS = (0, 1, 2, 3, 64)
ODD = (-1, 4, 99, 0x7FFFFFFF)
MADE_UP = (8, 0xFFFF_FFFF_FFFF_FFF0, 0x1230_0000_0100_0000)
WORDS_OF = {"dim3": 3, "cudaExtent": 6, "cudaPitchedPtr": 8, "cudaMemLocation": 2,
            "cudaIpcEventHandle_t": 16, "cudaIpcMemHandle_t": 16}  # fmt: skip
"""Structures that are passed by value, in 32-bit words."""
CALLED = {"cudaHostFn_t", "cudaStreamCallback_t", "cudaAsyncCallback", "cudaLogsCallback_t"}
LEFT_OUT = {
    "cudaCreateChannelDesc",  # gives a structure, and cannot fail
    "cudaLogsDumpToFile",  # would write a file
    "cudaSetDevice",  # there is one device; the others are asked for by other calls
}
GROUPS = {"registration"}
"""Left out whole: compilers write these calls, and their images have no length."""
MAKERS = (
    ("cudaStream_t", "cudaStreamCreate", "cudaStreamDestroy"),
    ("cudaEvent_t", "cudaEventCreate", "cudaEventDestroy"),
    ("cudaGraph_t", "cudaGraphCreate", "cudaGraphDestroy"),
)


class Misuse:
    """Made-up calls."""

    def __init__(self) -> None:
        library()
        self.lib = ctypes.CDLL(str(NATIVE_DIR / "libcudart.so.13"))
        self.random = random.Random(1)
        self.rooms = [ctypes.create_string_buffer(ROOM) for _ in range(4)]
        self.kept: list[object] = []
        self.live: dict[str, int | None] = {}
        self.destroyed: dict[str, int | None] = {}
        self.addresses: list[int | None] = []

    def prepare(self) -> None:
        """A live and a destroyed object of some kinds, and device memory."""
        out = c_void_p()
        for kind, make, end in MAKERS:
            words = (0,) if kind == "cudaGraph_t" else ()
            for kept in (self.destroyed, self.live):
                if getattr(self.lib, make)(byref(out), *words) == 0:
                    kept[kind] = out.value
            getattr(self.lib, end)(c_void_p(self.destroyed[kind]))
        for _ in range(2):
            self.lib.cudaMalloc(byref(out), ctypes.c_size_t(ROOM))
            self.addresses.append(out.value)
        self.lib.cudaFree(c_void_p(self.addresses[1]))

    def handles(self, kind: str) -> list[int | None]:
        """What may stand for one: of its kind a destroyed one, and all that it is not."""
        others = [value for other, value in self.live.items() if other != kind]
        return [None, *MADE_UP, self.destroyed.get(kind), *others]

    def argument(self, c_type: str) -> object:
        """Something for a parameter."""
        kind = c_type.removeprefix("const ")
        choice = self.random.choice
        if kind == "void *":
            return c_void_p(choice([None, ctypes.addressof(choice(self.rooms)), *self.addresses]))
        if kind.endswith("*"):
            return c_void_p(choice([None, ctypes.addressof(choice(self.rooms))]))
        if kind in CALLED:
            return c_void_p(None)
        if kind in WORDS_OF:
            words = (ctypes.c_uint32 * WORDS_OF[kind])(*([1] * 3 if kind == "dim3" else []))
            fields = [("words", type(words))]
            return type(kind, (ctypes.Structure,), {"_fields_": fields})(words)
        if is_handle(kind):
            return c_void_p(choice(self.handles(kind)))
        wild = kind not in {"size_t", "uint64_t", "unsigned int"}  # these may count what is there
        return ctypes.c_uint64(choice(NUMBERS + ODD if wild else NUMBERS) & 0xFFFF_FFFF)

    def calls(self, row, rounds: int):
        """The arguments of a row's calls: every handle in turn, then anything."""
        kinds = [p.c_type.removeprefix("const ") for p in row.parameters]
        for place, kind in enumerate(kinds):
            for value in self.handles(kind) if is_handle(kind) else ():
                words = [self.argument(other) for other in kinds]
                words[place] = c_void_p(value)
                yield words
        for _ in range(rounds):
            yield [self.argument(kind) for kind in kinds]

    def call(self, row, words: list[object]) -> int:
        """One call, after which what calls wrote is not for others to read."""
        function = getattr(self.lib, row.name)
        function.restype = ctypes.c_int
        result = function(*words)
        for room in self.rooms:
            ctypes.memset(room, 0, ROOM)
        self.lib.cudaThreadExchangeStreamCaptureMode(byref(ctypes.c_int(2)))
        self.kept.append(words)
        return result

    def works(self) -> bool:
        """Whether memory still holds what is written."""
        address, byte = c_void_p(), ctypes.c_ubyte()
        size = ctypes.c_size_t(64)
        self.lib.cudaDeviceReset()
        codes = [
            self.lib.cudaMalloc(byref(address), size),
            self.lib.cudaMemset(address, 7, size),
            self.lib.cudaMemcpy(byref(byte), address, ctypes.c_size_t(1), 2),
            self.lib.cudaFree(address),
        ]
        return codes == [0] * 4 and byte.value == 7


def is_handle(kind: str) -> bool:
    """Whether a type is an opaque pointer."""
    others = CALLED | WORDS_OF.keys() | {"size_t", "uint64_t", "cudaError_t"}
    return kind.endswith(("_t", "Handle")) and kind not in others


def main() -> None:
    misuse = Misuse()
    misuse.prepare()
    name_of = ctypes.CDLL(str(NATIVE_DIR / "libcudart.so.13")).cudaGetErrorName
    name_of.restype = ctypes.c_char_p
    unnamed, count = set(), 0
    rows = [
        row
        for row in generate.runtime_rows()
        if row.has_body
        and row.version in {0, 13}
        and row.group not in GROUPS
        and row.name not in LEFT_OUT
    ]
    for row in rows:
        print(row.name, file=sys.stderr)
        for words in misuse.calls(row, int(sys.argv[2])):
            code = misuse.call(row, words)
            count += 1
            named = row.returns != "cudaError_t" or b"unrecognized" not in name_of(code).lower()
            if not named:
                unnamed.add((row.name, code))
    print(f"functions {len(rows)} calls {count} unnamed {sorted(unnamed)} works {misuse.works()}")


main()
