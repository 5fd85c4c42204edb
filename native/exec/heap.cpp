// malloc and free of device code.
#include "va100/heap.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "check_state.h"
#include "va100/retire.h"
#include "worker.h"

namespace va {
namespace {

struct Block {
  uint64_t heap, bytes;
};

// What device code has allocated and not freed: it may free nothing else.  Never destroyed.
struct Heaps {
  std::mutex mutex;
  std::unordered_map<uint64_t, Block> blocks;    // by address
  std::unordered_map<uint64_t, uint64_t> used;  // bytes by heap
};

Heaps &heaps() {
  static Heaps *const all = new Heaps;
  return *all;
}

thread_local uint64_t t_heap = 0, t_limit = VA_DEFAULT_HEAP_BYTES;

// Count bytes against a heap; false when it has no room for them.
bool reserve(const Launch &launch, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(heaps().mutex);
  uint64_t &used = heaps().used[launch.heap];
  if (bytes > launch.heap_limit || used > launch.heap_limit - bytes) return false;
  used += bytes;
  return true;
}

uint64_t allocate(const Launch &launch, uint64_t bytes) {
  if (!bytes || !reserve(launch, bytes)) return 0;
  const uint64_t address = va_arena_alloc(VA_WINDOW_DEVICE, bytes, 256);
  const std::lock_guard<std::mutex> lock(heaps().mutex);
  if (address)
    heaps().blocks[address] = {launch.heap, bytes};
  else
    heaps().used[launch.heap] -= bytes;
  return address;
}

}  // namespace

void enter_heap(Launch *launch) {
  launch->heap = t_heap;
  launch->heap_limit = t_limit;
}

bool forget_device_allocation(uint64_t address) {
  const std::lock_guard<std::mutex> lock(heaps().mutex);
  const auto it = heaps().blocks.find(address);
  if (it == heaps().blocks.end()) return false;
  heaps().used[it->second.heap] -= it->second.bytes;
  heaps().blocks.erase(it);
  return true;
}

}  // namespace va

extern "C" {

void va_h_malloc(va_warp *w, uint32_t mask, const uint64_t *bytes, uint64_t *out);
void va_h_free(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *address);

// Allocations of the window region, so that every kernel may touch them.
void va_h_malloc(va_warp *w, uint32_t mask, const uint64_t *bytes, uint64_t *out) {
  const va::Launch &launch = *va::warp_of(w)->cta->worker->launch;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    out[lane] = va::allocate(launch, bytes[lane]);
    if (out[lane]) va_check_allocated(out[lane], bytes[lane], 0);
  }
}

void va_h_free(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *address) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    if (!address[lane]) continue;
    const bool ours = va::forget_device_allocation(address[lane]);
    if (ours) va_check_released(address[lane]);
    const bool keep = va_check_tools() & VA_CHECK_MEMORY;  // what is used after its end is told
    const bool freed =
        ours && !(keep ? va_arena_retire(address[lane]) : va_arena_free(address[lane]));
    if (!freed) va::check_bad_device_free(w, site, static_cast<uint32_t>(lane), address[lane]);
    if (!freed)
      va::fault(w, VA_FAULT_ILLEGAL_ADDRESS, site, static_cast<uint32_t>(lane), address[lane], 1,
                0, true, nullptr);
  }
}

void va_exec_use_heap(uint64_t heap, uint64_t limit_bytes) {
  va::t_heap = heap;
  va::t_limit = limit_bytes;
}

void va_exec_drop_heap(uint64_t heap) {
  std::vector<uint64_t> left;
  {
    const std::lock_guard<std::mutex> lock(va::heaps().mutex);
    for (auto it = va::heaps().blocks.begin(); it != va::heaps().blocks.end();) {
      if (it->second.heap == heap) left.push_back(it->first);
      it = it->second.heap == heap ? va::heaps().blocks.erase(it) : std::next(it);
    }
    va::heaps().used.erase(heap);
  }
  for (uint64_t address : left) {
    va_check_released(address);
    va_arena_free(address);
  }
}

}  // extern "C"

namespace va {

extern const HelperEntry kHeapHelpers[] = {
    {"va_h_malloc", reinterpret_cast<const void *>(&va_h_malloc)},
    {"va_h_free", reinterpret_cast<const void *>(&va_h_free)},
    {nullptr, nullptr}};

}  // namespace va
