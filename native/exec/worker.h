// The scheduler's own view of a launch: workers, resident CTAs, warps.
// Machine code sees only the va_warp each Warp begins with.
#pragma once

#include <setjmp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "observe.h"
#include "va100/exec.h"

extern "C" void va_switch(void **save_sp, void *next_sp);

namespace va {

struct Cta;
struct Worker;

enum class WarpState : uint8_t { kReady, kBarrier, kDone };

constexpr int kBarriers = 16;

struct Stack {
  uint8_t *base = nullptr;  // lowest usable byte; a guard page lies below
};

struct alignas(VA_WARP_STRIDE) Warp {
  va_warp view{};  // first: machine code's pointer is also ours
  Cta *cta = nullptr;
  void *sp = nullptr;
  Stack stack;
  WarpState state = WarpState::kReady;
  uint32_t barrier = 0;
  uint32_t site = 0;      // of the barrier instruction
  uint32_t reduced = 0;  // what a bar.red gave this warp
};

static_assert(sizeof(Warp) == VA_WARP_STRIDE, "machine code steps from warp to warp");
static_assert(offsetof(Warp, sp) == 160, "switch.S saves stacks there");

struct Barrier {
  uint32_t arrived = 0;   // threads
  uint32_t expected = 0;  // threads; 0: all of the CTA that live
  uint32_t popc = 0;      // running reduction
  bool all = true;
  bool any = false;
};

struct Cta {
  Worker *worker = nullptr;
  uint64_t index = 0;
  uint32_t live_warps = 0;
  uint8_t *shared = nullptr;
  uint8_t *local = nullptr;
  Barrier barriers[kBarriers];
  std::vector<Warp> warps;
  void *check = nullptr;  // the checker's view of it, while it is checked
  std::unique_ptr<Recorder, FreeRecorder> recorder;  // of its accesses, while it is observed
};

// In which order things that nobody orders are run: as they are numbered, or shuffled by a seed.
class Order {
 public:
  Order() = default;
  Order(uint64_t count, uint64_t seed) : count_(count) {
    if (!seed || count < 2) return;
    seed = (seed + 1) * 0x9E3779B97F4A7C15ull;
    first_ = (seed >> 20) % count;
    step_ = 1 + (seed >> 7) % (count - 1);
    while (std::gcd(step_, count) != 1) step_ = step_ % count + 1;
  }
  uint64_t operator()(uint64_t place) const {
    if (!count_ || (step_ == 1 && !first_)) return place;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(place) * step_ + first_) % count_);
  }

 private:
  uint64_t count_ = 0, first_ = 0, step_ = 1;
};

// What all workers of a launch share.
struct Launch {
  va_launch *request = nullptr;
  const uint8_t *params = nullptr;
  uint64_t cta_count = 0;
  uint32_t threads_per_cta = 0;
  uint32_t warps_per_cta = 0;
  uint32_t shared_bytes = 0;
  uint32_t local_stride = 0;
  uint64_t workspace = 0;
  uint64_t serial = 0;
  uint32_t chunk = 1;
  bool ordered = false;
  Order order;  // of CTAs
  std::atomic<uint64_t> next_cta{0};
  std::atomic<uint64_t> resident{0};
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> working{0}, stuck{0};  // workers with CTAs, and those that only spin
  std::atomic<uint64_t> progress{0};  // counts releases, exits and admissions
  uint64_t heap = 0, heap_limit = 0;  // of device malloc
  std::unique_ptr<Memory, FreeMemory> memory;  // while CTAs are observed
  std::mutex children_mutex;
  std::vector<uint64_t> children;  // records of grids that device code launched
};

struct Worker {
  Launch *launch = nullptr;
  std::vector<uint64_t> counters;
  std::vector<va_region> regions;
  std::vector<std::unique_ptr<Cta>> resident;
  std::vector<std::unique_ptr<Cta>> spare;
  std::vector<Stack> stacks;
  std::vector<uint8_t *> frames;  // of functions in chunks, where stacks are too small for them
  void *sp = nullptr;         // the scheduler's stack while a warp runs
  jmp_buf escape;             // where a faulting warp without a stack of its own leaves to
  bool fibers = false;
  bool launcher = false;      // on the thread that launched
  Warp *running = nullptr;
  uint64_t moves = 0;         // barriers released and warps ended: anything but spinning
};

// A function machine code may call; tables of them end in an entry without a name.
struct HelperEntry {
  const char *name;
  const void *address;
};

inline Warp *warp_of(va_warp *view) { return reinterpret_cast<Warp *>(view); }
inline const Warp *warp_of(const va_warp *view) { return reinterpret_cast<const Warp *>(view); }

// Record a fault (the first one of a launch wins) and leave the warp for good.
[[noreturn]] void fault(va_warp *view, uint32_t kind, uint32_t site, uint32_t lane,
                        uint64_t address, uint32_t size, uint32_t space, bool write,
                        const char *text);

// Back to the scheduler, ready to go on.
void yield(Warp *warp);
// To the next ready warp of the CTA, or to the scheduler when there is none.
void pass_on(Warp *warp);

// Device-side printf: append text of one launch, in order of CTA, warp and call.
void print(va_warp *view, const std::string &text);
void flush_output(Launch *launch);

// Grids that a launch's device code launched, for va_exec_take_children.
void keep_children(Launch *launch);
// An address that device malloc gave is freed by somebody else; false when it is none.
bool forget_device_allocation(uint64_t address);
// Note the heap that a launch's malloc takes from.
void enter_heap(Launch *launch);

}  // namespace va
