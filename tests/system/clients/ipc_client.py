"""Another process that opens what the test exported; it knows the driver by its C symbols alone.

``ipc_client.py LIBRARY memory HEX...``: open each handle, print the text there, write over it.
``ipc_client.py LIBRARY range FD`` and ``pool FD HEX``: the same through descriptors.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

UNIT = 2 << 20


class Bytes64(ctypes.Structure):
    """A handle by value."""

    _fields_ = (("bytes", ctypes.c_ubyte * 64),)


class Access(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (("type", c_int), ("id", c_int), ("flags", c_int))


def main() -> None:
    """Do as the arguments say."""
    cuda = ctypes.CDLL(sys.argv[1])
    cuda.cuIpcOpenMemHandle_v2.argtypes = (c_void_p, Bytes64, ctypes.c_uint)
    cuda.cuIpcOpenEventHandle.argtypes = (c_void_p, Bytes64)

    def call(name, *arguments):
        code = getattr(cuda, name)(*arguments)
        if code:
            print(f"{name}: {code}", flush=True)
            sys.exit(1)

    def greet(address, answer):
        text = ctypes.create_string_buffer(32)
        call("cuMemcpyDtoH_v2", text, c_uint64(address), c_size_t(31))
        print(text.value.decode(), flush=True)
        call("cuMemcpyHtoD_v2", c_uint64(address), answer, c_size_t(len(answer)))

    context = c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", byref(context), 0)
    call("cuCtxSetCurrent", context)
    kind, rest = sys.argv[2], sys.argv[3:]
    address = c_uint64()
    if kind == "memory":
        for index, word in enumerate(rest):
            handle = Bytes64.from_buffer_copy(bytes.fromhex(word))
            again = c_uint64()
            call("cuIpcOpenMemHandle_v2", byref(address), handle, 1)
            call("cuIpcOpenMemHandle_v2", byref(again), handle, 1)
            assert again.value == address.value
            greet(address.value, b"answer %d" % index)
            assert cuda.cuMemFree_v2(address) == 1
            call("cuIpcCloseMemHandle", address)
            call("cuIpcCloseMemHandle", address)
            assert cuda.cuIpcCloseMemHandle(address) == 1
    elif kind == "event":
        event = c_void_p()
        call("cuIpcOpenEventHandle", byref(event), Bytes64.from_buffer_copy(bytes.fromhex(rest[0])))
        call("cuEventSynchronize", event)
        call("cuStreamWaitEvent", None, event, 0)
        call("cuEventRecord", event, None)
        call("cuEventDestroy_v2", event)
        print("passed")
    elif kind == "range":
        handle = c_uint64()
        call("cuMemImportFromShareableHandle", byref(handle), c_void_p(int(rest[0])), 1)
        call("cuMemAddressReserve", byref(address), c_size_t(UNIT), c_size_t(0), c_uint64(0), 0)
        call("cuMemMap", address, c_size_t(UNIT), c_size_t(0), handle, c_uint64(0))
        call("cuMemSetAccess", address, c_size_t(UNIT), byref(Access(1, 0, 3)), c_size_t(1))
        greet(address.value, b"answer range")
    else:
        pool = c_void_p()
        call("cuMemPoolImportFromShareableHandle", byref(pool), c_void_p(int(rest[0])), 1, 0)
        data = Bytes64.from_buffer_copy(bytes.fromhex(rest[1]))
        call("cuCtxSetCurrent", None)  # a thread without a context imports as well
        call("cuMemPoolImportPointer", byref(address), pool, byref(data))
        call("cuCtxSetCurrent", context)
        greet(address.value, b"answer pool")
        call("cuMemFreeAsync", address, None)


main()
