// Memory: device, managed, pinned and registered host: handed out, taken back, found again.
#include <algorithm>
#include <map>
#include <shared_mutex>
#include <vector>

#include "blocks.h"
#include "board.h"
#include "capture.h"
#include "driver_api.h"
#include "managed.h"
#include "physical.h"
#include "pools.h"
#include "settings.h"
#include "va100/check.h"
#include "va100/retire.h"
#include "windows.h"

namespace va {
namespace {

constexpr uint64_t kPitchAlign = 512;
constexpr unsigned kHostFlags = 0x0F;

// Bytes that neither this process nor another one on the node holds.
uint64_t free_of(int device) {
  const uint64_t taken = va_arena_used(device) + held_elsewhere(device);
  return va_arena_capacity(device) - std::min(taken, va_arena_capacity(device));
}

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

uint64_t whole_units(uint64_t bytes) {
  return (bytes + VA_VIRTUAL_UNIT - 1) / VA_VIRTUAL_UNIT * VA_VIRTUAL_UNIT;
}

void give_back(const Block &block) {
  if (block.origin == Origin::kRegistered) {
    va_arena_unregister_host(block.base);
  } else if (block.file) {
    close_window(block.base);
    if (block.owns_file_piece) {
      block.file->give(block.offset, whole_units(block.bytes));
      va_arena_discharge(block.on_host ? VA_HOST_DEVICE : block.device, block.bytes);
    }
  } else {
    if (block.origin == Origin::kManaged)
      forget_advice(block.base, block.bytes);
    // Under memcheck what is used after its end is told, whatever came since.
    va_check_tools() & VA_CHECK_MEMORY ? va_arena_retire(block.base) : va_arena_free(block.base);
  }
  if (block.pool)
    pool_takes(block.pool, block.bytes);
}

uint64_t map_piece(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                   uint64_t offset, CUmemoryPool pool, bool owns, Origin origin,
                   bool on_host = false) {
  Block block;
  block.bytes = bytes;
  block.origin = origin;
  block.context = context.handle;
  block.device = context.device->ordinal;
  block.pool = pool;
  block.file = file;
  block.offset = offset;
  block.owns_file_piece = owns;
  block.on_host = on_host;
  try {
    block.base =
        open_window(file->fd(), offset, bytes, on_host ? VA_HOST_DEVICE : block.device);
  } catch (...) {
    give_back(block);
    throw;
  }
  add(block);
  va_check_allocated(block.base, bytes, !owns || on_host);
  return block.base;
}

CUresult host_allocate(void **pointer, size_t bytes, unsigned flags) {
  require_unsafe_allowed();
  Context &context = healthy_context();
  if (!bytes || flags & ~kHostFlags)
    return CUDA_ERROR_INVALID_VALUE;
  *pointer = reinterpret_cast<void *>(allocate(context, bytes, Origin::kPinned, flags));
  return CUDA_SUCCESS;
}

CUresult host_register(void *pointer, size_t bytes, unsigned flags) {
  require_unsafe_allowed();
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

bool is_pinned_by_client(const Block &b) { return b.origin == Origin::kPinned && !b.pool; }

bool is_freed_as_device_memory(const Block &b) {
  return b.origin == Origin::kDevice || b.origin == Origin::kManaged ||
         (b.origin == Origin::kPinned && b.pool);
}

bool take(uint64_t base, bool (*wanted)(const Block &), Block *out) {
  Blocks &all = blocks();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const auto it = all.by_base.find(base);
  if (it == all.by_base.end() || !wanted(it->second))
    return false;
  *out = it->second;
  all.by_base.erase(it);
  return true;
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
  if (pool)
    pool_gives(pool, bytes);
  block.base = va_arena_alloc(region, bytes, kPitchAlign); // good for any texture, too
  if (!block.base && empty_pools(region))
    block.base = va_arena_alloc(region, bytes, kPitchAlign);
  if (!block.base) {
    if (pool)
      pool_takes(pool, bytes);
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  add(block);
  if (origin != Origin::kPinned)
    va_check_allocated(block.base, bytes, origin != Origin::kDevice);
  return block.base;
}

uint64_t allocate_shared(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                         CUmemoryPool pool, bool on_host) {
  const int region = on_host ? VA_HOST_DEVICE : context.device->ordinal;
  pool_gives(pool, bytes);
  if (va_arena_charge(region, bytes) &&
      (!empty_pools(region) || va_arena_charge(region, bytes))) {
    pool_takes(pool, bytes);
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  uint64_t offset = 0;
  try {
    offset = file->take(whole_units(bytes));
  } catch (...) {
    va_arena_discharge(region, bytes);
    pool_takes(pool, bytes);
    throw;
  }
  return map_piece(context, bytes, file, offset, pool, true, Origin::kDevice, on_host);
}

uint64_t import_shared(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                       uint64_t offset, CUmemoryPool pool, bool on_host) {
  if (pool)
    pool_gives(pool, bytes);
  return map_piece(context, bytes, file, offset, pool, false, Origin::kDevice, on_host);
}

uint64_t import_piece(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                      uint64_t offset) {
  return map_piece(context, bytes, file, offset, nullptr, false, Origin::kImported);
}

bool release_import(uint64_t base) {
  Block block;
  if (!take(base, [](const Block &b) { return b.origin == Origin::kImported; }, &block))
    return false;
  va_check_released(base);
  give_back(block);
  return true;
}

bool release(uint64_t base, bool pinned) {
  bool released = false;
  if (!pinned && release_graph_block(base, &released))
    return released;
  Block block;
  const auto wanted = pinned ? is_pinned_by_client : is_freed_as_device_memory;
  if (!take(base, wanted, &block))
    return false;
  va_check_released(base);
  give_back(block);
  return true;
}

std::vector<Block> blocks_of(CUcontext context) {
  std::vector<Block> found;
  Blocks &all = blocks();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  for (const auto &[base, block] : all.by_base)
    if (block.context == context)
      found.push_back(block);
  return found;
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
  return (is_virtual(address) && find_mapping(address, out)) || find_variable(address, out);
}

void require_device_range(uint64_t address, uint64_t bytes) {
  if (!bytes)
    return;
  va_allocation found;
  if (in_arena(address) && !is_virtual(address) && va_arena_find(address, &found)) {
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
    va_check_leaked(block.base);
    give_back(block);
  }
}

namespace api {

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  require_unsafe_allowed();
  Context &context = healthy_context();
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  *address = allocate(context, bytes, Origin::kDevice, 0);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element_bytes) {
  require_unsafe_allowed();
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
  require_unsafe_allowed();
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
    *free_bytes = free_of(device);
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
  require_unsafe_allowed();
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
  require_unsafe_allowed();
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
  if (!take(base, [](const Block &b) { return b.origin == Origin::kRegistered; }, &block))
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  va_arena_unregister_host(base);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
