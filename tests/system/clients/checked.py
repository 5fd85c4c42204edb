"""A driver client that does one thing right or wrong, for `va100 check`."""

import ctypes
import sys
from pathlib import Path

PLANTED = Path(__file__).resolve().parents[2] / "check"
cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments, allowed=(0,)):
    """Call the driver; the code must be allowed."""
    code = getattr(cuda, name)(*arguments)
    if code not in allowed:
        raise SystemExit(f"{name}: {code}")
    return code


def allocate(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address


def launch(module, name, *, grid=1, block=64, n=64, source=None, target=None):
    image = (PLANTED / f"{module}.ptx").read_bytes()
    loaded, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(loaded), image)
    call("cuModuleGetFunction", ctypes.byref(function), loaded, name.encode())
    values = (source, target, ctypes.c_int(n))
    pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in values))
    call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, None, pointers, None)
    call("cuCtxSynchronize", allowed=(0, 700, 716))


def main(mode):
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    source, target = allocate(256), allocate(256)
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(256))
    if mode != "undefined":
        data = (ctypes.c_int * 64)(*range(64))
        call("cuMemcpyHtoD_v2", source, data, ctypes.c_size_t(256))
    if mode == "copied":
        third = allocate(256)
        call("cuMemcpyDtoD_v2", target, third, ctypes.c_size_t(256))
        source, target, third = target, source, target
    if mode == "stray":
        launch("memory", "past_end_bug", n=60, block=61, source=source, target=allocate(240))
    elif mode == "race":
        launch("race_shared", "shared_raw_bug", source=source, target=target)
    elif mode == "freed":
        call("cuMemFree_v2", source)
        launch("memory", "after_free_bug", source=source, target=target)
        return
    else:
        launch("memory", "past_end_fix", source=source, target=target)
        launch("init", "global_bug", source=source, target=target)
    print("ran", mode)
    if mode == "bad_copy":
        call(
            "cuMemcpyDtoH_v2", (ctypes.c_ubyte * 512)(), source, ctypes.c_size_t(257), allowed=(1,)
        )
    call("cuMemFree_v2", source)
    if mode == "double_free":
        call("cuMemFree_v2", source, allowed=(1,))
    if mode == "wrong_free":
        call("cuMemFree_v2", ctypes.c_uint64(target.value + 4), allowed=(1,))
    if mode not in ("leak", "copied", "stray"):
        call("cuMemFree_v2", target)
    if mode == "failing":
        raise SystemExit(3)


main(sys.argv[1])
