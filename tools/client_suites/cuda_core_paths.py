"""The ways of cuda.core that end at a runtime of NVIDIA's, led to the driver instead.

`Device.sync()` and `Device.pci_bus_id` ask a runtime that is linked into cuda.bindings and works
with NVIDIA's driver only (docs/clients.md), and nearly every test calls one of them, if only to
clean up.  They are answered by the driver; all else of the runtime fails as for anyone.
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
