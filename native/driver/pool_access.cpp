// Which devices may use the memory of a pool: its own, and those that the pool was told of.
// Contexts that enabled each other as peers say nothing of pools, as on the card.
#include "pools.h"

#include <algorithm>

#include "driver_api.h"
#include "physical.h"

namespace va {
namespace {

// The device in whose part of the arena an address lies; what is mapped there is looked up.
bool lies_elsewhere(const Device &device, uint64_t address) {
  return in_arena(address) &&
         static_cast<int>((address - VA_ARENA_BASE) >> VA_DEVICE_SHIFT) != device.ordinal;
}

// The access that a region has of a pool; the pool is locked.
int access_of(const Pool &pool, int region) {
  const auto it = pool.access.find(region);
  return it != pool.access.end()              ? it->second
         : region == region_of_pool(pool)     ? CU_MEM_ACCESS_READWRITE
                                              : CU_MEM_ACCESS_NONE;
}

} // namespace

void require_granted(const Device &device, uint64_t address) {
  Block block;
  if (!lies_elsewhere(device, address) || !find_block(address, &block) || !block.pool)
    return;
  Pool *const pool = driver().pools.find(block.pool);
  // Memory of pools that lie with the host is anybody's here: no copy shows a difference.
  if (!pool || region_of_pool(*pool) == VA_HOST_DEVICE)
    return;
  const std::lock_guard<std::mutex> lock(pool->mutex);
  if (access_of(*pool, device.ordinal) != CU_MEM_ACCESS_READWRITE)
    fail(CUDA_ERROR_INVALID_VALUE);
}

namespace api {

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count) {
  Pool &pool = live_pool(handle);
  const bool on_device = region_of_pool(pool) != VA_HOST_DEVICE;
  for (size_t i = 0; i < count; ++i) {
    const CUmemAccessDesc &wanted = access[i];
    if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    const int device = device_of(wanted.location.id).ordinal;
    if (wanted.flags != CU_MEM_ACCESS_NONE && wanted.flags != CU_MEM_ACCESS_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    if (on_device && device == pool.device && wanted.flags != CU_MEM_ACCESS_READWRITE)
      return CUDA_ERROR_INVALID_DEVICE; // its own device always may
  }
  const std::lock_guard<std::mutex> lock(pool.mutex);
  for (size_t i = 0; i < count; ++i)
    pool.access[access[i].location.id] = access[i].flags;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool handle,
                            CUmemLocation *location) {
  Pool &pool = live_pool(handle);
  const int region = va::region_of(*location);
  const std::lock_guard<std::mutex> lock(pool.mutex);
  *flags = access_of(pool, region);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
