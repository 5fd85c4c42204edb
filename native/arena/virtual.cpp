// Reserved addresses: who may map where, what is mapped, and which granules are open.
//
// Which device's memory it is, and who may touch it, is for the driver to know.
#include "virtual_space.h"

#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <sys/mman.h>

namespace va {
namespace {

constexpr uint64_t kPage = 4096;

using Ranges = std::map<uint64_t, uint64_t>; // base to size, none touching another

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint8_t *shadow_of(uint64_t address) {
  return reinterpret_cast<uint8_t *>(VA_SHADOW_BASE +
                                     ((address - VA_ARENA_BASE) >> VA_GRANULE_SHIFT));
}

// The range that holds an address, or end().
template <typename Map> typename Map::const_iterator holding(const Map &ranges, uint64_t address) {
  auto it = ranges.upper_bound(address);
  return it == ranges.begin() ? ranges.end() : std::prev(it);
}

bool holds(const Ranges &ranges, uint64_t address, uint64_t bytes) {
  const auto it = holding(ranges, address);
  return it != ranges.end() && address - it->first < it->second &&
         bytes <= it->second - (address - it->first);
}

bool overlaps(const Ranges &ranges, uint64_t address, uint64_t bytes) {
  const auto before = holding(ranges, address);
  if (before != ranges.end() && address - before->first < before->second)
    return true;
  const auto after = ranges.lower_bound(address);
  return after != ranges.end() && after->first - address < bytes;
}

struct Run {
  uint64_t bytes;
  int device;
};

class VirtualSpace {
public:
  VirtualSpace() { clear(); }

  uint64_t reserve(uint64_t bytes, uint64_t align, uint64_t wanted) {
    if (wanted && wanted % align == 0 && holds(free_, wanted, bytes))
      return take(wanted, bytes);
    for (const auto &[base, size] : free_) {
      const uint64_t start = round_up(base, align);
      if (start - base <= size && bytes <= size - (start - base))
        return take(start, bytes);
    }
    return 0;
  }

  bool release(uint64_t base, uint64_t bytes) {
    const auto it = reserved_.find(base);
    if (it == reserved_.end() || it->second != bytes || overlaps(mapped_, base, bytes))
      return false;
    reserved_.erase(it);
    give(base, bytes);
    return true;
  }

  bool reservation(uint64_t address, uint64_t *base, uint64_t *bytes) const {
    const auto it = holding(reserved_, address);
    if (it == reserved_.end() || address - it->first >= it->second)
      return false;
    *base = it->first;
    *bytes = it->second;
    return true;
  }

  int map(uint64_t address, uint64_t bytes, int fd, uint64_t offset) {
    if (!bytes || !holds(reserved_, address, bytes) || overlaps(mapped_, address, bytes))
      return -1;
    const int rw = PROT_READ | PROT_WRITE;
    void *const want = reinterpret_cast<void *>(address);
    if (mmap(want, bytes, rw, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) == MAP_FAILED)
      return errno;
    madvise(want, bytes, MADV_HUGEPAGE);
    mapped_[address] = bytes;
    return 0;
  }

  int unmap(uint64_t address, uint64_t bytes) {
    if (!exactly_mapped(address, bytes))
      return -1;
    close(address, bytes);
    const int idle = arena_mode().lazy ? PROT_NONE : PROT_READ | PROT_WRITE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(reinterpret_cast<void *>(address), bytes, idle, flags, -1, 0) == MAP_FAILED)
      return errno;
    mapped_.erase(mapped_.find(address), mapped_.lower_bound(address + bytes));
    return 0;
  }

  int open(uint64_t address, uint64_t bytes, int device) {
    if (!bytes || !covered(address, bytes))
      return -1;
    const uint64_t granules = round_up(bytes, VA_GRANULE) >> VA_GRANULE_SHIFT;
    if (arena_mode().lazy && !make_writable(shadow_of(address), granules))
      return errno;
    close(address, bytes);
    std::memset(shadow_of(address), 1, granules);
    merge(address, bytes, device);
    return 0;
  }

  int close(uint64_t address, uint64_t bytes) {
    if (!bytes || !covered(address, bytes))
      return -1;
    auto it = runs_.upper_bound(address);
    if (it != runs_.begin() && std::prev(it)->first + std::prev(it)->second.bytes > address)
      --it;
    while (it != runs_.end() && it->first < address + bytes) {
      const auto [base, run] = *it;
      it = runs_.erase(it);
      if (base < address)
        runs_[base] = {address - base, run.device};
      if (base + run.bytes > address + bytes)
        runs_[address + bytes] = {base + run.bytes - address - bytes, run.device};
      const uint64_t first = base > address ? base : address;
      const uint64_t end = base + run.bytes < address + bytes ? base + run.bytes : address + bytes;
      std::memset(shadow_of(first), 0, round_up(end - first, VA_GRANULE) >> VA_GRANULE_SHIFT);
    }
    return 0;
  }

  bool find(uint64_t address, va_allocation *out) const {
    const auto it = holding(runs_, address);
    if (it == runs_.end() || address - it->first >= it->second.bytes)
      return false;
    if (out)
      *out = {it->first, it->second.bytes, it->second.device, 0};
    return true;
  }

  uint64_t nearest(uint64_t address, va_allocation *out) const {
    uint64_t best = UINT64_MAX;
    const auto after = runs_.lower_bound(address);
    if (after != runs_.end()) {
      best = after->first - address;
      *out = {after->first, after->second.bytes, after->second.device, 0};
    }
    const auto before = holding(runs_, address);
    if (before != runs_.end()) {
      const uint64_t end = before->first + before->second.bytes;
      const uint64_t distance = address < end ? 0 : address - end + 1;
      if (distance < best) {
        best = distance;
        *out = {before->first, before->second.bytes, before->second.device, 0};
      }
    }
    return best;
  }

  void clear() {
    Ranges mapped = mapped_;
    for (const auto &[base, bytes] : mapped)
      unmap(base, bytes);
    reserved_.clear();
    free_.clear();
    free_[VA_VIRTUAL_BASE + VA_VIRTUAL_UNIT] = VA_VIRTUAL_END - VA_VIRTUAL_BASE - VA_VIRTUAL_UNIT;
  }

  std::shared_mutex mutex;

private:
  uint64_t take(uint64_t base, uint64_t bytes) {
    const auto it = holding(free_, base);
    const auto [start, size] = *it;
    free_.erase(it);
    if (base > start)
      free_[start] = base - start;
    if (start + size > base + bytes)
      free_[base + bytes] = start + size - base - bytes;
    reserved_[base] = bytes;
    return base;
  }

  void give(uint64_t base, uint64_t bytes) {
    const auto after = free_.lower_bound(base);
    if (after != free_.end() && after->first == base + bytes) {
      bytes += after->second;
      free_.erase(after);
    }
    const auto before = holding(free_, base);
    if (before != free_.end() && before->first + before->second == base)
      free_[before->first] += bytes;
    else
      free_[base] = bytes;
  }

  // Whole mappings, next to each other, from the first address to the last.
  bool exactly_mapped(uint64_t address, uint64_t bytes) const {
    uint64_t at = address;
    for (auto it = mapped_.find(address); it != mapped_.end() && it->first == at; ++it) {
      at += it->second;
      if (at >= address + bytes)
        return at == address + bytes;
    }
    return false;
  }

  bool covered(uint64_t address, uint64_t bytes) const {
    const uint64_t end = address + bytes;
    auto it = holding(mapped_, address);
    for (; it != mapped_.end() && it->first <= address; ++it) {
      address = it->first + it->second;
      if (address >= end)
        return true;
    }
    return false;
  }

  static bool make_writable(uint8_t *first, uint64_t bytes) {
    const uint64_t start = reinterpret_cast<uint64_t>(first) / kPage * kPage;
    const uint64_t end = round_up(reinterpret_cast<uint64_t>(first) + bytes, kPage);
    return !mprotect(reinterpret_cast<void *>(start), end - start, PROT_READ | PROT_WRITE);
  }

  void merge(uint64_t address, uint64_t bytes, int device) {
    const auto after = runs_.find(address + bytes);
    if (after != runs_.end() && after->second.device == device) {
      bytes += after->second.bytes;
      runs_.erase(after);
    }
    const auto before = holding(runs_, address);
    if (before != runs_.end() && before->first + before->second.bytes == address &&
        before->second.device == device) {
      runs_[before->first].bytes += bytes;
      return;
    }
    runs_[address] = {bytes, device};
  }

  Ranges free_, reserved_, mapped_;
  std::map<uint64_t, Run> runs_;
};

// Never destroyed, as the arena.
VirtualSpace &space() {
  static VirtualSpace *const instance = new VirtualSpace;
  return *instance;
}

template <typename Result, typename Body> Result exclusively(Result failure, Body body) noexcept {
  try {
    if (!arena_mode().open)
      return failure;
    const std::unique_lock<std::shared_mutex> lock(space().mutex);
    return body(space());
  } catch (...) {
    return failure;
  }
}

bool is_unit(uint64_t value) { return value % VA_VIRTUAL_UNIT == 0; }

} // namespace

bool virtual_find(uint64_t address, va_allocation *out) {
  const std::shared_lock<std::shared_mutex> lock(space().mutex);
  return space().find(address, out);
}

uint64_t virtual_nearest(uint64_t address, va_allocation *out) {
  const std::shared_lock<std::shared_mutex> lock(space().mutex);
  return space().nearest(address, out);
}

void virtual_reset() {
  const std::unique_lock<std::shared_mutex> lock(space().mutex);
  space().clear();
}

} // namespace va

extern "C" {

uint64_t va_virtual_reserve(uint64_t bytes, uint64_t align, uint64_t wanted) {
  if (!align)
    align = VA_VIRTUAL_UNIT;
  if (!bytes || !va::is_unit(bytes) || align & (align - 1))
    return 0;
  if (align < VA_VIRTUAL_UNIT)
    align = VA_VIRTUAL_UNIT;
  return va::exclusively<uint64_t>(
      0, [&](va::VirtualSpace &space) { return space.reserve(bytes, align, wanted); });
}

int va_virtual_release(uint64_t base, uint64_t bytes) {
  return va::exclusively(
      -1, [&](va::VirtualSpace &space) { return space.release(base, bytes) ? 0 : -1; });
}

int va_virtual_reserved(uint64_t address, uint64_t *base, uint64_t *bytes) {
  return va::exclusively(0, [&](va::VirtualSpace &space) {
    return space.reservation(address, base, bytes) ? 1 : 0;
  });
}

int va_virtual_map(uint64_t address, uint64_t bytes, int fd, uint64_t offset) {
  if (address % va::kPage || bytes % va::kPage || offset % va::kPage)
    return -1;
  return va::exclusively(
      ENOMEM, [&](va::VirtualSpace &space) { return space.map(address, bytes, fd, offset); });
}

int va_virtual_unmap(uint64_t address, uint64_t bytes) {
  return va::exclusively(
      -1, [&](va::VirtualSpace &space) { return space.unmap(address, bytes); });
}

int va_virtual_open(uint64_t address, uint64_t bytes, int device) {
  return va::exclusively(
      -1, [&](va::VirtualSpace &space) { return space.open(address, bytes, device); });
}

int va_virtual_close(uint64_t address, uint64_t bytes) {
  return va::exclusively(-1,
                         [&](va::VirtualSpace &space) { return space.close(address, bytes); });
}

} // extern "C"
