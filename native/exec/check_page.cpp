// Pages: where they are kept, how they begin anew, and how events become cells.
#include <algorithm>
#include <cstring>

#include "check_page.h"

namespace va::check {
namespace {

constexpr size_t kCached = 1024;
constexpr size_t kMostKept = 16384;        // pages kept for the next launch
constexpr uint32_t kMostNumbers = 1u << 29;  // then the numbers of events begin anew

std::unordered_map<uint64_t, std::unique_ptr<Page>> g_pages;
std::vector<std::unique_ptr<Page>> g_kept;

struct Cached {
  uint64_t number = ~uint64_t{0};
  Page *page = nullptr;
};
Cached g_cache[kCached];

void empty(Page *page) {
  page->events.clear();
  page->offsets.clear();
  page->cells.clear();
  page->lists.clear();
  page->uses.clear();
  page->exact = page->split = page->open = false;
  page->entered = 0;
  page->parts = 4;
  page->write_blocks = page->read_blocks = page->strong_blocks = 0;
}

// An index with nothing in it.
void renew(Page *page, uint64_t base, uint32_t bytes) {
  empty(page);
  page->base = base;
  page->bytes = bytes;
  page->shift = 2;
  page->block_shift = 2;
  while (bytes > uint64_t{64} << page->block_shift) page->block_shift++;
  page->before = 0;
  page->stale = 3;
  page->has_strong = false;
  page->written.assign((bytes + 3) / 4, 0);
  page->read.assign((bytes + 3) / 4, 0);
}

// All that an index says is over.
void outdate(Page *page) {
  page->before = page->last_number();
  page->stale = page->before << 2 | 3;
  empty(page);
}

std::unique_ptr<Page> fresh_page(uint64_t base) {
  std::unique_ptr<Page> page;
  if (g_kept.empty()) {
    page = std::make_unique<Page>();
  } else {
    page = std::move(g_kept.back());
    g_kept.pop_back();
  }
  if (page->bytes != kPageBytes || page->shift != 2 || page->last_number() >= kMostNumbers)
    renew(page.get(), base, kPageBytes);
  else
    outdate(page.get());
  page->base = base;
  return page;
}

// Copies that nobody has waited for outlast barriers.
void plant_copies(CtaState &c, Page *page) {
  for (uint32_t i = 0; i < c.warps.size(); i++)
    for (PendingCopy &p : c.warps[i].copies) {
      Event e;
      e.cta = c.serial;
      e.index = static_cast<uint32_t>(c.index);
      e.epoch = c.warps[i].epoch;
      e.gen = c.gen;
      e.site = p.site;
      e.mask = 1u << p.lane;
      e.first = static_cast<uint32_t>(p.address - page->base);
      e.bytes = static_cast<uint16_t>(p.bytes);
      e.warp = static_cast<uint16_t>(i);
      e.flags = kMarkWrite | kMarkCopy;
      page->events.push_back(e);
      p.event = page->last_number();
      page->write_blocks |= page->blocks(e.first, e.bytes);
      uint32_t end = (e.first + e.bytes + (1u << page->shift) - 1) >> page->shift;
      for (uint32_t k = e.first >> page->shift; k < end; k++) page->written[k] = p.event << 2;
    }
}

// ------------------------------------------------------------------ events to cells

void keep_event(Page *page, const Event &e, uint32_t lane, uint32_t offset) {
  uint32_t step = page->split ? 1 : 4;
  Mark m = mark_of(e);
  m.mask = 1u << lane;
  for (uint32_t at = offset; at < offset + e.bytes; at += step) {
    Cell *cell = &page->cells[at / step];
    if (!e.writes() || e.strong()) {
      if (!fit_mark(cell, m)) append_mark(page, cell, m);
      continue;
    }
    cell->write = m;
    cell->read = Mark{};
    if (cell->more) cell->more->clear();
  }
}

}  // namespace

bool fit_mark(Cell *cell, const Mark &now) {
  Mark *room = nullptr;
  bool merged = false;
  each_mark(cell, [&](Mark *m) {
    if (merged || m->cta != now.cta || m->warp != now.warp || m->flags != now.flags) return;
    if (m->epoch == now.epoch) {
      m->mask |= now.mask;
      m->site = now.site;
      merged = true;
    } else {
      m->mask &= ~now.mask;
      if (m->empty()) room = m;
    }
  });
  if (merged) return true;
  if (!room && cell->read.empty()) room = &cell->read;
  if (!room && cell->more)
    for (Mark &m : *cell->more)
      if (m.empty()) room = &m;
  if (room) *room = now;
  return room != nullptr;
}

void append_mark(Page *page, Cell *cell, const Mark &now) {
  if (!cell->more) {
    page->lists.push_back(std::make_unique<std::vector<Mark>>());
    cell->more = page->lists.back().get();
  }
  if (cell->more->size() < kMostMarks) cell->more->push_back(now);
}

Mark mark_of(const Event &e) {
  Mark m;
  m.cta = e.cta;
  m.index = e.index;
  m.epoch = e.epoch;
  m.mask = e.mask;
  m.site = e.site;
  m.warp = e.warp;
  m.flags = e.flags;
  return m;
}

uint32_t lane_at(const Page &page, const Event &e, uint32_t offset) {
  auto lane = static_cast<uint32_t>(__builtin_ctz(e.mask));
  if (e.shape == kRun) return offset < e.first ? lane : lane + (offset - e.first) / e.bytes;
  if (e.shape == kSame) return lane;
  uint32_t k = e.first;
  for (uint32_t rest = e.mask; rest; rest &= rest - 1, k++) {
    uint32_t size = 1u << page.shift, at = page.offsets[k];
    if (at < offset + size && offset < at + e.bytes)
      return static_cast<uint32_t>(__builtin_ctz(rest));
  }
  return lane;
}

namespace {

template <typename Act>
void each_lane(const Page &page, const Event &e, Act act) {
  uint32_t k = 0;
  for (uint32_t rest = e.mask; rest; rest &= rest - 1, k++) {
    uint32_t offset = e.first;
    if (e.shape == kRun) offset += k * e.bytes;
    if (e.shape == kGather) offset = page.offsets[e.first + k];
    act(static_cast<uint32_t>(__builtin_ctz(rest)), offset);
  }
}

}  // namespace

void make_exact(Page *page) {
  if (page->exact) return;
  page->exact = true;
  page->split = page->shift < 2 || page->parts & 3;
  page->cells.assign(page->split ? page->bytes : (page->bytes + 3) / 4, Cell{});
  for (const Event &e : page->events)
    each_lane(*page, e, [&](uint32_t lane, uint32_t at) { keep_event(page, e, lane, at); });
}

void add_use(std::vector<Use> *uses, const State &s, const Mark &m, uint32_t lane, uint32_t offset,
             uint32_t bytes) {
  bool strong = m.flags & kMarkStrong && !(m.flags & kMarkCtaScope);
  auto it = std::find_if(uses->begin(), uses->end(), [&](const Use &u) {
    return u.site == m.site && u.writes == m.writes() && u.strong == strong;
  });
  if (it == uses->end()) {
    va_check_access a{};
    uint32_t kind = m.writes() ? VA_ACCESS_WRITE : VA_ACCESS_READ;
    if (m.flags & kMarkAtomic) kind = VA_ACCESS_ATOMIC;
    describe(&a, s, m.site, kind, m.index, m.warp * VA_LANES + lane);
    Use u;
    u.site = m.site;
    u.kind = kind;
    std::copy_n(a.ctaid, 3, u.ctaid);
    std::copy_n(a.tid, 3, u.tid);
    u.writes = m.writes();
    u.strong = strong;
    it = uses->insert(uses->end(), u);
  }
  for (uint32_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++)
    it->words[word / 64] |= uint64_t{1} << (word % 64);
}

LaunchUses uses_of(const State &s) {
  LaunchUses made;
  made.kernel = s.kernel;
  for (const auto &[number, page] : g_pages) {
    std::vector<Use> uses = page->uses;
    for (const Event &e : page->events)
      each_lane(*page, e, [&, &event = e](uint32_t lane, uint32_t at) {
        add_use(&uses, s, mark_of(event), lane, at, event.bytes);
      });
    if (!uses.empty()) made.pages.push_back({number, std::move(uses)});
  }
  auto earlier = [](const PageUses &a, const PageUses &b) { return a.number < b.number; };
  std::sort(made.pages.begin(), made.pages.end(), earlier);
  return made;
}

Page *global_page(uint64_t address) {
  uint64_t number = address / kPageBytes;
  Cached &cached = g_cache[number % kCached];
  if (cached.number == number) return cached.page;
  auto &slot = g_pages[number];
  if (!slot) slot = fresh_page(number * kPageBytes);
  cached = {number, slot.get()};
  return slot.get();
}

Page *shared_page(CtaState &c) {
  if (!c.page) c.page.reset(new Page);
  Page *page = c.page.get();
  if (page->owner == c.serial && page->gen == c.gen) return page;
  auto base = reinterpret_cast<uint64_t>(c.cta->shared);
  uint32_t bytes = c.cta->warps[0].view.shared_bytes;
  if (page->base != base || page->bytes != bytes || page->last_number() >= kMostNumbers) {
    renew(page, base, bytes);
  } else {
    outdate(page);
  }
  page->owner = c.serial;
  page->gen = c.gen;
  plant_copies(c, page);
  page->entered = page->events.size();
  return page;
}

bool written_by_launch(uint64_t address, uint32_t bytes) {
  for (uint64_t at = address; at < address + bytes; at++) {
    auto it = g_pages.find(at / kPageBytes);
    if (it == g_pages.end()) continue;
    const Page &page = *it->second;
    auto offset = static_cast<uint32_t>(at - page.base);
    if (!page.exact && page.live(page.written[offset >> page.shift])) return true;
    if (page.exact && !page.cells[offset / (page.split ? 1 : 4)].write.empty()) return true;
  }
  return false;
}

void delete_page(Page *page) { delete page; }

void forget_pages() {
  for (auto &[number, page] : g_pages) {
    if (g_kept.size() >= kMostKept) break;
    if (page->events.capacity() <= 4096 && page->cells.capacity() == 0)
      g_kept.push_back(std::move(page));
  }
  g_pages.clear();
  for (Cached &cached : g_cache) cached = Cached{};
}

}  // namespace va::check
