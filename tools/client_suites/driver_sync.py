"""Answers for `Device.sync()` and `Device.pci_bus_id` of cuda.core from the driver.

cuda.core asks a runtime for these two that is linked into it and works with NVIDIA's driver only
(docs/clients.md), and nearly every test calls one of them, if only to clean up.  The calls are
replaced where cuda.core looks them up; all else of the runtime stays, and fails as for anyone.
"""

from __future__ import annotations

from cuda.bindings import driver, runtime
from cuda.core import _device


class RuntimeByDriver:
    """The module `cuda.bindings.runtime`, but for two calls."""

    def __getattr__(self, name):
        return getattr(runtime, name)

    def cudaDeviceSynchronize(self):
        (status,) = driver.cuCtxSynchronize()
        return (_as_runtime(status),)

    def cudaDeviceGetPCIBusId(self, length, device):
        status, bus_id = driver.cuDeviceGetPCIBusId(length, device)
        return _as_runtime(status), bus_id


def _as_runtime(status):
    """The runtime's error of the same number, which is what it is in most cases."""
    return runtime.cudaError_t(int(status))


_device.runtime = RuntimeByDriver()
