// Memory pools: made, shared between processes, counted.  Work runs in order, so what a stream
// frees is free at once.
//
// A pool holds more than it gives, as on the card; here that is a count, which keeps others from
// the device's memory until the pool lets go.
#include "pools.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "capture.h"
#include "driver_api.h"
#include "physical.h"
#include "va100/check.h"

namespace va {
namespace {

constexpr uint64_t kChunk = 32ULL << 20; // what a pool grows by
constexpr uint64_t kUnit = 512;          // what it hands out

enum PoolAttribute {
  kReuseFirst = 1,
  kReuseLast = 3,
  kReleaseThreshold = 4,
  kReservedCurrent = 5,
  kReservedHigh = 6,
  kUsedCurrent = 7,
  kUsedHigh = 8,
  kAllocationType = 9,
  kExportTypes = 10,
  kLocationId = 11,
  kLocationType = 12,
  kMaxSize = 13,
  kDecompress = 14,
  kLocalityDomain = 15
};

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Hold so many bytes: at least what is used.  The arena counts what is used by itself.
void hold(Pool &pool, uint64_t bytes) {
  bytes = std::max(bytes, pool.used);
  const uint64_t before = pool.slack, wanted = bytes - pool.used;
  if (wanted > before && va_arena_charge(region_of_pool(pool), wanted - before))
    bytes = pool.used + before;
  else if (wanted < before)
    va_arena_discharge(region_of_pool(pool), before - wanted);
  pool.reserved = bytes;
  pool.slack = bytes - pool.used;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
}

struct Pools {
  std::mutex mutex;
  std::set<CUmemoryPool> with_slack;
  std::vector<Pool *> spare;
  std::atomic<size_t> count{0};
};

Pools &pools() {
  static Pools *const instance = new Pools;
  return *instance;
}

// Keep the list of pools that have slack; the pool is locked.
void note_slack(Pool &pool) {
  const bool has = pool.slack != 0;
  if (has == pool.listed)
    return;
  pool.listed = has;
  Pools &all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (has)
    all.with_slack.insert(pool.handle);
  else
    all.with_slack.erase(pool.handle);
  all.count = all.with_slack.size();
}

void shrink(Pool &pool, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(pool.mutex);
  hold(pool, std::min(pool.reserved, bytes));
  note_slack(pool);
}

// Give back what is held past the threshold, but for the rest of a chunk that is in use.
void settle(Pool &pool) {
  const std::lock_guard<std::mutex> lock(pool.mutex);
  if (pool.reserved <= pool.release_threshold)
    return;
  const uint64_t kept = std::max(pool.release_threshold, round_up(pool.used, kChunk));
  hold(pool, std::min(pool.reserved, kept));
  note_slack(pool);
}

std::set<CUmemoryPool> pools_with_slack() {
  Pools &all = pools();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.with_slack;
}

// A pool without allocations goes.
void bury(Pool &pool) {
  driver().pools.remove(pool.handle);
  {
    const std::lock_guard<std::mutex> lock(pool.mutex);
    hold(pool, 0);
    note_slack(pool);
    static_cast<PoolState &>(pool) = PoolState{};
  }
  const std::lock_guard<std::mutex> lock(pools().mutex);
  pools().spare.push_back(&pool);
}

CUmemoryPool add(const PoolState &state) {
  Pool *pool = nullptr;
  {
    const std::lock_guard<std::mutex> lock(pools().mutex);
    if (!pools().spare.empty()) {
      pool = pools().spare.back();
      pools().spare.pop_back();
    }
  }
  if (!pool)
    pool = new Pool;
  const std::lock_guard<std::mutex> lock(pool->mutex);
  static_cast<PoolState &>(*pool) = state;
  pool->handle = started().pools.add(pool);
  return pool->handle;
}

// A pool's memory belongs to no context in particular, but goes with the one that asked for it.
uint64_t take(Pool &pool, Context &context, uint64_t bytes) {
  if (pool.alloc_type == CU_MEM_ALLOCATION_TYPE_MANAGED)
    return allocate(context, bytes, Origin::kManaged, 1, pool.handle);
  if (region_of_pool(pool) == VA_HOST_DEVICE)
    return pool.file ? allocate_shared(context, bytes, pool.file, pool.handle, true)
                     : allocate(context, bytes, Origin::kPinned, 0, pool.handle);
  Device &device = *driver().devices[static_cast<size_t>(pool.device)];
  Context &owner = context.device == &device ? context : *device.primary;
  if (!pool.file)
    return allocate(owner, bytes, Origin::kDevice, 0, pool.handle);
  return allocate_shared(owner, bytes, pool.file, pool.handle, false);
}

// Whose an imported allocation is: a thread without a context may import, too.
Context &context_for(const Pool &pool) {
  return current_handle() ? healthy_context() : *device_of(pool.device).primary;
}

CUresult allocate_from(CUdeviceptr *address, size_t bytes, Pool &pool, CUstream handle) {
  healthy_context();
  Stream &stream = stream_of(handle);
  if (in_capture(stream)) {
    *address = bytes ? capture_alloc(stream, bytes, pool.alloc_type, pool.location) : 0;
    return CUDA_SUCCESS;
  }
  if (pool.imported)
    return CUDA_ERROR_INVALID_VALUE;
  if (!bytes) {
    *address = 0;
    return CUDA_SUCCESS;
  }
  *address = take(pool, *stream.context, bytes);
  return CUDA_SUCCESS;
}

PoolState state_for(const CUmemPoolProps &p) {
  PoolState pool;
  pool.alloc_type = p.alloc_type;
  pool.handle_types = p.handle_types;
  pool.location = p.location;
  pool.max_bytes = p.max_size ? round_up(p.max_size, VA_VIRTUAL_UNIT) : 0;
  if (p.location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    pool.device = device_of(p.location.id).ordinal;
  return pool;
}

void require_properties(const CUmemPoolProps &p) {
  const bool managed = p.alloc_type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  if (p.alloc_type != CU_MEM_ALLOCATION_TYPE_PINNED && !managed)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (p.handle_types & CU_MEM_HANDLE_TYPE_FABRIC)
    fail(CUDA_ERROR_NOT_SUPPORTED);
  if (p.handle_types & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || p.security_attributes)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (p.usage)
    fail(CUDA_ERROR_NOT_SUPPORTED); // decompression in hardware
  if (managed && (p.handle_types || p.max_size))
    fail(CUDA_ERROR_INVALID_VALUE);
  if (managed && p.location.type == 0)
    return;
  if (p.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    fail(CUDA_ERROR_INVALID_VALUE);
  va::region_of(p.location);
}

// The pool a location begins with; those of the host are made when first asked for.
CUmemoryPool default_pool(const CUmemLocation &location, int type) {
  CUmemPoolProps p{};
  p.alloc_type = type;
  p.location = location;
  require_properties(p);
  if (type == CU_MEM_ALLOCATION_TYPE_PINNED && location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    return device_of(location.id).default_pool->handle;
  static std::mutex *const mutex = new std::mutex;
  static auto *const made = new std::map<std::array<int, 3>, CUmemoryPool>;
  const std::lock_guard<std::mutex> lock(*mutex);
  CUmemoryPool &handle = (*made)[{type, location.type, location.id}];
  if (!handle) {
    PoolState pool = state_for(p);
    pool.built_in = true;
    handle = add(pool);
  }
  return handle;
}

// The pool in use at a location that is no device: its default one, or the one that was set.
std::map<std::array<int, 3>, CUmemoryPool> &chosen_pools(std::unique_lock<std::mutex> *lock) {
  static std::mutex *const mutex = new std::mutex;
  static auto *const chosen = new std::map<std::array<int, 3>, CUmemoryPool>;
  *lock = std::unique_lock<std::mutex>(*mutex);
  return *chosen;
}

bool is_device_pool(const CUmemLocation &location, int type) {
  return type == CU_MEM_ALLOCATION_TYPE_PINNED && location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult get_number(const Pool &pool, int attribute, uint64_t *number) {
  switch (attribute) {
  case kReleaseThreshold:
    *number = pool.release_threshold;
    return CUDA_SUCCESS;
  case kReservedCurrent:
    *number = pool.reserved;
    return CUDA_SUCCESS;
  case kUsedCurrent:
    *number = pool.used;
    return CUDA_SUCCESS;
  case kReservedHigh:
    *number = pool.reserved_high;
    return CUDA_SUCCESS;
  case kUsedHigh:
    *number = pool.used_high;
    return CUDA_SUCCESS;
  case kMaxSize:
    *number = pool.max_bytes;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult get_property(const Pool &pool, int attribute, int *value) {
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    *value = pool.reuse[static_cast<size_t>(attribute)];
    return CUDA_SUCCESS;
  }
  switch (attribute) {
  case kAllocationType:
    *value = pool.alloc_type;
    return CUDA_SUCCESS;
  case kExportTypes:
    *value = pool.imported ? CU_MEM_HANDLE_TYPE_NONE : pool.handle_types;
    return CUDA_SUCCESS;
  case kLocationId:
    *value = pool.location.id;
    return CUDA_SUCCESS;
  case kLocationType:
    *value = pool.location.type;
    return CUDA_SUCCESS;
  case kDecompress:
    *value = 0;
    return CUDA_SUCCESS;
  case kLocalityDomain:
    *value = -1;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

} // namespace

int region_of_pool(const PoolState &pool) {
  const bool on_device = pool.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                         pool.alloc_type != CU_MEM_ALLOCATION_TYPE_MANAGED;
  return on_device ? pool.device : VA_HOST_DEVICE;
}

Pool &live_pool(CUmemoryPool handle) {
  Pool &pool = pool_of(handle);
  if (pool.destroyed)
    fail(CUDA_ERROR_INVALID_VALUE);
  return pool;
}

void pool_gives(CUmemoryPool handle, uint64_t bytes) {
  Pool &pool = pool_of(handle);
  const std::lock_guard<std::mutex> lock(pool.mutex);
  ++pool.live;
  if (pool.imported)
    return; // counted where it was made
  bytes = round_up(bytes, kUnit);
  if (pool.max_bytes && pool.used + bytes > pool.max_bytes) {
    --pool.live;
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  // Out of what the pool holds already, which the arena need not count as well.
  const uint64_t held = std::min(pool.slack, bytes);
  va_arena_discharge(region_of_pool(pool), held);
  pool.slack -= held;
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  hold(pool, std::max(pool.reserved, round_up(pool.used, kChunk)));
  note_slack(pool);
}

void pool_takes(CUmemoryPool handle, uint64_t bytes) {
  Pool *const pool = driver().pools.find(handle);
  if (!pool)
    return;
  {
    const std::lock_guard<std::mutex> lock(pool->mutex);
    if (!pool->imported) {
      pool->used -= std::min(pool->used, round_up(bytes, kUnit));
      hold(*pool, pool->reserved);
      note_slack(*pool);
    }
    if (--pool->live || !pool->destroyed)
      return;
  }
  bury(*pool);
}

void settle_pools() {
  if (!pools().count.load(std::memory_order_relaxed))
    return;
  for (const CUmemoryPool handle : pools_with_slack())
    if (Pool *const pool = driver().pools.find(handle))
      settle(*pool);
}

bool empty_pools(int region) {
  bool any = false;
  for (const CUmemoryPool handle : pools_with_slack()) {
    Pool *const pool = driver().pools.find(handle);
    if (!pool || region_of_pool(*pool) != region)
      continue;
    shrink(*pool, 0);
    any = true;
  }
  return any;
}

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
  Pool &pool = live_pool(handle);
  Device &d = device_of(device);
  if (pool.device != d.ordinal || pool.imported || !is_device_pool(pool.location, pool.alloc_type))
    return CUDA_ERROR_INVALID_VALUE;
  d.pool = &pool;
  return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type) {
  started();
  *pool = default_pool(*location, type);
  return CUDA_SUCCESS;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
  started();
  if (is_device_pool(*location, type))
    return cuDeviceGetMemPool(pool, location->id);
  *pool = default_pool(*location, type);
  std::unique_lock<std::mutex> lock;
  const auto &chosen = chosen_pools(&lock);
  const auto it = chosen.find({type, location->type, location->id});
  if (it != chosen.end() && driver().pools.find(it->second))
    *pool = it->second;
  return CUDA_SUCCESS;
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle) {
  const Pool &pool = live_pool(handle);
  if (is_device_pool(*location, type))
    return cuDeviceSetMemPool(location->id, handle);
  default_pool(*location, type);
  if (pool.alloc_type != type || pool.location.type != location->type || pool.imported)
    return CUDA_ERROR_INVALID_VALUE;
  std::unique_lock<std::mutex> lock;
  chosen_pools(&lock)[{type, location->type, location->id}] = handle;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *handle, const CUmemPoolProps *properties) {
  started();
  require_properties(*properties);
  PoolState pool = state_for(*properties);
  if (pool.handle_types)
    pool.file = SharedFile::make("pool:" + std::to_string(region_of_pool(pool)));
  *handle = add(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  Pool &pool = live_pool(handle);
  if (pool.built_in)
    return CUDA_ERROR_INVALID_VALUE;
  Device &device = device_of(pool.device);
  Pool *current = &pool;
  device.pool.compare_exchange_strong(current, device.default_pool);
  {
    const std::lock_guard<std::mutex> lock(pool.mutex);
    pool.destroyed = true;
    if (pool.live)
      return CUDA_SUCCESS; // what remains of it goes with its last allocation
  }
  bury(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  Pool &pool = live_pool(handle);
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(pool.mutex);
  if (attribute >= kReuseFirst && attribute <= kReuseLast) {
    pool.reuse[static_cast<size_t>(attribute)] = *static_cast<int *>(value) != 0;
    return CUDA_SUCCESS;
  }
  if (attribute != kReleaseThreshold && attribute != kUsedHigh && attribute != kReservedHigh)
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t number = *static_cast<uint64_t *>(value);
  if (attribute == kReleaseThreshold)
    pool.release_threshold = number;
  else if (number)
    return CUDA_ERROR_INVALID_VALUE; // marks are reset, not set
  else if (attribute == kUsedHigh)
    pool.used_high = pool.used;
  else
    pool.reserved_high = pool.reserved;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
  Pool &pool = live_pool(handle);
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(pool.mutex);
  const bool is_number = (attribute >= kReleaseThreshold && attribute <= kUsedHigh) ||
                         attribute == kMaxSize;
  return is_number ? get_number(pool, attribute, static_cast<uint64_t *>(value))
                   : get_property(pool, attribute, static_cast<int *>(value));
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t bytes) {
  shrink(live_pool(handle), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle,
                                          CUmemAllocationHandleType type, uint64_t flags) {
  const Pool &pool = live_pool(handle);
  if (!out || flags || !pool.file || pool.imported ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int *>(out) = pool.file->duplicate();
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle,
                                            CUmemAllocationHandleType type, uint64_t flags) {
  started();
  if (type == CU_MEM_HANDLE_TYPE_FABRIC)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  PoolState pool;
  pool.file = SharedFile::adopt(static_cast<int>(reinterpret_cast<intptr_t>(handle)));
  if (!pool.file || std::sscanf(pool.file->name().c_str(), "pool:%d", &pool.device) != 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (pool.device == VA_HOST_DEVICE) {
    pool.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    pool.device = 0;
  } else {
    pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_of(pool.device).ordinal};
  }
  pool.imported = true;
  *out = add(pool);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address) {
  started();
  Block block;
  if (!find_block(address, &block) || !block.file || !block.pool)
    return CUDA_ERROR_INVALID_VALUE;
  std::memset(out, 0, sizeof *out);
  const ExportedPiece piece{kPieceMagic,  block.file->id(), block.id,
                            block.offset, block.bytes,      address - block.base};
  std::memcpy(out->bytes, &piece, sizeof piece);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool handle,
                                CUmemPoolPtrExportData *data) {
  started();
  const Pool &pool = live_pool(handle);
  Context &context = context_for(pool);
  ExportedPiece piece{};
  std::memcpy(&piece, data->bytes, sizeof piece);
  if (!pool.imported || piece.magic != kPieceMagic || piece.file != pool.file->id() ||
      piece.within >= piece.bytes || !pool.file->holds(piece.offset, piece.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  *address = import_shared(context, piece.bytes, pool.file, piece.offset, handle,
                           region_of_pool(pool) == VA_HOST_DEVICE) +
             piece.within;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  Pool *const pool = stream_of(stream).context->device->pool.load();
  return allocate_from(address, bytes, *pool, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return allocate_from(address, bytes, live_pool(pool), stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  healthy_context();
  Stream &where = stream_of(stream);
  if (!address)
    return CUDA_SUCCESS;
  if (in_capture(where)) {
    capture_free(where, address);
    return CUDA_SUCCESS;
  }
  if (release(address, false))
    return CUDA_SUCCESS;
  va_check_bad_free(address);
  return CUDA_ERROR_INVALID_VALUE;
}

} // namespace api
} // namespace va
