// Memory of the runtime: allocation, registration, pools, what a pointer is.
#include <cstring>

#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
CUdeviceptr *out(void **pointer) { return reinterpret_cast<CUdeviceptr *>(pointer); }

} // namespace

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  enter();
  if (!bytes) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return from_driver(cuMemAlloc_v2(out(pointer), bytes));
}

cudaError_t cudaFree(void *pointer) {
  enter();
  return from_driver(cuMemFree_v2(address(pointer)));
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  enter();
  if (!width || !height) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  return from_driver(cuMemAllocPitch_v2(out(pointer), pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *pitched, cudaExtent extent) {
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width,
                         extent.height * extent.depth);
}

cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags) {
  enter();
  return from_driver(cuMemAllocManaged(out(pointer), bytes, flags));
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
  enter();
  if (!bytes) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return from_driver(cuMemAllocHost_v2(pointer, bytes));
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  enter();
  return from_driver(cuMemHostAlloc(pointer, bytes, flags));
}

cudaError_t cudaFreeHost(void *pointer) {
  enter();
  return from_driver(cuMemFreeHost(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  enter();
  return from_driver(cuMemHostRegister_v2(pointer, bytes, flags));
}

cudaError_t cudaHostUnregister(void *pointer) {
  enter();
  return from_driver(cuMemHostUnregister(pointer));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags) {
  enter();
  return from_driver(cuMemHostGetDevicePointer_v2(out(device), host, flags));
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host) {
  enter();
  return from_driver(cuMemHostGetFlags(flags, host));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  enter();
  return from_driver(cuMemGetInfo_v2(free_bytes, total));
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  enum { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 };
  enter();
  std::memset(attributes, 0, sizeof *attributes);
  unsigned type = 0, managed = 0;
  int device = -2;
  CUpointer_attribute wanted[] = {2, 8, 9};
  void *values[] = {&type, &managed, &device};
  check(cuPointerGetAttributes(3, wanted, values, address(pointer)));
  void *const plain = const_cast<void *>(pointer);
  attributes->device = device;
  attributes->type = managed                       ? kManaged
                     : type == CU_MEMORYTYPE_HOST   ? kHost
                     : type == CU_MEMORYTYPE_DEVICE ? kDevice
                                                    : kUnregistered;
  if (attributes->type != kUnregistered)
    attributes->device_pointer = plain;
  if (attributes->type != kDevice)
    attributes->host_pointer = plain;
  return cudaSuccess;
}

#if VA100_CUDART_MAJOR < 13
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice, int device) {
  enter();
  return from_driver(cuMemAdvise(address(pointer), bytes, advice, device));
}

cudaError_t cudaMemAdvise_v2(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                             cudaMemLocation location) {
  enter();
  return from_driver(cuMemAdvise_v2(address(pointer), bytes, advice, location));
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, int device,
                                 cudaStream_t handle) {
  enter();
  return from_driver(cuMemPrefetchAsync(address(pointer), bytes, device, stream(handle)));
}

cudaError_t cudaMemPrefetchAsync_v2(const void *pointer, size_t bytes, cudaMemLocation location,
                                    unsigned int flags, cudaStream_t handle) {
  enter();
  return from_driver(
      cuMemPrefetchAsync_v2(address(pointer), bytes, location, flags, stream(handle)));
}
#else
cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  enter();
  return from_driver(cuMemAdvise_v2(address(pointer), bytes, advice, location));
}

cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t bytes, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t handle) {
  enter();
  return from_driver(
      cuMemPrefetchAsync_v2(address(pointer), bytes, location, flags, stream(handle)));
}
#endif

// ------------------------------------------------------------------ pools

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
  enter();
  return from_driver(cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device) {
  enter();
  return from_driver(cuDeviceGetMemPool(pool, device));
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  enter();
  return from_driver(cuDeviceSetMemPool(device, pool));
}

cudaError_t cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t handle) {
  enter();
  return from_driver(cuMemAllocAsync(out(pointer), bytes, stream(handle)));
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t handle) {
  enter();
  return from_driver(cuMemAllocFromPoolAsync(out(pointer), bytes, pool, stream(handle)));
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle) {
  enter();
  return from_driver(cuMemFreeAsync(address(pointer), stream(handle)));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *properties) {
  enter();
  return from_driver(cuMemPoolCreate(pool, properties));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  enter();
  return from_driver(cuMemPoolDestroy(pool));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
  enter();
  return from_driver(cuMemPoolSetAttribute(pool, attribute, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value) {
  enter();
  return from_driver(cuMemPoolGetAttribute(pool, attribute, value));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  enter();
  return from_driver(cuMemPoolTrimTo(pool, bytes));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc *access,
                                 size_t count) {
  enter();
  return from_driver(cuMemPoolSetAccess(pool, access, count));
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 cudaMemLocation *location) {
  enter();
  return from_driver(cuMemPoolGetAccess(flags, pool, location));
}

} // namespace va::rt
