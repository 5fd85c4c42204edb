// Device memory: address ranges, who owns which granule, and the shadow that says so.
//
// Contents are plain memory.  Nothing here knows about contexts, streams or kernels.
#include "va100/arena.h"

#include <cerrno>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "held_writes.h"
#include "va100/meter.h"
#include "va100/retire.h"
#include "virtual_space.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace {

constexpr int kRegions = VA_DEVICES + 2;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kHugePage = 2ULL << 20;
constexpr uint64_t kReturnedBytes = 64ULL << 10; // less is not worth a system call
constexpr uint64_t kRetiredBytes = 64ULL << 20; // kept of pages whose addresses are held back
constexpr uint64_t kCommitStep = 64ULL << 20;
constexpr uint64_t kDefaultCapacity = 85'100'068'864ULL; // A100-SXM4-80GB, as its driver reports it
constexpr uint64_t kShadowBytes = VA_ARENA_BYTES >> VA_GRANULE_SHIFT;
// A granule nobody owns follows every allocation, so that running off its end is seen.
constexpr uint64_t kGuard = VA_GRANULE;
// A region's first page stays free, so that running off the front of the first one is seen.
constexpr uint64_t kFirst = kHugePage;

va_arena_watcher g_watcher{};

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint8_t *shadow_of(uint64_t address) {
  return reinterpret_cast<uint8_t *>(VA_SHADOW_BASE +
                                     ((address - VA_ARENA_BASE) >> VA_GRANULE_SHIFT));
}

struct Live {
  uint64_t bytes;    // as asked for
  uint64_t reserved; // with padding and guard
  uint32_t serial;
};

class Region {
public:
  void set_up(int index) {
    device_ = index;
    base_ = VA_ARENA_BASE + static_cast<uint64_t>(index) * VA_DEVICE_BYTES;
    committed_ = base_;
    capacity_ = index < VA_DEVICES ? kDefaultCapacity : VA_DEVICE_BYTES - kFirst;
    clear_maps();
  }

  uint64_t allocate(uint64_t bytes, uint64_t align, uint32_t serial, bool lazily_committed) {
    const uint64_t owned = round_up(bytes ? bytes : 1, VA_GRANULE);
    if (owned < bytes || owned > room())
      return 0;
    const uint64_t need = owned + kGuard;
    const uint64_t found = place(bytes, need, align, serial, lazily_committed);
    if (found || retired_.empty())
      return found;
    recall(0);
    return place(bytes, need, align, serial, lazily_committed);
  }

  bool release(uint64_t base, bool retire) {
    const auto it = live_.find(base);
    if (it == live_.end())
      return false;
    const uint64_t reserved = it->second.reserved, owned = reserved - kGuard;
    forget_contents(base, owned);
    set_used(used_ - owned);
    live_.erase(it);
    if (!retire) {
      give(base, reserved);
      return true;
    }
    retired_.push_back({base, reserved});
    retired_bytes_ += kept_of(reserved);
    recall(kRetiredBytes);
    return true;
  }

  void release_all() {
    for (const auto &[base, live] : live_) {
      forget_contents(base, live.reserved - kGuard);
      set_used(used_ - (live.reserved - kGuard));
    }
    live_.clear();
    clear_maps();
  }

  bool find(uint64_t address, va_allocation *out) const {
    auto it = live_.upper_bound(address);
    if (it == live_.begin())
      return false;
    --it;
    if (address - it->first >= (it->second.bytes ? it->second.bytes : 1))
      return false;
    return describe(it, out);
  }

  // Whole granules of the allocation around an address.
  bool range(uint64_t address, uint64_t *base, uint64_t *bytes) const {
    auto it = live_.upper_bound(address);
    if (it == live_.begin())
      return false;
    --it;
    if (address - it->first >= it->second.reserved - kGuard)
      return false;
    *base = it->first;
    *bytes = it->second.reserved - kGuard;
    return true;
  }

  // The nearest allocation and how far it is; UINT64_MAX when none lives.
  uint64_t nearest(uint64_t address, va_allocation *out) const {
    uint64_t best = UINT64_MAX;
    auto after = live_.upper_bound(address);
    if (after != live_.end() && after->first - address < best) {
      best = after->first - address;
      describe(after, out);
    }
    if (after != live_.begin()) {
      const auto before = std::prev(after);
      const uint64_t end = before->first + before->second.bytes;
      const uint64_t distance = address < end ? 0 : address - end + 1;
      if (distance < best) {
        best = distance;
        describe(before, out);
      }
    }
    return best;
  }

  // Memory elsewhere that belongs to this device.
  bool charge(uint64_t bytes) {
    if (bytes > room())
      return false;
    set_used(used_ + bytes);
    return true;
  }
  void discharge(uint64_t bytes) { set_used(used_ - (bytes < used_ ? bytes : used_)); }

  // Move the pages of an allocation into the region's file, where they keep their distances.
  int share(uint64_t address, int *fd, uint64_t *offset) {
    const auto it = live_.find(address);
    if (it == live_.end())
      return -1;
    if (fd_ < 0) {
      fd_ = memfd_create("va100-device", MFD_CLOEXEC);
      if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(VA_DEVICE_BYTES)))
        return errno;
    }
    const uint64_t first = address / kPage * kPage;
    const uint64_t end = round_up(address + it->second.reserved - kGuard, kPage);
    for (uint64_t at = first; at < end;) {
      const auto after = shared_.upper_bound(at);
      if (after != shared_.begin() && std::prev(after)->second > at) {
        at = std::prev(after)->second;
        continue;
      }
      const uint64_t to = after == shared_.end() || after->first > end ? end : after->first;
      if (const int failed = move_pages(at, to))
        return failed;
      shared_[at] = to;
      at = to;
    }
    *fd = fd_;
    *offset = address - base_;
    return 0;
  }

  uint64_t capacity() const { return capacity_; }
  uint64_t used() const { return used_; }
  void set_capacity(uint64_t bytes) {
    const uint64_t most = VA_DEVICE_BYTES - kFirst - kGuard;
    capacity_ = bytes < most ? bytes : most;
  }

private:
  using Map = std::map<uint64_t, Live>;

  uint64_t place(uint64_t bytes, uint64_t need, uint64_t align, uint32_t serial,
                 bool lazily_committed) {
    for (auto it = by_size_.lower_bound({need, 0}); it != by_size_.end(); ++it) {
      const uint64_t start = it->second;
      const uint64_t base = round_up(start, align);
      if (base + need > start + it->first)
        continue;
      if (lazily_committed && !commit(base + need))
        return 0;
      take(start, it->first, base, need);
      live_[base] = Live{bytes, need, serial};
      set_used(used_ + need - kGuard);
      std::memset(shadow_of(base), 1, (need - kGuard) >> VA_GRANULE_SHIFT);
      if (need - kGuard >= 2 * kHugePage)
        madvise(reinterpret_cast<void *>(base), need - kGuard, MADV_HUGEPAGE);
      return base;
    }
    return 0;
  }

  // Pages of large pieces are given back to the system at once.
  static uint64_t kept_of(uint64_t reserved) {
    return reserved < kReturnedBytes ? reserved : kReturnedBytes;
  }

  // Let retired addresses be used again, the oldest first, until no more than `most` bytes are kept.
  void recall(uint64_t most) {
    while (retired_bytes_ > most) {
      const auto [base, reserved] = retired_.front();
      retired_.pop_front();
      retired_bytes_ -= kept_of(reserved);
      give(base, reserved);
    }
  }

  void set_used(uint64_t bytes) {
    used_ = bytes;
    if (g_watcher.used && device_ < VA_DEVICES)
      g_watcher.used(device_, bytes);
  }

  // Bytes that neither this process nor another holds.
  uint64_t room() const {
    const bool shared = g_watcher.elsewhere && device_ < VA_DEVICES;
    const uint64_t taken = used_ + (shared ? g_watcher.elsewhere(device_) : 0);
    return capacity_ > taken ? capacity_ - taken : 0;
  }

  bool describe(Map::const_iterator it, va_allocation *out) const {
    if (out)
      *out = va_allocation{it->first, it->second.bytes, device_, it->second.serial};
    return true;
  }

  void clear_maps() {
    retired_.clear();
    retired_bytes_ = 0;
    by_base_.clear();
    by_size_.clear();
    insert_free(base_ + kFirst, VA_DEVICE_BYTES - kFirst);
  }

  void insert_free(uint64_t base, uint64_t bytes) {
    by_base_[base] = bytes;
    by_size_.insert({bytes, base});
  }

  void erase_free(uint64_t base, uint64_t bytes) {
    by_base_.erase(base);
    by_size_.erase({bytes, base});
  }

  // Cut [base, base + need) out of the free piece [start, start + bytes).
  void take(uint64_t start, uint64_t bytes, uint64_t base, uint64_t need) {
    erase_free(start, bytes);
    if (base > start)
      insert_free(start, base - start);
    const uint64_t rest = start + bytes - (base + need);
    if (rest)
      insert_free(base + need, rest);
  }

  void give(uint64_t base, uint64_t bytes) {
    const auto after = by_base_.lower_bound(base);
    if (after != by_base_.end() && base + bytes == after->first) {
      const uint64_t more = after->second;
      erase_free(base + bytes, more);
      bytes += more;
    }
    const auto next = by_base_.lower_bound(base);
    if (next != by_base_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == base) {
        erase_free(before, size);
        base = before;
        bytes += size;
      }
    }
    insert_free(base, bytes);
  }

  void forget_contents(uint64_t base, uint64_t owned) {
    std::memset(shadow_of(base), 0, owned >> VA_GRANULE_SHIFT);
    const uint64_t first = round_up(base, kPage);
    const uint64_t last = (base + owned) / kPage * kPage;
    if (first < last && last - first >= kReturnedBytes)
      madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
    if (!shared_.empty())
      forget_shared(first, last);
  }

  // Pages in the file are forgotten there.
  void forget_shared(uint64_t first, uint64_t last) {
    for (const auto &[start, end] : shared_) {
      const uint64_t from = start > first ? start : first, to = end < last ? end : last;
      if (from < to)
        madvise(reinterpret_cast<void *>(from), to - from, MADV_REMOVE);
    }
  }

  // Pages nobody has touched read as zero, and need no place in the file.
  int move_pages(uint64_t first, uint64_t last) {
    static const char zeros[kReturnedBytes] = {};
    const va::HeldWrites held(first, last);
    for (uint64_t at = first; at < last; at += kReturnedBytes) {
      const uint64_t bytes = last - at < kReturnedBytes ? last - at : kReturnedBytes;
      const void *const from = reinterpret_cast<const void *>(at);
      if (std::memcmp(from, zeros, bytes) &&
          pwrite(fd_, from, bytes, static_cast<off_t>(at - base_)) != static_cast<ssize_t>(bytes))
        return ENOSPC;
    }
    void *const want = reinterpret_cast<void *>(first);
    const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    return mmap(want, last - first, PROT_READ | PROT_WRITE, flags, fd_,
                static_cast<off_t>(first - base_)) == MAP_FAILED
               ? errno
               : 0;
  }

  bool commit(uint64_t end) {
    if (end <= committed_)
      return true;
    uint64_t to = round_up(end, kCommitStep);
    if (to > base_ + VA_DEVICE_BYTES)
      to = base_ + VA_DEVICE_BYTES;
    const int rw = PROT_READ | PROT_WRITE;
    const uint64_t bytes = to - committed_;
    if (mprotect(reinterpret_cast<void *>(committed_), bytes, rw) ||
        mprotect(shadow_of(committed_), bytes >> VA_GRANULE_SHIFT, rw))
      return false;
    committed_ = to;
    return true;
  }

  int device_ = 0;
  uint64_t base_ = 0;
  uint64_t capacity_ = 0;
  uint64_t used_ = 0;
  uint64_t committed_ = 0; // first address not yet writable, when committing lazily
  int fd_ = -1; // holds the pages that were shared
  std::map<uint64_t, uint64_t> shared_; // first page to the one behind the last
  Map live_;
  std::deque<std::pair<uint64_t, uint64_t>> retired_; // freed, and not to be given out yet
  uint64_t retired_bytes_ = 0;
  std::map<uint64_t, uint64_t> by_base_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

int reserve(uint64_t base, uint64_t bytes, int protection) {
  void *const want = reinterpret_cast<void *>(base);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void *const got = mmap(want, bytes, protection, flags, -1, 0);
  if (got == MAP_FAILED)
    return errno;
  if (got != want) { // a kernel that does not know the flag took it as a hint
    munmap(got, bytes);
    return EEXIST;
  }
  return 0;
}

class ArenaState {
public:
  ArenaState() {
    error_ = open();
    for (int i = 0; i < kRegions; ++i)
      regions_[i].set_up(i);
  }

  int error() const { return error_; }
  bool lazily_committed() const { return lazy_; }
  Region *region(int index) {
    return index >= 0 && index < kRegions ? &regions_[index] : nullptr;
  }
  Region *region_of(uint64_t address) {
    if (address < VA_ARENA_BASE || address - VA_ARENA_BASE >= VA_ARENA_BYTES)
      return nullptr;
    return region(static_cast<int>((address - VA_ARENA_BASE) >> VA_DEVICE_SHIFT));
  }

  std::mutex mutex;
  uint32_t serial = 0;
  std::shared_mutex host_mutex;
  std::map<uint64_t, uint64_t> host;

private:
  // Strict overcommit refuses terabytes of writable memory; then pages become writable as used.
  int open() {
    const int rw = PROT_READ | PROT_WRITE;
    if (!reserve(VA_ARENA_BASE, VA_ARENA_BYTES, rw)) {
      if (!reserve(VA_SHADOW_BASE, kShadowBytes, rw))
        return 0;
      munmap(reinterpret_cast<void *>(VA_ARENA_BASE), VA_ARENA_BYTES);
    }
    lazy_ = true;
    if (const int failed = reserve(VA_ARENA_BASE, VA_ARENA_BYTES, PROT_NONE))
      return failed;
    const int failed = reserve(VA_SHADOW_BASE, kShadowBytes, PROT_READ);
    if (failed)
      munmap(reinterpret_cast<void *>(VA_ARENA_BASE), VA_ARENA_BYTES);
    return failed;
  }

  int error_ = 0;
  bool lazy_ = false;
  Region regions_[kRegions];
};

// Never destroyed: clients free device memory from destructors that run after ours would.
ArenaState &state() {
  static ArenaState *const instance = new ArenaState;
  return *instance;
}

template <typename Result, typename Body> Result guarded(Result failure, Body body) noexcept {
  try {
    ArenaState &arena = state();
    if (arena.error())
      return failure;
    return body(arena);
  } catch (...) {
    return failure;
  }
}

bool owned(uint64_t address, uint64_t bytes) {
  const uint8_t *first = shadow_of(address);
  const uint8_t *const last = shadow_of(address + bytes - 1);
  for (; first <= last; ++first)
    if (!__atomic_load_n(first, __ATOMIC_RELAXED))
      return false;
  return true;
}

} // namespace

namespace va {

ArenaMode arena_mode() { return {state().error() == 0, state().lazily_committed()}; }

} // namespace va

extern "C" {

int va_arena_open(void) {
  try {
    return state().error();
  } catch (...) {
    return ENOMEM;
  }
}

void va_arena_watch(const va_arena_watcher *watcher) { g_watcher = *watcher; }

void va_arena_set_capacity(int device, uint64_t bytes) {
  guarded(0, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    if (Region *const region = arena.region(device))
      region->set_capacity(bytes);
    return 0;
  });
}

uint64_t va_arena_capacity(int device) {
  return guarded<uint64_t>(0, [&](ArenaState &arena) -> uint64_t {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    const Region *const region = arena.region(device);
    return region ? region->capacity() : 0;
  });
}

uint64_t va_arena_used(int device) {
  return guarded<uint64_t>(0, [&](ArenaState &arena) -> uint64_t {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    const Region *const region = arena.region(device);
    return region ? region->used() : 0;
  });
}

uint64_t va_arena_alloc(int device, uint64_t bytes, uint64_t align) {
  return guarded<uint64_t>(0, [&](ArenaState &arena) -> uint64_t {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    Region *const region = arena.region(device);
    if (!region || bytes > VA_DEVICE_BYTES || align > VA_DEVICE_BYTES)
      return 0;
    const uint64_t step = round_up(align > VA_GRANULE ? align : VA_GRANULE, VA_GRANULE);
    return region->allocate(bytes, step, ++arena.serial, arena.lazily_committed());
  });
}

int va_arena_free(uint64_t base) {
  return guarded(-1, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    Region *const region = arena.region_of(base);
    return region && region->release(base, false) ? 0 : -1;
  });
}

int va_arena_retire(uint64_t base) {
  return guarded(-1, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    Region *const region = arena.region_of(base);
    return region && region->release(base, true) ? 0 : -1;
  });
}

int va_arena_find(uint64_t address, va_allocation *out) {
  return guarded(0, [&](ArenaState &arena) {
    if (address >= VA_VIRTUAL_BASE && address < VA_VIRTUAL_END)
      return va::virtual_find(address, out) ? 1 : 0;
    const std::lock_guard<std::mutex> lock(arena.mutex);
    const Region *const region = arena.region_of(address);
    return region && region->find(address, out) ? 1 : 0;
  });
}

int va_arena_range(uint64_t address, uint64_t *base, uint64_t *bytes) {
  return guarded(0, [&](ArenaState &arena) {
    if (address >= VA_VIRTUAL_BASE && address < VA_VIRTUAL_END) {
      va_allocation run{};
      const bool found = va::virtual_find(address, &run);
      *base = run.base;
      *bytes = run.bytes;
      return found ? 1 : 0;
    }
    {
      const std::lock_guard<std::mutex> lock(arena.mutex);
      if (const Region *const region = arena.region_of(address))
        return region->range(address, base, bytes) ? 1 : 0;
    }
    const std::shared_lock<std::shared_mutex> lock(arena.host_mutex);
    auto it = arena.host.upper_bound(address);
    if (it == arena.host.begin())
      return 0;
    --it;
    *base = it->first;
    *bytes = it->second;
    return address - *base < *bytes ? 1 : 0;
  });
}

int va_arena_nearest(uint64_t address, va_allocation *out) {
  return guarded(0, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    uint64_t best = UINT64_MAX;
    const Region *const home = arena.region_of(address);
    for (int i = 0; i < kRegions; ++i) {
      const Region *const region = arena.region(i);
      if (i == VA_WINDOW_DEVICE && region != home)
        continue; // nobody allocated those by name
      va_allocation candidate;
      const uint64_t distance = region->nearest(address, &candidate);
      if (distance >= best)
        continue;
      best = distance;
      if (out)
        *out = candidate;
    }
    va_allocation mapped;
    const uint64_t distance = va::virtual_nearest(address, &mapped);
    if (distance < best) {
      best = distance;
      if (out)
        *out = mapped;
    }
    return best == UINT64_MAX ? 0 : 1;
  });
}

int va_arena_register_host(uint64_t base, uint64_t bytes) {
  return guarded(-1, [&](ArenaState &arena) {
    const std::unique_lock<std::shared_mutex> lock(arena.host_mutex);
    if (!base || !bytes || base + bytes < base)
      return -1;
    const auto after = arena.host.lower_bound(base);
    if (after != arena.host.end() && after->first < base + bytes)
      return -1;
    if (after != arena.host.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second > base)
        return -1;
    }
    arena.host[base] = bytes;
    return 0;
  });
}

int va_arena_unregister_host(uint64_t base) {
  return guarded(-1, [&](ArenaState &arena) {
    const std::unique_lock<std::shared_mutex> lock(arena.host_mutex);
    return arena.host.erase(base) ? 0 : -1;
  });
}

int va_arena_accessible(uint64_t address, uint64_t bytes) {
  return guarded(0, [&](ArenaState &arena) {
    if (!bytes || address + bytes < address)
      return bytes ? 0 : 1;
    if (address >= VA_ARENA_BASE && address + bytes <= VA_ARENA_BASE + VA_ARENA_BYTES)
      return owned(address, bytes) ? 1 : 0;
    const std::shared_lock<std::shared_mutex> lock(arena.host_mutex);
    auto it = arena.host.upper_bound(address);
    if (it == arena.host.begin())
      return 0;
    --it;
    return address + bytes <= it->first + it->second ? 1 : 0;
  });
}

void va_arena_reset(void) {
  guarded(0, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    for (int i = 0; i < kRegions; ++i)
      if (i != VA_WINDOW_DEVICE) // the scheduler's; it keeps them for the next launch
        arena.region(i)->release_all();
    va::virtual_reset();
    const std::unique_lock<std::shared_mutex> host_lock(arena.host_mutex);
    arena.host.clear();
    return 0;
  });
}

int va_arena_charge(int device, uint64_t bytes) {
  return guarded(-1, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    Region *const region = arena.region(device);
    return region && region->charge(bytes) ? 0 : -1;
  });
}

void va_arena_discharge(int device, uint64_t bytes) {
  guarded(0, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    if (Region *const region = arena.region(device))
      region->discharge(bytes);
    return 0;
  });
}

int va_arena_share(uint64_t address, int *fd, uint64_t *offset) {
  return guarded(-1, [&](ArenaState &arena) {
    const std::lock_guard<std::mutex> lock(arena.mutex);
    Region *const region = arena.region_of(address);
    return region ? region->share(address, fd, offset) : -1;
  });
}

} // extern "C"
