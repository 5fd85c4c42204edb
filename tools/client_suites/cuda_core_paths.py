"""The two ways of cuda.core that end at machine code of NVIDIA's, led to the driver instead.

`Device.sync()` and `Device.pci_bus_id` ask a runtime that is linked into cuda.bindings and works
with NVIDIA's driver only (docs/clients.md), and nearly every test calls one of them, if only to
clean up.  They are answered by the driver; all else of the runtime fails as for anyone.  The
`Linker` of versions before 1.2 asks nvJitLink for a version before it falls back on the driver,
which ours does not have; the fall-back is chosen for it, as later versions do by themselves.
"""

from __future__ import annotations

from cuda.bindings import driver, runtime
from cuda.core import _device, _linker


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
if hasattr(_linker, "_use_nvjitlink_backend"):
    _linker._use_nvjitlink_backend = False
    _linker._driver = driver
