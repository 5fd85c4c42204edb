// Events: sets that clients wait on, and what reaches them.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unistd.h>
#include <vector>

#include "clock.h"
#include "nvml_api.h"
#include "session.h"

namespace va::nvml {
namespace {

constexpr unsigned long long kSingleBit = 0x1, kDoubleBit = 0x2, kXid = 0x8, kMigChange = 0x80;
constexpr unsigned long long kSupported = kSingleBit | kDoubleBit | kXid | kMigChange;
constexpr unsigned kPollUs = 2000;

struct EventSet {
  std::mutex mutex;
  std::map<uint32_t, unsigned long long> types; // by GPU
  uint64_t seen = 0;                            // events of the node up to here are told or missed
};

std::mutex g_mutex;
std::set<EventSet *> g_sets;

EventSet &set_of(nvmlEventSet_t handle) {
  auto *const set = reinterpret_cast<EventSet *>(handle);
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (!g_sets.count(set))
    fail(NVML_ERROR_INVALID_ARGUMENT);
  return *set;
}

uint64_t event_count() {
  uint64_t count = 0;
  store().read([&](const node::NodeState &state) { count = state.event_count; });
  return count;
}

bool take(EventSet &set, nvmlEventData_t *data) {
  const std::lock_guard<std::mutex> lock(set.mutex);
  node::Event found{};
  bool any = false;
  uint64_t seen = set.seen;
  store().read([&](const node::NodeState &state) {
    any = false;
    seen = set.seen;
    const uint64_t count = state.event_count;
    if (seen + node::kMostEvents < count) // older ones were overwritten
      seen = count - node::kMostEvents;
    if (count < seen) // the node was restarted
      seen = count;
    while (seen < count && !any) {
      found = state.events[seen++ % node::kMostEvents];
      const auto wanted = set.types.find(found.device);
      any = wanted != set.types.end() && (wanted->second & found.type);
    }
  });
  set.seen = seen;
  if (any)
    *data = nvmlEventData_t{gpu_handle(static_cast<int>(found.device)), found.type, found.xid,
                            found.gpu_instance, found.compute_instance};
  return any;
}

} // namespace

namespace api {

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
  auto *const made = new EventSet;
  made->seen = event_count();
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_sets.insert(made);
  *set = reinterpret_cast<nvmlEventSet_t>(made);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t handle) {
  EventSet *const set = &set_of(handle);
  const std::lock_guard<std::mutex> lock(g_mutex);
  g_sets.erase(set); // the object stays: another thread may wait on it
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *eventTypes) {
  device_of(handle);
  *eventTypes = kSupported;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long eventTypes,
                                      nvmlEventSet_t handleOfSet) {
  EventSet &set = set_of(handleOfSet);
  const Device device = device_of(handle);
  if (eventTypes & ~kSupported)
    return NVML_ERROR_NOT_SUPPORTED;
  const std::lock_guard<std::mutex> lock(set.mutex);
  set.types[static_cast<uint32_t>(device.index)] |= eventTypes;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t handle, nvmlEventData_t *data,
                                 unsigned int timeoutms) {
  EventSet &set = set_of(handle);
  const uint64_t until = node::now_ns() + uint64_t{timeoutms} * 1'000'000;
  for (;;) {
    if (take(set, data))
      return NVML_SUCCESS;
    if (node::now_ns() >= until)
      return NVML_ERROR_TIMEOUT;
    usleep(kPollUs);
    set_of(handle); // freed meanwhile?
  }
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t handle, nvmlEventData_t *data, unsigned int timeoutms) {
  // The first version ends before the instances.
  nvmlEventData_t whole;
  const nvmlReturn_t code = nvmlEventSetWait_v2(handle, &whole, timeoutms);
  if (code == NVML_SUCCESS) {
    data->device = whole.device;
    data->eventType = whole.eventType;
    data->eventData = whole.eventData;
  }
  return code;
}

} // namespace api
} // namespace va::nvml
