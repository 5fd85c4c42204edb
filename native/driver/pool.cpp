// Memory pools.  Work runs in order, so what a stream frees is free at once.
#include <memory>

#include "blocks.h"
#include "driver_api.h"
#include "va100/check.h"

namespace va {
namespace {

enum PoolAttribute {
  kReuseFirst = 1,
  kReuseLast = 3,
  kReleaseThreshold = 4,
  kReservedCurrent = 5,
  kReservedHigh = 6,
  kUsedCurrent = 7,
  kUsedHigh = 8
};

CUresult allocate_from(CUdeviceptr *address, size_t bytes, Pool &pool, CUstream handle) {
  healthy_context();
  Stream &stream = stream_of(handle);
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  Context &context = *stream.context;
  if (pool.device == context.device->ordinal) {
    *address = allocate(context, bytes, Origin::kDevice, 0, pool.handle);
    return CUDA_SUCCESS;
  }
  Context &other = *driver().devices[static_cast<size_t>(pool.device)]->primary;
  *address = allocate(other, bytes, Origin::kDevice, 0, pool.handle);
  return CUDA_SUCCESS;
}

int device_of_location(const CUmemLocation &location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    fail(CUDA_ERROR_NOT_SUPPORTED);
  return device_of(location.id).ordinal;
}

} // namespace

namespace api {

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  *pool = device_of(device).default_pool->handle;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  *pool = device_of(device).pool.load()->handle;
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  Pool &pool = pool_of(handle);
  Device &d = device_of(device);
  if (pool.device != d.ordinal)
    return CUDA_ERROR_INVALID_VALUE;
  d.pool = &pool;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType) {
  return cuDeviceGetDefaultMemPool(pool, device_of_location(*location));
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType) {
  return cuDeviceGetMemPool(pool, device_of_location(*location));
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType, CUmemoryPool pool) {
  return cuDeviceSetMemPool(device_of_location(*location), pool);
}

CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *properties) {
  constexpr int kPinned = 1;
  if (properties->alloc_type != kPinned)
    return CUDA_ERROR_INVALID_VALUE;
  if (properties->handle_types)
    return CUDA_ERROR_NOT_SUPPORTED; // sharing between processes
  auto pool = std::make_unique<Pool>();
  pool->device = device_of_location(properties->location);
  pool->handle = started().pools.add(pool.get());
  *handle = pool.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  Pool &pool = pool_of(handle);
  if (pool.built_in)
    return CUDA_ERROR_INVALID_VALUE;
  Device &device = device_of(pool.device);
  if (device.pool.load() == &pool)
    device.pool = device.default_pool;
  delete started().pools.remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  Pool &pool = pool_of(handle);
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= kReuseFirst && attribute <= kReuseLast)
    pool.reuse[static_cast<size_t>(attribute)] = *static_cast<int *>(value);
  else if (attribute == kReleaseThreshold)
    pool.release_threshold = *static_cast<uint64_t *>(value);
  else if ((attribute == kUsedHigh || attribute == kReservedHigh) &&
           *static_cast<uint64_t *>(value) == 0)
    pool.used_high = pool.used;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  const Pool &pool = pool_of(handle);
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    *static_cast<int *>(value) = pool.reuse[static_cast<size_t>(attribute)];
    return CUDA_SUCCESS;
  }
  uint64_t *const number = static_cast<uint64_t *>(value);
  switch (attribute) {
  case kReleaseThreshold:
    *number = pool.release_threshold;
    return CUDA_SUCCESS;
  case kReservedCurrent:
  case kUsedCurrent:
    *number = pool.used;
    return CUDA_SUCCESS;
  case kReservedHigh:
  case kUsedHigh:
    *number = pool.used_high;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  pool_of(handle); // nothing is held back
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count) {
  Pool &pool = pool_of(handle);
  for (size_t i = 0; i < count; ++i)
    if (device_of_location(access[i].location) == pool.device && access[i].flags != 3)
      return CUDA_ERROR_INVALID_DEVICE; // its own device always may
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                            CUmemLocation *location) {
  pool_of(handle);
  device_of_location(*location);
  *flags = 3; // every device reaches every other one
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  Pool *const pool = stream_of(stream).context->device->pool.load();
  return allocate_from(address, bytes, *pool, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return allocate_from(address, bytes, pool_of(pool), stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  healthy_context();
  stream_of(stream);
  if (release(address, false))
    return CUDA_SUCCESS;
  va_check_bad_free(address);
  return CUDA_ERROR_INVALID_VALUE;
}

} // namespace api
} // namespace va
