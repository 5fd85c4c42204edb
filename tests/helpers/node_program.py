"""A CUDA program in a process of its own that does as it is told, line by line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from va100.gpu.native import NATIVE_DIR

PROGRAM = r'''
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
  mov.f32 %f1, 0f3F800000;
again:
  fma.rn.f32 %f1, %f1, 0f3F000000, 0f3F800000;
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra again;
  st.global.f32 [%rd3], %f1; ret;
}
.visible .entry multiply(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p; .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .f32 %f<8>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
  mov.b32 %r6, 0x3C003C00; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1;
  mov.f32 %f4, %f1;
again:
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%f1, %f2, %f3, %f4}, {%r6, %r6, %r6, %r6}, {%r6, %r6}, {%f1, %f2, %f3, %f4};
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%f1, %f2, %f3, %f4}, {%r6, %r6, %r6, %r6}, {%r6, %r6}, {%f1, %f2, %f3, %f4};
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra again;
  st.global.f32 [%rd3], %f1; ret;
}
"""
def do(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        print(name, code, flush=True)
        raise SystemExit(9)
do("cuInit", 0)
count = ctypes.c_int(); do("cuDeviceGetCount", ctypes.byref(count))
def text(name, room=100):
    buffer = ctypes.create_string_buffer(room); do(name, buffer, room, 0)
    return buffer.value.decode()
def attribute(number):
    value = ctypes.c_int(); do("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value
uuid = (ctypes.c_ubyte * 16)(); do("cuDeviceGetUuid", uuid, 0)
total = ctypes.c_size_t(); do("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
print(count.value, text("cuDeviceGetName"), text("cuDeviceGetPCIBusId"), bytes(uuid).hex(),
      total.value, *[attribute(n) for n in (16, 37, 38, 40)], sep="|", flush=True)
context = ctypes.c_void_p(); do("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
do("cuCtxPushCurrent_v2", context)
for line in sys.stdin:
    words = line.split()
    if words[0] == "alloc":
        pointer = ctypes.c_uint64()
        print(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(words[1]))), flush=True)
    elif words[0] == "free":
        print(cuda.cuMemFree_v2(pointer), flush=True)
    elif words[0] == "room":
        room = ctypes.c_size_t()
        do("cuMemGetInfo_v2", ctypes.byref(room), ctypes.byref(total))
        print(room.value, flush=True)
    elif words[0] == "sync":
        print(cuda.cuCtxSynchronize(), flush=True)
    elif words[0] == "create":
        print(cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0), flush=True)
    elif words[0] == "copy":
        size = ctypes.c_size_t(int(words[1]))
        print(cuda.cuMemcpyHtoD_v2(pointer, ctypes.create_string_buffer(size.value), size),
              flush=True)
    elif words[0] == "work":
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        do("cuModuleLoadData", ctypes.byref(module), PTX)
        name = words[3].encode() if len(words) > 3 else b"spin"
        do("cuModuleGetFunction", ctypes.byref(function), module, name)
        rounds = ctypes.c_uint32(int(words[1]))
        slots = (ctypes.c_void_p * 2)(*[ctypes.addressof(x) for x in (pointer, rounds)])
        if words[2] == "timed":
            events = [ctypes.c_void_p(), ctypes.c_void_p()]
            for event in events:
                do("cuEventCreate", ctypes.byref(event), 0)
            do("cuEventRecord", events[0], None)
        else:
            print("working", flush=True)
        while True:
            do("cuLaunchKernel", function, 216, 1, 1, 256, 1, 1, 0, None, slots, None)
            if words[2] == "timed":
                break
        do("cuEventRecord", events[1], None)
        do("cuCtxSynchronize")
        ms = ctypes.c_float(); do("cuEventElapsedTime", ctypes.byref(ms), *events)
        print(ms.value, flush=True)
'''


class Program:
    """A CUDA program that does as it is told."""

    def __init__(self, **variables):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(NATIVE_DIR), **variables}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.pid = self.process.pid
        self.first = self.process.stdout.readline().strip().split("|")

    def ask(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
