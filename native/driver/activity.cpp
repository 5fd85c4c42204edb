#include "activity.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "timeline.h"
#include "telemetry.h"

namespace va {
namespace {

static_assert(int{VA_ACTIVITY_UNITS} == int{node::kUnits}, "units go by number");

// Readings cover a sample period of the card's; a tenth of it is not seen.
constexpr uint64_t kSeenNs = 20'000'000;
constexpr size_t kKeep = 4096;

struct Activities {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, va_activity> by_launch;
  std::atomic<uint64_t> unknown_ns{0};
};

Activities &activities() {
  static Activities *const instance = new Activities;
  return *instance;
}

std::vector<Reach> &reached() {
  static thread_local std::vector<Reach> reach;
  return reach;
}

} // namespace

void log_reach(std::vector<Reach> reach) { reached() = std::move(reach); }

std::vector<Reach> take_reach() { return std::exchange(reached(), {}); }

bool known_activity(uint64_t variant_id, uint64_t ctas, va_activity *out) {
  Activities &a = activities();
  const std::lock_guard<std::mutex> lock(a.mutex);
  const auto found = a.by_launch.find({variant_id, ctas});
  if (found == a.by_launch.end())
    return false;
  *out = found->second;
  return true;
}

void ran_unknown(uint64_t ns) { activities().unknown_ns.fetch_add(ns, std::memory_order_relaxed); }

void settle_activity() {
  Activities &a = activities();
  if (a.unknown_ns.load(std::memory_order_relaxed) < kSeenNs)
    return;
  a.unknown_ns.store(0);
  resolve_timeline();
}

} // namespace va

extern "C" void va_launch_activity(uint64_t variant_id, uint64_t ctas, const va_activity *activity) {
  va::Activities &a = va::activities();
  const std::lock_guard<std::mutex> lock(a.mutex);
  if (a.by_launch.size() >= va::kKeep)
    a.by_launch.clear();
  a.by_launch[{variant_id, ctas}] = *activity;
}
