// Handles that are never dangling: a number that names a slot and the generation of its tenant.
//
// A handle of a destroyed object, or no handle at all, finds nothing instead of crashing.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

namespace va {

enum class Kind : uint64_t {
  kContext = 0x11,
  kModule = 0x12,
  kFunction = 0x13,
  kKernel = 0x14,
  kLibrary = 0x15,
  kStream = 0x16,
  kEvent = 0x17,
  kLink = 0x18,
  kPool = 0x19,
  kTexture = 0x1A, // numbers of the table of textures and surfaces, which begin with it
  kArray = 0x1B,
  kGraph = 0x1C,
  kGraphNode = 0x1D,
  kGraphExec = 0x1E,
  kUserObject = 0x1F,
  kPhysical = 0x30,
  kGreenContext = 0x31,
  kResourceDescriptor = 0x32,
  kLogListener = 0x33,
  kListener = 0x34,
  kMipmap = 0x35
};

inline Kind kind_of(const void *handle) {
  return static_cast<Kind>(reinterpret_cast<uint64_t>(handle) >> 52);
}

// Layout of a handle: kind, 24 bits of generation, 24 bits of slot, four zero bits.
template <typename Object, typename Handle, Kind kKind> class HandleTable {
public:
  Handle add(Object *object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t index;
    if (free_.size() > kKeepFree) { // oldest first, so that numbers come back late
      index = free_.front();
      free_.pop_front();
    } else {
      index = count_++;
      if (index >= kChunks * kChunk)
        return nullptr;
      std::atomic<Slot *> &chunk = chunks_[index / kChunk];
      if (!chunk.load(std::memory_order_relaxed))
        chunk.store(new Slot[kChunk], std::memory_order_release);
    }
    Slot &slot = chunks_[index / kChunk].load(std::memory_order_relaxed)[index % kChunk];
    const uint64_t generation = slot.generation.load(std::memory_order_relaxed);
    slot.object.store(object, std::memory_order_release);
    const uint64_t bits = static_cast<uint64_t>(kKind) << 52 | generation << 28 | index << 4;
    return reinterpret_cast<Handle>(bits);
  }

  Object *find(Handle handle) const {
    const uint64_t bits = reinterpret_cast<uint64_t>(handle);
    const Slot *const slot = slot_of(bits);
    if (!slot)
      return nullptr;
    Object *const object = slot->object.load(std::memory_order_acquire);
    return slot->generation.load(std::memory_order_acquire) == (bits >> 28 & kMask) ? object
                                                                                    : nullptr;
  }

  // Forget a handle and return what it named, so that the caller may delete it.
  Object *remove(Handle handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Object *const object = find(handle);
    if (!object)
      return nullptr;
    const uint64_t bits = reinterpret_cast<uint64_t>(handle);
    Slot *const slot = const_cast<Slot *>(slot_of(bits));
    slot->object.store(nullptr, std::memory_order_release);
    slot->generation.store((slot->generation.load() + 1) & kMask, std::memory_order_release);
    free_.push_back(bits >> 4 & kMask);
    return object;
  }

private:
  static constexpr uint64_t kMask = 0xFFFFFF;
  static constexpr uint64_t kChunk = 1024;
  static constexpr uint64_t kChunks = 16384;
  static constexpr size_t kKeepFree = 256;

  struct Slot {
    std::atomic<uint64_t> generation{1};
    std::atomic<Object *> object{nullptr};
  };

  const Slot *slot_of(uint64_t bits) const {
    const uint64_t index = bits >> 4 & kMask;
    if (bits >> 52 != static_cast<uint64_t>(kKind) || bits & 15 || index >= kChunks * kChunk)
      return nullptr;
    const Slot *const chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk ? &chunk[index % kChunk] : nullptr;
  }

  mutable std::mutex mutex_;
  std::atomic<Slot *> chunks_[kChunks] = {};
  std::deque<uint64_t> free_;
  uint64_t count_ = 0;
};

} // namespace va
