#include "session.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "choose.h"

namespace va::nvml {
namespace {

// Handles are places in one table, so that any other pointer is known to be none.
struct Handle {
  enum Kind : uint8_t { kFree, kGpu, kMig, kGpuInstance, kComputeInstance } kind = kFree;
  uint8_t index = 0;
  uint8_t gi = 0, ci = 0;
  uint32_t gi_serial = 0, ci_serial = 0;
};

constexpr size_t kMostHandles = 1 << 14;
std::array<Handle, kMostHandles> g_handles;
std::atomic<size_t> g_handle_count{0};
std::mutex g_mutex;
int g_users = 0;
std::atomic<Store *> g_store{nullptr};

bool same(const Handle &a, const Handle &b) {
  return a.kind == b.kind && a.index == b.index && a.gi == b.gi && a.ci == b.ci &&
         a.gi_serial == b.gi_serial && a.ci_serial == b.ci_serial;
}

Handle *intern(const Handle &wanted) {
  const size_t seen = g_handle_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < seen; ++i)
    if (same(g_handles[i], wanted))
      return &g_handles[i];
  const std::lock_guard<std::mutex> lock(g_mutex);
  const size_t count = g_handle_count.load();
  for (size_t i = seen; i < count; ++i)
    if (same(g_handles[i], wanted))
      return &g_handles[i];
  if (count == kMostHandles)
    fail(NVML_ERROR_MEMORY);
  g_handles[count] = wanted;
  g_handle_count.store(count + 1, std::memory_order_release);
  return &g_handles[count];
}

const Handle &handle_at(const void *pointer) {
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  const auto first = reinterpret_cast<uintptr_t>(g_handles.data());
  if (at < first || (at - first) % sizeof(Handle))
    fail(NVML_ERROR_INVALID_ARGUMENT);
  const size_t place = (at - first) / sizeof(Handle);
  if (place >= g_handle_count.load(std::memory_order_acquire))
    fail(NVML_ERROR_INVALID_ARGUMENT);
  return g_handles[place];
}

const node::GpuInstance *find(const DeviceState &state, const Handle &handle) {
  for (const node::GpuInstance &gi : state.instances)
    if (gi.used && gi.id == handle.gi && gi.serial == handle.gi_serial)
      return &gi;
  return nullptr;
}

const node::ComputeInstance *find(const node::GpuInstance &gi, const Handle &handle) {
  for (const node::ComputeInstance &ci : gi.compute)
    if (ci.used && ci.id == handle.ci && ci.serial == handle.ci_serial)
      return &ci;
  return nullptr;
}

DeviceState state_of(int index) {
  const DeviceState state = store().device(index);
  if (state.faults.lost)
    fail(NVML_ERROR_GPU_IS_LOST);
  return state;
}

Instance found(const Handle &handle, bool compute) {
  Instance instance{handle.index, state_of(handle.index)};
  const node::GpuInstance *const gi = find(instance.state, handle);
  if (!gi)
    fail(NVML_ERROR_NOT_FOUND);
  instance.gi = static_cast<int>(gi - instance.state.instances);
  if (!compute)
    return instance;
  const node::ComputeInstance *const ci = find(*gi, handle);
  if (!ci)
    fail(NVML_ERROR_NOT_FOUND);
  instance.ci = static_cast<int>(ci - gi->compute);
  return instance;
}

Handle handle_for(Handle::Kind kind, int index, const node::GpuInstance *gi,
                  const node::ComputeInstance *ci) {
  Handle handle;
  handle.kind = kind;
  handle.index = static_cast<uint8_t>(index);
  if (gi) {
    handle.gi = gi->id;
    handle.gi_serial = gi->serial;
  }
  if (ci) {
    handle.ci = ci->id;
    handle.ci_serial = ci->serial;
  }
  return handle;
}

} // namespace

Store &store() {
  Store *const current = g_store.load(std::memory_order_acquire);
  if (!current)
    fail(NVML_ERROR_UNINITIALIZED);
  return *current;
}

nvmlReturn_t start() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_users++)
    return NVML_SUCCESS;
  node::Refusal refusal;
  std::unique_ptr<Store> opened = node::open_chosen(&refusal);
  if (!opened) {
    --g_users;
    std::fprintf(stderr, "va100: %s\n", refusal.text.c_str());
    return NVML_ERROR_DRIVER_NOT_LOADED;
  }
  // The one before stays, since another thread may still read it, and is used again if it can be.
  static Store *last = nullptr;
  if (!last || !last->is_same(*opened))
    last = opened.release();
  g_store.store(last, std::memory_order_release);
  return NVML_SUCCESS;
}

nvmlReturn_t stop() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (!g_users)
    return NVML_ERROR_UNINITIALIZED;
  if (!--g_users)
    g_store.store(nullptr, std::memory_order_release);
  return NVML_SUCCESS;
}

nvmlReturn_t admit(const char *name) noexcept {
  const Store *const current = g_store.load(std::memory_order_acquire);
  if (!current)
    return NVML_ERROR_UNINITIALIZED;
  bool denied = false;
  current->read([&](const node::NodeState &state) {
    denied = false;
    const uint32_t count = state.denied_count;
    for (uint32_t i = 0; i < count && i < node::kMostDenied; ++i)
      denied = denied || !std::strncmp(state.denied[i], name, node::kNameBytes - 1);
  });
  return denied ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

nvmlReturn_t unsupported(const char *name) noexcept {
  const nvmlReturn_t refused = admit(name);
  return refused ? refused : NVML_ERROR_NOT_SUPPORTED;
}

Device device_of(nvmlDevice_t pointer) {
  const Handle &handle = handle_at(pointer);
  Device device;
  device.index = handle.index;
  if (handle.kind == Handle::kGpu) {
    device.state = state_of(handle.index);
    return device;
  }
  if (handle.kind != Handle::kMig)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  const Instance instance = found(handle, true);
  device.state = instance.state;
  device.mig = true;
  device.gpu_instance = handle.gi;
  device.compute_instance = handle.ci;
  return device;
}

Device gpu_of(nvmlDevice_t handle, nvmlReturn_t otherwise) {
  const Device device = device_of(handle);
  if (device.mig)
    fail(otherwise);
  return device;
}

nvmlDevice_t gpu_handle(int index) {
  return reinterpret_cast<nvmlDevice_t>(intern(handle_for(Handle::kGpu, index, nullptr, nullptr)));
}

nvmlDevice_t mig_handle(int index, const node::GpuInstance &gi, const node::ComputeInstance &ci) {
  return reinterpret_cast<nvmlDevice_t>(intern(handle_for(Handle::kMig, index, &gi, &ci)));
}

nvmlGpuInstance_t instance_handle(int index, const node::GpuInstance &gi) {
  return reinterpret_cast<nvmlGpuInstance_t>(
      intern(handle_for(Handle::kGpuInstance, index, &gi, nullptr)));
}

nvmlComputeInstance_t instance_handle(int index, const node::GpuInstance &gi,
                                      const node::ComputeInstance &ci) {
  return reinterpret_cast<nvmlComputeInstance_t>(
      intern(handle_for(Handle::kComputeInstance, index, &gi, &ci)));
}

Instance instance_of(nvmlGpuInstance_t pointer) {
  const Handle &handle = handle_at(pointer);
  if (handle.kind != Handle::kGpuInstance)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  return found(handle, false);
}

Instance instance_of(nvmlComputeInstance_t pointer) {
  const Handle &handle = handle_at(pointer);
  if (handle.kind != Handle::kComputeInstance)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  return found(handle, true);
}

void put(const char *text, char *to, unsigned room) {
  const size_t bytes = std::strlen(text) + 1;
  if (bytes > room)
    fail(NVML_ERROR_INSUFFICIENT_SIZE);
  std::memcpy(to, text, bytes);
}

void change(int index, const std::function<nvmlReturn_t(DeviceState &)> &function) {
  nvmlReturn_t code = NVML_SUCCESS;
  const bool locked = store().change([&](node::NodeState &state) {
    code = function(state.devices[index]);
    return code == NVML_SUCCESS;
  });
  if (!locked)
    fail(NVML_ERROR_OPERATING_SYSTEM);
  if (code != NVML_SUCCESS)
    fail(code);
}

} // namespace va::nvml
