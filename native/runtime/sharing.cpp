// Memory, pools and events of one process in another.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
CUdeviceptr *out(void **pointer) { return reinterpret_cast<CUdeviceptr *>(pointer); }

} // namespace

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
  enter();
  return from_driver(cuIpcGetMemHandle(handle, address(pointer)));
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  enter();
  return from_driver(cuIpcOpenMemHandle_v2(out(pointer), handle, flags));
}

cudaError_t cudaIpcCloseMemHandle(void *pointer) {
  enter();
  return from_driver(cuIpcCloseMemHandle(address(pointer)));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
  enter();
  return from_driver(cuIpcGetEventHandle(handle, event));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle) {
  enter();
  return from_driver(cuIpcOpenEventHandle(event, handle));
}

cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                               cudaMemAllocationHandleType type,
                                               unsigned int flags) {
  enter();
  return from_driver(cuMemPoolExportToShareableHandle(handle, pool, type, flags));
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                 cudaMemAllocationHandleType type,
                                                 unsigned int flags) {
  enter();
  return from_driver(cuMemPoolImportFromShareableHandle(pool, handle, type, flags));
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData *data, void *pointer) {
  enter();
  return from_driver(cuMemPoolExportPointer(data, address(pointer)));
}

cudaError_t cudaMemPoolImportPointer(void **pointer, cudaMemPool_t pool,
                                     cudaMemPoolPtrExportData *data) {
  enter();
  return from_driver(cuMemPoolImportPointer(out(pointer), pool, data));
}

#if VA100_CUDART_MAJOR >= 13
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, cudaMemLocation *location,
                                     cudaMemAllocationType type) {
  enter();
  return from_driver(cuMemGetDefaultMemPool(pool, location, type));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, cudaMemLocation *location,
                              cudaMemAllocationType type) {
  enter();
  return from_driver(cuMemGetMemPool(pool, location, type));
}

cudaError_t cudaMemSetMemPool(cudaMemLocation *location, cudaMemAllocationType type,
                              cudaMemPool_t pool) {
  enter();
  return from_driver(cuMemSetMemPool(location, type, pool));
}
#endif

} // namespace va::rt
