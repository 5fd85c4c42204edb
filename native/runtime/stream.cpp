// Streams and events of the runtime.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {

cudaError_t cudaStreamCreate(cudaStream_t *handle) {
  enter();
  return from_driver(cuStreamCreate(handle, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned int flags) {
  enter();
  return from_driver(cuStreamCreate(handle, flags));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *handle, unsigned int flags, int priority) {
  enter();
  return from_driver(cuStreamCreateWithPriority(handle, flags, priority));
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  enter();
  return from_driver(cuStreamDestroy_v2(handle));
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  enter();
  return from_driver(cuStreamSynchronize(stream(handle)));
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  enter();
  return from_driver(cuStreamQuery(stream(handle)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
  enter();
  return from_driver(cuStreamWaitEvent(stream(handle), event, flags));
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t call, void *data,
                                  unsigned int flags) {
  enter();
  // The two callbacks differ in the name of their result type alone.
  return from_driver(cuStreamAddCallback(
      stream(handle), reinterpret_cast<CUstreamCallback>(reinterpret_cast<void *>(call)), data,
      flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int *flags) {
  enter();
  return from_driver(cuStreamGetFlags(stream(handle), flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority) {
  enter();
  return from_driver(cuStreamGetPriority(stream(handle), priority));
}

cudaError_t cudaStreamGetId(cudaStream_t handle, uint64_t *id) {
  enter();
  return from_driver(cuStreamGetId(stream(handle), id));
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device) {
  enter();
  return from_driver(cuStreamGetDevice(stream(handle), device));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status) {
  enter();
  return from_driver(cuStreamIsCapturing(stream(handle), status));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode) {
  return from_driver(cuThreadExchangeStreamCaptureMode(mode));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t handle, void *pointer, size_t bytes,
                                     unsigned int flags) {
  enter();
  return from_driver(cuStreamAttachMemAsync(
      stream(handle), reinterpret_cast<CUdeviceptr>(pointer), bytes, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  enter();
  return from_driver(cuEventCreate(event, 0));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  enter();
  return from_driver(cuEventCreate(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  enter();
  return from_driver(cuEventDestroy_v2(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  enter();
  return from_driver(cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  enter();
  return from_driver(cuEventSynchronize(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  enter();
  return from_driver(cuEventRecord(event, stream(handle)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned int flags) {
  enter();
  return from_driver(cuEventRecordWithFlags(event, stream(handle), flags));
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  enter();
  return from_driver(cuEventElapsedTime(milliseconds, start, end));
}

#if VA100_CUDART_MAJOR < 13
cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  enter();
  return from_driver(cuEventElapsedTime_v2(milliseconds, start, end));
}
#endif

} // namespace va::rt
