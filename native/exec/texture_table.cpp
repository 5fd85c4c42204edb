// The table of texture and surface objects.  What a slot holds is never freed, so a kernel that
// looks an object up while the host destroys it reads an old description, not freed memory.
#include "texture_table.h"

#include <atomic>
#include <deque>
#include <mutex>

namespace va {
namespace {

constexpr uint64_t kMark = 0x1A;       // top bits of every number; handles of the driver have others
constexpr uint64_t kMask = 0xFFFFFF;   // 24 bits of generation, 24 of slot, four zero bits
constexpr uint64_t kChunk = 256;
constexpr uint64_t kChunks = 4096;
constexpr size_t kKeepFree = 256;      // numbers come back late

struct Slot {
  std::atomic<uint64_t> generation{1};
  std::atomic<bool> live{false};
  va_texture what{};
};

struct Table {
  std::mutex mutex;
  std::atomic<Slot *> chunks[kChunks] = {};
  std::deque<uint64_t> free;
  uint64_t count = 0;
};

Table &table() {
  static Table *const instance = new Table;
  return *instance;
}

Slot *slot_of(uint64_t number) {
  uint64_t index = number >> 4 & kMask;
  if (number >> 52 != kMark || number & 15 || index >= kChunks * kChunk) return nullptr;
  Slot *chunk = table().chunks[index / kChunk].load(std::memory_order_acquire);
  if (!chunk) return nullptr;
  Slot *slot = chunk + index % kChunk;
  bool is_it = slot->live.load(std::memory_order_acquire) &&
               slot->generation.load(std::memory_order_acquire) == (number >> 28 & kMask);
  return is_it ? slot : nullptr;
}

}  // namespace

const va_texture *find_texture(uint64_t number) {
  Slot *slot = slot_of(number);
  return slot ? &slot->what : nullptr;
}

}  // namespace va

extern "C" {

uint64_t va_texture_add(const va_texture *what) {
  va::Table &all = va::table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  uint64_t index;
  if (all.free.size() > va::kKeepFree) {
    index = all.free.front();
    all.free.pop_front();
  } else {
    index = all.count;
    if (index >= va::kChunks * va::kChunk) return 0;
    all.count++;
    std::atomic<va::Slot *> &chunk = all.chunks[index / va::kChunk];
    if (!chunk.load(std::memory_order_relaxed))
      chunk.store(new va::Slot[va::kChunk], std::memory_order_release);
  }
  va::Slot *slot = all.chunks[index / va::kChunk].load(std::memory_order_relaxed) + index % va::kChunk;
  slot->what = *what;
  slot->live.store(true, std::memory_order_release);
  uint64_t generation = slot->generation.load(std::memory_order_relaxed);
  return va::kMark << 52 | generation << 28 | index << 4;
}

int va_texture_remove(uint64_t number, uint32_t kind) {
  va::Table &all = va::table();
  const std::lock_guard<std::mutex> lock(all.mutex);
  va::Slot *slot = va::slot_of(number);
  if (!slot || slot->what.kind != kind) return -1;
  slot->live.store(false, std::memory_order_release);
  slot->generation.store((slot->generation.load() + 1) & va::kMask, std::memory_order_release);
  all.free.push_back(number >> 4 & va::kMask);
  return 0;
}

int va_texture_find(uint64_t number, va_texture *out) {
  const std::lock_guard<std::mutex> lock(va::table().mutex);
  const va_texture *found = va::find_texture(number);
  if (found) *out = *found;
  return found != nullptr;
}

uint64_t va_texture_bytes(void) { return sizeof(va_texture); }

}  // extern "C"
