// Bounds and lifetime of every access to the byte, which bytes have been given a value, and what
// the driver tells of its memory.
#include <algorithm>

#include "check_stream.h"

namespace va::check {
namespace {

// The allocation around an address, by way of the few touched last.
Range *range_of(State &s, uint64_t address) {
  for (Range &range : s.ranges)
    if (range.holds(address)) return &range;
  va_allocation owner;
  if (!va_arena_find(address, &owner)) return nullptr;
  Range &range = s.ranges[s.next_range++ % 8];
  range = {owner.base, owner.base + owner.bytes, nullptr, s.windows.count(owner.base) != 0};
  auto known = s.tracked.find(owner.base);
  if (known != s.tracked.end() && known->second.has_defined) range.defined = &known->second.defined;
  return &range;
}

va_check_finding *bad_access(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                             uint64_t address, uint32_t kind, uint32_t space) {
  bool fresh = false;
  va_check_finding *f = found(s, {kind, a.site, kNoSite, space}, &fresh);
  if (!f || !fresh) return nullptr;
  f->address = address;
  f->size = a.lane_bytes();
  f->space = space;
  constexpr uint32_t kHow[] = {VA_ACCESS_READ, VA_ACCESS_WRITE, VA_ACCESS_ATOMIC, VA_ACCESS_ATOMIC};
  uint32_t how = kHow[a.kind & 3];
  describe(&f->first, s, a.site, how, c.index, thread_of(w, lane));
  return f;
}

bool freed_before(const State &s, uint64_t address, va_allocation *was) {
  auto it = s.freed.upper_bound(address);
  if (it == s.freed.begin()) return false;
  --it;
  if (address - it->first >= it->second) return false;
  *was = va_allocation{it->first, it->second, 0, 0};
  return true;
}

bool refuse(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane, uint64_t address,
            uint32_t kind, uint32_t space) {
  if (!s.on(VA_CHECK_MEMORY)) return false;
  va_allocation was{};
  bool freed = space == kGlobal && kind == VA_FOUND_OUT_OF_BOUNDS && freed_before(s, address, &was);
  if (freed) kind = VA_FOUND_FREED;
  va_check_finding *f = bad_access(s, c, w, a, lane, address, kind, space);
  if (!f) return false;
  if (freed) {
    f->near = was;
    f->has_near = 1;
  } else if (space == kGlobal) {
    tell_near(f, address);
  } else if (space == kShared) {
    f->near = va_allocation{0, w->shared_bytes, 0, 0};
    f->has_near = 1;
  } else if (space == kLocal) {
    f->near = va_allocation{0, w->local_stride, 0, 0};
    f->has_near = 1;
  }
  return false;
}

bool in_shared(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane, uint64_t offset,
               Place *place) {
  uint64_t n = a.lane_bytes();
  if (offset > w->shared_bytes || n > w->shared_bytes - offset)
    return refuse(s, c, w, a, lane, offset, VA_FOUND_OUT_OF_BOUNDS, kShared);
  *place = {reinterpret_cast<uint64_t>(w->shared) + offset, kShared,
            s.on(VA_CHECK_INIT) ? &c.shared_defined : nullptr, offset};
  return true;
}

bool in_local(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane, uint64_t offset,
              uint64_t limit, Place *place) {
  uint64_t n = a.lane_bytes();
  if (!limit) limit = w->local_stride;
  if (offset > limit || n > limit - offset) {
    refuse(s, c, w, a, lane, offset, VA_FOUND_OUT_OF_BOUNDS, kLocal);
    return false;
  }
  uint64_t at = uint64_t{w->local_stride} * thread_of(w, lane) + offset;
  *place = {reinterpret_cast<uint64_t>(c.cta->local) + at, kLocal,
            s.on(VA_CHECK_INIT) ? &c.local_defined : nullptr, at};
  return true;
}

bool in_global(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane, uint64_t address,
               Place *place) {
  uint64_t n = a.lane_bytes();
  Range *range = range_of(s, address);
  if (range && n <= range->end - address) {
    if (range->window)
      return refuse(s, c, w, a, lane, address, VA_FOUND_FOREIGN, kGlobal);
    *place = {address, kGlobal, range->defined, address - range->base};
    return true;
  }
  // Host memory that the client registered is no allocation of the arena.
  if (!range && address - VA_ARENA_BASE >= VA_ARENA_BYTES && va_arena_accessible(address, n)) {
    *place = {address, kGlobal, nullptr, 0};
    return true;
  }
  return refuse(s, c, w, a, lane, address, VA_FOUND_OUT_OF_BOUNDS, kGlobal);
}

Tracked *tracked_at(State &s, uint64_t address, uint64_t *offset) {
  auto it = s.tracked.upper_bound(address);
  if (it == s.tracked.begin()) return nullptr;
  --it;
  *offset = address - it->first;
  return *offset < it->second.bytes ? &it->second : nullptr;
}

void allocated(State &s, uint64_t base, uint64_t bytes, int defined) {
  Tracked &tracked = s.tracked[base];
  tracked.bytes = bytes;
  tracked.has_defined = !defined && s.on(VA_CHECK_INIT);
  tracked.defined = tracked.has_defined ? Bits(bytes) : Bits();
  if (tracked.defined.count() != bytes) tracked.has_defined = false;
  for (Range &range : s.ranges) range = Range{};
  auto end = s.freed.lower_bound(base + bytes);
  for (auto it = s.freed.lower_bound(base); it != end;) it = s.freed.erase(it);
}

void released(State &s, uint64_t base) {
  auto it = s.tracked.find(base);
  if (it == s.tracked.end()) return;
  s.freed[base] = it->second.bytes;
  forget_work(base, base + std::max<uint64_t>(it->second.bytes, 1));
  for (Range &range : s.ranges) range = Range{};
  s.tracked.erase(it);
}

// What is defined as a whole need not be followed any more.
void define_bytes(State &s, Tracked *tracked, uint64_t offset, uint64_t bytes) {
  tracked->defined.set(offset, bytes);
  if (offset || bytes != tracked->bytes) return;
  tracked->has_defined = false;
  for (Range &range : s.ranges) range = Range{};
}

void filled(State &s, uint64_t to, uint64_t bytes) {
  uint64_t offset = 0;
  Tracked *tracked = tracked_at(s, to, &offset);
  if (tracked && tracked->has_defined)
    define_bytes(s, tracked, offset, std::min(bytes, tracked->bytes - offset));
}

// The host gets bytes that nobody wrote: told once an allocation until somebody takes it.
void host_reads(State &s, uint64_t from, uint64_t bytes) {
  uint64_t here = 0;
  Tracked *source = tracked_at(s, from, &here);
  if (!source || !source->has_defined) return;
  bytes = std::min(bytes, source->bytes - here);
  if (!bytes || source->defined.all(here, bytes)) return;
  const bool some = !source->defined.none(here, bytes);
  uint64_t first = here;
  while (source->defined.test(first)) first++;
  va_allocation near{from - here, source->bytes, 0, 0};
  for (va_check_finding &f : s.findings) {
    if (f.kind != VA_FOUND_UNDEFINED_COPY || f.near.base != near.base || f.harmless != some)
      continue;
    f.count++;
    return;
  }
  va_check_finding f{};
  f.kind = VA_FOUND_UNDEFINED_COPY;
  f.count = 1;
  f.address = near.base + first;
  f.size = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
  f.space = kGlobal;
  f.harmless = some;
  f.has_near = 1;
  f.near = near;
  f.first.site = f.second.site = kNoSite;
  s.findings.push_back(f);
}

void copied(State &s, uint64_t to, uint64_t from, uint64_t bytes) {
  uint64_t there = 0, here = 0;
  Tracked *target = tracked_at(s, to, &there);
  if (!target) return host_reads(s, from, bytes);
  bytes = std::min(bytes, target->bytes - there);
  Tracked *source = tracked_at(s, from, &here);
  bool whole = !source || !source->has_defined || bytes > source->bytes - here ||
               source->defined.all(here, bytes);
  if (whole) {
    if (target->has_defined) define_bytes(s, target, there, bytes);
    return;
  }
  if (!target->has_defined) {  // it was defined as a whole until now
    target->defined = Bits(target->bytes);
    if (target->defined.count() != target->bytes) return;
    target->defined.set(0, target->bytes);
    target->has_defined = true;
    for (Range &range : s.ranges) range = Range{};
  }
  for (uint64_t i = 0; i < bytes; i++)
    target->defined.assign(there + i, source->defined.test(here + i));
}

void add_leak(State &s, uint64_t base, uint64_t bytes) {
  va_check_finding f{};
  f.kind = VA_FOUND_LEAK;
  f.count = 1;
  f.address = base;
  f.space = kGlobal;
  f.has_near = 1;
  f.near = va_allocation{base, bytes, 0, 0};
  f.first.site = f.second.site = kNoSite;
  s.findings.push_back(f);
}

}  // namespace

namespace {

struct Reach {
  uint64_t low, high;
  bool aligned;
};

// From the first byte to the last lane's first byte.
Reach reach_of(const Access &a, uint32_t lanes, const uint64_t *addresses, const Form &form) {
  uint64_t n = a.lane_bytes();
  bool any = (n & (n - 1)) || (a.bytes == 1 && a.count > 1);  // any alignment will do
  Reach r{~uint64_t{0}, 0, true};
  uint64_t bits = 0;
  if (form.group) {
    for (uint32_t i = 0; i < form.count; i += form.group) {
      uint64_t address = addresses[form.first + i];
      r.low = std::min(r.low, address);
      r.high = std::max(r.high, address + form.span(n) - n);
      bits |= address;
    }
    r.aligned = any || !(bits & (n - 1));
    return r;
  }
  for (uint32_t m = lanes; m; m &= m - 1) {
    uint64_t address = addresses[__builtin_ctz(m)];
    r.low = std::min(r.low, address);
    r.high = std::max(r.high, address);
    bits |= address;
  }
  r.aligned = any || !(bits & (n - 1));
  return r;
}

bool within(const Reach &r, uint64_t bytes, uint64_t limit) {
  return r.high >= r.low && r.high <= limit && bytes <= limit - r.high;
}

}  // namespace

bool find_ground(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                 const uint64_t *addresses, const Form &form, Ground *ground) {
  Reach r = reach_of(a, lanes, addresses, form);
  uint64_t n = a.lane_bytes();
  if (!r.aligned || a.space == kLocal) return false;
  Bits *defined = s.on(VA_CHECK_INIT) ? &c.shared_defined : nullptr;
  auto window = reinterpret_cast<uint64_t>(w->shared);
  if (a.space == kShared) {
    *ground = {window, kShared, defined, 0};
    return within(r, n, w->shared_bytes);
  }
  if (a.space == kGeneric && r.low - window < w->shared_bytes) {
    *ground = {0, kShared, defined, window};
    return within(Reach{r.low - window, r.high - window, true}, n, w->shared_bytes);
  }
  Range *range = range_of(s, r.low);
  if (!range || range->window) return false;
  *ground = {0, kGlobal, range->defined, range->base};
  return within(Reach{r.low - range->base, r.high - range->base, true}, n,
                range->end - range->base);
}

void tell_near(va_check_finding *f, uint64_t address) {
  f->has_near = va_arena_nearest(address, &f->near) != 0;
}

bool check_place(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                 uint64_t address, uint64_t limit, Place *place) {
  uint32_t n = a.lane_bytes();
  if (!(n & (n - 1)) && address & (n - 1) && !(a.bytes == 1 && a.count > 1))
    return refuse(s, c, w, a, lane, address, VA_FOUND_MISALIGNED,
                  a.space == kGeneric ? static_cast<uint32_t>(kGlobal) : a.space);
  if (a.space == kShared) return in_shared(s, c, w, a, lane, address, place);
  if (a.space == kLocal) return in_local(s, c, w, a, lane, address, limit, place);
  uint64_t shared = address - reinterpret_cast<uint64_t>(w->shared);
  if (a.space == kGeneric && shared < w->shared_bytes)
    return in_shared(s, c, w, a, lane, shared, place);
  uint64_t local = address - reinterpret_cast<uint64_t>(c.cta->local);
  uint64_t stride = w->local_stride;
  if (a.space == kGeneric && stride && local < stride * VA_LANES * c.warps.size()) {
    if (local / stride != thread_of(w, lane))
      return refuse(s, c, w, a, lane, address, VA_FOUND_FOREIGN, kLocal);
    return in_local(s, c, w, a, lane, local % stride, 0, place);
  }
  return in_global(s, c, w, a, lane, address, place);
}

// An element with a byte without a value is told; of local memory, which compilers copy with its
// padding, an element without any.
void check_defined(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                   const Place &place) {
  if (!place.defined || place.defined->count() < place.offset + a.lane_bytes()) return;
  for (uint32_t e = 0; e < a.count; e++) {
    uint64_t first = place.offset + uint64_t{e} * a.bytes;
    bool bad = place.space == kLocal ? place.defined->none(first, a.bytes)
                                     : !place.defined->all(first, a.bytes);
    if (!bad) continue;
    uint64_t at = place.space == kShared ? first : place.address + uint64_t{e} * a.bytes;
    Access element = a;
    element.count = 1;
    va_check_finding *f =
        bad_access(s, c, w, element, lane, at, VA_FOUND_UNINITIALISED, place.space);
    if (f && place.space == kGlobal) tell_near(f, place.address);
    if (f && place.space == kLocal) f->address = place.offset % w->local_stride;
    return;
  }
}

namespace {

void check_lane(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane, uint64_t address,
                const Ground &g) {
  check_defined(s, c, w, a, lane, Place{address + g.delta, g.space, g.defined, address - g.origin});
}

}  // namespace

void check_initialised(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                       const uint64_t *addresses, const Form &form, const Ground &g) {
  uint64_t n = a.lane_bytes();
  if (!g.defined || !g.defined->count()) return;
  uint64_t span = form.span(n);
  bool good = form.group != 0;
  for (uint32_t i = 0; good && i < form.count; i += form.group) {
    uint64_t from = addresses[form.first + i] - g.origin;
    good = !a.reads() || g.defined->all(from, span);
    if (good && a.writes()) g.defined->set(from, span);
  }
  if (good) return;
  for (uint32_t m = lanes; m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint64_t from = addresses[lane] - g.origin;
    if (a.reads() && !g.defined->all(from, n)) check_lane(s, c, w, a, lane, addresses[lane], g);
    if (a.writes()) g.defined->set(from, n);
  }
}

void define(const Place &place, uint32_t bytes) {
  if (place.defined && place.offset + bytes <= place.defined->count())
    place.defined->set(place.offset, bytes);
}

// A kernel that is not checked may have written anything.
void define_everything(State &s) {
  for (auto &[base, tracked] : s.tracked) tracked.has_defined = false;
}

}  // namespace va::check

// ------------------------------------------------------------------ told by the driver

extern "C" {

using namespace va::check;

void va_check_allocated(uint64_t base, uint64_t bytes, int defined) {
  State &s = state();
  if (!s.tools) return;
  tell(s, [=](State &st) { allocated(st, base, bytes, defined); });
}

void va_check_released(uint64_t base) {
  State &s = state();
  if (!s.tools) return;
  tell(s, [=](State &st) { released(st, base); });
}

void va_check_bad_free(uint64_t address) {
  State &s = state();
  if (!s.on(VA_CHECK_MEMORY)) return;
  void (*sink)(void) = nullptr;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    va_check_finding f{};
    f.kind = s.freed.count(address) ? VA_FOUND_DOUBLE_FREE : VA_FOUND_INVALID_FREE;
    f.count = 1;
    f.address = address;
    f.space = kGlobal;
    f.first.site = f.second.site = kNoSite;
    tell_near(&f, address);
    s.findings.push_back(f);
    if (!s.launch) sink = s.sink;
  }
  if (sink) sink();
}

void va_check_bad_range(uint64_t address, uint64_t bytes) {
  State &s = state();
  if (!s.on(VA_CHECK_MEMORY)) return;
  void (*sink)(void) = nullptr;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    va_check_finding f{};
    f.kind = VA_FOUND_BAD_RANGE;
    f.count = 1;
    f.address = address;
    f.size = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
    f.space = kGlobal;
    f.first.site = f.second.site = kNoSite;
    tell_near(&f, address);
    s.findings.push_back(f);
    if (!s.launch) sink = s.sink;
  }
  if (sink) sink();
}

void va_check_filled(uint64_t to, uint64_t bytes) {
  State &s = state();
  host_touched(s, to, bytes, true, true);
  if (!s.on(VA_CHECK_INIT)) return;
  tell(s, [=](State &st) { filled(st, to, bytes); });
}

void va_check_copied(uint64_t to, uint64_t from, uint64_t bytes) {
  State &s = state();
  host_touched(s, to, bytes, true, false);
  host_touched(s, from, bytes, false, false);
  if (!s.on(VA_CHECK_INIT)) return;
  tell(s, [=](State &st) { copied(st, to, from, bytes); });
  void (*sink)(void) = nullptr;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    if (!s.launch && !s.findings.empty()) sink = s.sink;
  }
  if (sink) sink();
}

void va_check_word_written(uint64_t to, uint64_t bytes) {
  State &s = state();
  if (!s.on(VA_CHECK_INIT)) return;
  tell(s, [=](State &st) { filled(st, to, bytes); });
}

void va_check_leaked(uint64_t base) {
  State &s = state();
  if (!s.tools) return;
  tell(s, [=](State &st) {
    auto it = st.tracked.find(base);
    if (it == st.tracked.end()) return;
    if (st.on(VA_CHECK_MEMORY)) add_leak(st, base, it->second.bytes);
    st.tracked.erase(it);
  });
}

void va_check_leaks(void) {
  State &s = state();
  if (!s.on(VA_CHECK_MEMORY)) return;
  const std::lock_guard<std::mutex> lock(s.mutex);
  for (const auto &[base, tracked] : s.tracked) add_leak(s, base, tracked.bytes);
}

}  // extern "C"
