// Processes: who uses a GPU, how much of it, and what those that are gone had used.
#include <algorithm>
#include <functional>
#include <vector>

#include "clock.h"
#include "nvml_api.h"
#include "session.h"
#include "telemetry.h"

namespace va::nvml {
namespace {

struct Running {
  const node::Slot *slot;
  const node::DeviceUse *use;
};

std::vector<Running> running_on(const Device &device) {
  store().reap();
  std::vector<Running> found;
  const node::File &file = store().file();
  for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i) {
    const node::Slot &slot = file.slots[i];
    const node::DeviceUse &use = slot.devices[device.index];
    if (!slot.pid.load(std::memory_order_acquire) || !use.contexts.load())
      continue;
    if (!device.mig || (use.gpu_instance.load() == device.gpu_instance &&
                        use.compute_instance.load() == device.compute_instance))
      found.push_back(Running{&slot, &use});
  }
  return found;
}

// Whether the caller's array has the room; either way `*count` becomes what there is.
bool has_room(unsigned *count, size_t wanted, const void *items) {
  const unsigned room = items ? *count : 0;
  *count = static_cast<unsigned>(wanted);
  return wanted <= room;
}

template <typename Info>
nvmlReturn_t list(nvmlDevice_t handle, unsigned *count, Info *infos,
                  const std::function<Info(const Running &)> &make) {
  const std::vector<Running> all = running_on(device_of(handle));
  if (!has_room(count, all.size(), infos))
    return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < all.size(); ++i)
    infos[i] = make(all[i]);
  return NVML_SUCCESS;
}

nvmlProcessInfo_v1_t first_form(const Running &r) {
  return nvmlProcessInfo_v1_t{r.slot->pid.load(), node::used_bytes(*r.use)};
}

nvmlProcessInfo_t current_form(const Running &r) {
  return nvmlProcessInfo_t{r.slot->pid.load(), node::used_bytes(*r.use), r.use->gpu_instance.load(),
                           r.use->compute_instance.load()};
}

uint64_t unix_us_of(uint64_t at_ns) { return node::wall_us() - (node::now_ns() - at_ns) / 1000; }

nvmlReturn_t none(nvmlDevice_t handle, unsigned *count) {
  device_of(handle);
  *count = 0;
  return NVML_SUCCESS;
}

Device whole_gpu_without_mig(nvmlDevice_t handle) {
  const Device device = gpu_of(handle);
  if (device.state.mig)
    fail(NVML_ERROR_NOT_SUPPORTED);
  return device;
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t handle, unsigned int *infoCount,
                                                  nvmlProcessInfo_v1_t *infos) {
  return list<nvmlProcessInfo_v1_t>(handle, infoCount, infos, first_form);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t handle, unsigned int *infoCount,
                                                     nvmlProcessInfo_v2_t *infos) {
  return list<nvmlProcessInfo_t>(handle, infoCount, infos, current_form);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned int *infoCount,
                                                     nvmlProcessInfo_t *infos) {
  return list<nvmlProcessInfo_t>(handle, infoCount, infos, current_form);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t handle, unsigned int *infoCount,
                                                   nvmlProcessInfo_v1_t *) {
  return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t handle, unsigned int *infoCount,
                                                      nvmlProcessInfo_v2_t *) {
  return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned int *infoCount,
                                                      nvmlProcessInfo_t *) {
  return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t handle, unsigned int *infoCount,
                                                     nvmlProcessInfo_v1_t *) {
  return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t handle,
                                                        unsigned int *infoCount,
                                                        nvmlProcessInfo_v2_t *) {
  return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t handle,
                                                        unsigned int *infoCount,
                                                        nvmlProcessInfo_t *) {
  return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle,
                                                   nvmlProcessDetailList_t *plist) {
  constexpr unsigned kCompute = 0, kModes = 3;
  if (plist->version != version_of<nvmlProcessDetailList_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (plist->mode >= kModes)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (plist->mode != kCompute)
    return none(handle, &plist->numProcArrayEntries);
  return list<nvmlProcessDetail_v1_t>(
      handle, &plist->numProcArrayEntries, plist->procArray, [](const Running &r) {
        const nvmlProcessInfo_t info = current_form(r);
        return nvmlProcessDetail_v1_t{info.pid, info.usedGpuMemory, info.gpuInstanceId,
                                      info.computeInstanceId, 0};
      });
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle,
                                             nvmlProcessUtilizationSample_t *utilization,
                                             unsigned int *processSamplesCount,
                                             unsigned long long lastSeenTimeStamp) {
  const uint64_t now = node::now_ns();
  std::vector<Running> recent;
  for (const Running &r : running_on(whole_gpu_without_mig(handle)))
    if (r.use->launches.load() && unix_us_of(now) > lastSeenTimeStamp)
      recent.push_back(r);
  if (recent.empty()) {
    *processSamplesCount = 0;
    return NVML_ERROR_NOT_FOUND;
  }
  if (!has_room(processSamplesCount, recent.size(), utilization))
    return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < recent.size(); ++i)
    utilization[i] = nvmlProcessUtilizationSample_t{
        recent[i].slot->pid.load(), unix_us_of(now), node::busy_percent(*recent[i].use, now, false),
        node::busy_percent(*recent[i].use, now, true), 0, 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle,
                                                   nvmlProcessesUtilizationInfo_t *info) {
  if (info->version != version_of<nvmlProcessesUtilizationInfo_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  const std::vector<Running> all = running_on(whole_gpu_without_mig(handle));
  const uint64_t now = node::now_ns();
  if (!has_room(&info->processSamplesCount, all.size(), info->procUtilArray))
    return NVML_ERROR_INSUFFICIENT_SIZE;
  for (size_t i = 0; i < all.size(); ++i)
    info->procUtilArray[i] = nvmlProcessUtilizationInfo_v1_t{
        unix_us_of(now), all[i].slot->pid.load(), node::busy_percent(*all[i].use, now, false),
        node::busy_percent(*all[i].use, now, true), 0, 0, 0, 0};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t handle, nvmlEnableState_t *mode) {
  *mode = gpu_of(handle).state.accounting;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t handle, nvmlEnableState_t mode) {
  const Device device = gpu_of(handle);
  if (mode > 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  change(device.index, [&](DeviceState &d) {
    d.accounting = static_cast<uint8_t>(mode);
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t handle, unsigned int *bufferSize) {
  gpu_of(handle);
  *bufferSize = node::kMostEnded;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t handle) {
  change(gpu_of(handle).index, [](DeviceState &d) {
    d.ended_count = 0;
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t handle, unsigned int *count,
                                         unsigned int *pids) {
  const Device device = gpu_of(handle);
  if (!device.state.accounting)
    return NVML_ERROR_NOT_SUPPORTED;
  std::vector<unsigned> all;
  for (const Running &r : running_on(device))
    all.push_back(r.slot->pid.load());
  const DeviceState d = store().device(device.index); // running_on may have settled some
  for (uint64_t i = 0; i < std::min<uint64_t>(d.ended_count, node::kMostEnded); ++i)
    all.push_back(d.ended[i].pid);
  if (!has_room(count, all.size(), pids))
    return NVML_ERROR_INSUFFICIENT_SIZE;
  std::copy(all.begin(), all.end(), pids);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t handle, unsigned int pid,
                                          nvmlAccountingStats_t *stats) {
  const Device device = gpu_of(handle);
  if (!device.state.accounting)
    return NVML_ERROR_NOT_SUPPORTED;
  *stats = {};
  for (const Running &r : running_on(device))
    if (r.slot->pid.load() == pid) {
      const uint64_t lived = std::max<uint64_t>(1, node::now_ns() - r.slot->started_ns.load());
      stats->gpuUtilization = static_cast<unsigned>(std::min<uint64_t>(100, r.use->busy_ns.load() * 100 / lived));
      stats->maxMemoryUsage = r.use->peak_bytes.load();
      stats->startTime = r.slot->started_us;
      stats->isRunning = 1; // its time is told when it has ended
      return NVML_SUCCESS;
    }
  const DeviceState d = store().device(device.index);
  for (uint64_t i = 0; i < std::min<uint64_t>(d.ended_count, node::kMostEnded); ++i)
    if (d.ended[i].pid == pid) {
      stats->gpuUtilization = d.ended[i].utilization_percent;
      stats->maxMemoryUsage = d.ended[i].peak_bytes;
      stats->time = d.ended[i].lived_ns / 1'000'000;
      stats->startTime = d.ended[i].started_us;
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

} // namespace api
} // namespace va::nvml
