// Execution contexts: a device's own, and green ones with part of its SMs.  And what else is asked
// about devices and streams beside their work: messages, notifications, attributes.
#include <cstring>

#include "handles.h"
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
  enter();
  return from_driver(cuFlushGPUDirectRDMAWrites(target, scope));
}

cudaError_t cudaDeviceRegisterAsyncNotification(int device, cudaAsyncCallback call, void *data,
                                                cudaAsyncCallbackHandle_t *handle) {
  enter();
  return from_driver(cuDeviceRegisterAsyncNotification(device, call, data, handle));
}

cudaError_t cudaDeviceUnregisterAsyncNotification(int device, cudaAsyncCallbackHandle_t handle) {
  enter();
  return from_driver(cuDeviceUnregisterAsyncNotification(device, handle));
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  enter();
  return from_driver(cuStreamCopyAttributes(stream(to), stream(from)));
}

cudaError_t cudaStreamGetAttribute(cudaStream_t handle, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue *value) {
  enter();
  CUstreamAttrValue found;
  check(cuStreamGetAttribute(stream(handle), attribute, &found));
  std::memcpy(value, &found, sizeof found);
  return cudaSuccess;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t handle, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue *value) {
  enter();
  CUstreamAttrValue wanted;
  std::memcpy(&wanted, value, sizeof wanted);
  return from_driver(cuStreamSetAttribute(stream(handle), attribute, &wanted));
}

#if VA100_CUDART_MAJOR >= 13
namespace {

bool is_green(cudaExecutionContext_t handle) {
  return kind_of(handle) == Kind::kGreenContext;
}

CUgreenCtx green(cudaExecutionContext_t handle) { return reinterpret_cast<CUgreenCtx>(handle); }

// The driver's context by either kind of handle.
CUcontext context_of(cudaExecutionContext_t handle) {
  if (!is_green(handle))
    return reinterpret_cast<CUcontext>(handle);
  CUcontext context = nullptr;
  check(cuCtxFromGreenCtx(&context, green(handle)));
  return context;
}

} // namespace

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
                                                const cudaAtomicOperation *operations,
                                                unsigned int count, int device) {
  enter();
  return from_driver(cuDeviceGetHostAtomicCapabilities(capabilities, operations, count, device));
}

cudaError_t cudaDeviceGetDevResource(int device, cudaDevResource *resource,
                                     cudaDevResourceType type) {
  enter();
  return from_driver(cuDeviceGetDevResource(device, resource, type));
}

cudaError_t cudaDevSmResourceSplitByCount(cudaDevResource *result, unsigned int *groups,
                                          const cudaDevResource *input, cudaDevResource *remainder,
                                          unsigned int flags, unsigned int least) {
  enter();
  return from_driver(cuDevSmResourceSplitByCount(result, groups, input, remainder, flags, least));
}

cudaError_t cudaDevSmResourceSplit(cudaDevResource *result, unsigned int groups,
                                   const cudaDevResource *input, cudaDevResource *remainder,
                                   unsigned int flags, cudaDevSmResourceGroupParams *wanted) {
  enter();
  return from_driver(cuDevSmResourceSplit(result, groups, input, remainder, flags, wanted));
}

cudaError_t cudaDevResourceGenerateDesc(cudaDevResourceDesc_t *descriptor,
                                        cudaDevResource *resources, unsigned int count) {
  enter();
  return from_driver(cuDevResourceGenerateDesc(descriptor, resources, count));
}

cudaError_t cudaGreenCtxCreate(cudaExecutionContext_t *out, cudaDevResourceDesc_t descriptor,
                               int device, unsigned int flags) {
  enter();
  return from_driver(
      cuGreenCtxCreate(reinterpret_cast<CUgreenCtx *>(out), descriptor, device, flags));
}

cudaError_t cudaDeviceGetExecutionCtx(cudaExecutionContext_t *out, int device) {
  enter();
  CUcontext primary = nullptr;
  check(cuDevicePrimaryCtxRetain(&primary, device));
  check(cuDevicePrimaryCtxRelease_v2(device)); // it lives as long as the runtime holds it
  *out = reinterpret_cast<cudaExecutionContext_t>(primary);
  return cudaSuccess;
}

cudaError_t cudaExecutionCtxDestroy(cudaExecutionContext_t handle) {
  enter();
  if (!is_green(handle))
    return cudaErrorInvalidValue;
  return from_driver(cuGreenCtxDestroy(green(handle)));
}

cudaError_t cudaExecutionCtxGetDevResource(cudaExecutionContext_t handle,
                                           cudaDevResource *resource, cudaDevResourceType type) {
  enter();
  return from_driver(cuCtxGetDevResource(context_of(handle), resource, type));
}

cudaError_t cudaExecutionCtxGetDevice(int *device, cudaExecutionContext_t handle) {
  enter();
  return from_driver(cuCtxGetDevice_v2(device, context_of(handle)));
}

cudaError_t cudaExecutionCtxGetId(cudaExecutionContext_t handle, uint64_t *id) {
  enter();
  return from_driver(is_green(handle) ? cuGreenCtxGetId(green(handle), id)
                                      : cuCtxGetId(context_of(handle), id));
}

cudaError_t cudaExecutionCtxRecordEvent(cudaExecutionContext_t handle, cudaEvent_t event) {
  enter();
  return from_driver(cuCtxRecordEvent(context_of(handle), event));
}

cudaError_t cudaExecutionCtxWaitEvent(cudaExecutionContext_t handle, cudaEvent_t event) {
  enter();
  return from_driver(cuCtxWaitEvent(context_of(handle), event));
}

cudaError_t cudaExecutionCtxSynchronize(cudaExecutionContext_t handle) {
  enter();
  return from_driver(cuCtxSynchronize_v2(context_of(handle)));
}

cudaError_t cudaExecutionCtxStreamCreate(cudaStream_t *out, cudaExecutionContext_t handle,
                                         unsigned int flags, int priority) {
  enter();
  if (is_green(handle))
    return from_driver(cuGreenCtxStreamCreate(out, green(handle), flags, priority));
  check(cuCtxPushCurrent_v2(context_of(handle)));
  const CUresult result = cuStreamCreateWithPriority(out, flags, priority);
  check(cuCtxPopCurrent_v2(nullptr));
  return from_driver(result);
}

cudaError_t cudaStreamGetDevResource(cudaStream_t handle, cudaDevResource *resource,
                                     cudaDevResourceType type) {
  enter();
  return from_driver(cuStreamGetDevResource(stream(handle), resource, type));
}

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t call, void *data,
                                     cudaLogsCallbackHandle *handle) {
  return from_driver(cuLogsRegisterCallback(call, data, handle));
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle handle) {
  return from_driver(cuLogsUnregisterCallback(handle));
}

cudaError_t cudaLogsCurrent(cudaLogIterator *iterator, unsigned int flags) {
  return from_driver(cuLogsCurrent(iterator, flags));
}

cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *path, unsigned int flags) {
  return from_driver(cuLogsDumpToFile(iterator, path, flags));
}

cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size,
                                 unsigned int flags) {
  return from_driver(cuLogsDumpToMemory(iterator, buffer, size, flags));
}
#endif

} // namespace va::rt
