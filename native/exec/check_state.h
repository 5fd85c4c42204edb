// What the parts of the checker share: the state of a CTA under check, findings, memory's shadows.
//
// A launch under check runs on one worker, so kernels' calls come one at a time; one mutex keeps
// them apart from host threads that allocate and copy.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "va100/check.h"
#include "worker.h"

namespace va::check {

constexpr uint32_t kNoSite = 0xffffffffu;
constexpr uint32_t kAllLanes = 0xffffffffu;

enum Space : uint32_t { kGeneric = 0, kGlobal = 1, kShared = 2, kLocal = 3 };
enum Kind : uint32_t { kLoad = 0, kStore = 1, kAtomic = 2, kReduction = 3 };
enum Order : uint32_t { kWeak, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSc };
enum Scope : uint32_t { kNoScope = 0, kCtaScope = 1, kClusterScope = 2, kGpuScope = 3, kSysScope = 4 };

// One memory instruction, unpacked from the number the compiler gives.
struct Access {
  uint32_t site, count, bytes, space, kind, order, scope;
  uint32_t same, group;  // what is known of a whole warp's addresses: a Form's

  // One element of so many bytes, of global memory.
  Access(uint32_t site_, uint32_t bytes_, uint32_t kind_, uint32_t order_)
      : site(site_), count(1), bytes(bytes_), space(1), kind(kind_), order(order_), scope(0),
        same(0), group(0) {}
  explicit Access(uint64_t info)
      : site(static_cast<uint32_t>(info)), count(info >> 32 & 15), bytes(1u << (info >> 40 & 7)),
        space(info >> 36 & 7), kind(info >> 43 & 7), order(info >> 46 & 7), scope(info >> 49 & 7),
        same(info >> 52 & 1), group(info >> 53 & 63) {}

  uint32_t lane_bytes() const { return count * bytes; }
  bool reads() const { return kind != kStore; }
  bool writes() const { return kind != kLoad; }
  bool strong() const { return order != kWeak; }
  bool acquires() const { return order == kAcquire || order == kAcqRel || order == kSc; }
  bool releases() const { return order == kRelease || order == kAcqRel || order == kSc; }
};

// A bit a byte; memory for it is made as it is touched.
class Bits {
 public:
  Bits() = default;
  explicit Bits(uint64_t count);
  ~Bits();
  Bits(Bits &&other) noexcept { swap(other); }
  Bits &operator=(Bits &&other) noexcept {
    swap(other);
    return *this;
  }
  Bits(const Bits &) = delete;
  Bits &operator=(const Bits &) = delete;

  uint64_t count() const { return count_; }
  bool test(uint64_t i) const { return words_[i >> 6] >> (i & 63) & 1; }
  bool all(uint64_t first, uint64_t count) const;
  bool none(uint64_t first, uint64_t count) const;
  void set(uint64_t first, uint64_t count);
  void assign(uint64_t i, bool value);
  void clear();

 private:
  void swap(Bits &other) {
    std::swap(words_, other.words_);
    std::swap(count_, other.count_);
  }
  uint64_t *words_ = nullptr;
  uint64_t count_ = 0;
};

// ------------------------------------------------------------------ happens-before

using Clocks = std::vector<uint32_t>;  // by thread of a CTA: the last epoch known

struct SyncObject;

// All that was released to an object up to a version.
struct Known {
  SyncObject *object;
  uint32_t version;
  uint32_t scope;
};

struct Release {
  uint32_t cta, warp, scope;
  uint64_t tag;  // equal for lanes that released by one instruction
  uint32_t row[VA_LANES];
  std::shared_ptr<const Clocks> base;
};

// A place in memory through which threads release and acquire.
struct SyncObject {
  uint64_t serial = 0;
  uint32_t given = 0;  // highest version anybody acquired
  std::vector<Release> releases;
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_cta;
  std::vector<std::pair<uint32_t, Known>> inherited;  // from which release on
};

struct Snapshot {
  uint64_t tag = 0;
  uint32_t scope = kNoScope;
  uint32_t row[VA_LANES];
  std::shared_ptr<const Clocks> base;
  std::vector<Known> known;
};

// What a lane has to do with objects; most have nothing.
struct LaneOrder {
  std::vector<Known> known;
  std::vector<Known> pending;  // read by a relaxed access: known after a fence or a barrier
  std::unique_ptr<Snapshot> fence;
};

// A cp.async that has not been waited for.
struct PendingCopy {
  uint64_t address;
  uint32_t bytes, site, lane, group;
  uint32_t event;  // in the CTA's page, as that numbers them
};

// [a][b]: the last epoch of lane b that lane a is after.
struct Rows {
  uint32_t row[VA_LANES][VA_LANES] = {};
};

struct WarpOrder {
  uint32_t epoch = 1;
  uint32_t full = 0;           // every lane is after this epoch of every other
  std::unique_ptr<Rows> rows;  // what some lanes know beyond that, once some met without others
  std::shared_ptr<const Clocks> base;
  std::unique_ptr<LaneOrder[]> order;
  uint32_t last_site[VA_LANES];
  uint32_t owed = 0, owed_site = kNoSite;  // lanes that did not come to a barrier, and which
  uint32_t owed_looks = 0;                 // how often they are still looked at
  std::vector<PendingCopy> copies;
  uint32_t group[VA_LANES];  // of copies, the one a lane may still add to

  uint32_t knows(uint32_t lane, uint32_t other) const {
    return rows ? std::max(rows->row[lane][other], full) : full;
  }
};

struct BarrierState {
  std::shared_ptr<Clocks> clocks;
  const Clocks *merged = nullptr;
  std::vector<Known> known;
  uint32_t expected = 0;
  bool counted = false;
  // The meeting before this one: who counts otherwise has to come after it, not by luck.
  std::shared_ptr<const Clocks> before;
  uint32_t before_expected = 0;
};

struct Page;
void delete_page(Page *page);

struct CtaState {
  Cta *cta = nullptr;
  uint64_t serial = 0;  // of this run of the CTA, among all
  uint64_t index = ~uint64_t{0};
  uint64_t launch = 0;
  uint32_t gen = 1;  // barriers of the whole CTA that it has passed, and one
  std::unique_ptr<Page, void (*)(Page *)> page{nullptr, delete_page};  // of its shared memory, for races
  Bits shared_defined, local_defined;
  bool ordered = false;  // somebody has a LaneOrder
  std::vector<WarpOrder> warps;
  BarrierState barriers[kBarriers];
};

// ------------------------------------------------------------------ memory

struct Tracked {
  uint64_t bytes = 0;
  bool has_defined = false;
  Bits defined;
};

struct Range {
  uint64_t base = 1, end = 0;
  Bits *defined = nullptr;
  bool window = false;  // a CTA's shared and local memory

  bool holds(uint64_t address) const { return address - base < end - base && end > base; }
};

// How the lanes of an access lie, as far as that shows at a glance: in groups of lanes that follow
// one another and go to one place, or to places one after another.
struct Form {
  uint32_t first = 0, count = 0;  // lanes
  uint32_t group = 0;             // of lanes; 0: here and there
  bool same = false;              // a group goes to one place, not to places in a row

  uint64_t span(uint64_t bytes) const { return same ? bytes : bytes * group; }
};

// Where all lanes of an access land: at their addresses, moved by the same distance.
struct Ground {
  uint64_t delta;       // to the host's address
  uint32_t space;       // kGlobal, kShared or kLocal
  Bits *defined;
  uint64_t origin;      // the address at which `defined` begins
};

// Where a lane's access lands.
struct Place {
  uint64_t address;     // in the host's terms
  uint32_t space;       // kGlobal, kShared or kLocal
  Bits *defined;
  uint64_t offset;      // of the address in `defined`
};

struct FindingKey {
  uint32_t kind, first, second, how;
  bool operator<(const FindingKey &o) const {
    return std::tie(kind, first, second, how) < std::tie(o.kind, o.first, o.second, o.how);
  }
};

struct State {
  std::mutex mutex;  // kernels' calls take it to add findings and to read the mail only
  uint32_t tools = 0;
  void (*sink)(void) = nullptr;

  // memory
  std::map<uint64_t, Tracked> tracked;
  std::map<uint64_t, uint64_t> freed;  // base to bytes
  std::unordered_map<uint64_t, Cta *> windows;
  bool streams = false;  // there are some besides the legacy stream
  // What host threads tell while a checked kernel runs waits here for the kernel's next call.
  std::vector<std::function<void(State &)>> mail;
  std::atomic<bool> has_mail{false};

  // the launch that runs
  Launch *launch = nullptr;
  uint32_t kernel = 0;
  uint64_t serial = 0, ctas = 0, tag = 0;
  uint64_t checked = 0;  // launches so far whose kernels are checked
  Range ranges[8];
  uint32_t next_range = 0;
  std::unordered_map<Cta *, std::unique_ptr<CtaState>> states;
  std::map<FindingKey, size_t> seen;  // of this launch
  std::vector<va_check_finding> findings;

  bool on(uint32_t tool) const { return tools & tool; }
};

State &state();
// Change what is known of memory: now, or when the running kernel next calls.
void tell(State &s, std::function<void(State &)> change);
void read_mail(State &s);
State &entered();

CtaState &cta_state(State &s, Cta *cta);
inline WarpOrder &warp_state(CtaState &c, const va_warp *w) { return c.warps[w->warp_id]; }

// The finding of a key, made when it is the first; count is raised.
va_check_finding *found(State &s, const FindingKey &key, bool *fresh);
void describe(va_check_access *a, const State &s, uint32_t site, uint32_t kind, uint64_t cta,
              uint32_t thread);
void tell_near(va_check_finding *f, uint64_t address);

inline uint32_t thread_of(const va_warp *w, uint32_t lane) { return w->warp_id * VA_LANES + lane; }

// Bounds, lifetime and definedness of a lane's access; false when it may not be made.
bool check_place(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                 uint64_t address, uint64_t limit, Place *place);
void check_defined(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                   const Place &place);
void define(const Place &place, uint32_t bytes);
void define_everything(State &s);

// Whether all lanes may access where they say, in one place; false: look at each.
bool find_ground(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                 const uint64_t *addresses, const Form &form, Ground *ground);
// Definedness of such an access, and what it defines.
void check_initialised(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                       const uint64_t *addresses, const Form &form, const Ground &ground);

// An access of a warp whose lanes stand on one ground.
void check_races(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                 const uint64_t *addresses, const Form &form, const Ground &ground,
                 const uint8_t *values);
// Whether this launch has written any of some bytes.
bool written_by_launch(uint64_t address, uint32_t bytes);
// One access of one lane against those before it.  `value` is what it will store, or null.
void check_race(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                const Place &place, const uint8_t *value, uint32_t stride);
// After the lanes of an atomic or ordered access: what was released and acquired.
bool wants_order(const WarpOrder &warp, const Access &a);
void order_access(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                  const Place *places);
void order_fence(State &s, CtaState &c, va_warp *w, uint32_t lanes, uint32_t scope);
void join_lanes(CtaState &c, va_warp *w, uint32_t lanes);
void arrive(CtaState &c, va_warp *w, uint32_t id, uint32_t lanes, uint32_t threads);
void released(State &s, CtaState &c, uint32_t id, bool all);
void copy_issued(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                 const Place &place);
void copies_committed(CtaState &c, va_warp *w, uint32_t lanes);
void copies_waited(State &s, CtaState &c, va_warp *w, uint32_t lanes, uint32_t left, bool all);
void forget_races(State &s);

void barrier_released(Cta *cta, uint32_t id, bool all);
void check_masks(State &s, CtaState &c, va_warp *w, uint32_t site, uint32_t lanes,
                 const uint32_t *members);
void check_barrier(State &s, CtaState &c, va_warp *w, uint32_t site, uint32_t lanes, uint32_t here,
                   uint32_t id, uint32_t threads, uint32_t waits);
void check_finished_warps(State &s, CtaState &c);
// Lanes that some barrier missed are seen elsewhere.
void check_owed(State &s, CtaState &c, uint32_t warp, uint32_t lanes, uint32_t site);

}  // namespace va::check

namespace va {

// The scheduler's calls; cheap when nothing is checked.
void check_begin(Launch *launch);
void check_end(Launch *launch);
inline void check_released(Cta *cta, uint32_t id, bool all) {
  if (__builtin_expect(cta->check != nullptr, 0)) check::barrier_released(cta, id, all);
}
// A texel that a lane of a checked kernel reads or writes, at its address.
enum class TexelAccess { kLoad, kStore, kReduce, kFetch };
void tell_texel(va_warp *w, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes,
                TexelAccess access);
inline void check_texel(va_warp *w, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes,
                        TexelAccess access) {
  if (__builtin_expect(warp_of(w)->cta->worker->launch->request->variant->check_id != 0, 0))
    tell_texel(w, site, lane, address, bytes, access);
}
void check_bad_device_free(va_warp *w, uint32_t site, uint32_t lane, uint64_t address);

}  // namespace va
