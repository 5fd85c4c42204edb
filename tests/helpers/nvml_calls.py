"""NVML called as its clients do, with ctypes: one node, the calls that tests need, codes kept."""

from __future__ import annotations

import ctypes

from va100.gpu.native import NATIVE_DIR

LIBRARY = NATIVE_DIR / "libnvidia-ml.so.1"
SUCCESS, UNINITIALIZED, INVALID, NOT_SUPPORTED, NO_PERMISSION = 0, 1, 2, 3, 4
NOT_FOUND, INSUFFICIENT_SIZE, LOST, IN_USE, NO_ROOM, VERSION = 6, 7, 15, 19, 23, 25
NONE = 0xFFFFFFFF


class Placement(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint), ("size", ctypes.c_uint)]


class GpuInstanceInfo(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_void_p),
        ("id", ctypes.c_uint),
        ("profile_id", ctypes.c_uint),
        ("placement", Placement),
    ]


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64)]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_uint64),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Event(ctypes.Structure):
    _fields_ = [
        ("device", ctypes.c_void_p),
        ("type", ctypes.c_uint64),
        ("data", ctypes.c_uint64),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Refused(Exception):
    """A call that did not succeed, with its code."""

    def __init__(self, name, code):
        self.code = code
        super().__init__(f"{name}: {code}")


class Nvml:
    """The library between nvmlInit and nvmlShutdown; `call` raises, `code` does not."""

    def __init__(self):
        self.library = ctypes.CDLL(str(LIBRARY))

    def __enter__(self):
        self.call("nvmlInit_v2")
        return self

    def __exit__(self, *_):
        self.call("nvmlShutdown")

    def code(self, name, *arguments):
        return getattr(self.library, name)(*arguments)

    def call(self, name, *arguments):
        code = self.code(name, *arguments)
        if code:
            raise Refused(name, code)

    def number(self, name, *arguments, kind=ctypes.c_uint):
        value = kind()
        self.call(name, *arguments, ctypes.byref(value))
        return value.value

    def handle(self, name, *arguments):
        return ctypes.c_void_p(self.number(name, *arguments, kind=ctypes.c_void_p))

    def text(self, name, *arguments, room=96):
        buffer = ctypes.create_string_buffer(room)
        self.call(name, *arguments, buffer, room)
        return buffer.value.decode()

    def gpu(self, index=0):
        return self.handle("nvmlDeviceGetHandleByIndex_v2", index)

    def set_mig(self, gpu, mode):
        return self.number("nvmlDeviceSetMigMode", gpu, mode, kind=ctypes.c_int)

    def memory(self, gpu):
        found = Memory()
        self.call("nvmlDeviceGetMemoryInfo", gpu, ctypes.byref(found))
        return found

    def processes(self, gpu):
        found, count = (Process * 64)(), ctypes.c_uint(64)
        self.call("nvmlDeviceGetComputeRunningProcesses_v3", gpu, ctypes.byref(count), found)
        return list(found[: count.value])

    def info(self, instance):
        found = GpuInstanceInfo()
        self.call("nvmlGpuInstanceGetInfo", instance, ctypes.byref(found))
        return found

    def create(self, gpu, profile_id, start=None):
        if start is None:
            return self.handle("nvmlDeviceCreateGpuInstance", gpu, profile_id)
        place = Placement(start, self.size_of(gpu, profile_id))
        name = "nvmlDeviceCreateGpuInstanceWithPlacement"
        return self.handle(name, gpu, profile_id, ctypes.byref(place))

    def size_of(self, gpu, profile_id):
        places, count = (Placement * 8)(), ctypes.c_uint(8)
        name = "nvmlDeviceGetGpuInstancePossiblePlacements_v2"
        self.call(name, gpu, profile_id, places, ctypes.byref(count))
        return places[0].size

    def instances(self, gpu, profile_id):
        found, count = (ctypes.c_void_p * 8)(), ctypes.c_uint(8)
        self.call("nvmlDeviceGetGpuInstances", gpu, profile_id, found, ctypes.byref(count))
        return [ctypes.c_void_p(found[i]) for i in range(count.value)]
