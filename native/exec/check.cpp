// The checker's calls: from compiled kernels, from the scheduler, from the driver and from tools.
//
// What is judged here is little: each call is taken apart and handed to the part that knows.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "check_stream.h"

namespace va::check {

// ------------------------------------------------------------------ bits

namespace {

uint64_t word_bytes(uint64_t count) { return (count + 63) / 64 * 8; }

uint64_t low_bits(uint64_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

}  // namespace

Bits::Bits(uint64_t count) : count_(count) {
  if (!count) return;
  void *p = mmap(nullptr, word_bytes(count), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    count_ = 0;
  else
    words_ = static_cast<uint64_t *>(p);
}

Bits::~Bits() {
  if (words_) munmap(words_, word_bytes(count_));
}

bool Bits::all(uint64_t first, uint64_t count) const {
  for (uint64_t i = first, end = first + count; i < end;) {
    uint64_t n = std::min<uint64_t>(64 - (i & 63), end - i);
    uint64_t want = low_bits(n) << (i & 63);
    if ((words_[i >> 6] & want) != want) return false;
    i += n;
  }
  return true;
}

bool Bits::none(uint64_t first, uint64_t count) const {
  for (uint64_t i = first, end = first + count; i < end;) {
    uint64_t n = std::min<uint64_t>(64 - (i & 63), end - i);
    if (words_[i >> 6] & low_bits(n) << (i & 63)) return false;
    i += n;
  }
  return true;
}

void Bits::set(uint64_t first, uint64_t count) {
  for (uint64_t i = first, end = first + count; i < end;) {
    uint64_t n = std::min<uint64_t>(64 - (i & 63), end - i);
    words_[i >> 6] |= low_bits(n) << (i & 63);
    i += n;
  }
}

void Bits::assign(uint64_t i, bool value) {
  uint64_t bit = uint64_t{1} << (i & 63);
  words_[i >> 6] = value ? words_[i >> 6] | bit : words_[i >> 6] & ~bit;
}

void Bits::clear() {
  if (words_) std::memset(words_, 0, word_bytes(count_));
}

// ------------------------------------------------------------------ state and findings

namespace {

State *const g_state = new State;  // never destroyed: clients free at the very end

}  // namespace

State &state() { return *g_state; }

void tell(State &s, std::function<void(State &)> change) {
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (s.launch && s.kernel) {
    s.mail.push_back(std::move(change));
    s.has_mail.store(true, std::memory_order_release);
    return;
  }
  change(s);
}

namespace {

void read_mail_locked(State &s) {
  for (const auto &change : s.mail) change(s);
  s.mail.clear();
  s.has_mail.store(false, std::memory_order_relaxed);
}

}  // namespace

void read_mail(State &s) {
  const std::lock_guard<std::mutex> lock(s.mutex);
  read_mail_locked(s);
}

namespace {

constexpr size_t kMostFindings = 4096;  // a launch's kinds of findings; counts go on

CtaState &fresh_state(State &s, Cta *cta) {
  auto &slot = s.states[cta];
  if (!slot) {
    slot = std::make_unique<CtaState>();
    slot->cta = cta;
    slot->warps.resize(cta->warps.size());
    if (s.on(VA_CHECK_INIT)) {
      slot->shared_defined = Bits(s.launch->shared_bytes);
      slot->local_defined = Bits(uint64_t{s.launch->local_stride} * VA_LANES * cta->warps.size());
    }
    s.windows[reinterpret_cast<uint64_t>(cta->shared)] = cta;
    for (Range &range : s.ranges) range = Range{};
    cta->check = slot.get();
  }
  return *slot;
}

void start_cta(State &s, CtaState &c) {
  c.index = c.cta->index;
  c.launch = s.serial;
  c.serial = ++s.ctas;
  c.ordered = false;
  c.gen = 1;
  c.shared_defined.clear();
  c.local_defined.clear();
  for (WarpOrder &warp : c.warps) {
    warp.epoch = 1;
    warp.full = 0;
    warp.rows.reset();
    std::fill_n(warp.last_site, VA_LANES, kNoSite);
    std::fill_n(warp.group, VA_LANES, 0u);
    warp.owed = 0;
    warp.base.reset();
    warp.order.reset();
    warp.copies.clear();
  }
  for (BarrierState &b : c.barriers) b = BarrierState{};
}

}  // namespace

CtaState &cta_state(State &s, Cta *cta) {
  auto *known = static_cast<CtaState *>(cta->check);
  CtaState &c = known ? *known : fresh_state(s, cta);
  if (c.index != cta->index || c.launch != s.serial) start_cta(s, c);
  return c;
}

va_check_finding *found(State &s, const FindingKey &key, bool *fresh) {
  const std::lock_guard<std::mutex> lock(s.mutex);
  auto it = s.seen.find(key);
  *fresh = it == s.seen.end();
  if (!*fresh) {
    va_check_finding *f = &s.findings[it->second];
    f->count++;
    return f;
  }
  if (s.seen.size() >= kMostFindings) return nullptr;
  s.seen[key] = s.findings.size();
  va_check_finding f{};
  f.kind = key.kind;
  f.kernel = s.kernel;
  f.launch = s.checked;
  f.count = 1;
  f.first.site = key.first;
  f.second.site = key.second;
  s.findings.push_back(f);
  return &s.findings.back();
}

void describe(va_check_access *a, const State &s, uint32_t site, uint32_t kind, uint64_t cta,
              uint32_t thread) {
  const va_launch *request = s.launch->request;
  a->site = site;
  a->kind = kind;
  a->ctaid[0] = static_cast<uint32_t>(cta % request->grid[0]);
  a->ctaid[1] = static_cast<uint32_t>(cta / request->grid[0] % request->grid[1]);
  a->ctaid[2] = static_cast<uint32_t>(cta / request->grid[0] / request->grid[1]);
  a->tid[0] = thread % request->block[0];
  a->tid[1] = thread / request->block[0] % request->block[1];
  a->tid[2] = thread / request->block[0] / request->block[1];
}

namespace {

using Lock = std::lock_guard<std::mutex>;

// Lanes' last sites, for barriers and masks that some lane never reaches.
void note_site(State &s, CtaState &c, const va_warp *w, uint32_t lanes, uint32_t site) {
  if (!s.on(VA_CHECK_SYNC)) return;
  WarpOrder &warp = warp_state(c, w);
  if (__builtin_expect(warp.owed & lanes, 0)) check_owed(s, c, w->warp_id, lanes, site);
  if (lanes == kAllLanes) {
    std::fill_n(warp.last_site, VA_LANES, site);
    return;
  }
  for (uint32_t m = lanes; m; m &= m - 1) warp.last_site[__builtin_ctz(m)] = site;
}

Form form_of(const Access &a, uint32_t lanes, const uint64_t *addresses) {
  Form form;
  form.first = static_cast<uint32_t>(__builtin_ctz(lanes));
  uint32_t low = lanes >> form.first;
  bool whole = lanes == kAllLanes;
  form.count = whole ? uint32_t{VA_LANES} : static_cast<uint32_t>(__builtin_popcount(lanes));
  if (low & (low + 1)) return form;
  if (a.group == VA_LANES || (a.group && whole)) {
    form.group = std::min(a.group, form.count);
    form.same = a.same;
    return form;
  }
  const uint64_t *at = addresses + form.first;
  uint64_t step = form.count > 1 ? at[1] - at[0] : 0, other = 0;
  if (step && step != a.lane_bytes()) return form;
  for (uint32_t i = 1; i < form.count; i++) other |= (at[i] - at[i - 1]) ^ step;
  form.group = other ? 0 : form.count;
  form.same = !step;
  return form;
}

// Lanes that the fast way did not take: some may not do what they would.
void check_each_lane(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                     const uint64_t *addresses, const uint8_t *values, uint64_t limit) {
  Place places[VA_LANES];
  uint32_t good = 0;
  for (uint32_t m = lanes; m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    if (!check_place(s, c, w, a, lane, addresses[lane], limit, &places[lane])) continue;
    good |= 1u << lane;
    if (s.on(VA_CHECK_INIT)) {
      if (a.reads()) check_defined(s, c, w, a, lane, places[lane]);
      if (a.writes()) define(places[lane], a.lane_bytes());
    }
    if (s.on(VA_CHECK_RACE) && places[lane].space != kLocal)
      check_race(s, c, w, a, lane, places[lane], values ? values + lane * a.bytes : nullptr,
                 a.bytes * VA_LANES);
  }
  if (s.on(VA_CHECK_RACE) && a.strong() && good) order_access(s, c, w, a, good, places);
}

void check_lanes(State &s, va_warp *w, const Access &a, uint32_t lanes, const uint64_t *addresses,
                 const uint8_t *values, uint64_t limit) {
  CtaState &c = cta_state(s, warp_of(w)->cta);
  WarpOrder &warp = warp_state(c, w);
  note_site(s, c, w, lanes, a.site);
  if (!(s.tools & (VA_CHECK_MEMORY | VA_CHECK_INIT | VA_CHECK_RACE))) return;
  Form form = form_of(a, lanes, addresses);
  Ground ground;
  if (!find_ground(s, c, w, a, lanes, addresses, form, &ground))
    return check_each_lane(s, c, w, a, lanes, addresses, values, limit);
  if (s.on(VA_CHECK_INIT)) check_initialised(s, c, w, a, lanes, addresses, form, ground);
  if (!s.on(VA_CHECK_RACE)) return;
  check_races(s, c, w, a, lanes, addresses, form, ground, values);
  if (!a.strong() || !wants_order(warp, a)) return;
  Place places[VA_LANES];
  for (uint32_t m = lanes; m; m &= m - 1) {
    uint64_t address = addresses[__builtin_ctz(m)];
    places[__builtin_ctz(m)] = {address + ground.delta, ground.space, nullptr, 0};
  }
  order_access(s, c, w, a, lanes, places);
}

// A fault that no tool has told of yet.
void tell_fault(State &s, const va_fault &f) {
  for (const auto &[key, place] : s.seen)
    if (key.first == f.site && (key.kind < VA_FOUND_LEAK) && f.kind <= VA_FAULT_MISALIGNED) return;
  bool fresh = false;
  va_check_finding *finding = found(s, {VA_FOUND_FAULT, f.site, f.kind, 0}, &fresh);
  if (!finding) return;
  finding->second.site = kNoSite;
  finding->size = f.kind;
  finding->address = f.address;
  finding->space = f.space;
  std::memcpy(finding->first.ctaid, f.ctaid, sizeof f.ctaid);
  std::memcpy(finding->first.tid, f.tid, sizeof f.tid);
  snprintf(finding->text, sizeof finding->text, "%.255s", f.text);
}

}  // namespace

// A call of the kernel that runs, on the one thread that runs it.
State &entered() {
  State &s = state();
  if (__builtin_expect(s.has_mail.load(std::memory_order_acquire), 0)) read_mail(s);
  return s;
}

void barrier_released(Cta *cta, uint32_t id, bool all) {
  State &s = entered();
  if (s.launch) released(s, cta_state(s, cta), id, all);
}

}  // namespace va::check

// ------------------------------------------------------------------ called by the scheduler

namespace va {

using namespace check;

void check_begin(Launch *launch) {
  State &s = state();
  if (!s.tools && !launch->request->variant->check_id) return;
  const Lock lock(s.mutex);
  s.launch = launch;
  s.serial++;
  s.kernel = launch->request->variant->check_id;
  s.checked += s.kernel != 0;
  s.seen.clear();
  s.states.clear();
  s.windows.clear();
  for (Range &range : s.ranges) range = Range{};
  forget_races(s);
  if (!s.kernel && s.on(VA_CHECK_INIT)) define_everything(s);
}

void check_end(Launch *launch) {
  State &s = state();
  if (!s.launch) return;
  void (*sink)(void) = nullptr;
  if (s.kernel && launch->request->fault.kind) tell_fault(s, launch->request->fault);
  if (s.kernel && s.streams && s.on(VA_CHECK_RACE)) launch_ended(s, uses_of(s));
  {
    const Lock lock(s.mutex);
    if (!s.findings.empty()) sink = s.sink;
    read_mail_locked(s);
    s.launch = nullptr;
    s.kernel = 0;
    s.seen.clear();
    s.states.clear();
    s.windows.clear();
    forget_races(s);
  }
  if (sink) sink();
}


void check_bad_device_free(va_warp *w, uint32_t site, uint32_t lane, uint64_t address) {
  State &s = entered();
  if (!s.kernel || !s.on(VA_CHECK_MEMORY)) return;
  bool fresh = false;
  uint32_t kind = VA_FOUND_INVALID_FREE;
  if (s.freed.count(address)) kind = VA_FOUND_DOUBLE_FREE;
  va_check_finding *f = found(s, {kind, site, kNoSite, 0}, &fresh);
  if (!f || !fresh) return;
  f->address = address;
  f->space = kGlobal;
  describe(&f->first, s, site, VA_ACCESS_WRITE, warp_of(w)->cta->index, thread_of(w, lane));
}

// Fetches see no write of the same launch for sure: the texture cache is not kept up to date.
void tell_texel(va_warp *w, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes,
                TexelAccess access) {
  State &s = entered();
  uint64_t addresses[VA_LANES];
  addresses[lane] = address;
  bool atomic = access == TexelAccess::kReduce, store = access == TexelAccess::kStore;
  Access a(site, bytes, atomic ? kReduction : store ? kStore : kLoad, atomic ? kRelaxed : kWeak);
  bool stale = access == TexelAccess::kFetch && s.on(VA_CHECK_RACE) &&
               written_by_launch(address, bytes);
  check_lanes(s, w, a, 1u << lane, addresses, nullptr, 0);
  if (!stale) return;
  bool fresh = false;
  va_check_finding *f = found(s, {VA_FOUND_STALE_TEXEL, site, kNoSite, 0}, &fresh);
  if (!f || !fresh) return;
  f->address = address;
  f->size = bytes;
  f->space = kGlobal;
  describe(&f->first, s, site, VA_ACCESS_READ, warp_of(w)->cta->index, thread_of(w, lane));
  tell_near(f, address);
}

}  // namespace va

// ------------------------------------------------------------------ called by kernels

extern "C" {

using namespace va::check;

void va_h_check_access(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *addresses,
                       const uint8_t *values, uint64_t limit);
void va_h_check_sync(va_warp *w, uint32_t site, uint32_t lanes, const uint32_t *members,
                     uint32_t orders);
void va_h_check_bar(va_warp *w, uint32_t site, uint32_t lanes, uint32_t here, uint32_t id,
                    uint32_t threads, uint32_t waits);
void va_h_check_fence(va_warp *w, uint32_t site, uint32_t lanes, uint32_t scope);
void va_h_check_copy(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *to,
                     const uint64_t *from, const uint32_t *taken);
void va_h_check_commit(va_warp *w, uint32_t lanes);
void va_h_check_wait(va_warp *w, uint32_t lanes, uint32_t left, uint32_t all);

void va_h_check_access(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *addresses,
                       const uint8_t *values, uint64_t limit) {
  lanes &= w->live;
  if (!lanes) return;
  State &s = entered();
  check_lanes(s, w, Access(info), lanes, addresses, values, limit);
}

// `orders`: the instruction also orders memory, as bar.warp.sync does.
void va_h_check_sync(va_warp *w, uint32_t site, uint32_t lanes, const uint32_t *members,
                     uint32_t orders) {
  lanes &= w->live;
  if (!lanes) return;
  State &s = entered();
  CtaState &c = cta_state(s, va::warp_of(w)->cta);
  if (s.on(VA_CHECK_SYNC)) check_masks(s, c, w, site, lanes, members);
  note_site(s, c, w, lanes, site);
  if (!s.on(VA_CHECK_RACE) || (!orders && s.on(VA_CHECK_STRICT_WARP))) return;
  for (uint32_t rest = lanes; rest;) {
    uint32_t group = members[__builtin_ctz(rest)] & lanes;
    group |= rest & -rest;
    join_lanes(c, w, group);
    rest &= ~group;
  }
}

// `lanes` act, `here` have come to the instruction.
void va_h_check_bar(va_warp *w, uint32_t site, uint32_t lanes, uint32_t here, uint32_t id,
                    uint32_t threads, uint32_t waits) {
  lanes &= w->live;
  if (!lanes || id >= va::kBarriers) return;
  State &s = entered();
  CtaState &c = cta_state(s, va::warp_of(w)->cta);
  if (s.on(VA_CHECK_SYNC))
    check_barrier(s, c, w, site, lanes, here & w->live, id, threads, waits);
  note_site(s, c, w, lanes, site);
  arrive(c, w, id, lanes, threads);
}

void va_h_check_fence(va_warp *w, uint32_t site, uint32_t lanes, uint32_t scope) {
  lanes &= w->live;
  if (!lanes) return;
  State &s = entered();
  CtaState &c = cta_state(s, va::warp_of(w)->cta);
  note_site(s, c, w, lanes, site);
  if (s.on(VA_CHECK_RACE)) order_fence(s, c, w, lanes, scope);
}

// cp.async: `taken` bytes are read, all of the target is written, later.
void va_h_check_copy(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *to,
                     const uint64_t *from, const uint32_t *taken) {
  lanes &= w->live;
  if (!lanes) return;
  State &s = entered();
  CtaState &c = cta_state(s, va::warp_of(w)->cta);
  Access target(info), source(info);
  source.space = kGlobal;
  source.kind = kLoad;
  target.space = kShared;
  target.kind = kStore;
  note_site(s, c, w, lanes, target.site);
  for (uint32_t m = lanes; m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    Place place;
    uint32_t part = std::min(taken[lane], target.lane_bytes());
    if (part) {
      source.bytes = 1;
      source.count = part;
      if (check_place(s, c, w, source, lane, from[lane], 0, &place)) {
        if (s.on(VA_CHECK_INIT)) check_defined(s, c, w, source, lane, place);
        if (s.on(VA_CHECK_RACE)) check_race(s, c, w, source, lane, place, nullptr, 0);
      }
    }
    if (!check_place(s, c, w, target, lane, to[lane], 0, &place)) continue;
    if (s.on(VA_CHECK_INIT)) define(place, target.lane_bytes());
    if (s.on(VA_CHECK_RACE)) copy_issued(s, c, w, target, lane, place);
  }
}

void va_h_check_commit(va_warp *w, uint32_t lanes) {
  State &s = entered();
  copies_committed(cta_state(s, va::warp_of(w)->cta), w, lanes & w->live);
}

// All but the last `left` groups are complete; `all`: those not committed too.
void va_h_check_wait(va_warp *w, uint32_t lanes, uint32_t left, uint32_t all) {
  State &s = entered();
  CtaState &c = cta_state(s, va::warp_of(w)->cta);
  copies_waited(s, c, w, lanes & w->live, left, all != 0);
}

// ------------------------------------------------------------------ called by tools

void va_check_enable(uint32_t tools) {
  State &s = state();
  const Lock lock(s.mutex);
  s.tools = tools;
  if (tools) return;
  s.tracked.clear();
  s.freed.clear();
  s.findings.clear();
  s.streams = false;
  s.checked = 0;
  forget_all_work();
}

uint32_t va_check_tools(void) { return state().tools; }

size_t va_check_take(va_check_finding *out, size_t capacity) {
  State &s = state();
  const Lock lock(s.mutex);
  size_t n = std::min(capacity, s.findings.size());
  std::copy_n(s.findings.begin(), n, out);
  s.findings.erase(s.findings.begin(), s.findings.begin() + static_cast<std::ptrdiff_t>(n));
  return n;
}

void va_check_set_sink(void (*sink)(void)) {
  State &s = state();
  const Lock lock(s.mutex);
  s.sink = sink;
}

}  // extern "C"

namespace va {

#define VA_ADDRESS(f) reinterpret_cast<const void *>(&f)

extern const HelperEntry kCheckHelpers[] = {
    {"va_h_check_access", VA_ADDRESS(va_h_check_access)},
    {"va_h_check_sync", VA_ADDRESS(va_h_check_sync)},
    {"va_h_check_bar", VA_ADDRESS(va_h_check_bar)},
    {"va_h_check_fence", VA_ADDRESS(va_h_check_fence)},
    {"va_h_check_copy", VA_ADDRESS(va_h_check_copy)},
    {"va_h_check_commit", VA_ADDRESS(va_h_check_commit)},
    {"va_h_check_wait", VA_ADDRESS(va_h_check_wait)},
    {nullptr, nullptr}};

}  // namespace va
