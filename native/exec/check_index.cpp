// The index of pages: an access of a warp against all before it, by words in a row at once.
//
// An entry acquits an access when all it stands for happens before it, which mostly shows without
// looking at single lanes.  Where it does not show, the page goes over to cells.
#include <algorithm>
#include <cstring>

#include "check_page.h"

namespace va::check {
namespace {

constexpr size_t kMostParts = 8;        // of an access, in a row each; beyond: lane by lane
constexpr size_t kMostEvents = 1 << 14;  // of a page; then it goes over to cells
constexpr uint32_t kMostMulti = 8;

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
};

// The part of a page that lanes touch.
struct Span {
  Page *page;
  uint32_t lane, count;
  uint32_t offset;
  bool same;
  uint32_t first, entries;  // of the index
};

Touch touch_of(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t space) {
  const WarpOrder &warp = c.warps[w->warp_id];
  Touch t{s, c, w, warp, a, Event{}, a.lane_bytes(), space};
  t.event.cta = c.serial;
  t.event.index = static_cast<uint32_t>(c.index);
  t.event.epoch = warp.epoch;
  t.event.gen = c.gen;
  t.event.site = a.site;
  t.event.bytes = static_cast<uint16_t>(t.bytes);
  t.event.warp = static_cast<uint16_t>(w->warp_id);
  t.event.flags = flags_of(a);
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

bool lacks_order(const Touch &t, const Span &p) {
  const Page &page = *p.page;
  if (!all_before(t, p, page.written)) return true;
  bool strong = t.a.strong(), writes = t.a.writes();
  if (writes && !all_before(t, p, page.read)) return true;
  if (!page.has_strong) return false;
  // Strong accesses do not race; but volatile ones of one warp are told of.
  bool all = !strong || (t.a.order == kVolatile && t.space == kShared);
  if (all && !all_before(t, p, page.strong_written)) return true;
  return all && writes && !all_before(t, p, page.strong_read);
}

// ------------------------------------------------------------------ entering

uint32_t number_of(Page *page, const Touch &t, const Span &p) {
  Event e = t.event;
  e.mask = mask_of(p.lane, p.count);
  e.first = p.offset;
  e.shape = p.same ? kSame : kRun;
  page->events.push_back(e);
  return page->last_number();
}

// How far apart an entry's threads and a lane of ours are.
uint32_t level_with(const Touch &t, const Page &page, uint32_t entry, uint32_t offset,
                    uint32_t lane) {
  if (!page.live(entry)) return kOneThread;
  const Event &e = page.event(entry);
  uint32_t level = entry & 3;
  if (e.cta != t.c.serial) return kMany;
  if (e.warp != t.event.warp) return std::max<uint32_t>(level, kOneCta);
  if (level == kOneThread && lane_at(page, e, offset) != lane) return kOneWarp;
  return level;
}

// An access that changes nothing: the same place of the program did it before, in this epoch.
bool known_already(const Touch &t, const Span &p, const Entries &index) {
  const uint32_t *entries = &index[p.first];
  uint32_t first = entries[0];
  if (!p.page->live(first)) return false;
  const Event &e = p.page->event(first);
  if (e.site != t.a.site || e.epoch != t.event.epoch || e.gen != t.event.gen ||
      e.flags != t.event.flags || !alike(t, p, e))
    return false;
  uint32_t other = 0;
  for (uint32_t i = 1; i < p.entries; i++) other |= entries[i] ^ first;
  return !other;
}

void enter_among(const Touch &t, const Span &p, Entries *index) {
  if (known_already(t, p, *index)) return;
  Page *page = p.page;
  uint32_t *entries = &(*index)[p.first];
  uint32_t least = p.same && p.count > 1 ? kOneWarp : kOneThread;
  uint32_t first = entries[0], other = 0;
  for (uint32_t i = 1; i < p.entries; i++) other |= entries[i] ^ first;
  if (!any_live(entries, p.entries, page->stale)) {
    std::fill_n(entries, p.entries, number_of(page, t, p) << 2 | least);
    return;
  }
  if (!other) {  // all alike
    const Event &e = page->event(first);
    uint32_t level = level_with(t, *page, first, p.offset, p.lane);
    if (level == kOneThread && !alike(t, p, e)) level = kOneWarp;
    level = std::max(level, least);
    std::fill_n(entries, p.entries, number_of(page, t, p) << 2 | level);
    return;
  }
  uint32_t number = number_of(page, t, p);
  for (uint32_t i = 0; i < p.entries; i++) {
    uint32_t offset = (p.first + i) << page->shift, lane = p.lane;
    if (!p.same && offset > p.offset) lane += (offset - p.offset) / t.bytes;
    uint32_t level = level_with(t, *page, entries[i], offset, lane);
    entries[i] = number << 2 | std::max(level, least);
  }
}

void use_strong(Page *page) {
  if (page->has_strong) return;
  page->has_strong = true;
  page->strong_written.assign(page->written.size(), 0);
  page->strong_read.assign(page->written.size(), 0);
}

void clear(const Span &p, Entries *index) { std::fill_n(&(*index)[p.first], p.entries, 0u); }

void enter(const Touch &t, const Span &p) {
  Page *page = p.page;
  if (t.a.strong()) {
    use_strong(page);
    enter_among(t, p, t.a.writes() ? &page->strong_written : &page->strong_read);
    return;
  }
  if (!t.a.writes()) {
    enter_among(t, p, &page->read);
    return;
  }
  // All before is before this write; what comes later is judged by it.
  std::fill_n(&page->written[p.first], p.entries, number_of(page, t, p) << 2);
  clear(p, &page->read);
  if (!page->has_strong) return;
  clear(p, &page->strong_written);
  clear(p, &page->strong_read);
}

// ------------------------------------------------------------------ spans

void finer(Entries *entries, uint32_t times) {
  Entries made(entries->size() * times);
  for (size_t i = 0; i < made.size(); i++) made[i] = (*entries)[i / times];
  *entries = std::move(made);
}

// Entries small enough for accesses of so many bytes.
void refine(Page *page, uint64_t parts) {
  auto shift = static_cast<uint32_t>(__builtin_ctzll(parts | 4));
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

// Lanes of one page by the index; false: it cannot acquit them, and nothing was entered.
bool fits(const Touch &t, Span p) {
  Page *page = p.page;
  bool narrow = t.event.flags & kMarkCtaScope && t.space == kGlobal;
  bool overlap = p.same && p.count > 1 && t.a.writes() && !t.a.strong();
  if (page->exact || narrow || overlap || page->events.size() >= kMostEvents) return false;
  refine(page, p.offset | t.bytes);
  uint32_t end = p.offset + (p.same ? t.bytes : p.count * t.bytes);
  p.first = p.offset >> page->shift;
  p.entries = ((end - 1) >> page->shift) - p.first + 1;
  if (lacks_order(t, p)) return false;
  enter(t, p);
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
              part.same || count == 1, 0, 0};
    if (!fits(t, span)) judge_lanes(t, span.lane, count, addresses, delta, values);
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
    Event e = t.event;
    e.first = static_cast<uint32_t>(page->offsets.size());
    e.shape = kGather;
    page->events.push_back(e);
    number = page->last_number();
  }
  void end() {
    if (page && !page->exact && !page->events.back().mask) page->events.pop_back();
    page = nullptr;
  }
};

void enter_lane(const Touch &t, const Span &p, uint32_t number, Entries *index) {
  for (uint32_t i = p.first; i < p.first + p.entries; i++) {
    uint32_t level = level_with(t, *p.page, (*index)[i], i << p.page->shift, p.lane);
    (*index)[i] = number << 2 | level;
  }
}

void enter_gathered(const Touch &t, const Span &p, uint32_t number) {
  Page *page = p.page;
  if (t.a.strong()) {
    use_strong(page);
    enter_lane(t, p, number, t.a.writes() ? &page->strong_written : &page->strong_read);
  } else if (!t.a.writes()) {
    enter_lane(t, p, number, &page->read);
  } else {
    std::fill_n(&page->written[p.first], p.entries, number << 2);
    clear(p, &page->read);
    if (page->has_strong) {
      clear(p, &page->strong_written);
      clear(p, &page->strong_read);
    }
  }
  page->events.back().mask |= 1u << p.lane;
  page->offsets.push_back(p.offset);
}

bool lane_fits(const Touch &t, Gathered *group, Page *page, uint32_t lane, uint32_t offset) {
  if (page != group->page) {
    group->end();
    if (page->exact || page->events.size() >= kMostEvents) return false;
    group->begin(page, t);
  }
  if (page->exact) return false;
  refine(page, offset | t.bytes);
  Span p{page, lane, 1, offset, true, offset >> page->shift, 0};
  p.entries = ((offset + t.bytes - 1) >> page->shift) - p.first + 1;
  if (lacks_order(t, p)) return false;
  enter_gathered(t, p, group->number);
  return true;
}

void check_lanes_apart(const Touch &t, uint32_t lanes, const uint64_t *addresses, uint64_t delta,
                       const uint8_t *values) {
  Gathered group;
  bool narrow = t.event.flags & kMarkCtaScope && t.space == kGlobal;
  for (; lanes; lanes &= lanes - 1) {
    auto lane = static_cast<uint32_t>(__builtin_ctz(lanes));
    uint64_t at = addresses[lane] + delta;
    Page *page = page_at(t.c, at, t.space);
    bool whole = at + t.bytes <= page->base + page->bytes && !narrow;
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
  if (form.row || form.same) {
    Part all{form.first, form.count, addresses[form.first] + ground.delta, form.same};
    return check_part(t, all, addresses, ground.delta, values);
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
  Span span{page, lane, 1, static_cast<uint32_t>(place.address - page->base), true, 0, 0};
  if (!fits(t, span)) return false;
  *event = page->last_number();
  return true;
}

}  // namespace va::check
