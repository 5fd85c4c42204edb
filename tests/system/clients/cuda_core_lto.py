"""cuda.core links LTO-IR of two sources and runs what came of them."""

import ctypes

from cuda.bindings import driver, nvjitlink
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch

CALLER = """
extern __device__ int twice(int value);
extern "C" __global__ void k(int *p) { *p = twice(*p + 1); }
"""
CALLEE = "__device__ int twice(int value) { return 2 * value; }"

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(
    arch="sm_80", relocatable_device_code=True, link_time_optimization=True
)  # fmt: skip
codes = [Program(source, "c++", options).compile("ltoir") for source in (CALLER, CALLEE)]
linker = Linker(*codes, options=LinkerOptions(arch="sm_80", link_time_optimization=True))
linked = linker.link("cubin")
buffer = device.memory_resource.allocate(4, stream=stream)
driver.cuMemsetD32(int(buffer.handle), 20, 1)
launch(stream, LaunchConfig(grid=1, block=1), linked.get_kernel("k"), buffer)
stream.sync()
result = ctypes.c_int()
driver.cuMemcpyDtoH(ctypes.addressof(result), int(buffer.handle), 4)
print(result.value, linked.code.decode().count("call"), nvjitlink.version() >= (12, 3))
