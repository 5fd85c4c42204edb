// The index of pages: an access of a warp against all before it, by words in a row at once.
//
// An entry acquits an access when all it stands for happens before it, which mostly shows without
// looking at single lanes.  Where it does not show, the page goes over to cells.
#include <algorithm>
#include <cstring>

#include "check_page.h"

// Small structures are written field by field and read soon after: read as wide vectors, they
// would wait for every store.
#pragma GCC optimize("no-tree-slp-vectorize")

namespace va::check {
namespace {

constexpr size_t kMostParts = 8;        // of an access, in a row each; beyond: lane by lane
constexpr size_t kMostEvents = 1 << 14;  // of a page; then it goes over to cells
constexpr uint32_t kMostMulti = 8;
constexpr uint32_t kKeptOfSite = 48;

// Lanes that follow one another and go to one place, or to places in a row.
struct Part {
  uint32_t lane, count;
  uint64_t address;
  bool same;
};

// An access at hand, as all parts of it share it.
struct Touch {
  State &s;
  CtaState &c;
  va_warp *w;
  const WarpOrder &warp;
  const Access &a;
  Event event;  // but for where
  uint32_t bytes;
  uint32_t space;
  bool narrow;    // of CTA scope where other CTAs may come: judged by cells
  bool lockstep;  // volatile, of shared memory: races are told of within a warp
};

// The part of a page that lanes touch.
struct Span {
  Page *page;
  uint32_t lane, count;
  uint32_t offset;
  bool same;
  uint32_t bytes;           // of all lanes
  uint32_t first, entries;  // of the index
};

Touch touch_of(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t space) {
  const WarpOrder &warp = c.warps[w->warp_id];
  Touch t{s, c, w, warp, a, Event{}, a.lane_bytes(), space, false, false};
  t.event.cta = c.serial;
  t.event.index = static_cast<uint32_t>(c.index);
  t.event.epoch = warp.epoch;
  t.event.gen = c.gen;
  t.event.site = a.site;
  t.event.bytes = static_cast<uint16_t>(t.bytes);
  t.event.warp = static_cast<uint16_t>(w->warp_id);
  t.event.flags = flags_of(a);
  t.narrow = (t.event.flags & kMarkCtaScope && space == kGlobal) || s.on(VA_CHECK_CELLS);
  t.lockstep = a.order == kVolatile && space == kShared;
  return t;
}

uint32_t mask_of(uint32_t lane, uint32_t count) {
  return (count >= VA_LANES ? kAllLanes : (1u << count) - 1) << lane;
}

// ------------------------------------------------------------------ what happened before

// All lanes of an entry's warp, as far as the entry stands for them, before all lanes of ours.
inline bool surely_before(const Touch &t, const Event &e, uint32_t level) {
  if (e.cta != t.c.serial || e.flags & kMarkCopy) return false;
  if (e.gen < t.c.gen) return level <= kOneCta;
  return level <= kOneWarp && e.warp == t.event.warp && e.epoch <= t.warp.full;
}

bool before(const Touch &t, const Page &page, uint32_t entry, uint32_t offset, uint32_t lane) {
  const Event &e = page.event(entry);
  uint32_t level = entry & 3;
  if (surely_before(t, e, level)) return true;
  if (level != kOneThread || e.flags & kMarkCopy) return false;
  uint32_t other = lane_at(page, e, offset);
  if (e.cta == t.c.serial && e.warp == t.event.warp && other == lane) return true;
  return happens_before(t.c, t.w, lane, mark_of(e), other);
}

// Lanes lie in a page as those of an event did.
inline bool alike(const Touch &t, const Span &p, const Event &e) {
  return e.cta == t.c.serial && e.warp == t.event.warp && e.first == p.offset &&
         e.bytes == t.bytes && e.shape == (p.same ? kSame : kRun) &&
         e.mask == mask_of(p.lane, p.count);
}

inline bool any_live(const uint32_t *entries, uint32_t count, uint32_t stale) {
  int found = 0;  // numbers stay below 2^31, so that signed comparisons do
  for (uint32_t i = 0; i < count; i++)
    found |= static_cast<int>(entries[i]) > static_cast<int>(stale);
  return found;
}

// Whether what the entries of a span stand for happens before the lanes there.
bool all_before(const Touch &t, const Span &p, const Entries &index) {
  const Page &page = *p.page;
  const uint32_t *entries = &index[p.first];
  if (!any_live(entries, p.entries, page.stale)) return true;
  uint32_t passed = 0;
  for (uint32_t i = 0; i < p.entries; i++) {
    uint32_t entry = entries[i];
    if (!page.live(entry) || entry == passed) continue;
    const Event &e = page.event(entry);
    uint32_t level = entry & 3;
    bool whole = surely_before(t, e, level) ||
                 (level == kOneThread && !(e.flags & kMarkCopy) && alike(t, p, e));
    if (whole) {
      passed = entry;
      continue;
    }
    uint32_t offset = (p.first + i) << page.shift;
    if (p.same && p.count > kMostMulti) return false;
    uint32_t lane = p.lane, last = p.lane + p.count - 1;
    if (!p.same) lane = last = offset < p.offset ? p.lane : p.lane + (offset - p.offset) / t.bytes;
    for (; lane <= last; lane++)
      if (!before(t, page, entry, offset, lane)) return false;
  }
  return true;
}

// ------------------------------------------------------------------ entering events

void finer(Entries *entries, uint32_t times) {
  Entries made(entries->size() * times);
  for (size_t i = 0; i < made.size(); i++) made[i] = (*entries)[i / times];
  *entries = std::move(made);
}

// Entries small enough for all that was touched.
void refine(Page *page) {
  auto shift = static_cast<uint32_t>(__builtin_ctz(page->parts));
  if (shift >= page->shift) return;
  uint32_t times = 1u << (page->shift - shift);
  finer(&page->written, times);
  finer(&page->read, times);
  if (page->has_strong) {
    finer(&page->strong_written, times);
    finer(&page->strong_read, times);
  }
  page->shift = shift;
}

// How far apart an entry's threads and a lane of an event are.
uint32_t level_with(const Page &page, uint32_t entry, const Event &now, uint32_t offset,
                    uint32_t lane) {
  if (!page.live(entry)) return kOneThread;
  const Event &e = page.event(entry);
  uint32_t level = entry & 3;
  if (e.cta != now.cta) return kMany;
  if (e.warp != now.warp) return std::max<uint32_t>(level, kOneCta);
  if (level == kOneThread && lane_at(page, e, offset) != lane) return kOneWarp;
  return level;
}

void enter_lanes(const Page &page, const Event &e, uint32_t number, uint32_t offset, uint32_t span,
                 Entries *index) {
  uint32_t first = offset >> page.shift, end = ((offset + span - 1) >> page.shift) + 1;
  uint32_t *entries = index->data();
  auto leader = static_cast<uint32_t>(__builtin_ctz(e.mask));
  uint32_t least = e.shape == kSame && (e.mask & (e.mask - 1)) ? kOneWarp : kOneThread;
  if (!any_live(entries + first, end - first, page.stale)) {
    std::fill(entries + first, entries + end, number << 2 | least);
    return;
  }
  for (uint32_t i = first; i < end; i++) {
    uint32_t at = i << page.shift, lane = leader;
    if (e.shape == kRun && at > offset) lane += (at - offset) / e.bytes;
    entries[i] = number << 2 | std::max(level_with(page, entries[i], e, at, lane), least);
  }
}

void enter_gathered(const Page &page, const Event &e, uint32_t number, Entries *index) {
  uint32_t k = e.first;
  for (uint32_t rest = e.mask; rest; rest &= rest - 1, k++) {
    Event one = e;
    one.mask = rest & -rest;
    one.shape = kSame;
    enter_lanes(page, one, number, page.offsets[k], e.bytes, index);
  }
}

// Enter what is only logged so far.
void settle(Page *page) {
  refine(page);
  for (size_t end = page->events.size() - page->open; page->entered < end; page->entered++) {
    const Event &e = page->events[page->entered];
    if (e.writes() && !e.strong()) continue;
    if (e.strong() && !page->has_strong) {
      page->has_strong = true;
      page->strong_written.assign(page->written.size(), 0);
      page->strong_read.assign(page->written.size(), 0);
    }
    Entries *index = e.strong() ? e.writes() ? &page->strong_written : &page->strong_read
                                : &page->read;
    auto number = page->before + static_cast<uint32_t>(page->entered) + 1;
    if (e.shape == kGather) {
      enter_gathered(*page, e, number, index);
      continue;
    }
    auto lanes = static_cast<uint32_t>(__builtin_popcount(e.mask));
    enter_lanes(*page, e, number, e.first, e.shape == kRun ? lanes * e.bytes : e.bytes, index);
  }
}

// Drop events that no entry names, but for some of each place of the program; false when most stay.
bool shrink(const CtaState &c, Page *page) {
  for (const WarpOrder &warp : c.warps)
    if (!warp.copies.empty()) return false;
  settle(page);
  std::vector<bool> named(page->events.size());
  Entries *const indices[] = {&page->written, &page->read, &page->strong_written,
                              &page->strong_read};
  for (const Entries *index : indices)
    for (uint32_t entry : *index)
      if (page->live(entry)) named[(entry >> 2) - page->before - 1] = true;
  std::unordered_map<uint32_t, uint32_t> kept_of_site;
  std::vector<Event> events;
  std::vector<uint32_t> offsets, renumbered(page->events.size());
  for (size_t i = 0; i < page->events.size(); i++) {
    Event e = page->events[i];
    if (!named[i] && kept_of_site[e.site]++ >= kKeptOfSite) continue;
    if (e.shape == kGather) {
      auto from = page->offsets.begin() + e.first;
      e.first = static_cast<uint32_t>(offsets.size());
      offsets.insert(offsets.end(), from, from + __builtin_popcount(e.mask));
    }
    events.push_back(e);
    renumbered[i] = page->before + static_cast<uint32_t>(events.size());
  }
  for (Entries *index : indices)
    for (uint32_t &entry : *index)
      if (page->live(entry)) entry = renumbered[(entry >> 2) - page->before - 1] << 2 | (entry & 3);
  page->events = std::move(events);
  page->offsets = std::move(offsets);
  page->entered = page->events.size();
  return page->events.size() < kMostEvents / 2;
}

// ------------------------------------------------------------------ asking

void place(Span *p) {
  p->first = p->offset >> p->page->shift;
  p->entries = ((p->offset + p->bytes - 1) >> p->page->shift) - p->first + 1;
}

// Whether something that conflicts may not be ordered.  Blocks nobody touched need no index.
bool lacks_order(const Touch &t, Span *p) {
  Page *page = p->page;
  uint64_t blocks = page->blocks(p->offset, p->bytes);
  bool strong = t.a.strong(), writes = t.a.writes();
  bool ask_write = page->write_blocks & blocks;
  bool ask_read = writes && page->read_blocks & blocks;
  // Strong accesses do not race; but volatile ones of one warp are told of.
  bool ask_strong = page->strong_blocks & blocks &&
                    (!strong || t.lockstep);
  if (ask_read || ask_strong) settle(page);
  place(p);
  if (ask_write && !all_before(t, *p, page->written)) return true;
  if (ask_read && !all_before(t, *p, page->read)) return true;
  if (!ask_strong || !page->has_strong) return false;
  return !all_before(t, *p, page->strong_written) ||
         (writes && !all_before(t, *p, page->strong_read));
}

void clear(const Span &p, Entries *index) { std::fill_n(&(*index)[p.first], p.entries, 0u); }

// All before is before this write; what comes later is judged by it.
void enter_write(Span *p, uint32_t number) {
  Page *page = p->page;
  if (page->entered + 1 < page->events.size()) settle(page);
  refine(page);
  page->entered = page->events.size();
  place(p);
  uint64_t blocks = page->blocks(p->offset, p->bytes);
  page->write_blocks |= blocks;
  std::fill_n(&page->written[p->first], p->entries, number << 2);
  if (page->read_blocks & blocks) clear(*p, &page->read);
  if (!page->has_strong || !(page->strong_blocks & blocks)) return;
  clear(*p, &page->strong_written);
  clear(*p, &page->strong_read);
}

void log_blocks(const Touch &t, Page *page, uint32_t offset, uint32_t bytes) {
  page->parts |= offset | t.bytes;
  uint64_t blocks = page->blocks(offset, bytes);
  if (t.a.strong())
    page->strong_blocks |= blocks;
  else if (!t.a.writes())
    page->read_blocks |= blocks;
}

// ------------------------------------------------------------------ spans

// A read that the last event tells of already is not logged again.
void log_event(const Touch &t, Page *page, uint32_t mask, uint32_t first, Shape shape) {
  if (!page->events.empty()) {
    const Event &last = page->events.back();
    if (last.site == t.event.site && last.first == first && last.mask == mask &&
        last.epoch == t.event.epoch && last.cta == t.event.cta && last.warp == t.event.warp &&
        last.gen == t.event.gen && last.shape == shape && last.flags == t.event.flags &&
        (!last.writes() || last.strong()))
      return;
  }
  page->events.emplace_back();
  Event &e = page->events.back();
  e.cta = t.event.cta;
  e.index = t.event.index;
  e.epoch = t.event.epoch;
  e.gen = t.event.gen;
  e.site = t.event.site;
  e.mask = mask;
  e.first = first;
  e.bytes = t.event.bytes;
  e.warp = t.event.warp;
  e.flags = t.event.flags;
  e.shape = shape;
}

// Lanes of one page by the index; false: it cannot acquit them, and nothing was entered.
bool fits(const Touch &t, Span *p) {
  Page *page = p->page;
  bool overlap = p->same && p->count > 1 && t.a.writes() && (!t.a.strong() || t.lockstep);
  if (page->exact || t.narrow || overlap) return false;
  if (page->events.size() >= kMostEvents && !shrink(t.c, page)) return false;
  p->bytes = p->same ? t.bytes : p->count * t.bytes;
  if (lacks_order(t, p)) return false;
  log_blocks(t, page, p->offset, p->bytes);
  log_event(t, page, mask_of(p->lane, p->count), p->offset, p->same ? kSame : kRun);
  if (t.a.writes() && !t.a.strong()) enter_write(p, page->last_number());
  return true;
}

void judge_lanes(const Touch &t, uint32_t lane, uint32_t count, const uint64_t *addresses,
                 uint64_t delta, const uint8_t *values) {
  for (uint32_t end = lane + count; lane < end; lane++) {
    Place place{addresses[lane] + delta, t.space, nullptr, 0};
    const uint8_t *value = values ? values + lane * t.a.bytes : nullptr;
    check_race(t.s, t.c, t.w, t.a, lane, place, value, t.a.bytes * VA_LANES);
  }
}

// Lanes in a row; they may lie in several pages.
void check_part(const Touch &t, const Part &part, const uint64_t *addresses, uint64_t delta,
                const uint8_t *values) {
  for (uint32_t done = 0; done < part.count;) {
    uint64_t at = part.address + (part.same ? 0 : uint64_t{done} * t.bytes);
    Page *page = page_at(t.c, at, t.space);
    uint64_t room = page->base + page->bytes - at;
    uint32_t count = part.count - done;
    if (!part.same && uint64_t{count} * t.bytes > room)
      count = static_cast<uint32_t>(room / t.bytes);
    if (!count || room < t.bytes) {  // a lane's access lies in two pages
      judge_lanes(t, part.lane + done, 1, addresses, delta, values);
      done++;
      continue;
    }
    Span span{page, part.lane + done, count, static_cast<uint32_t>(at - page->base),
              part.same || count == 1, 0, 0, 0};
    if (!fits(t, &span)) judge_lanes(t, span.lane, count, addresses, delta, values);
    done += count;
  }
}

// ------------------------------------------------------------------ lanes here and there

// Lanes of one page, each somewhere: one event, which grows by a lane as that is acquitted.
struct Gathered {
  Page *page = nullptr;
  uint32_t number = 0;

  void begin(Page *where, const Touch &t) {
    page = where;
    log_event(t, page, 0, static_cast<uint32_t>(page->offsets.size()), kGather);
    page->open = true;
    number = page->last_number();
  }
  void end() {
    if (!page) return;
    page->open = false;
    if (!page->events.back().mask) page->events.pop_back();
    page->entered = std::min(page->entered, page->events.size());
    page = nullptr;
  }
};

bool lane_fits(const Touch &t, Gathered *group, Page *page, uint32_t lane, uint32_t offset) {
  if (page != group->page) {
    group->end();
    if (page->exact || (page->events.size() >= kMostEvents && !shrink(t.c, page))) return false;
    group->begin(page, t);
  }
  if (page->exact) return false;
  Span p{page, lane, 1, offset, true, t.bytes, 0, 0};
  if (lacks_order(t, &p)) return false;
  log_blocks(t, page, offset, t.bytes);
  page->events.back().mask |= 1u << lane;
  page->offsets.push_back(offset);
  if (t.a.writes() && !t.a.strong()) enter_write(&p, group->number);
  return true;
}

void check_lanes_apart(const Touch &t, uint32_t lanes, const uint64_t *addresses, uint64_t delta,
                       const uint8_t *values) {
  Gathered group;
  bool able = !t.narrow && !(t.lockstep && t.a.writes());
  for (; lanes; lanes &= lanes - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(lanes));
    uint64_t at = addresses[lane] + delta;
    Page *page = page_at(t.c, at, t.space);
    bool whole = at + t.bytes <= page->base + page->bytes && able;
    if (whole && lane_fits(t, &group, page, lane, static_cast<uint32_t>(at - page->base))) continue;
    group.end();
    judge_lanes(t, lane, 1, addresses, delta, values);
  }
  group.end();
}

// ------------------------------------------------------------------ parts

// Takes an access apart into lanes in a row; the number of parts, or 0 when they would be many.
size_t parts_of(uint32_t lanes, const uint64_t *addresses, uint64_t delta, uint32_t bytes,
                Part *parts) {
  size_t count = 0;
  uint32_t last_lane = VA_LANES;
  for (uint32_t rest = lanes; rest; rest &= rest - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(rest));
    uint64_t at = addresses[lane] + delta;
    Part *part = &parts[count ? count - 1 : 0];
    if (count && lane == last_lane + 1) {
      uint64_t next = part->address + uint64_t{part->count} * bytes;
      bool same = at == part->address && (part->same || part->count == 1);
      if (same || (at == next && !part->same)) {
        part->same = same;
        part->count++;
        last_lane = lane;
        continue;
      }
    }
    if (count == kMostParts) return 0;
    parts[count++] = Part{lane, 1, at, false};
    last_lane = lane;
  }
  return count;
}

}  // namespace

void check_races(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lanes,
                 const uint64_t *addresses, const Form &form, const Ground &ground,
                 const uint8_t *values) {
  Touch t = touch_of(s, c, w, a, ground.space);
  if (form.group) {
    for (uint32_t i = 0; i < form.count; i += form.group) {
      uint32_t lane = form.first + i;
      Part part{lane, form.group, addresses[lane] + ground.delta, form.same};
      check_part(t, part, addresses, ground.delta, values);
    }
    return;
  }
  Part parts[kMostParts];
  size_t count = parts_of(lanes, addresses, ground.delta, t.bytes, parts);
  if (!count) return check_lanes_apart(t, lanes, addresses, ground.delta, values);
  for (size_t i = 0; i < count; i++) check_part(t, parts[i], addresses, ground.delta, values);
}

bool copy_fits(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
               const Place &place, uint32_t *event) {
  Touch t = touch_of(s, c, w, a, kShared);
  t.event.flags |= kMarkCopy;
  Page *page = shared_page(c);
  Span span{page, lane, 1, static_cast<uint32_t>(place.address - page->base), true, 0, 0, 0};
  if (!fits(t, &span)) return false;
  *event = page->last_number();
  return true;
}

}  // namespace va::check
