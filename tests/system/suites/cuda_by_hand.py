"""CUDA by ctypes on the driver alone, for suites of tests that are run by the pytest plugin."""

import ctypes

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

TRIPLE = f"""{HEAD}
.visible .entry triple(.param .u64 out)
{{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64        %rd1, [out];
    mov.u32             %r1, %tid.x;
    mul.wide.u32        %rd2, %r1, 4;
    add.s64             %rd3, %rd1, %rd2;
    mul.lo.s32          %r2, %r1, 3;
    st.global.u32       [%rd3], %r2;
    ret;
}}
"""

# Thread t leaves t in shared memory and reads what thread t mod 32 left.  Where warps run one after
# the other that is right without the barrier, too.
SHARE = f"""{HEAD}
.file 1 "share.cu"
.visible .entry share(.param .u64 out)
{{
    .shared .align 4 .b8 box[256];
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64        %rd1, [out];
    mov.u32             %r1, %tid.x;
    mov.u32             %r2, box;
    shl.b32             %r3, %r1, 2;
    add.u32             %r4, %r2, %r3;
    .loc 1 7 0
    st.shared.u32       [%r4], %r1;
    BARRIER
    and.b32             %r3, %r3, 124;
    add.u32             %r4, %r2, %r3;
    .loc 1 9 0
    ld.shared.u32       %r5, [%r4];
    mul.wide.u32        %rd2, %r1, 4;
    add.s64             %rd3, %rd1, %rd2;
    .loc 1 10 0
    st.global.u32       [%rd3], %r5;
    ret;
}}
"""
RACE = SHARE.replace("BARRIER", "")
ORDERED = SHARE.replace("BARRIER", "bar.sync 0;")
SHARED = [t % 32 for t in range(64)]


class Driver:
    """The driver's functions, each checked."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} answered {status}")

    def run(self, ptx, name, threads=64):
        """What a kernel leaves, one number a thread."""
        module, function, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        found = (ctypes.c_uint32 * threads)()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(4 * threads))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        shape = [ctypes.c_uint(extent) for extent in (1, 1, 1, threads, 1, 1, 0)]
        self.call("cuLaunchKernel", function, *shape, None, parameters, None)
        self.call("cuMemcpyDtoH_v2", found, address, ctypes.c_size_t(4 * threads))
        self.call("cuMemFree_v2", address)
        return list(found)
