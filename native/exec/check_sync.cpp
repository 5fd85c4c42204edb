// Barriers and masks: who should have come and did not.
//
// A lane that has left a kernel counts as having come, as on the hardware.  That a lane went past a
// barrier instead shows in where it was last seen; whether that place lies behind the barrier is
// for the reader of a finding to say, who knows the flow graph.
#include "check_order.h"

namespace va::check {
namespace {

constexpr uint32_t kMostLooks = 8;  // at what lanes do that a barrier missed

// `count` lanes from `lane` on.
void missing(State &s, CtaState &c, uint32_t warp, uint32_t lane, uint32_t kind, uint32_t site,
             uint32_t seen_at, uint32_t count = 1) {
  if (seen_at == kNoSite || site == kNoSite) return;
  bool fresh = false;
  va_check_finding *f = found(s, {kind, site, seen_at, 0}, &fresh);
  if (!f) return;
  f->count += count - 1;
  if (!fresh) return;
  uint32_t thread = warp * VA_LANES + lane;
  describe(&f->first, s, site, VA_ACCESS_READ, c.index, thread);
  describe(&f->second, s, seen_at, VA_ACCESS_READ, c.index, thread);
}

// Whether a lane comes to a barrier after all that met there the time before.
bool after_meeting(const CtaState &c, const va_warp *w, uint32_t lane, const Clocks &met) {
  for (uint32_t thread = 0; thread < met.size(); thread++) {
    if (!met[thread]) continue;
    Mark m{};
    m.cta = c.serial, m.index = static_cast<uint32_t>(c.index);
    m.warp = thread / VA_LANES, m.epoch = met[thread];
    if (!happens_before(c, w, lane, m, thread % VA_LANES)) return false;
  }
  return true;
}

// Whether a warp expects another count than those it may meet: that came before it to this
// meeting, or to the one before that might as well have been this one.
uint32_t other_count(const CtaState &c, const va_warp *w, const BarrierState &b, uint32_t lane,
                     uint32_t threads) {
  if (b.counted) return b.expected;
  if (!b.before || b.before_expected == threads) return threads;
  return after_meeting(c, w, lane, *b.before) ? threads : b.before_expected;
}

}  // namespace

void check_owed(State &s, CtaState &c, uint32_t warp, uint32_t lanes, uint32_t site) {
  WarpOrder &own = c.warps[warp];
  uint32_t seen = own.owed & lanes;
  auto first = static_cast<uint32_t>(__builtin_ctz(seen));
  if (site == own.owed_site || !own.owed_looks--) {
    own.owed &= ~seen;
    return;
  }
  missing(s, c, warp, first, VA_FOUND_DIVERGED_WARP, own.owed_site, site,
          static_cast<uint32_t>(__builtin_popcount(seen)));
}

void check_masks(State &s, CtaState &c, va_warp *w, uint32_t site, uint32_t lanes,
                 const uint32_t *members) {
  WarpOrder &warp = warp_state(c, w);
  uint32_t first = members[__builtin_ctz(lanes)], other = 0;
  for (uint32_t m = lanes; m; m &= m - 1) other |= members[__builtin_ctz(m)] ^ first;
  if (!other && (first & w->live) == lanes) return;  // all name just those that came
  for (uint32_t m = lanes; m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t named = members[lane] & w->live, kind = 0;
    other = lane;
    if (!(members[lane] >> lane & 1)) {
      kind = VA_FOUND_MASK_WITHOUT_CALLER;
    } else {
      for (uint32_t n = named & lanes; n && !kind; n &= n - 1) {
        other = static_cast<uint32_t>(__builtin_ctz(n));
        if (members[other] != members[lane]) kind = VA_FOUND_MASKS_DIFFER;
      }
      for (uint32_t n = named & ~lanes; n; n &= n - 1) {
        auto gone = static_cast<uint32_t>(__builtin_ctz(n));
        missing(s, c, w->warp_id, gone, VA_FOUND_MISSING_LANE, site, warp.last_site[gone]);
      }
    }
    if (!kind) continue;
    bool fresh = false;
    va_check_finding *f = found(s, {kind, site, kNoSite, 0}, &fresh);
    if (!f || !fresh) continue;
    f->address = members[lane];
    f->size = kind == VA_FOUND_MASKS_DIFFER ? members[other] : 0;
    describe(&f->first, s, site, VA_ACCESS_READ, c.index, thread_of(w, lane));
  }
}

void check_barrier(State &s, CtaState &c, va_warp *w, uint32_t site, uint32_t lanes, uint32_t here,
                   uint32_t id, uint32_t threads, uint32_t waits) {
  WarpOrder &warp = warp_state(c, w);
  BarrierState &b = c.barriers[id];
  bool fresh = false;
  const uint32_t other =
      other_count(c, w, b, static_cast<uint32_t>(__builtin_ctz(lanes)), threads);
  if (other != threads) {
    va_check_finding *f = found(s, {VA_FOUND_BARRIER_COUNTS, site, kNoSite, id}, &fresh);
    if (f && fresh) {
      f->address = other;
      f->size = threads;
      describe(&f->first, s, site, VA_ACCESS_READ, c.index, thread_of(w, __builtin_ctz(lanes)));
    }
  }
  b.counted = true;
  b.expected = threads;
  if (!waits) return;
  if (waits & 2) {
    va_check_finding *f = found(s, {VA_FOUND_PARTED_WARP, site, kNoSite, 0}, &fresh);
    if (f && fresh)
      describe(&f->first, s, site, VA_ACCESS_READ, c.index, thread_of(w, __builtin_ctz(lanes)));
  }
  if (here & ~lanes) {
    va_check_finding *f = found(s, {VA_FOUND_SKIPPED, site, kNoSite, 0}, &fresh);
    if (f && fresh)
      describe(&f->first, s, site, VA_ACCESS_READ, c.index,
               thread_of(w, __builtin_ctz(here & ~lanes)));
  }
  if (w->live & ~here) {
    warp.owed = w->live & ~here;
    warp.owed_site = site;
    warp.owed_looks = kMostLooks;
  }
  for (uint32_t m = w->live & ~here; m; m &= m - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    missing(s, c, w->warp_id, lane, VA_FOUND_DIVERGED_WARP, site, warp.last_site[lane]);
  }
}

// A barrier of the whole CTA opened: warps that had ended before may have gone past it.
void check_finished_warps(State &s, CtaState &c) {
  uint32_t site = kNoSite;
  for (const Warp &warp : c.cta->warps)
    if (warp.state == va::WarpState::kBarrier) site = warp.site;
  for (const Warp &warp : c.cta->warps) {
    if (warp.state != va::WarpState::kDone) continue;
    const WarpOrder &own = c.warps[warp.view.warp_id];
    for (uint32_t lane = 0, end; lane < VA_LANES; lane = end) {
      for (end = lane + 1; end < VA_LANES && own.last_site[end] == own.last_site[lane];) end++;
      missing(s, c, warp.view.warp_id, lane, VA_FOUND_DIVERGED_BLOCK, site, own.last_site[lane],
              end - lane);
    }
  }
}

}  // namespace va::check
