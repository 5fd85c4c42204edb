// Events of the system: drivers bound to GPUs and taken off them.  Neither happens on a node, so a
// set can be waited on, and nothing comes.
#include <mutex>
#include <set>
#include <unistd.h>

#include "clock.h"
#include "nvml_api.h"
#include "session.h"

namespace va::nvml {
namespace {

constexpr unsigned long long kUnbind = 0x1, kBind = 0x2;
constexpr unsigned kPollUs = 2000;

std::mutex g_mutex;
std::set<nvmlSystemEventSet_t> g_sets;
uintptr_t g_made = 0;

template <typename Request> void require_version(const Request &request) {
  if (request.version != version_of<Request>(1))
    fail(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

void require_set(nvmlSystemEventSet_t set) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (!g_sets.count(set))
    fail(NVML_ERROR_INVALID_ARGUMENT);
}

} // namespace

namespace api {

nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_t *request) {
  require_version(*request);
  const std::lock_guard<std::mutex> lock(g_mutex);
  request->set = reinterpret_cast<nvmlSystemEventSet_t>(++g_made << 4); // never one that was freed
  g_sets.insert(request->set);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_t *request) {
  require_version(*request);
  const std::lock_guard<std::mutex> lock(g_mutex);
  return g_sets.erase(request->set) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *request) {
  require_version(*request);
  require_set(request->set);
  const unsigned long long wanted = request->eventTypes;
  return wanted && !(wanted & ~(kUnbind | kBind)) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *request) {
  require_version(*request);
  request->numEvent = 0;
  const uint64_t until = node::now_ns() + uint64_t{request->timeoutms} * 1'000'000;
  for (;;) {
    require_set(request->set); // freed meanwhile?
    if (node::now_ns() >= until)
      return NVML_ERROR_TIMEOUT;
    usleep(kPollUs);
  }
}

} // namespace api
} // namespace va::nvml
