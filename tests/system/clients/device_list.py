"""Prints what the driver says of its devices, as JSON; started on virtual GPUs."""

import ctypes
import json

driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")
count = ctypes.c_int(-1)
told = {"init": driver.cuInit(0), "devices": []}
told["count"] = [driver.cuDeviceGetCount(ctypes.byref(count)), count.value]
for ordinal in range(max(count.value, 0)):
    bus, uuid = ctypes.create_string_buffer(32), (ctypes.c_ubyte * 16)()
    assert driver.cuDeviceGetPCIBusId(bus, len(bus), ordinal) == 0
    assert driver.cuDeviceGetUuid_v2(uuid, ordinal) == 0
    digits = bytes(uuid).hex()
    parts = [digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]]
    told["devices"].append([bus.value.decode(), "GPU-" + "-".join(parts)])
told["runtime"] = [runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value]
mode = ctypes.c_int()
told["loading"] = [driver.cuModuleGetLoadingMode(ctypes.byref(mode)), mode.value]
print(json.dumps(told))
