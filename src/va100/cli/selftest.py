"""One tiny kernel through the driver's C interface, as any client would: ``va100 doctor`` runs it.

Started as ``python -m va100.cli.selftest`` in a child, so that a crash is an answer too.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

PTX: Final = b"""
.version 7.0
.target sm_80
.address_size 64

.visible .entry triple(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64        %rd1, [out];
    cvta.to.global.u64  %rd1, %rd1;
    mov.u32             %r1, %tid.x;
    mul.wide.u32        %rd2, %r1, 4;
    add.s64             %rd3, %rd1, %rd2;
    mad.lo.s32          %r2, %r1, 3, 1;
    st.global.u32       [%rd3], %r2;
    ret;
}
"""
THREADS: Final = 64


class _Driver:
    """The driver's functions, each checked."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            spelled = (text.value or b"").decode()
            raise SystemExit(f"{name} answered {status}: {spelled}")


def main() -> int:
    """Run the kernel and check what it wrote."""
    driver = _Driver()
    device = ctypes.c_int()
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    address = ctypes.c_uint64()
    found = (ctypes.c_uint32 * THREADS)()
    driver.call("cuInit", 0)
    driver.call("cuDeviceGet", ctypes.byref(device), 0)
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver.call("cuCtxSetCurrent", context)
    driver.call("cuModuleLoadData", ctypes.byref(module), PTX)
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, b"triple")
    driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(ctypes.sizeof(found)))
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    shape = [ctypes.c_uint(extent) for extent in (1, 1, 1, THREADS, 1, 1, 0)]
    driver.call("cuLaunchKernel", function, *shape, None, parameters, None)
    size = ctypes.c_size_t(ctypes.sizeof(found))
    driver.call("cuMemcpyDtoH_v2", ctypes.byref(found), address, size)
    if list(found) != [3 * thread + 1 for thread in range(THREADS)]:
        raise SystemExit(f"the kernel wrote {list(found)[:4]}...")
    name = ctypes.create_string_buffer(128)
    driver.call("cuDeviceGetName", name, len(name), device)
    print(f"{name.value.decode()}: a kernel of {THREADS} threads wrote what it should")
    return 0


if __name__ == "__main__":
    sys.exit(main())
