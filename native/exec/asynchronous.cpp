// Asynchronous copies to shared memory, done where they are issued, and mbarrier objects.
//
// An mbarrier's 64 bits are, from the lowest: 20 of arrivals still pending, 20 of arrivals the next
// phase waits for, 23 of a count of phases, 1 that says that there is an object.  A CTA never
// leaves its worker, so nothing here needs a locked operation.  `info` is what access.cpp takes.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "worker.h"

namespace va {
namespace {

constexpr uint32_t kGlobal = 1, kShared = 2;
constexpr uint64_t kMostArrivals = (1u << 20) - 1;
constexpr uint64_t kPhases = (1u << 23) - 1;
constexpr uint32_t kDrop = 1, kNoComplete = 2;

constexpr uint32_t site_of(uint64_t info) { return static_cast<uint32_t>(info); }
constexpr uint32_t space_of(uint64_t info) { return static_cast<uint32_t>(info >> 36) & 7; }

[[noreturn]] void refuse(va_warp *w, uint64_t info, uint32_t lane, uint64_t address,
                         uint32_t bytes, uint32_t align, uint32_t space, bool write) {
  bool misaligned = address & (align - 1);
  fault(w, misaligned ? VA_FAULT_MISALIGNED : VA_FAULT_ILLEGAL_ADDRESS, site_of(info), lane,
        address, misaligned ? align : bytes, space, write, nullptr);
}

// An offset into the CTA's window.
uint8_t *in_shared(va_warp *w, uint64_t info, uint32_t lane, uint64_t offset, uint32_t bytes) {
  bool inside = offset <= w->shared_bytes && bytes <= w->shared_bytes - offset;
  if (__builtin_expect(!inside || (offset & (bytes - 1)), 0))
    refuse(w, info, lane, offset, bytes, bytes, kShared, true);
  return w->shared + offset;
}

bool owned(uint64_t address) {
  uint64_t t = address - VA_ARENA_BASE;
  if (__builtin_expect(t >> VA_ARENA_SHIFT, 0)) return false;
  return *reinterpret_cast<const uint8_t *>(VA_SHADOW_BASE + (t >> VA_GRANULE_SHIFT)) != 0;
}

// An aligned access never leaves its granule.
const uint8_t *in_global(va_warp *w, uint64_t info, uint32_t lane, uint64_t address,
                         uint32_t bytes, uint32_t align) {
  bool allowed = owned(address) || va_arena_accessible(address, bytes);
  if (__builtin_expect((address & (align - 1)) || !allowed, 0))
    refuse(w, info, lane, address, bytes, align, kGlobal, false);
  return reinterpret_cast<const uint8_t *>(address);
}

template <typename Act>
void each_lane(uint32_t mask, Act act) {
  for (uint32_t m = mask; m; m &= m - 1) act(static_cast<uint32_t>(__builtin_ctz(m)));
}

// amount: bytes each lane reads, null for all of them; the rest of the destination becomes zero.
template <uint32_t kBytes>
void copy(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *to, const uint64_t *from,
          const uint32_t *amount) {
  each_lane(mask, [&](uint32_t lane) {
    uint8_t *target = in_shared(w, info, lane, to[lane], kBytes);
    uint32_t bytes = amount ? std::min(amount[lane], kBytes) : kBytes;
    if (__builtin_expect(bytes == kBytes, 1)) {
      std::memcpy(target, in_global(w, info, lane, from[lane], kBytes, kBytes), kBytes);
      return;
    }
    uint8_t data[kBytes] = {};
    if (bytes) std::memcpy(data, in_global(w, info, lane, from[lane], bytes, kBytes), bytes);
    std::memcpy(target, data, kBytes);
  });
}

// ------------------------------------------------------------------ mbarrier objects

struct Phase {
  uint64_t pending, expected, number;
};

uint64_t word_of(const Phase &p) {
  return p.pending | p.expected << 20 | (p.number & kPhases) << 40 | uint64_t{1} << 63;
}

uint64_t *object(va_warp *w, uint64_t info, uint32_t lane, uint64_t address) {
  if (space_of(info) != kShared) {
    uint64_t offset = address - reinterpret_cast<uint64_t>(w->shared);
    if (offset >= w->shared_bytes) refuse(w, info, lane, address, 8, 8, space_of(info), true);
    address = offset;
  }
  return reinterpret_cast<uint64_t *>(in_shared(w, info, lane, address, 8));
}

[[noreturn]] void misuse(va_warp *w, uint64_t info, uint32_t lane, const char *text) {
  fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site_of(info), lane, 0, 0, 0, false, text);
}

Phase phase_of(va_warp *w, uint64_t info, uint32_t lane, uint64_t word) {
  if (!(word >> 63))
    misuse(w, info, lane, "there is no mbarrier: it was not initialised, or was invalidated");
  return {word & kMostArrivals, word >> 20 & kMostArrivals, word >> 40 & kPhases};
}

void arrive(va_warp *w, uint64_t info, uint32_t lane, uint64_t *place, uint64_t arrivals,
            uint32_t how) {
  Phase p = phase_of(w, info, lane, *place);
  if (arrivals == 0 || arrivals > p.pending) {
    char text[96];
    snprintf(text, sizeof text, "%llu arrivals, where %llu are pending",
             static_cast<unsigned long long>(arrivals), static_cast<unsigned long long>(p.pending));
    misuse(w, info, lane, text);
  }
  if (how & kDrop) p.expected -= arrivals;
  p.pending -= arrivals;
  if (!p.pending) {
    if (how & kNoComplete)
      misuse(w, info, lane, "an arrival with .noComplete completes the phase");
    p.pending = p.expected;
    p.number++;
    warp_of(w)->cta->worker->moves++;  // whoever waits for it may go on
  }
  *place = word_of(p);
}

}  // namespace
}  // namespace va

extern "C" {
void va_h_mbarrier_init(va_warp *, uint64_t, uint32_t, const uint64_t *, const uint32_t *);
void va_h_mbarrier_inval(va_warp *, uint64_t, uint32_t, const uint64_t *);
void va_h_mbarrier_arrive(va_warp *, uint64_t, uint32_t, const uint64_t *, const uint32_t *,
                          uint32_t, uint64_t *);
uint32_t va_h_mbarrier_test(va_warp *, uint64_t, uint32_t, const uint64_t *, const uint64_t *,
                            uint32_t);
void va_h_mbarrier_copied(va_warp *, uint64_t, uint32_t, const uint64_t *, uint32_t);

void va_h_mbarrier_init(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address,
                        const uint32_t *count) {
  va::each_lane(mask, [&](uint32_t lane) {
    uint64_t *place = va::object(w, info, lane, address[lane]);
    uint64_t n = count[lane];
    if (n == 0 || n > va::kMostArrivals) {
      char text[96];
      snprintf(text, sizeof text, "an mbarrier waits for 1 to %llu, not %llu",
               static_cast<unsigned long long>(va::kMostArrivals),
               static_cast<unsigned long long>(n));
      va::misuse(w, info, lane, text);
    }
    *place = va::word_of({n, n, 0});
  });
}

void va_h_mbarrier_inval(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address) {
  va::each_lane(mask, [&](uint32_t lane) {
    va::phase_of(w, info, lane, *va::object(w, info, lane, address[lane]));
  });
  va::each_lane(mask, [&](uint32_t lane) { *va::object(w, info, lane, address[lane]) = 0; });
}

// out: each lane's object as it was before.
void va_h_mbarrier_arrive(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address,
                          const uint32_t *count, uint32_t how, uint64_t *out) {
  va::each_lane(mask, [&](uint32_t lane) {
    uint64_t *place = va::object(w, info, lane, address[lane]);
    out[lane] = *place;
    va::arrive(w, info, lane, place, count ? count[lane] : 1, how);
  });
}

// The lanes whose phase, given by a state or by its parity, is complete.
uint32_t va_h_mbarrier_test(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address,
                            const uint64_t *wanted, uint32_t by_parity) {
  uint32_t done = 0;
  va::each_lane(mask, [&](uint32_t lane) {
    uint64_t word = *va::object(w, info, lane, address[lane]);
    uint64_t now = va::phase_of(w, info, lane, word).number;
    uint64_t differ = by_parity ? (now ^ wanted[lane]) & 1 : (now ^ wanted[lane] >> 40) & va::kPhases;
    done |= static_cast<uint32_t>(differ != 0) << lane;
  });
  return done;
}

// An arrival for copies that are complete; unless it was counted at the start (noinc), it is
// pending only from now on, and nothing changes.
void va_h_mbarrier_copied(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address,
                          uint32_t noinc) {
  va::each_lane(mask, [&](uint32_t lane) {
    uint64_t *place = va::object(w, info, lane, address[lane]);
    if (noinc) {
      va::arrive(w, info, lane, place, 1, 0);
    } else if (va::phase_of(w, info, lane, *place).pending >= va::kMostArrivals) {
      va::misuse(w, info, lane, "more than 1048575 arrivals are pending");
    }
  });
}

}  // extern "C"

namespace va {

#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)

extern const HelperEntry kAsyncHelpers[] = {
    {"va_h_copy_4", VA_ADDRESS(copy<4>)},
    {"va_h_copy_8", VA_ADDRESS(copy<8>)},
    {"va_h_copy_16", VA_ADDRESS(copy<16>)},
    {"va_h_mbarrier_init", VA_ADDRESS(va_h_mbarrier_init)},
    {"va_h_mbarrier_inval", VA_ADDRESS(va_h_mbarrier_inval)},
    {"va_h_mbarrier_arrive", VA_ADDRESS(va_h_mbarrier_arrive)},
    {"va_h_mbarrier_test", VA_ADDRESS(va_h_mbarrier_test)},
    {"va_h_mbarrier_copied", VA_ADDRESS(va_h_mbarrier_copied)},
    {nullptr, nullptr}};

}  // namespace va
