// MIG as NVML tells of it: the mode, profiles, GPU instances, compute instances, MIG devices.
#include "../node/mig.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "clock.h"
#include "nvml_api.h"
#include "session.h"
#include "setup.h"

namespace va::nvml {
namespace {

using node::ComputeInstance;
using node::ComputeProfile;
using node::GpuInstance;
using node::kComputeProfileCount;
using node::kComputeProfiles;
using node::MigOutcome;
using node::MigProfile;

constexpr unsigned kGpuProfiles = 0x12, kComputeProfilesInHeader = 9; // counts in nvml.h

nvmlReturn_t code_of(MigOutcome outcome) {
  switch (outcome) {
  case MigOutcome::kDone:
    return NVML_SUCCESS;
  case MigOutcome::kNotSupported:
    return NVML_ERROR_NOT_SUPPORTED;
  case MigOutcome::kNoRoom:
    return NVML_ERROR_INSUFFICIENT_RESOURCES;
  case MigOutcome::kInUse:
    return NVML_ERROR_IN_USE;
  case MigOutcome::kNoSuch:
    return NVML_ERROR_NOT_FOUND;
  case MigOutcome::kBadPlacement:
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  return NVML_ERROR_UNKNOWN;
}

// Whether a process holds a GPU, an instance of it, or one compute instance.
bool is_used(int device, uint32_t gi = node::kNone, uint32_t ci = node::kNone) {
  const node::File &file = store().file();
  for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i) {
    const node::DeviceUse &use = file.slots[i].devices[device];
    if (!file.slots[i].pid.load() || !use.contexts.load())
      continue;
    if ((gi == node::kNone || use.gpu_instance.load() == gi) &&
        (ci == node::kNone || use.compute_instance.load() == ci))
      return true;
  }
  return false;
}

Device mig_gpu(nvmlDevice_t handle) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  if (!device.state.mig)
    fail(NVML_ERROR_NOT_SUPPORTED);
  return device;
}

// Place of a profile by its number in nvml.h, or by the one that tools print.
size_t by_nvml(const NodeModel &model, unsigned number) {
  if (number >= kGpuProfiles)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  for (size_t i = 0; i < model.profile_count; ++i)
    if (model.profiles[i].nvml == number)
      return i;
  fail(NVML_ERROR_NOT_SUPPORTED);
}

size_t by_id(const NodeModel &model, unsigned id) {
  for (size_t i = 0; i < model.profile_count; ++i)
    if (model.profiles[i].id == id)
      return i;
  fail(NVML_ERROR_NOT_SUPPORTED);
}

size_t compute_by_id(unsigned id) {
  for (size_t i = 0; i < kComputeProfileCount; ++i)
    if (kComputeProfiles[i].id == id)
      return i;
  fail(NVML_ERROR_NOT_SUPPORTED);
}

std::string title_of(const MigProfile &profile) { return std::string("MIG ") + profile.name; }

std::string title_of(const MigProfile &gpu, const ComputeProfile &compute) {
  const std::string before =
      compute.slices == gpu.compute_slices ? "" : std::string(compute.name) + ".";
  return "MIG " + before + gpu.name;
}

template <typename Info> void fill(const MigProfile &p, Info *info) {
  info->id = p.id;
  info->sliceCount = p.compute_slices;
  info->instanceCount = p.instances;
  info->multiprocessorCount = p.sms;
  info->copyEngineCount = p.copy_engines;
  info->decoderCount = p.decoders;
  info->encoderCount = p.encoders;
  info->jpegCount = p.jpegs;
  info->ofaCount = p.ofas;
  info->memorySizeMB = p.memory_bytes >> 20;
}

// The versions of one structure differ; which one the caller means, its first word says.
nvmlReturn_t fill_versioned(const MigProfile &p, nvmlGpuInstanceProfileInfo_v2_t *info) {
  if (info->version == version_of<nvmlGpuInstanceProfileInfo_v2_t>(2)) {
    fill(p, info);
    info->isP2pSupported = 0;
    snprintf(info->name, sizeof info->name, "%s", title_of(p).c_str());
    return NVML_SUCCESS;
  }
  if (info->version != version_of<nvmlGpuInstanceProfileInfo_v3_t>(3))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  auto *const third = reinterpret_cast<nvmlGpuInstanceProfileInfo_v3_t *>(info);
  fill(p, third);
  snprintf(third->name, sizeof third->name, "%s", title_of(p).c_str());
  third->capabilities = 0;
  return NVML_SUCCESS;
}

template <typename Info> void fill(const MigProfile &gpu, const ComputeProfile &p, Info *info) {
  info->id = p.id;
  info->sliceCount = p.slices;
  info->instanceCount = static_cast<unsigned>(
      __builtin_popcount(node::compute_starts(gpu.compute_slices, p.slices)));
  info->multiprocessorCount = p.slices * node::kSmsPerSlice;
  info->sharedCopyEngineCount = gpu.copy_engines;
  info->sharedDecoderCount = gpu.decoders;
  info->sharedEncoderCount = gpu.encoders;
  info->sharedJpegCount = gpu.jpegs;
  info->sharedOfaCount = gpu.ofas;
}

struct ProfilePair {
  const MigProfile *gpu;
  const ComputeProfile *compute;
};

ProfilePair compute_pair(nvmlGpuInstance_t handle, unsigned profile, unsigned engine_profile) {
  const Instance instance = instance_of(handle);
  if (profile >= kComputeProfilesInHeader || engine_profile)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  const GpuInstance &gi = instance.state.instances[instance.gi];
  const MigProfile *const gpu = &node::kNodeModels[instance.state.model].profiles[gi.profile];
  for (size_t i = 0; i < kComputeProfileCount; ++i)
    if (kComputeProfiles[i].nvml == profile &&
        node::has_compute_profile(gpu->compute_slices, kComputeProfiles[i]))
      return ProfilePair{gpu, &kComputeProfiles[i]};
  fail(NVML_ERROR_NOT_SUPPORTED);
}

// The same instance in the state that is being changed.
int find_again(const DeviceState &now, const GpuInstance &gi) {
  for (int i = 0; i < node::kMostInstances; ++i)
    if (now.instances[i].used && now.instances[i].serial == gi.serial)
      return i;
  fail(NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t create(nvmlDevice_t handle, unsigned profileId, uint32_t start,
                    nvmlGpuInstance_t *gpuInstance) {
  const Device device = mig_gpu(handle);
  const size_t profile = by_id(device.model(), profileId);
  GpuInstance made{};
  change(device.index, [&](DeviceState &d) {
    int at = 0;
    const MigOutcome outcome = node::create_gpu_instance(d, profile, start, &at);
    if (outcome == MigOutcome::kDone)
      made = d.instances[at];
    return code_of(outcome);
  });
  *gpuInstance = instance_handle(device.index, made);
  return NVML_SUCCESS;
}

nvmlReturn_t create(nvmlGpuInstance_t handle, unsigned profileId, uint32_t start,
                    nvmlComputeInstance_t *computeInstance) {
  const Instance instance = instance_of(handle);
  const GpuInstance gi = instance.state.instances[instance.gi];
  const size_t profile = compute_by_id(profileId);
  ComputeInstance made{};
  change(instance.index, [&](DeviceState &d) {
    int ci = 0;
    const int at = find_again(d, gi);
    const MigOutcome outcome = node::create_compute_instance(d, at, profile, start, &ci);
    if (outcome == MigOutcome::kDone)
      made = d.instances[at].compute[ci];
    return code_of(outcome);
  });
  *computeInstance = instance_handle(instance.index, gi, made);
  return NVML_SUCCESS;
}

// Instances in the order of their numbers.
std::vector<GpuInstance> sorted(const DeviceState &d) {
  std::vector<GpuInstance> all;
  for (const GpuInstance &gi : d.instances)
    if (gi.used)
      all.push_back(gi);
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.id < b.id; });
  return all;
}

std::vector<ComputeInstance> sorted(const GpuInstance &gi) {
  std::vector<ComputeInstance> all;
  for (const ComputeInstance &ci : gi.compute)
    if (ci.used)
      all.push_back(ci);
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) { return a.id < b.id; });
  return all;
}

void fill_attributes(const Device &device, nvmlDeviceAttributes_t *attributes) {
  for (const GpuInstance &gi : device.state.instances)
    for (const ComputeInstance &ci : gi.compute)
      if (gi.used && ci.used && gi.id == device.gpu_instance && ci.id == device.compute_instance) {
        const node::Share s = node::share_of(device.state, gi, ci);
        *attributes = nvmlDeviceAttributes_t{s.sms,        s.copy_engines, s.decoders,
                                             s.encoders,   s.jpegs,        s.ofas,
                                             s.gpu_slices, s.compute_slices, s.memory_bytes >> 20};
      }
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *currentMode,
                                  unsigned int *pendingMode) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  *currentMode = device.state.mig;
  *pendingMode = device.state.mig_pending;
  return NVML_SUCCESS;
}

// In force at once where nobody uses the GPU, since it is reset then; pending otherwise.
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t handle, unsigned int mode,
                                  nvmlReturn_t *activationStatus) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  if (mode > 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  store().reap();
  *activationStatus = NVML_SUCCESS;
  change(device.index, [&](DeviceState &d) -> nvmlReturn_t {
    for (const GpuInstance &gi : d.instances)
      if (gi.used && !mode)
        return NVML_ERROR_IN_USE;
    d.mig_pending = static_cast<uint8_t>(mode);
    if (d.mig == mode)
      return NVML_SUCCESS;
    if (is_used(device.index))
      *activationStatus = NVML_ERROR_IN_USE;
    else
      node::reset_device(d, node::now_ns());
    return NVML_SUCCESS;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t handle, unsigned int profile,
                                                 nvmlGpuInstanceProfileInfo_t *info) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  const MigProfile &p = device.model().profiles[by_nvml(device.model(), profile)];
  fill(p, info);
  info->isP2pSupported = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t handle, unsigned int profile,
                                                  nvmlGpuInstanceProfileInfo_v2_t *info) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  return fill_versioned(device.model().profiles[by_nvml(device.model(), profile)], info);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t handle, unsigned int profileId,
                                                      nvmlGpuInstanceProfileInfo_v2_t *info) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  return fill_versioned(device.model().profiles[by_id(device.model(), profileId)], info);
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t handle,
                                                           unsigned int profileId,
                                                           nvmlGpuInstancePlacement_t *placements,
                                                           unsigned int *count) {
  const Device device = mig_gpu(handle);
  const MigProfile &p = device.model().profiles[by_id(device.model(), profileId)];
  const auto wanted = static_cast<unsigned>(__builtin_popcount(p.starts));
  if (placements && *count < wanted) {
    *count = wanted;
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  *count = wanted;
  for (unsigned start = 0, i = 0; placements && start < node::kMemorySlices; ++start)
    if (p.starts >> start & 1)
      placements[i++] = nvmlGpuInstancePlacement_t{start, p.memory_slices};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t handle, unsigned int profileId,
                                                        nvmlGpuInstancePlacement_t *placements,
                                                        unsigned int *count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle, profileId, placements, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t handle, unsigned int profileId,
                                                       unsigned int *count) {
  const Device device = mig_gpu(handle);
  *count = node::gpu_capacity(device.state, by_id(device.model(), profileId));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t handle, unsigned int profileId,
                                         nvmlGpuInstance_t *gpuInstance) {
  return create(handle, profileId, node::kNone, gpuInstance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t handle, unsigned int profileId,
                                                      const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *gpuInstance) {
  const Device device = mig_gpu(handle);
  if (placement->size != device.model().profiles[by_id(device.model(), profileId)].memory_slices ||
      placement->start >= node::kMemorySlices)
    return NVML_ERROR_INVALID_ARGUMENT;
  return create(handle, profileId, placement->start, gpuInstance);
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
  const Instance instance = instance_of(handle);
  const GpuInstance gi = instance.state.instances[instance.gi];
  store().reap();
  change(instance.index, [&](DeviceState &d) {
    return code_of(node::destroy_gpu_instance(d, find_again(d, gi), is_used(instance.index, gi.id)));
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t handle, unsigned int profileId,
                                       nvmlGpuInstance_t *gpuInstances, unsigned int *count) {
  const Device device = mig_gpu(handle);
  const size_t profile = by_id(device.model(), profileId);
  unsigned found = 0;
  for (const GpuInstance &gi : sorted(device.state))
    if (gi.profile == profile) {
      if (gpuInstances)
        gpuInstances[found] = instance_handle(device.index, gi);
      ++found;
    }
  *count = found; // the caller's array has the profile's instanceCount, as the header asks
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t handle, unsigned int id,
                                          nvmlGpuInstance_t *gpuInstance) {
  const Device device = mig_gpu(handle);
  for (const GpuInstance &gi : device.state.instances)
    if (gi.used && gi.id == id) {
      *gpuInstance = instance_handle(device.index, gi);
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info) {
  const Instance instance = instance_of(handle);
  const GpuInstance &gi = instance.state.instances[instance.gi];
  info->device = gpu_handle(instance.index);
  info->id = gi.id;
  info->profileId = node::kNodeModels[instance.state.model].profiles[gi.profile].id;
  info->placement = nvmlGpuInstancePlacement_t{gi.start, gi.size};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle,
                                                          unsigned int profile,
                                                          unsigned int engProfile,
                                                          nvmlComputeInstanceProfileInfo_t *info) {
  const ProfilePair pair = compute_pair(handle, profile, engProfile);
  fill(*pair.gpu, *pair.compute, info);
  return NVML_SUCCESS;
}

nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int profile,
                                              unsigned int engProfile,
                                              nvmlComputeInstanceProfileInfo_v2_t *info) {
  const ProfilePair pair = compute_pair(handle, profile, engProfile);
  const std::string title = title_of(*pair.gpu, *pair.compute);
  if (info->version == version_of<nvmlComputeInstanceProfileInfo_v2_t>(2)) {
    fill(*pair.gpu, *pair.compute, info);
    snprintf(info->name, sizeof info->name, "%s", title.c_str());
    return NVML_SUCCESS;
  }
  if (info->version != version_of<nvmlComputeInstanceProfileInfo_v3_t>(3))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  auto *const third = reinterpret_cast<nvmlComputeInstanceProfileInfo_v3_t *>(info);
  fill(*pair.gpu, *pair.compute, third);
  snprintf(third->name, sizeof third->name, "%s", title.c_str());
  third->capabilities = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle,
                                                                unsigned int profileId,
                                                                unsigned int *count) {
  const Instance instance = instance_of(handle);
  *count = node::compute_capacity(instance.state, instance.gi, compute_by_id(profileId));
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t handle, unsigned int profileId, nvmlComputeInstancePlacement_t *placements,
    unsigned int *count) {
  const Instance instance = instance_of(handle);
  const ComputeProfile &p = kComputeProfiles[compute_by_id(profileId)];
  const GpuInstance &gi = instance.state.instances[instance.gi];
  const uint32_t gpu = node::kNodeModels[instance.state.model].profiles[gi.profile].compute_slices;
  if (!node::has_compute_profile(gpu, p))
    return NVML_ERROR_NOT_SUPPORTED;
  const uint32_t starts = node::compute_starts(gpu, p.slices);
  const auto wanted = static_cast<unsigned>(__builtin_popcount(starts));
  const bool fits = !placements || *count >= wanted;
  *count = wanted;
  if (!fits)
    return NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned start = 0, i = 0; placements && start < node::kComputeSlices; ++start)
    if (starts >> start & 1)
      placements[i++] = nvmlComputeInstancePlacement_t{start, p.slices};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int profileId,
                                                  nvmlComputeInstance_t *computeInstance) {
  return create(handle, profileId, node::kNone, computeInstance);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t handle, unsigned int profileId,
    const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *computeInstance) {
  if (placement->size != kComputeProfiles[compute_by_id(profileId)].slices ||
      placement->start >= node::kComputeSlices)
    return NVML_ERROR_INVALID_ARGUMENT;
  return create(handle, profileId, placement->start, computeInstance);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
  const Instance instance = instance_of(handle);
  const GpuInstance gi = instance.state.instances[instance.gi];
  const ComputeInstance ci = gi.compute[instance.ci];
  store().reap();
  change(instance.index, [&](DeviceState &d) -> nvmlReturn_t {
    const int at = find_again(d, gi);
    for (int i = 0; i < node::kMostInstances; ++i)
      if (d.instances[at].compute[i].used && d.instances[at].compute[i].serial == ci.serial)
        return code_of(node::destroy_compute_instance(d, at, i,
                                                      is_used(instance.index, gi.id, ci.id)));
    return NVML_ERROR_NOT_FOUND;
  });
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int profileId,
                                                nvmlComputeInstance_t *computeInstances,
                                                unsigned int *count) {
  const Instance instance = instance_of(handle);
  const size_t profile = compute_by_id(profileId);
  const GpuInstance &gi = instance.state.instances[instance.gi];
  unsigned found = 0;
  for (const ComputeInstance &ci : sorted(gi))
    if (ci.profile == profile) {
      if (computeInstances)
        computeInstances[found] = instance_handle(instance.index, gi, ci);
      ++found;
    }
  *count = found;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id,
                                                   nvmlComputeInstance_t *computeInstance) {
  const Instance instance = instance_of(handle);
  const GpuInstance &gi = instance.state.instances[instance.gi];
  for (const ComputeInstance &ci : gi.compute)
    if (ci.used && ci.id == id) {
      *computeInstance = instance_handle(instance.index, gi, ci);
      return NVML_SUCCESS;
    }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle,
                                           nvmlComputeInstanceInfo_t *info) {
  const Instance instance = instance_of(handle);
  const GpuInstance &gi = instance.state.instances[instance.gi];
  const ComputeInstance &ci = gi.compute[instance.ci];
  info->device = gpu_handle(instance.index);
  info->gpuInstance = instance_handle(instance.index, gi);
  info->id = ci.id;
  info->profileId = kComputeProfiles[ci.profile].id;
  info->placement = nvmlComputeInstancePlacement_t{ci.start, ci.slices};
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle,
                                        nvmlComputeInstanceInfo_t *info) {
  // The first version ends before the placement.
  nvmlComputeInstanceInfo_t whole;
  const nvmlReturn_t code = nvmlComputeInstanceGetInfo_v2(handle, &whole);
  std::memcpy(info, &whole, offsetof(nvmlComputeInstanceInfo_t, placement));
  return code;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int *isMigDevice) {
  *isMigDevice = device_of(handle).mig;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned int *id) {
  const Device device = device_of(handle);
  *id = device.gpu_instance;
  return device.mig ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned int *id) {
  const Device device = device_of(handle);
  *id = device.compute_instance;
  return device.mig ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned int *count) {
  const Device device = gpu_of(handle, NVML_ERROR_INVALID_ARGUMENT);
  *count = device.state.mig ? node::kMostInstances : 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned int index,
                                                 nvmlDevice_t *migDevice) {
  const Device device = mig_gpu(handle);
  if (index >= static_cast<unsigned>(node::kMostInstances))
    return NVML_ERROR_INVALID_ARGUMENT;
  for (const GpuInstance &gi : sorted(device.state))
    for (const ComputeInstance &ci : sorted(gi))
      if (!index--) {
        *migDevice = mig_handle(device.index, gi, ci);
        return NVML_SUCCESS;
      }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice,
                                                          nvmlDevice_t *device) {
  const Device mig = device_of(migDevice);
  if (!mig.mig)
    return NVML_ERROR_INVALID_ARGUMENT;
  *device = gpu_handle(mig.index);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes) {
  const Device device = device_of(handle);
  if (!device.mig)
    return NVML_ERROR_NOT_SUPPORTED;
  fill_attributes(device, attributes);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes) {
  return nvmlDeviceGetAttributes_v2(handle, attributes);
}

} // namespace api
} // namespace va::nvml
