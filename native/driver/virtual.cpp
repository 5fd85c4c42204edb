// Address ranges that clients lay out: reserved, mapped to physical memory, opened to devices.
//
// One address space serves all devices, so memory is open to kernels of every device once it is to
// one.  Memory that is open for reading is not closed to writing.
#include <array>
#include <map>
#include <shared_mutex>
#include <vector>

#include "driver_api.h"
#include "physical.h"
#include "va100/check.h"

namespace va {
namespace {

constexpr uint64_t kHostPage = 4096;

struct Mapping {
  uint64_t bytes = 0;
  std::shared_ptr<Physical> physical;
  std::array<unsigned char, VA_DEVICES + 1> access{}; // by region

  bool is_open() const {
    for (const unsigned char flags : access)
      if (flags)
        return true;
    return false;
  }
};

struct Mappings {
  std::shared_mutex mutex;
  std::map<uint64_t, Mapping> by_base;
};

Mappings &mappings() {
  static Mappings *const instance = new Mappings;
  return *instance;
}

using Map = std::map<uint64_t, Mapping>;

Map::iterator holding(Map &map, uint64_t address) {
  auto it = map.upper_bound(address);
  if (it == map.begin())
    return map.end();
  --it;
  return address - it->first < it->second.bytes ? it : map.end();
}

// The mappings that make up a range exactly; fails when it begins, ends or breaks within one.
std::vector<Map::iterator> exactly(Map &map, uint64_t address, uint64_t bytes) {
  std::vector<Map::iterator> found;
  uint64_t at = address;
  for (auto it = map.find(address); it != map.end() && it->first == at && at < address + bytes;
       ++it) {
    found.push_back(it);
    at += it->second.bytes;
  }
  if (!bytes || at != address + bytes)
    fail(CUDA_ERROR_INVALID_VALUE);
  return found;
}

uint64_t whole_units(uint64_t bytes) {
  return (bytes + VA_VIRTUAL_UNIT - 1) / VA_VIRTUAL_UNIT * VA_VIRTUAL_UNIT;
}

bool is_host(const CUmemLocation &location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

size_t index_of(const CUmemLocation &location) {
  return is_host(location) ? VA_HOST_DEVICE : static_cast<size_t>(region_of(location));
}

void require_access(const Mapping &mapping, const CUmemAccessDesc &wanted) {
  const bool known = wanted.flags == CU_MEM_ACCESS_NONE || wanted.flags == CU_MEM_ACCESS_READ ||
                     wanted.flags == CU_MEM_ACCESS_READWRITE;
  if (!known || (is_host(wanted.location) && mapping.physical->region != VA_HOST_DEVICE))
    fail(CUDA_ERROR_INVALID_VALUE);
  index_of(wanted.location);
}

void apply_access(uint64_t base, Mapping &mapping, const CUmemAccessDesc *wanted, size_t count) {
  const bool before = mapping.is_open();
  for (size_t i = 0; i < count; ++i)
    mapping.access[index_of(wanted[i].location)] = static_cast<unsigned char>(wanted[i].flags);
  if (mapping.is_open() == before)
    return;
  if (before) {
    va_virtual_close(base, mapping.bytes);
    va_check_released(base);
  } else {
    if (va_virtual_open(base, mapping.bytes, mapping.physical->region))
      fail(CUDA_ERROR_OUT_OF_MEMORY);
    va_check_allocated(base, mapping.bytes, 1);
  }
}

void describe(uint64_t base, const Mapping &mapping, Block *out) {
  const Physical &physical = *mapping.physical;
  *out = Block{};
  out->base = base;
  out->bytes = mapping.bytes;
  out->origin = Origin::kMapped;
  out->device = physical.region == VA_HOST_DEVICE ? 0 : physical.region;
  out->on_host = physical.region == VA_HOST_DEVICE;
  out->id = physical.handle >> 4 & 0xFFFFFFFFFFFF;
  out->handle_types = static_cast<unsigned>(physical.properties.requested_handle_types);
  for (size_t i = 0; i < mapping.access.size(); ++i)
    out->access |= static_cast<uint64_t>(mapping.access[i] & 3) << 2 * i;
}

} // namespace

bool find_mapping(uint64_t address, Block *out) {
  Mappings &all = mappings();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto it = holding(all.by_base, address);
  if (it == all.by_base.end())
    return false;
  describe(it->first, it->second, out);
  return true;
}

std::shared_ptr<Physical> mapped_at(uint64_t address) {
  Mappings &all = mappings();
  const std::shared_lock<std::shared_mutex> lock(all.mutex);
  const auto it = holding(all.by_base, address);
  return it == all.by_base.end() ? nullptr : it->second.physical;
}

namespace api {

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, uint64_t flags) {
  started();
  if (!bytes || bytes % kHostPage || flags || alignment & (alignment - 1) || wanted % kHostPage)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > VA_VIRTUAL_END - VA_VIRTUAL_BASE)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = va_virtual_reserve(whole_units(bytes), alignment, wanted);
  return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  started();
  if (!bytes || bytes > VA_VIRTUAL_END - VA_VIRTUAL_BASE)
    return CUDA_ERROR_INVALID_VALUE;
  return va_virtual_release(address, whole_units(bytes)) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, uint64_t flags) {
  started();
  const std::shared_ptr<Physical> physical = physical_of(handle);
  if (!bytes || offset || flags || bytes > physical->bytes || bytes % VA_VIRTUAL_UNIT ||
      address % VA_VIRTUAL_UNIT)
    return CUDA_ERROR_INVALID_VALUE;
  Mappings &all = mappings();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const int failed = va_virtual_map(address, bytes, physical->file->fd(), physical->offset);
  if (failed)
    return failed < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  Mapping &mapping = all.by_base[address];
  mapping.bytes = bytes;
  mapping.physical = physical;
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  started();
  flush_device_output();
  Mappings &all = mappings();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const std::vector<Map::iterator> found = exactly(all.by_base, address, bytes);
  for (const Map::iterator &it : found) {
    if (it->second.is_open())
      va_check_released(it->first);
    va_virtual_unmap(it->first, it->second.bytes);
    all.by_base.erase(it);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count) {
  started();
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  Mappings &all = mappings();
  const std::unique_lock<std::shared_mutex> lock(all.mutex);
  const std::vector<Map::iterator> found = exactly(all.by_base, address, bytes);
  for (const Map::iterator &it : found)
    for (size_t i = 0; i < count; ++i)
      require_access(it->second, access[i]);
  for (const Map::iterator &it : found)
    apply_access(it->first, it->second, access, count);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(uint64_t *flags, const CUmemLocation *location, CUdeviceptr address) {
  started();
  const size_t region = index_of(*location);
  Block block;
  if (!find_mapping(address, &block))
    return CUDA_ERROR_INVALID_VALUE;
  *flags = block.access >> 2 * region & 3;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
