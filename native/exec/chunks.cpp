// Functions that are compiled in chunks: their frames, going from chunk to chunk, and the ways
// between the converged and the masked world, by the tables of src/va100/jit/frame.py.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "chunks.h"
#include "worker.h"

namespace va {

// What every frame begins with; the ready blocks, waiting lanes and registers follow.
struct Frame {
  uint32_t alive, returned;
  int32_t budget;
  uint32_t after;
  va_warp *first;
  void **arguments;
  uint64_t stack;
  uint64_t reserved[3];
  uint64_t words[];
};
static_assert(offsetof(Frame, words) == 64, "jit/frame.py");

}  // namespace va

extern "C" {
void va_h_run_kernel(va_warp *first, uint32_t count, uint32_t function);
uint32_t va_h_run_function(va_warp *w, uint32_t group, void **arguments, uint64_t stack,
                           uint32_t function, uint32_t site);
void va_h_wait(va::Frame *frame, uint32_t pending, uint32_t first, uint32_t lanes, uint32_t second,
               uint32_t rest);
void va_h_arrive(va::Frame *frame, uint32_t pending, uint32_t block, uint32_t lanes);
void va_h_clear(va::Frame *frame, uint32_t pending, uint32_t block);
void va_h_count(va_warp *w, uint32_t first, uint32_t lanes);
int64_t va_h_next(const uint64_t *words, uint32_t count, uint32_t from);
void va_h_stack(va_warp *w, uint32_t site, uint32_t mask);
}

namespace va {
namespace {

constexpr uint32_t kFull = 0xffffffffu;
constexpr uint32_t kDispatch = 0xffffffffu, kAbove = 0xfffffffeu, kLeaveWhole = 0xfffffffdu,
                   kExitWhole = 0xfffffffcu;
constexpr uint32_t kPastReturn = 1u << 30;
constexpr int32_t kSpinBudget = 256;  // jit/worlds.py
constexpr uint32_t kNoPattern = 0xffffffffu;

using Chunk = uint32_t (*)(va_warp *, Frame *, uint32_t);

// A register that the converged world keeps as a scalar.
struct Slot {
  uint32_t scalar, vector;
  uint32_t bits;  // 0: a predicate
  uint32_t align;
  uint32_t pattern;
  uint32_t reserved;
  int64_t low, high;
};
static_assert(sizeof(Slot) == 40, "jit/frame.py");

struct Facts {
  uint32_t blocks, slot_count, patterns, live_count, zeroed, pending, bytes, reserved;

  const Slot *slots() const { return reinterpret_cast<const Slot *>(this + 1); }
  const int64_t *pattern(uint32_t k) const {
    return reinterpret_cast<const int64_t *>(slots() + slot_count) + size_t{k} * VA_LANES;
  }
  const uint32_t *starts() const { return reinterpret_cast<const uint32_t *>(pattern(patterns)); }
  const uint32_t *live() const { return starts() + blocks + 1; }
  const uint32_t *zeros() const { return live() + live_count; }
  const uint8_t *returns() const {
    return reinterpret_cast<const uint8_t *>(zeros() + size_t{2} * zeroed);
  }
  uint32_t words() const { return (blocks + 63) / 64; }
};

template <typename Word>
Word lane_offset(const Facts &f, const Slot &s, int lane) {
  return s.pattern == kNoPattern ? Word{0} : static_cast<Word>(f.pattern(s.pattern)[lane]);
}

template <typename Word>
void spread_word(const Facts &f, const Slot &s, const uint8_t *scalar, uint8_t *vector) {
  Word base;
  std::memcpy(&base, scalar, sizeof base);
  auto *lanes = reinterpret_cast<Word *>(vector);
  for (int lane = 0; lane < VA_LANES; lane++)
    lanes[lane] = static_cast<Word>(base + lane_offset<Word>(f, s, lane));
}

// A scalar takes its vector form.
void spread(const Facts &f, const Slot &s, uint8_t *frame) {
  const uint8_t *scalar = frame + s.scalar;
  uint8_t *vector = frame + s.vector;
  switch (s.bits) {
    case 0: {
      const uint32_t mask = *scalar & 1 ? kFull : 0;
      std::memcpy(vector, &mask, sizeof mask);
      return;
    }
    case 8:
      return spread_word<uint8_t>(f, s, scalar, vector);
    case 16:
      return spread_word<uint16_t>(f, s, scalar, vector);
    case 32:
      return spread_word<uint32_t>(f, s, scalar, vector);
    case 64:
      return spread_word<uint64_t>(f, s, scalar, vector);
    default:
      return spread_word<unsigned __int128>(f, s, scalar, vector);
  }
}

template <typename Word, typename Signed>
bool regular_word(const Facts &f, const Slot &s, const uint8_t *vector, uint8_t *scalar) {
  const auto *lanes = reinterpret_cast<const Word *>(vector);
  const Word base = static_cast<Word>(lanes[0] - lane_offset<Word>(f, s, 0));
  for (int lane = 1; lane < VA_LANES; lane++)
    if (lanes[lane] != static_cast<Word>(base + lane_offset<Word>(f, s, lane))) return false;
  const auto value = static_cast<Signed>(base);
  if (sizeof(Word) <= 8 && (value < static_cast<Signed>(s.low) || value > static_cast<Signed>(s.high)))
    return false;
  if (s.align && base & static_cast<Word>((Word{1} << s.align) - 1)) return false;
  std::memcpy(scalar, &base, sizeof base);
  return true;
}

// Whether a register has the shape that the converged world counts on; if so, its scalar.
bool regular(const Facts &f, const Slot &s, uint8_t *frame) {
  const uint8_t *vector = frame + s.vector;
  uint8_t *scalar = frame + s.scalar;
  switch (s.bits) {
    case 0: {
      uint32_t mask;
      std::memcpy(&mask, vector, sizeof mask);
      *scalar = mask == kFull;
      return mask == kFull || mask == 0;
    }
    case 8:
      return regular_word<uint8_t, int8_t>(f, s, vector, scalar);
    case 16:
      return regular_word<uint16_t, int16_t>(f, s, vector, scalar);
    case 32:
      return regular_word<uint32_t, int32_t>(f, s, vector, scalar);
    case 64:
      return regular_word<uint64_t, int64_t>(f, s, vector, scalar);
    default:
      return regular_word<unsigned __int128, __int128>(f, s, vector, scalar);
  }
}

uint32_t *waiting(Frame *frame, uint32_t pending, uint32_t block) {
  return reinterpret_cast<uint32_t *>(reinterpret_cast<uint8_t *>(frame) + pending) + block;
}

void arrive(Frame *frame, uint32_t pending, uint32_t block, uint32_t lanes) {
  *waiting(frame, pending, block) |= lanes;
  if (lanes) frame->words[block / 64] |= uint64_t{1} << block % 64;
}

void clear(Frame *frame, uint32_t pending, uint32_t block) {
  *waiting(frame, pending, block) = 0;
  frame->words[block / 64] &= ~(uint64_t{1} << block % 64);
}

// A warp parts: what is alive where its lanes wait takes its vector form.
void part(const Facts &f, Frame *frame) {
  auto *bytes = reinterpret_cast<uint8_t *>(frame);
  for (int64_t block = va_h_next(frame->words, f.words(), 0); block >= 0;
       block = va_h_next(frame->words, f.words(), static_cast<uint32_t>(block) + 1)) {
    for (uint32_t k = f.starts()[block]; k < f.starts()[block + 1]; k++)
      spread(f, f.slots()[f.live()[k]], bytes);
    if (static_cast<uint32_t>(block) + 1 >= f.blocks) break;
  }
}

// Whether the warp is whole at a block and everything alive is regular: then it is converged.
bool comes_together(const Facts &f, Frame *frame, uint32_t block) {
  if (*waiting(frame, f.pending, block) != kFull) return false;
  auto *bytes = reinterpret_cast<uint8_t *>(frame);
  for (uint32_t k = f.starts()[block]; k < f.starts()[block + 1]; k++)
    if (!regular(f, f.slots()[f.live()[k]], bytes)) return false;
  clear(frame, f.pending, block);
  return true;
}

// Runs chunks until the function is left; the lanes that came to its end.
uint32_t run(va_warp *w, Frame *frame, const Facts &f, uint32_t function, uint32_t number) {
  const va_chunked &chunked = warp_of(w)->cta->worker->launch->request->variant->chunked[function];
  const uint32_t count = f.blocks;
  for (;;) {
    uint64_t address = __atomic_load_n(&chunked.table[number], __ATOMIC_ACQUIRE);
    if (__builtin_expect(!address, 0)) address = demand_chunk(w, function, number);
    const bool together = number < count;
    uint32_t next = reinterpret_cast<Chunk>(address)(w, frame, number);
    if (next < count) {
      number = next;
      continue;
    }
    if (next == kLeaveWhole) return kFull;
    if (next == kExitWhole) return 0;
    if (together) part(f, frame);
    if (next == kDispatch || next == kAbove) {
      const uint32_t from = next == kAbove ? frame->after : 0;
      const int64_t block = from >= count ? -1 : va_h_next(frame->words, f.words(), from);
      if (block < 0) {
        if (next == kDispatch) return frame->returned;
        number = 2 * count;
        continue;
      }
      next = count + static_cast<uint32_t>(block);
    }
    number = next & ~kPastReturn;
    const uint32_t block = number - count;
    if (!(next & kPastReturn) && f.returns()[block] && comes_together(f, frame, block))
      number = block;
  }
}

Frame *begin(void *memory, const Facts &f, va_warp *first, uint32_t group) {
  auto *bytes = static_cast<uint8_t *>(memory);
  std::memset(bytes, 0, f.pending + size_t{4} * f.blocks);
  for (uint32_t k = 0; k < f.zeroed; k++) std::memset(bytes + f.zeros()[2 * k], 0, f.zeros()[2 * k + 1]);
  auto *frame = static_cast<Frame *>(memory);
  frame->alive = group;
  frame->budget = kSpinBudget;
  frame->first = first;
  return frame;
}

uint32_t start(va_warp *w, Frame *frame, const Facts &f, uint32_t function, uint32_t group) {
  if (group == kFull) return run(w, frame, f, function, 0);
  arrive(frame, f.pending, 0, group);
  return run(w, frame, f, function, f.blocks);
}

constexpr uint32_t kMostOnStack = 128 * 1024;

// A frame that is too large for a warp's stack; the worker frees those that a fault has left.
uint8_t *take_frame(va_warp *w, uint32_t bytes) {
  auto *frame = static_cast<uint8_t *>(std::aligned_alloc(64, bytes));
  if (!frame)
    fault(w, VA_FAULT_RESOURCES, 0xffffffffu, 0, 0, 0, 0, false,
          "out of memory: no room for the registers of a warp");
  warp_of(w)->cta->worker->frames.push_back(frame);
  return frame;
}

void give_back(va_warp *w, uint8_t *frame) {
  auto &frames = warp_of(w)->cta->worker->frames;
  frames.erase(std::find(frames.begin(), frames.end(), frame));
  std::free(frame);
}

const Facts &facts_of(va_warp *w, uint32_t function) {
  const va_variant *variant = warp_of(w)->cta->worker->launch->request->variant;
  return *reinterpret_cast<const Facts *>(variant->chunked[function].facts);
}

}  // namespace

extern const HelperEntry kChunkHelpers[];
const HelperEntry kChunkHelpers[] = {
    {"va_h_run_kernel", reinterpret_cast<const void *>(&va_h_run_kernel)},
    {"va_h_arrive", reinterpret_cast<const void *>(&va_h_arrive)},
    {"va_h_clear", reinterpret_cast<const void *>(&va_h_clear)},
    {"va_h_count", reinterpret_cast<const void *>(&va_h_count)},
    {"va_h_wait", reinterpret_cast<const void *>(&va_h_wait)},
    {"va_h_run_function", reinterpret_cast<const void *>(&va_h_run_function)},
    {nullptr, nullptr}};

}  // namespace va

extern "C" {

// A whole warp parts: lanes wait at one block and the rest at another.
void va_h_wait(va::Frame *frame, uint32_t pending, uint32_t first, uint32_t lanes, uint32_t second,
               uint32_t rest) {
  frame->alive = va::kFull;
  va::arrive(frame, pending, first, lanes);
  va::arrive(frame, pending, second, rest);
}

void va_h_arrive(va::Frame *frame, uint32_t pending, uint32_t block, uint32_t lanes) {
  va::arrive(frame, pending, block, lanes);
}

void va_h_clear(va::Frame *frame, uint32_t pending, uint32_t block) {
  va::clear(frame, pending, block);
}

// A masked execution of a block: once, and so many lanes.
void va_h_count(va_warp *w, uint32_t first, uint32_t lanes) {
  w->counters[first]++;
  w->counters[first + 1] += static_cast<uint32_t>(__builtin_popcount(lanes));
}

void va_h_run_kernel(va_warp *first, uint32_t count, uint32_t function) {
  const va::Facts &f = va::facts_of(first, function);
  const bool large = f.bytes > va::kMostOnStack;
  uint8_t *memory = large ? va::take_frame(first, f.bytes)
                          : static_cast<uint8_t *>(__builtin_alloca_with_align(f.bytes, 512));
  for (uint32_t i = 0; i < count; i++) {
    va_warp *w = &(va::warp_of(first) + i)->view;
    w->clock = 0;
    va::Frame *frame = va::begin(memory, f, first, w->live);
    va::start(w, frame, f, function, w->live);
  }
  if (large) va::give_back(first, memory);
}

uint32_t va_h_run_function(va_warp *w, uint32_t group, void **arguments, uint64_t stack,
                           uint32_t function, uint32_t site) {
  if (reinterpret_cast<uint64_t>(__builtin_frame_address(0)) < w->stack_limit)
    va_h_stack(w, site, group);
  const va::Facts &f = va::facts_of(w, function);
  const bool large = f.bytes > va::kMostOnStack / 2;
  uint8_t *memory = large ? va::take_frame(w, f.bytes)
                          : static_cast<uint8_t *>(__builtin_alloca_with_align(f.bytes, 512));
  va::Frame *frame = va::begin(memory, f, &va::warp_of(w)->cta->warps[0].view, group);
  frame->arguments = arguments;
  frame->stack = stack;
  const uint32_t back = va::start(w, frame, f, function, group);
  if (large) va::give_back(w, memory);
  return back;
}

}  // extern "C"
