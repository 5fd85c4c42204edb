// Which access happens before which: what each lane knows of the epochs of all others.
//
// A warp counts epochs; a lane's accesses carry the epoch they were made in.  Lanes of a warp meet
// at *.sync, warps at barriers, everybody else through objects in memory, by release and acquire.
// A barrier gives all who wait one shared vector; within a warp a matrix says who knows whom.
#include <algorithm>
#include <cstring>

#include "check_order.h"

namespace va::check {
namespace {

constexpr size_t kMostVisited = 256;  // objects looked through for one question

std::unordered_map<uint64_t, SyncObject *> g_objects;
std::vector<std::unique_ptr<SyncObject>> g_all;  // also those whose CTA has ended

LaneOrder &order_of(CtaState &c, WarpOrder &warp, uint32_t lane) {
  c.ordered = true;
  if (!warp.order) warp.order = std::make_unique<LaneOrder[]>(VA_LANES);
  return warp.order[lane];
}

void learn(std::vector<Known> *list, const Known &what) {
  for (Known &k : *list) {
    if (k.object != what.object || k.scope != what.scope) continue;
    k.version = std::max(k.version, what.version);
    return;
  }
  list->push_back(what);
}

void learn_all(std::vector<Known> *list, const std::vector<Known> &more) {
  for (const Known &k : more) learn(list, k);
}

bool tells(const Release &r, uint32_t thread, uint32_t epoch) {
  if (r.warp == thread / VA_LANES && r.row[thread % VA_LANES] >= epoch) return true;
  return r.base && (*r.base)[thread] >= epoch;
}

// Whether what was released to objects tells of a thread's epoch.
bool known_through(const std::vector<Known> &known, uint32_t asker, uint32_t cta, uint32_t thread,
                   uint32_t epoch) {
  std::vector<Known> open(known), visited;
  while (!open.empty() && visited.size() < kMostVisited) {
    const Known k = open.back();
    open.pop_back();
    bool again = false;
    for (const Known &v : visited)
      again = again || (v.object == k.object && v.scope == k.scope && v.version >= k.version);
    if (again) continue;
    visited.push_back(k);
    auto own = k.object->by_cta.find(cta);
    if (own != k.object->by_cta.end()) {
      const std::vector<uint32_t> &list = own->second;
      auto end = std::lower_bound(list.begin(), list.end(), k.version);
      while (end != list.begin()) {
        const Release &r = k.object->releases[*--end];
        bool wide = r.scope > kCtaScope && k.scope > kCtaScope;
        if ((wide || cta == asker) && tells(r, thread, epoch)) return true;
      }
    }
    for (const auto &[from, more] : k.object->inherited)
      if (from < k.version) open.push_back(more);
  }
  return false;
}

SyncObject *object_at(uint64_t address, uint64_t serial, bool make) {
  auto it = g_objects.find(address);
  if (it != g_objects.end() && it->second->serial == serial) return it->second;
  if (!make) return nullptr;
  g_all.push_back(std::make_unique<SyncObject>());
  g_all.back()->serial = serial;
  g_objects[address] = g_all.back().get();
  return g_all.back().get();
}

void merge_rows(Release *into, const uint32_t *row) {
  for (uint32_t i = 0; i < VA_LANES; i++) into->row[i] = std::max(into->row[i], row[i]);
}

// Add what a lane knew at some time to an object.
void release_to(SyncObject *o, CtaState &c, uint32_t warp, const Snapshot &at, uint32_t scope) {
  auto cta = static_cast<uint32_t>(c.index);
  uint32_t version = static_cast<uint32_t>(o->releases.size());
  for (const Known &k : at.known) {
    if (k.object == o) continue;
    bool covered = false;
    for (const auto &[from, old] : o->inherited)
      covered = covered || (old.object == k.object && old.scope == k.scope &&
                            old.version >= k.version);
    if (!covered) o->inherited.emplace_back(version, k);
  }
  if (version && o->given < version) {
    Release &last = o->releases.back();
    if (last.cta == cta && last.warp == warp && last.tag == at.tag && last.scope == scope &&
        last.base == at.base) {
      merge_rows(&last, at.row);
      return;
    }
  }
  Release r;
  r.cta = cta;
  r.warp = warp;
  r.scope = scope;
  r.tag = at.tag;
  std::memcpy(r.row, at.row, sizeof r.row);
  r.base = at.base;
  o->by_cta[cta].push_back(version);
  o->releases.push_back(std::move(r));
}

Snapshot snapshot(State &s, CtaState &c, WarpOrder &warp, uint32_t lane, uint32_t scope) {
  Snapshot at;
  at.tag = s.tag;
  at.scope = scope;
  for (uint32_t i = 0; i < VA_LANES; i++) at.row[i] = warp.knows(lane, i);
  at.row[lane] = warp.epoch;
  at.base = warp.base;
  if (c.ordered && warp.order) at.known = warp.order[lane].known;
  return at;
}

uint32_t scope_or(uint32_t scope, uint32_t fallback) { return scope ? scope : fallback; }

void settle(LaneOrder *order) {
  learn_all(&order->known, order->pending);
  order->pending.clear();
}

}  // namespace

bool happens_before(const CtaState &c, const va_warp *w, uint32_t lane, const Mark &m,
                    uint32_t other_lane) {
  const WarpOrder &warp = c.warps[w->warp_id];
  uint32_t thread = m.warp * VA_LANES + other_lane;
  if (m.cta == c.serial) {
    if (m.warp == w->warp_id && warp.knows(lane, other_lane) >= m.epoch) return true;
    if (warp.base && (*warp.base)[thread] >= m.epoch) return true;
  }
  if (!c.ordered || !warp.order || warp.order[lane].known.empty()) return false;
  auto index = static_cast<uint32_t>(c.index);
  return known_through(warp.order[lane].known, index, m.index, thread, m.epoch);
}

bool lacks_acquire(const CtaState &c, const va_warp *w, uint32_t lane, const Mark &m,
                   uint32_t other_lane) {
  const WarpOrder &warp = c.warps[w->warp_id];
  if (!c.ordered || !warp.order || warp.order[lane].pending.empty()) return false;
  return known_through(warp.order[lane].pending, static_cast<uint32_t>(c.index), m.index,
                       m.warp * VA_LANES + other_lane, m.epoch);
}

// Whether an access has to do with objects at all.
bool wants_order(const WarpOrder &warp, const Access &a) {
  return a.releases() || warp.order || (a.reads() && !g_objects.empty());
}

void order_access(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                  const Place *places) {
  WarpOrder &warp = warp_state(c, w);
  uint32_t scope = a.order == kVolatile ? uint32_t{kSysScope} : scope_or(a.scope, kGpuScope);
  bool told = false;
  s.tag++;
  for (uint32_t m = lanes; a.writes() && m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Snapshot *fence = warp.order ? warp.order[lane].fence.get() : nullptr;
    if (!a.releases() && !fence) continue;
    const Place &p = places[lane];
    SyncObject *o = object_at(p.address, p.space == kShared ? c.serial : 0, true);
    if (a.releases()) {
      release_to(o, c, w->warp_id, snapshot(s, c, warp, lane, scope), scope);
      told = true;
    } else {
      release_to(o, c, w->warp_id, *fence, std::min(scope, fence->scope));
    }
  }
  for (uint32_t m = lanes; a.reads() && a.kind != kReduction && m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Place &p = places[lane];
    SyncObject *o = object_at(p.address, p.space == kShared ? c.serial : 0, false);
    if (!o || o->releases.empty()) continue;
    Known k{o, static_cast<uint32_t>(o->releases.size()), scope};
    o->given = std::max(o->given, k.version);
    LaneOrder &order = order_of(c, warp, lane);
    learn(a.acquires() ? &order.known : &order.pending, k);
  }
  if (told) warp.epoch++;
}

void order_fence(State &s, CtaState &c, va_warp *w, uint32_t lanes, uint32_t scope) {
  WarpOrder &warp = warp_state(c, w);
  s.tag++;
  for (uint32_t m = lanes; m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    LaneOrder &order = order_of(c, warp, lane);
    settle(&order);
    Snapshot at = snapshot(s, c, warp, lane, scope_or(scope, kSysScope));
    if (!order.fence) order.fence = std::make_unique<Snapshot>();
    *order.fence = std::move(at);
  }
  warp.epoch++;
}

namespace {

// Lanes of a warp meet: each is after all that the others did.
void join_rows(WarpOrder &warp, uint32_t live, uint32_t lanes) {
  if (!(live & ~lanes)) {
    warp.full = warp.epoch;
    return;
  }
  if (!warp.rows) warp.rows = std::make_unique<Rows>();
  auto &row = warp.rows->row;
  uint32_t joined[VA_LANES] = {};
  for (uint32_t m = lanes; m; m &= m - 1)
    for (uint32_t i = 0; i < VA_LANES; i++)
      joined[i] = std::max(joined[i], row[__builtin_ctz(m)][i]);
  for (uint32_t m = lanes; m; m &= m - 1) joined[__builtin_ctz(m)] = warp.epoch;
  for (uint32_t m = lanes; m; m &= m - 1)
    std::memcpy(row[__builtin_ctz(m)], joined, sizeof joined);
}

}  // namespace

void join_lanes(CtaState &c, va_warp *w, uint32_t lanes) {
  WarpOrder &warp = warp_state(c, w);
  join_rows(warp, w->live, lanes);
  warp.epoch++;
  if (!c.ordered || !warp.order) return;
  std::vector<Known> all;
  for (uint32_t m = lanes; m; m &= m - 1) {
    LaneOrder &order = warp.order[__builtin_ctz(m)];
    settle(&order);
    learn_all(&all, order.known);
  }
  if (all.empty()) return;
  for (uint32_t m = lanes; m; m &= m - 1) warp.order[__builtin_ctz(m)].known = all;
}

// What a warp brings to a barrier; a barrier of the whole CTA takes everybody's epoch at its end.
void arrive(CtaState &c, va_warp *w, uint32_t id, uint32_t lanes, uint32_t threads) {
  BarrierState &b = c.barriers[id];
  WarpOrder &warp = warp_state(c, w);
  if (threads) {
    if (!b.clocks) b.clocks = std::make_shared<Clocks>(c.warps.size() * VA_LANES, 0);
    Clocks &clocks = *b.clocks;
    if (warp.base && warp.base.get() != b.merged) {
      for (size_t i = 0; i < clocks.size(); i++) clocks[i] = std::max(clocks[i], (*warp.base)[i]);
      b.merged = warp.base.get();
    }
    uint32_t *own = &clocks[w->warp_id * VA_LANES];
    for (uint32_t m = lanes; m; m &= m - 1) {
      auto lane = static_cast<uint32_t>(__builtin_ctz(m));
      for (uint32_t i = 0; i < VA_LANES; i++) own[i] = std::max(own[i], warp.knows(lane, i));
      own[lane] = warp.epoch;
    }
    warp.epoch++;
  }
  if (!c.ordered || !warp.order) return;
  for (uint32_t m = lanes; m; m &= m - 1) {
    LaneOrder &order = warp.order[__builtin_ctz(m)];
    settle(&order);
    learn_all(&b.known, order.known);
  }
}

void released(State &s, CtaState &c, uint32_t id, bool all) {
  BarrierState &b = c.barriers[id];
  std::shared_ptr<const Clocks> clocks = b.clocks;
  if (all) {
    auto made = std::make_shared<Clocks>(c.warps.size() * VA_LANES);
    for (size_t t = 0; t < made->size(); t++) (*made)[t] = c.warps[t / VA_LANES].epoch;
    for (WarpOrder &warp : c.warps) warp.epoch++;
    c.gen++;
    clocks = std::move(made);
    if (s.on(VA_CHECK_SYNC)) check_finished_warps(s, c);
  }
  for (Warp &warp : c.cta->warps) {
    if (warp.state != va::WarpState::kBarrier || warp.barrier != id) continue;
    WarpOrder &own = c.warps[warp.view.warp_id];
    own.base = clocks;
    if (b.known.empty()) continue;
    for (uint32_t lane = 0; lane < VA_LANES; lane++)
      learn_all(&order_of(c, own, lane).known, b.known);
  }
  BarrierState next;
  if (!all) next.before = b.clocks;
  next.before_expected = b.expected;
  b = std::move(next);
}

void forget_order() {
  g_objects.clear();
  g_all.clear();
}

}  // namespace va::check
