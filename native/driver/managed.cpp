// Managed memory: advice, prefetching and discarding.  All memory is in one place here, so these
// change nothing but what is told about a range.
#include "managed.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "driver_api.h"
#include "physical.h"

namespace va {
namespace {

constexpr int kCpu = -1, kNoDevice = -2; // CU_DEVICE_CPU, CU_DEVICE_INVALID

enum MemoryAdvice {
  kSetReadMostly = 1,
  kUnsetReadMostly = 2,
  kSetPreferred = 3,
  kUnsetPreferred = 4,
  kSetAccessedBy = 5,
  kUnsetAccessedBy = 6
};

enum RangeAttribute {
  kReadMostly = 1,
  kPreferred = 2,
  kAccessedBy = 3,
  kLastPrefetch = 4,
  kPreferredType = 5,
  kPreferredId = 6,
  kLastPrefetchType = 7,
  kLastPrefetchId = 8
};

struct Advice {
  bool read_mostly = false;
  CUmemLocation preferred{0, 0};
  CUmemLocation prefetched{0, 0};
  uint32_t accessed_by = 0; // a bit a region
};

bool same(const CUmemLocation &a, const CUmemLocation &b) { return a.type == b.type && a.id == b.id; }

// Advice by address: each entry holds up to the next one.
class Advised {
public:
  template <typename Change> void change(uint64_t address, uint64_t bytes, Change change) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto first = cut(address), last = cut(address + bytes);
    for (auto it = first; it != last; ++it)
      change(it->second);
  }

  std::vector<Advice> of(uint64_t address, uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Advice> found;
    auto it = std::prev(advice_.upper_bound(address));
    for (; it != advice_.end() && it->first < address + bytes; ++it)
      found.push_back(it->second);
    return found;
  }

  void forget(uint64_t address, uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (advice_.size() == 1)
      return;
    const auto last = cut(address + bytes);
    const auto first = cut(address);
    first->second = Advice{};
    advice_.erase(std::next(first), last);
  }

private:
  using Map = std::map<uint64_t, Advice>;

  Map::iterator cut(uint64_t address) {
    const auto before = std::prev(advice_.upper_bound(address));
    return before->first == address ? before : advice_.emplace(address, before->second).first;
  }

  std::mutex mutex_;
  Map advice_{{0, Advice{}}};
};

Advised &advised() {
  static Advised *const instance = new Advised;
  return *instance;
}

void require_managed(uint64_t address, uint64_t bytes) {
  Block block;
  if (!bytes || !find_block(address, &block) || block.origin != Origin::kManaged ||
      bytes > block.base + block.bytes - address)
    fail(CUDA_ERROR_INVALID_VALUE);
}

// A device by its number, or the host.
CUmemLocation location_of(CUdevice device) {
  if (device == kCpu)
    return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device_of(device).ordinal};
}

// Memory of the host has one name, so that ranges can be compared.
CUmemLocation checked(CUmemLocation location) {
  region_of(location);
  if (location.type == CU_MEM_LOCATION_TYPE_HOST)
    location.id = 0;
  if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    return {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  return location;
}

uint32_t accessor_bit(const CUmemLocation &location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE && location.type != CU_MEM_LOCATION_TYPE_HOST)
    fail(CUDA_ERROR_INVALID_VALUE);
  return 1u << region_of(location);
}

CUresult advise(CUdeviceptr address, size_t bytes, int what, const CUmemLocation &where) {
  healthy_context();
  require_managed(address, bytes);
  Advised &all = advised();
  switch (what) {
  case kSetReadMostly:
  case kUnsetReadMostly:
    all.change(address, bytes, [&](Advice &a) { a.read_mostly = what == kSetReadMostly; });
    return CUDA_SUCCESS;
  case kSetPreferred: {
    const CUmemLocation location = checked(where);
    all.change(address, bytes, [&](Advice &a) { a.preferred = location; });
    return CUDA_SUCCESS;
  }
  case kUnsetPreferred:
    all.change(address, bytes, [](Advice &a) { a.preferred = {0, 0}; });
    return CUDA_SUCCESS;
  case kSetAccessedBy:
  case kUnsetAccessedBy: {
    const uint32_t bit = accessor_bit(where);
    all.change(address, bytes, [&](Advice &a) {
      a.accessed_by = what == kSetAccessedBy ? a.accessed_by | bit : a.accessed_by & ~bit;
    });
    return CUDA_SUCCESS;
  }
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult prefetch(CUdeviceptr address, size_t bytes, const CUmemLocation &where, unsigned flags,
                  CUstream stream) {
  healthy_context();
  stream_of(stream);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  require_managed(address, bytes);
  const CUmemLocation location = checked(where);
  advised().change(address, bytes, [&](Advice &a) { a.prefetched = location; });
  return CUDA_SUCCESS;
}

// The location that all parts of a range have, or none.
CUmemLocation common(const std::vector<Advice> &parts, CUmemLocation Advice::*which) {
  for (const Advice &part : parts)
    if (!same(part.*which, parts.front().*which))
      return {0, 0};
  return parts.front().*which;
}

int number_of(const CUmemLocation &location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
    return location.id;
  return location.type ? kCpu : kNoDevice;
}

void list_accessors(const std::vector<Advice> &parts, int *out, size_t count) {
  uint32_t everywhere = ~0u;
  for (const Advice &part : parts)
    everywhere &= part.accessed_by;
  for (int region = 0; region <= VA_HOST_DEVICE && count; ++region)
    if (everywhere >> region & 1) {
      *out++ = region == VA_HOST_DEVICE ? kCpu : region;
      --count;
    }
  std::fill_n(out, count, kNoDevice);
}

CUresult attribute_of(void *data, size_t size, int attribute, const std::vector<Advice> &parts) {
  int *const out = static_cast<int *>(data);
  if (attribute == kAccessedBy) {
    if (!size || size % sizeof(int))
      return CUDA_ERROR_INVALID_VALUE;
    list_accessors(parts, out, size / sizeof(int));
    return CUDA_SUCCESS;
  }
  if (size != sizeof(int))
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case kReadMostly:
    *out = std::all_of(parts.begin(), parts.end(), [](const Advice &a) { return a.read_mostly; });
    return CUDA_SUCCESS;
  case kPreferred:
    *out = number_of(common(parts, &Advice::preferred));
    return CUDA_SUCCESS;
  case kLastPrefetch:
    *out = number_of(common(parts, &Advice::prefetched));
    return CUDA_SUCCESS;
  case kPreferredType:
    *out = common(parts, &Advice::preferred).type;
    return CUDA_SUCCESS;
  case kPreferredId:
    *out = common(parts, &Advice::preferred).id;
    return CUDA_SUCCESS;
  case kLastPrefetchType:
    *out = common(parts, &Advice::prefetched).type;
    return CUDA_SUCCESS;
  case kLastPrefetchId:
    *out = common(parts, &Advice::prefetched).id;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// Ranges of one call, all of them checked before any is changed.
struct Batch {
  const CUdeviceptr *addresses;
  const size_t *sizes;
  size_t count;

  void require() const {
    if (!addresses || !sizes || !count)
      fail(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; ++i)
      require_managed(addresses[i], sizes[i]);
  }
};

CUresult prefetch_batch(const Batch &batch, const CUmemLocation *locations, const size_t *firsts,
                        size_t location_count, uint64_t flags, CUstream stream) {
  healthy_context();
  stream_of(stream);
  batch.require();
  if (flags || !locations || !firsts || !location_count || location_count > batch.count || firsts[0])
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < location_count; ++i) {
    checked(locations[i]);
    if (firsts[i] >= batch.count || (i && firsts[i] <= firsts[i - 1]))
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0, at = 0; i < batch.count; ++i) {
    if (at + 1 < location_count && firsts[at + 1] <= i)
      ++at;
    prefetch(batch.addresses[i], batch.sizes[i], locations[at], 0, stream);
  }
  return CUDA_SUCCESS;
}

} // namespace

void forget_advice(uint64_t address, uint64_t bytes) { advised().forget(address, bytes); }

namespace api {

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise what,
                        CUmemLocation location) {
  return advise(address, bytes, what, location);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise what, CUdevice device) {
  const bool named = what == kSetPreferred || what == kSetAccessedBy || what == kUnsetAccessedBy;
  return advise(address, bytes, what, named ? location_of(device) : CUmemLocation{});
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                               unsigned int flags, CUstream stream) {
  return prefetch(address, bytes, location, flags, stream);
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream) {
  started();
  return prefetch(address, bytes, location_of(device), 0, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                 CUmemLocation *locations, size_t *firsts, size_t location_count,
                                 uint64_t flags, CUstream stream) {
  return prefetch_batch({addresses, sizes, count}, locations, firsts, location_count, flags,
                        stream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count, uint64_t flags,
                                CUstream stream) {
  healthy_context();
  stream_of(stream);
  Batch{addresses, sizes, count}.require();
  return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; // what was there may stay
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
                                           CUmemLocation *locations, size_t *firsts,
                                           size_t location_count, uint64_t flags,
                                           CUstream stream) {
  return prefetch_batch({addresses, sizes, count}, locations, firsts, location_count, flags,
                        stream);
}

CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t bytes) {
  started();
  require_managed(address, bytes);
  return data ? attribute_of(data, size, attribute, advised().of(address, bytes))
              : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes,
                                 size_t count, CUdeviceptr address, size_t bytes) {
  started();
  require_managed(address, bytes);
  const std::vector<Advice> parts = advised().of(address, bytes);
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (!data[i])
      return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = attribute_of(data[i], sizes[i], attributes[i], parts);
    if (result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
