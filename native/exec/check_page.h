// Who touched which word of a page of memory, in two forms.
//
// A page logs events, each an access of a warp.  An index has a number a word for the last plain
// write, read, strong write and strong read, each naming an event; writes are entered at once, all
// else when somebody asks.  The index acquits nearly everything at a glance.  What it cannot acquit
// is judged by cells, which keep every mark that matters: a page's events are then written into
// cells, and the page stays with them.
#pragma once

#include "check_stream.h"

namespace va::check {

constexpr uint64_t kPageBytes = 2048;  // of global memory; a CTA's shared memory is one page

// How an event's lanes lie.
enum Shape : uint8_t { kRun, kSame, kGather };

// An access of lanes of one warp to one page.
struct Event {
  uint64_t cta = 0;  // the CTA's serial
  uint32_t index = 0, epoch = 0, gen = 0, site = 0;
  uint32_t mask = 0;
  uint32_t first = 0;  // the first lane's offset; of kGather, its place among the page's offsets
  uint16_t bytes = 0;  // of a lane
  uint16_t warp = 0;
  uint8_t flags = 0;   // MarkFlag
  uint8_t shape = kSame;

  bool writes() const { return flags & kMarkWrite; }
  bool strong() const { return flags & kMarkStrong; }
};

// How far apart those who an entry of the index stands for are.
enum Level : uint32_t { kOneThread, kOneWarp, kOneCta, kMany };

using Entries = std::vector<uint32_t>;

struct Cell {
  Mark write;
  Mark read;  // or strong write
  std::vector<Mark> *more = nullptr;
};

struct Page {
  uint64_t base = 0;
  uint32_t bytes = 0;
  uint32_t shift = 2;   // an entry stands for so many bytes: 1 << shift
  uint64_t owner = 0;   // of shared memory: the CTA's serial
  uint32_t gen = 0;     // and its generation; all before counts as done
  // The index.  An entry is an event's number << 2 and a Level; those up to `stale` say nothing.
  uint32_t before = 0;  // number of the event before the first
  uint32_t stale = 3;
  Entries written, read, strong_written, strong_read;
  bool has_strong = false;  // the last two are in use
  std::vector<Event> events;
  size_t entered = 0;       // events that the index knows
  bool open = false;        // the last event's lanes are not all there yet
  uint32_t parts = 4;       // of all offsets and sizes of events, the bits that are set in some
  // The page in 64 blocks: where plain writes, plain reads, and strong accesses were.
  uint32_t block_shift = 5;
  uint64_t write_blocks = 0, read_blocks = 0, strong_blocks = 0;
  std::vector<uint32_t> offsets;
  // The cells, once they are in use.
  bool exact = false;
  bool split = false;  // cells are bytes, not words
  std::vector<Cell> cells;
  std::vector<std::unique_ptr<std::vector<Mark>>> lists;
  std::vector<Use> uses;  // since then, where streams are followed

  const Event &event(uint32_t entry) const { return events[(entry >> 2) - before - 1]; }
  bool live(uint32_t entry) const { return entry > stale; }
  uint64_t blocks(uint32_t offset, uint32_t span) const {
    uint32_t low = offset >> block_shift, high = (offset + span - 1) >> block_shift;
    return (~uint64_t{0} >> (63 - high)) & (~uint64_t{0} << low);
  }
  uint32_t last_number() const { return before + static_cast<uint32_t>(events.size()); }
};

// The lane of an event that was at an offset of the page.
uint32_t lane_at(const Page &page, const Event &e, uint32_t offset);
// Write the events into cells, and go on with those.
void make_exact(Page *page);
Mark mark_of(const Event &e);
Page *global_page(uint64_t address);
// A CTA's shared memory, as of now.
Page *shared_page(CtaState &c);
inline Page *page_at(CtaState &c, uint64_t address, uint32_t space) {
  return space == kShared ? shared_page(c) : global_page(address);
}
void forget_pages();

template <typename Act>
void each_mark(Cell *cell, Act act) {
  if (!cell->read.empty()) act(&cell->read);
  if (cell->more)
    for (Mark &m : *cell->more)
      if (!m.empty()) act(&m);
}
constexpr size_t kMostMarks = 48;  // more readers of one word than this are not told apart
// Put the mark of a read or strong write with those like it, or where one is no longer needed.
bool fit_mark(Cell *cell, const Mark &now);
// Or beside the others, unless there are too many.
void append_mark(Page *page, Cell *cell, const Mark &now);

uint8_t flags_of(const Access &a);
// Enter a cp.async of one lane into the index; false when the index cannot acquit it.
bool copy_fits(State &s, CtaState &c, va_warp *w, const Access &a, uint32_t lane,
               const Place &place, uint32_t *event);

}  // namespace va::check
