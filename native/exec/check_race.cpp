// Races: two accesses of one byte by different threads, one of them a write, neither of which
// happens before the other and not both atomic in each other's sight.
//
// Here a lane's access is judged by the cells of its page, word by word, or byte by byte once
// somebody touched less than a word.  A cell keeps the last plain write and all reads and atomic
// writes since that nothing ordered, one mark a warp and epoch.
#include <algorithm>
#include <cstring>

#include "check_page.h"

namespace va::check {
namespace {

void split(Page *page) {
  std::vector<Cell> bytes(page->bytes);
  for (size_t i = 0; i < bytes.size(); i++) {
    bytes[i] = page->cells[i / 4];
    if (!bytes[i].more) continue;
    page->lists.push_back(std::make_unique<std::vector<Mark>>(*bytes[i].more));
    bytes[i].more = page->lists.back().get();
  }
  page->cells = std::move(bytes);
  page->split = true;
}

// The access at hand, as all parts of it share it.
struct Now {
  State &s;
  CtaState &c;
  va_warp *w;
  uint32_t lane;
  Mark mark;
  const uint8_t *value;  // of the byte at hand, when it is known
  uint64_t address;      // of the cell
  uint32_t space;
  uint32_t bytes;        // of the access
  uint32_t cell_bytes;
};

bool excused(const Mark &a, const Mark &b) {
  if (!(a.flags & b.flags & kMarkStrong)) return false;
  return a.cta == b.cta || !((a.flags | b.flags) & kMarkCtaScope);
}

// Volatile accesses of one warp to shared memory: no race by the letter, yet nothing orders them.
bool relies_on_lockstep(const Now &n, const Mark &m) {
  return n.space == kShared && m.cta == n.mark.cta && m.warp == n.mark.warp &&
         (m.flags & n.mark.flags & kMarkVolatile);
}

bool equal_values(const Now &n, const Mark &m) {
  if (!n.value || !m.writes() || !n.mark.writes()) return false;
  if (m.flags & kMarkStrong) return false;
  return std::memcmp(n.value, reinterpret_cast<const void *>(n.address), n.cell_bytes) == 0;
}

uint32_t kind_of(const Mark &m) {
  if (m.flags & kMarkCopy) return VA_ACCESS_COPY;
  if (m.flags & kMarkAtomic) return VA_ACCESS_ATOMIC;
  return m.writes() ? VA_ACCESS_WRITE : VA_ACCESS_READ;
}

void report(const Now &n, const Mark &m, uint32_t other, bool harmless, uint32_t relaxed) {
  bool fresh = false;
  uint32_t how = n.space | (harmless ? 16u : 0u) | relaxed << 5 | kind_of(n.mark) << 8 |
                 kind_of(m) << 12;
  va_check_finding *f = found(n.s, {VA_FOUND_RACE, n.mark.site, m.site, how}, &fresh);
  if (!f || !fresh) return;
  f->address = n.space == kShared
                   ? n.address - reinterpret_cast<uint64_t>(n.w->shared)
                   : n.address;
  f->size = n.bytes;
  f->space = n.space;
  f->harmless = harmless;
  f->relaxed = relaxed;
  describe(&f->first, n.s, n.mark.site, kind_of(n.mark), n.c.index, thread_of(n.w, n.lane));
  describe(&f->second, n.s, m.site, kind_of(m), m.index, uint32_t{m.warp} * VA_LANES + other);
  if (n.space == kGlobal) tell_near(f, n.address);
}

void judge(const Now &n, const Mark &m) {
  uint32_t relaxed = VA_RACE_PLAIN;
  if (excused(m, n.mark)) {
    if (!relies_on_lockstep(n, m)) return;
    relaxed = VA_RACE_LOCKSTEP;
  }
  bool same_warp = m.cta == n.mark.cta && m.warp == n.mark.warp;
  for (uint32_t rest = m.mask; rest; rest &= rest - 1) {
    auto other = static_cast<uint32_t>(__builtin_ctz(rest));
    bool copy = m.flags & kMarkCopy;
    if (same_warp && other == n.lane && !copy) continue;
    if (!copy && happens_before(n.c, n.w, n.lane, m, other)) continue;
    if (!relaxed && lacks_acquire(n.c, n.w, n.lane, m, other)) relaxed = VA_RACE_NO_ACQUIRE;
    report(n, m, other, equal_values(n, m), relaxed);
    return;
  }
}

// Keep a read or a strong write until something ordered after it takes its place.
void remember(Page *page, Cell *cell, const Now &n) {
  if (fit_mark(cell, n.mark)) return;
  if (cell->more && cell->more->size() >= kMostMarks) {  // drop what happened before this
    auto known = [&](const Mark &m) {
      if (m.flags != n.mark.flags) return false;
      for (uint32_t rest = m.mask; rest; rest &= rest - 1)
        if (!happens_before(n.c, n.w, n.lane, m, static_cast<uint32_t>(__builtin_ctz(rest))))
          return false;
      return true;
    };
    auto &list = *cell->more;
    list.erase(std::remove_if(list.begin(), list.end(), known), list.end());
  }
  append_mark(page, cell, n.mark);
}

void touch(Page *page, Cell *cell, const Now &n, bool reads) {
  const Mark &mark = n.mark;
  bool strong = mark.flags & kMarkStrong;
  if (!cell->write.empty()) judge(n, cell->write);
  each_mark(cell, [&](Mark *m) {
    if (mark.writes() || (reads && m->writes())) judge(n, *m);
  });
  if (!mark.writes() || strong) {
    remember(page, cell, n);
    return;
  }
  cell->write = mark;
  cell->read = Mark{};
  if (cell->more) cell->more->clear();
}

Mark mark_now(const CtaState &c, const va_warp *w, const Access &a, uint32_t lane) {
  Mark m;
  m.cta = c.serial;
  m.index = static_cast<uint32_t>(c.index);
  m.epoch = c.warps[w->warp_id].epoch;
  m.mask = 1u << lane;
  m.site = a.site;
  m.warp = static_cast<uint16_t>(w->warp_id);
  m.flags = flags_of(a);
  return m;
}

template <typename Act>
void each_cell(CtaState &c, const Place &place, uint32_t bytes, Act act) {
  for (uint64_t at = place.address, end = at + bytes; at < end;) {
    Page *page = page_at(c, at, place.space);
    make_exact(page);
    if (!page->split && ((at | bytes) & 3)) split(page);
    uint64_t step = page->split ? 1 : 4;
    uint64_t stop = std::min(end, page->base + page->bytes);
    for (; at < stop; at += step) act(page, &page->cells[(at - page->base) / step], at, step);
  }
}

}  // namespace

uint8_t flags_of(const Access &a) {
  return static_cast<uint8_t>((a.writes() ? kMarkWrite : 0) | (a.strong() ? kMarkStrong : 0) |
                              (a.order == kVolatile ? kMarkVolatile : 0) |
                              (a.kind >= kAtomic ? kMarkAtomic : 0) |
                              (a.strong() && a.scope == kCtaScope ? kMarkCtaScope : 0));
}

void check_race(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                const Place &place, const uint8_t *value, uint32_t stride) {
  Now now{s, c, w, lane, mark_now(c, w, a, lane), nullptr, 0, place.space, a.lane_bytes(), 4};
  each_cell(c, place, a.lane_bytes(), [&](Page *page, Cell *cell, uint64_t at, uint64_t step) {
    uint64_t i = at - place.address;
    if (s.streams && place.space == kGlobal)
      add_use(&page->uses, s, now.mark, lane, static_cast<uint32_t>(at - page->base), 1);
    now.address = at;
    now.cell_bytes = static_cast<uint32_t>(step);
    now.value = value && a.kind == kStore && step <= a.bytes ? value + i / a.bytes * stride + i % a.bytes : nullptr;
    const Mark &last = cell->write;
    // The store before this lane's in the same instruction is not in memory yet.
    if (now.value && last.cta == now.mark.cta && last.warp == now.mark.warp &&
        last.site == now.mark.site && last.epoch == now.mark.epoch && !last.empty()) {
      auto other = static_cast<uint32_t>(__builtin_ctz(last.mask));
      const uint8_t *theirs = now.value + (static_cast<int64_t>(other) - lane) * a.bytes;
      if (other != lane && std::memcmp(theirs, now.value, step) == 0) {
        report(now, last, other, true, VA_RACE_PLAIN);
        cell->write = now.mark;
        return;
      }
      if (other != lane) now.value = nullptr;
    }
    touch(page, cell, now, a.reads());
  });
}

// ------------------------------------------------------------------ cp.async

// By cells, where the index is no longer in use; or else each copy is an event.
void copy_issued(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
                 const Place &place) {
  Access store = a;
  store.order = kWeak;
  WarpOrder &warp = warp_state(c, w);
  PendingCopy copy{place.address, a.lane_bytes(), a.site, lane, warp.group[lane], 0};
  if (!copy_fits(s, c, w, store, lane, place, &copy.event)) {
    check_race(s, c, w, store, lane, place, nullptr, 0);
    each_cell(c, place, a.lane_bytes(), [&](Page *, Cell *cell, uint64_t, uint64_t) {
      cell->write.flags |= kMarkCopy;
    });
  }
  warp.copies.push_back(copy);
}

void copies_committed(CtaState &c, va_warp *w, uint32_t lanes) {
  WarpOrder &warp = warp_state(c, w);
  for (uint32_t m = lanes; m; m &= m - 1) warp.group[__builtin_ctz(m)]++;
}

namespace {

void complete_cells(CtaState &c, const va_warp *w, const PendingCopy &p) {
  Place place{p.address, kShared, nullptr, 0};
  each_cell(c, place, p.bytes, [&](Page *, Cell *cell, uint64_t, uint64_t) {
    Mark &m = cell->write;
    if (!(m.flags & kMarkCopy) || m.site != p.site || m.mask != 1u << p.lane ||
        m.warp != w->warp_id)
      return;
    m.flags &= static_cast<uint8_t>(~kMarkCopy);
    m.epoch = c.warps[w->warp_id].epoch;
  });
}

}  // namespace

// A copy that was waited for counts as written by its thread just now.
void copies_waited(State &, CtaState &c, va_warp *w, uint32_t lanes, uint32_t left, bool all) {
  WarpOrder &warp = warp_state(c, w);
  if (warp.copies.empty()) return;
  Page *page = shared_page(c);
  auto done = [&](const PendingCopy &p) {
    if (!(lanes >> p.lane & 1)) return false;
    if (!all && p.group + left >= warp.group[p.lane]) return false;
    if (page->exact) {
      complete_cells(c, w, p);
    } else {
      Event &e = page->events[p.event - page->before - 1];
      e.flags &= static_cast<uint8_t>(~kMarkCopy);
      e.epoch = warp.epoch;
      e.gen = c.gen;
    }
    return true;
  };
  warp.copies.erase(std::remove_if(warp.copies.begin(), warp.copies.end(), done),
                    warp.copies.end());
}

void forget_races(State &) {
  forget_pages();
  forget_order();
}

}  // namespace va::check
