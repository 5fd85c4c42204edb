// Memory: device, managed, pinned and registered host; what is known about a pointer.
#include <algorithm>
#include <map>
#include <shared_mutex>
#include <vector>

#include "blocks.h"
#include "driver_api.h"
#include "settings.h"
#include "va100/check.h"

namespace va {
namespace {

constexpr uint64_t kPitchAlign = 512;
constexpr unsigned kHostFlags = 0x0F;

struct Blocks {
  std::shared_mutex mutex;
  std::map<uint64_t, Block> by_base;
  uint64_t serial = 0;
};

Blocks &blocks() {
  static Blocks *const instance = new Blocks;
  return *instance;
}

void add(Block block) {
  Blocks &all = blocks();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  block.id = ++all.serial;
  all.by_base[block.base] = block;
}

void account(const Block &block, bool freed) {
  Pool *const pool = block.pool ? driver().pools.find(block.pool) : nullptr;
  if (!pool)
    return;
  Device &device = *driver().devices[static_cast<size_t>(pool->device)];
  const std::lock_guard<std::mutex> lock(device.mutex);
  if (freed) {
    pool->used -= std::min(pool->used, block.bytes);
  } else {
    pool->used += block.bytes;
    pool->used_high = std::max(pool->used_high, pool->used);
  }
}

CUresult host_allocate(void **pointer, size_t bytes, unsigned flags) {
  Context &context = healthy_context();
  if (!bytes || flags & ~kHostFlags)
    return CUDA_ERROR_INVALID_VALUE;
  *pointer = reinterpret_cast<void *>(allocate(context, bytes, Origin::kPinned, flags));
  return CUDA_SUCCESS;
}

CUresult host_register(void *pointer, size_t bytes, unsigned flags) {
  Context &context = healthy_context();
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  if (!bytes || !base || flags & ~0x1Fu || in_arena(base))
    return CUDA_ERROR_INVALID_VALUE;
  if (va_arena_register_host(base, bytes))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Block block;
  block.base = base;
  block.bytes = bytes;
  block.origin = Origin::kRegistered;
  block.context = context.handle;
  block.device = context.device->ordinal;
  block.flags = flags;
  add(block);
  return CUDA_SUCCESS;
}

bool take(uint64_t base, bool (*wanted)(Origin), Block *out) {
  Blocks &all = blocks();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto it = all.by_base.find(base);
  if (it == all.by_base.end() || !wanted(it->second.origin))
    return false;
  *out = it->second;
  all.by_base.erase(it);
  return true;
}

bool is_host(const Block &block) {
  return block.origin == Origin::kPinned || block.origin == Origin::kRegistered;
}

template <typename Value> CUresult put(void *data, Value value) {
  *static_cast<Value *>(data) = value;
  return CUDA_SUCCESS;
}

enum PointerAttribute {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
  kHandleTypes = 14,
  kRdmaCapable = 15,
  kAccessFlags = 16,
  kMempool = 17,
  kMappingSize = 18,
  kMappingBase = 19,
  kBlockId = 20,
  kDecompress = 21
};

CUresult pointer_attribute(void *data, int attribute, uint64_t address, const Block &block) {
  const bool host_visible = is_host(block) || block.origin == Origin::kManaged;
  switch (attribute) {
  case kContext:
    return put(data, block.context);
  case kMemoryType:
    return put<unsigned>(data, is_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
  case kDevicePointer:
    return put(data, address);
  case kHostPointer:
    if (!host_visible)
      return CUDA_ERROR_INVALID_VALUE;
    return put(data, address);
  case kSyncMemops:
  case kIpcCapable:
  case kRdmaCapable:
  case kDecompress:
    return put(data, 0);
  case kBufferId:
  case kBlockId:
    return put(data, block.id);
  case kIsManaged:
    return put(data, block.origin == Origin::kManaged ? 1 : 0);
  case kDeviceOrdinal:
    return put(data, block.device);
  case kRangeStart:
  case kMappingBase:
    return put(data, block.base);
  case kRangeSize:
  case kMappingSize:
    return put(data, block.bytes);
  case kMapped:
    return put(data, 1);
  case kHandleTypes:
    return put<uint64_t>(data, 0);
  case kAccessFlags:
    return put(data, 3); // read and write
  case kMempool:
    return put(data, block.pool);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// Memory the driver did not hand out itself: module variables, placed by the compiler.
bool find_variable(uint64_t address, Block *out) {
  va_allocation found;
  if (!in_arena(address) || !va_arena_find(address, &found) || found.device >= VA_DEVICES)
    return false;
  out->base = found.base;
  out->bytes = found.bytes;
  out->device = found.device;
  out->context = current_handle();
  return true;
}

} // namespace

uint64_t allocate(Context &context, uint64_t bytes, Origin origin, unsigned flags,
                  CUmemoryPool pool) {
  Block block;
  block.bytes = bytes;
  block.origin = origin;
  block.context = context.handle;
  block.device = context.device->ordinal;
  block.flags = flags;
  block.pool = pool;
  const int region = origin == Origin::kDevice ? block.device : VA_HOST_DEVICE;
  block.base = va_arena_alloc(region, bytes, kPitchAlign); // good for any texture, too
  if (!block.base)
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  add(block);
  account(block, false);
  if (origin != Origin::kPinned)
    va_check_allocated(block.base, bytes, origin != Origin::kDevice);
  return block.base;
}

bool release(uint64_t base, bool pinned) {
  Block block;
  const auto wanted = pinned ? [](Origin o) { return o == Origin::kPinned; }
                             : [](Origin o) { return o == Origin::kDevice || o == Origin::kManaged; };
  if (!take(base, wanted, &block))
    return false;
  va_check_released(base);
  va_arena_free(base);
  account(block, true);
  return true;
}

bool find_block(uint64_t address, Block *out) {
  Blocks &all = blocks();
  {
    const std::shared_lock<std::shared_mutex> lock(all.mutex);
    auto it = all.by_base.upper_bound(address);
    if (it != all.by_base.begin()) {
      --it;
      if (address - it->first < it->second.bytes) {
        *out = it->second;
        return true;
      }
    }
  }
  return find_variable(address, out);
}

void require_device_range(uint64_t address, uint64_t bytes) {
  if (!bytes)
    return;
  va_allocation found;
  if (in_arena(address) && va_arena_find(address, &found)) {
    if (bytes <= found.base + found.bytes - address)
      return;
  } else if (va_arena_accessible(address, bytes)) {
    return;
  }
  note("a copy or fill of %llu bytes at 0x%llx leaves the allocation it begins in",
       static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
  va_check_bad_range(address, bytes);
  fail(CUDA_ERROR_INVALID_VALUE);
}

void free_blocks_of(Context &context) {
  std::vector<Block> mine;
  Blocks &all = blocks();
  {
    const std::unique_lock<std::shared_mutex> lock(all.mutex);
    for (auto it = all.by_base.begin(); it != all.by_base.end();) {
      if (it->second.context != context.handle) {
        ++it;
        continue;
      }
      mine.push_back(it->second);
      it = all.by_base.erase(it);
    }
  }
  for (const Block &block : mine) {
    if (block.origin == Origin::kRegistered)
      va_arena_unregister_host(block.base);
    else
      va_arena_free(block.base);
    va_check_leaked(block.base);
    account(block, true);
  }
}

namespace api {

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  Context &context = healthy_context();
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  *address = allocate(context, bytes, Origin::kDevice, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element_bytes) {
  Context &context = healthy_context();
  const bool legal = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (!width || !height || !legal || width > VA_DEVICE_BYTES || height > VA_DEVICE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  const uint64_t row = (width + kPitchAlign - 1) / kPitchAlign * kPitchAlign;
  if (height > VA_DEVICE_BYTES / row)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = allocate(context, row * height, Origin::kDevice, 0);
  *pitch = row;
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  healthy_context();
  flush_device_output(); // freeing waits for the device
  if (!address)
    return CUDA_SUCCESS;
  if (release(address, false))
    return CUDA_SUCCESS;
  va_check_bad_free(address);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  const Context &context = healthy_context();
  const int device = context.device->ordinal;
  if (total)
    *total = va_arena_capacity(device);
  if (free_bytes)
    *free_bytes = va_arena_capacity(device) - va_arena_used(device);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
  current_context();
  Block block;
  if (!find_block(address, &block))
    return CUDA_ERROR_NOT_FOUND;
  if (base)
    *base = block.base;
  if (bytes)
    *bytes = block.bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags) {
  Context &context = healthy_context();
  enum { kGlobal = 1, kHost = 2, kSingle = 4 };
  if (!bytes || (flags != kGlobal && flags != kHost && flags != kSingle))
    return CUDA_ERROR_INVALID_VALUE;
  *address = allocate(context, bytes, Origin::kManaged, flags);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) { return host_allocate(pointer, bytes, 0); }

CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags) {
  return host_allocate(pointer, bytes, flags);
}

CUresult cuMemFreeHost(void *pointer) {
  current_context();
  if (!pointer)
    return CUDA_SUCCESS;
  return release(reinterpret_cast<uint64_t>(pointer), true) ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *pointer, unsigned int flags) {
  healthy_context();
  Block block;
  const uint64_t host = reinterpret_cast<uint64_t>(pointer);
  if (flags || !find_block(host, &block) || !is_host(block))
    return CUDA_ERROR_INVALID_VALUE;
  *address = host;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *pointer) {
  current_context();
  Block block;
  if (!find_block(reinterpret_cast<uint64_t>(pointer), &block) || block.origin != Origin::kPinned)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = block.flags;
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags) {
  return host_register(pointer, bytes, flags);
}

CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned int flags) {
  return host_register(pointer, bytes, flags);
}

CUresult cuMemHostUnregister(void *pointer) {
  current_context();
  Block block;
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  if (!take(base, [](Origin o) { return o == Origin::kRegistered; }, &block))
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  va_arena_unregister_host(base);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
  started();
  Block block;
  if (!data || !find_block(address, &block))
    return CUDA_ERROR_INVALID_VALUE;
  return pointer_attribute(data, attribute, address, block);
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr address) {
  started();
  Block block;
  const bool known = find_block(address, &block);
  for (unsigned i = 0; i < count; ++i) {
    if (!data[i])
      return CUDA_ERROR_INVALID_VALUE;
    if (known && pointer_attribute(data[i], attributes[i], address, block) == CUDA_SUCCESS)
      continue;
    // What cannot be answered is zero here, not an error; two of them have another "none".
    switch (attributes[i]) {
    case kMemoryType:
    case kSyncMemops:
    case kIsManaged:
    case kIpcCapable:
    case kMapped:
    case kRdmaCapable:
    case kAccessFlags:
      put(data[i], 0);
      break;
    case kDeviceOrdinal:
      put(data[i], -2);
      break;
    case kDecompress:
      put(data[i], 0);
      break;
    default:
      put<uint64_t>(data[i], 0);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  started();
  Block block;
  if (!value || attribute != kSyncMemops || !find_block(address, &block))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS; // every copy waits here anyway
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned int,
                               CUstream stream) {
  healthy_context();
  stream_of(stream);
  Block block;
  if (!bytes || !find_block(address, &block) || block.origin != Origin::kManaged)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream stream) {
  return cuMemPrefetchAsync_v2(address, bytes, CUmemLocation{}, 0, stream);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise, CUmemLocation) {
  healthy_context();
  Block block;
  if (!bytes || !find_block(address, &block) || block.origin != Origin::kManaged)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice) {
  return cuMemAdvise_v2(address, bytes, advice, CUmemLocation{});
}

} // namespace api
} // namespace va
