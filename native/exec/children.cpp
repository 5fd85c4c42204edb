// Launches by device code: collected while the parent runs, handed out when it has ended.
#include "va100/children.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "check_state.h"
#include "worker.h"

static_assert(sizeof(va_child_grid) == 64, "device code counts on it");

namespace va {
namespace {

constexpr uint32_t kSuccess = 0, kInvalidValue = 1, kInvalidConfiguration = 9;  // runtime errors
constexpr uint32_t kMostThreads = 1024, kMostBlockZ = 64, kMostGridYZ = 65535;

thread_local std::vector<uint64_t> *t_children = nullptr;  // never freed while it may hold any

uint32_t problem_of(const va_child_grid &g) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (!g.grid[i] || !g.block[i] || g.block[i] > kMostThreads) return kInvalidConfiguration;
    threads *= g.block[i];
  }
  const bool legal = threads <= kMostThreads && g.block[2] <= kMostBlockZ &&
                     g.grid[0] <= 0x7FFFFFFF && g.grid[1] <= kMostGridYZ &&
                     g.grid[2] <= kMostGridYZ;
  return legal ? kSuccess : kInvalidConfiguration;
}

}  // namespace

void keep_children(Launch *launch) {
  if (launch->children.empty()) return;
  if (launch->request->fault.kind) {  // what a faulting grid launched does not run
    for (uint64_t record : launch->children) va_exec_release_child(record);
    return;
  }
  auto is_early = [](uint64_t record) {
    return reinterpret_cast<const va_child_grid *>(record)->stream != VA_STREAM_TAIL;
  };
  std::stable_partition(launch->children.begin(), launch->children.end(), is_early);
  if (!t_children) t_children = new std::vector<uint64_t>;
  t_children->insert(t_children->end(), launch->children.begin(), launch->children.end());
}

}  // namespace va

extern "C" {

void va_h_launch_grid(va_warp *w, uint32_t mask, const uint64_t *records, uint32_t *out);

// Lanes launch in order.  A kernel that launches runs on one worker, so that the order is the
// same in every run.
void va_h_launch_grid(va_warp *w, uint32_t mask, const uint64_t *records, uint32_t *out) {
  va::Launch *launch = va::warp_of(w)->cta->worker->launch;
  for (uint32_t m = mask; m; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    const uint64_t record = records[lane];
    if (!record || !va_arena_accessible(record, sizeof(va_child_grid))) {
      out[lane] = va::kInvalidValue;
      continue;
    }
    out[lane] = va::problem_of(*reinterpret_cast<const va_child_grid *>(record));
    if (out[lane] != va::kSuccess) {
      va_exec_release_child(record);
      continue;
    }
    const std::lock_guard<std::mutex> lock(launch->children_mutex);
    launch->children.push_back(record);
  }
}

size_t va_exec_take_children(uint64_t *records, size_t capacity) {
  if (!va::t_children) return 0;
  std::vector<uint64_t> &children = *va::t_children;
  const size_t count = std::min(capacity, children.size());
  std::copy_n(children.begin(), count, records);
  children.erase(children.begin(), children.begin() + static_cast<ptrdiff_t>(count));
  return count;
}

void va_exec_release_child(uint64_t record) {
  va::forget_device_allocation(record);
  va_check_released(record);
  va_arena_free(record);
}

}  // extern "C"

namespace va {

extern const HelperEntry kChildHelpers[] = {
    {"va_h_launch_grid", reinterpret_cast<const void *>(&va_h_launch_grid)}, {nullptr, nullptr}};

}  // namespace va
