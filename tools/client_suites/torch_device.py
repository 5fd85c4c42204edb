"""A pytest plugin: lets tests that ask PyTorch for "cuda" run with a PyTorch built for CPUs.

PyTorch's own GPU kernels are machine code, so its operations run on the host; Triton's kernels run
on the virtual GPU, and what they read and write is the tensors' own memory, which comes from the
driver (`torch_allocator.cpp`).  An address that is out of a tensor is found as on a GPU.  A launch
is waited for, since the host's operations know nothing of streams.  Nothing here knows a test.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode
from triton.backends.nvidia.driver import CudaLauncher

_ATTRIBUTES = {
    "multi_processor_count": 16,
    "major": 75,
    "minor": 76,
    "warp_size": 10,
    "max_threads_per_multi_processor": 39,
    "regs_per_multiprocessor": 82,
    "shared_memory_per_multiprocessor": 81,
    "shared_memory_per_block_optin": 97,
    "L2_cache_size": 38,
}


class HostInstead(TorchFunctionMode):
    """Every "cuda" given to PyTorch is the host; what would be a copy stays one."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = [*args, *(kwargs or {}).values()]
        args = tuple(_on_host(a) for a in args)
        kwargs = {name: _on_host(value) for name, value in (kwargs or {}).items()}
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            return args[0].clone()
        result = func(*args, **kwargs)
        if func is torch.Tensor.to and result is args[0] and any(map(_is_device, given)):
            return result.clone()
        return result


def _is_device(value):
    return isinstance(value, torch.device) or (
        isinstance(value, str) and value.partition(":")[0] in ("cuda", "cpu")
    )


def _on_host(value):
    if _is_device(value) and torch.device(value).type == "cuda":
        return torch.device("cpu")
    return value


class Driver:
    """The few driver calls that stand for what PyTorch would say of a GPU."""

    def __init__(self):
        self._library = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self._call("cuCtxSetCurrent", self.context)

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"CUDA error: {text.value.decode()} ({name})")

    def synchronize(self):
        self._call("cuCtxSynchronize")

    def properties(self):
        name, total = ctypes.create_string_buffer(256), ctypes.c_size_t()
        self._call("cuDeviceGetName", name, 256, 0)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(total), 0)
        numbers = {key: self._attribute(number) for key, number in _ATTRIBUTES.items()}
        return SimpleNamespace(name=name.value.decode(), total_memory=total.value, **numbers)

    def _attribute(self, number):
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value


def _use_managed_memory(context):
    """Build the allocator against the PyTorch that is installed, and set it."""
    home = Path(torch.__file__).parent
    source = Path(__file__).with_name("torch_allocator.cpp")
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch, "torch_allocator.so")
        flags = ["-shared", "-fPIC", "-O1", "-std=c++20", f"-I{home}/include"]
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
        link = [f"-L{home}/lib", f"-Wl,-rpath,{home}/lib", "-lc10", "-ldl"]
        subprocess.run(["g++", *flags, abi, str(source), "-o", str(built), *link], check=True)
        ctypes.CDLL(str(built)).use_managed_memory(context)


def _answer_for_gpus(driver):
    """Put answers of the driver where PyTorch would have asked its own."""
    properties = functools.cache(driver.properties)
    answers = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda _device: None,
        "synchronize": lambda _device=None: driver.synchronize(),
        "get_device_capability": lambda _device=None: (properties().major, properties().minor),
        "get_device_name": lambda _device=None: properties().name,
        "get_device_properties": lambda _device=None: properties(),
        "current_stream": lambda _device=None: SimpleNamespace(cuda_stream=0),
        "device": lambda _device: contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    torch._C._cuda_getCurrentRawStream = lambda _device: 0


def _wait_for_launches(driver):
    launch = CudaLauncher.__call__

    @functools.wraps(launch)
    def launch_and_wait(*arguments, **named):
        launch(*arguments, **named)
        driver.synchronize()

    CudaLauncher.__call__ = launch_and_wait


def pytest_configure():
    """Set all of it up before the first test module is read."""
    driver = Driver()
    _use_managed_memory(driver.context)
    _answer_for_gpus(driver)
    _wait_for_launches(driver)
    HostInstead().__enter__()
