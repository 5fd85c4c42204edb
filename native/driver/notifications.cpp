// Notifications of a device: who listens.  The one event there is, that a process took more memory
// than it was allotted, never comes to a whole A100.
#include "driver_api.h"
#include "objects.h"

namespace va {
namespace {

struct Listener {
  int device = 0;
};

using ListenerTable = HandleTable<Listener, CUasyncCallbackHandle, Kind::kListener>;

ListenerTable &listeners() {
  static ListenerTable *const instance = new ListenerTable;
  return *instance;
}

} // namespace

namespace api {

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback call, void *,
                                           CUasyncCallbackHandle *out) {
  const int ordinal = device_of(device).ordinal;
  if (!call)
    return CUDA_ERROR_INVALID_VALUE;
  *out = listeners().add(new Listener{ordinal});
  return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle handle) {
  const int ordinal = device_of(device).ordinal;
  const Listener *const known = listeners().find(handle);
  if (!known || known->device != ordinal)
    return CUDA_ERROR_INVALID_VALUE;
  delete listeners().remove(handle);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
