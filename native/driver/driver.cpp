// The one driver object, and what is common to all calls: refusing, finding handles' objects.
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "objects.h"
#include "pools.h"
#include "settings.h"

namespace va {

Driver &driver() {
  static Driver *const instance = new Driver;
  return *instance;
}

Driver &started() {
  Driver &d = driver();
  if (!d.initialised.load(std::memory_order_acquire))
    fail(CUDA_ERROR_NOT_INITIALIZED);
  return d;
}

Device &device_of(CUdevice ordinal) {
  Driver &d = started();
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= d.devices.size())
    fail(CUDA_ERROR_INVALID_DEVICE);
  return *d.devices[static_cast<size_t>(ordinal)];
}

Event &event_of(CUevent handle) {
  Event *const event = started().events.find(handle);
  if (!event)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *event;
}

Pool &pool_of(CUmemoryPool handle) {
  Pool *const pool = started().pools.find(handle);
  if (!pool)
    fail(CUDA_ERROR_INVALID_VALUE);
  return *pool;
}

CUresult refuse(const char *name) noexcept {
  try {
    if (settings().log) {
      static std::mutex *const mutex = new std::mutex;
      static std::set<std::string> *const told = new std::set<std::string>;
      const std::lock_guard<std::mutex> lock(*mutex);
      if (told->insert(name).second)
        note("%s is not supported; it returns CUDA_ERROR_NOT_SUPPORTED", name);
    }
  } catch (...) {
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

void flush_device_output() {
  settle_pools(); // where the host waits, pools let go, too
  char buffer[4096];
  bool wrote = false;
  while (const size_t bytes = va_exec_take_output(buffer, sizeof buffer)) {
    std::fwrite(buffer, 1, bytes, stdout);
    wrote = true;
  }
  if (wrote)
    std::fflush(stdout);
}

} // namespace va
