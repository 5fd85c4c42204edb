#include "mig.h"

#include <cstring>

#include "identity.h"

namespace va::node {
namespace {

uint32_t span(uint32_t start, uint32_t size) { return ((1u << size) - 1) << start; }

struct Taken {
  uint32_t memory = 0; // a bit a slice
  uint32_t compute = 0;
  bool media = false;
};

Taken taken_of(const DeviceState &device) {
  Taken t;
  for (const GpuInstance &gi : device.instances) {
    if (!gi.used)
      continue;
    const MigProfile &profile = kNodeModels[device.model].profiles[gi.profile];
    t.memory |= span(gi.start, gi.size);
    t.compute += profile.compute_slices;
    t.media = t.media || profile.media;
  }
  return t;
}

bool may_begin(const MigProfile &profile, uint32_t start) {
  return start < kMemorySlices && (profile.starts >> start & 1);
}

bool fits(const Taken &taken, const MigProfile &profile, uint32_t start) {
  return may_begin(profile, start) && !(taken.memory & span(start, profile.memory_slices)) &&
         taken.compute + profile.compute_slices <= kComputeSlices && !(profile.media && taken.media);
}

// Placements that are left to all profiles when these memory slices are taken.
int left_to_others(const NodeModel &model, uint32_t memory) {
  int left = 0;
  for (size_t p = 0; p < model.profile_count; ++p)
    for (uint32_t start = 0; start < kMemorySlices; ++start)
      if (may_begin(model.profiles[p], start) &&
          !(memory & span(start, model.profiles[p].memory_slices)))
        ++left;
  return left;
}

uint32_t best_start(const DeviceState &device, const MigProfile &profile) {
  const Taken taken = taken_of(device);
  uint32_t best = kNone;
  int most = -1;
  for (uint32_t start = 0; start < kMemorySlices; ++start) {
    if (!fits(taken, profile, start))
      continue;
    const int left = left_to_others(kNodeModels[device.model],
                                    taken.memory | span(start, profile.memory_slices));
    if (left > most) {
      most = left;
      best = start;
    }
  }
  return best;
}

uint32_t compute_taken(const GpuInstance &gi) {
  uint32_t taken = 0;
  for (const ComputeInstance &ci : gi.compute)
    if (ci.used)
      taken |= span(ci.start, ci.slices);
  return taken;
}

uint32_t gpu_slices_of(const DeviceState &device, const GpuInstance &gi) {
  return kNodeModels[device.model].profiles[gi.profile].compute_slices;
}

int compute_left(uint32_t gpu_slices, uint32_t taken) {
  int left = 0;
  for (size_t p = 0; p < kComputeProfileCount; ++p) {
    if (!has_compute_profile(gpu_slices, kComputeProfiles[p]))
      continue;
    const uint32_t starts = compute_starts(gpu_slices, kComputeProfiles[p].slices);
    for (uint32_t start = 0; start < kComputeSlices; ++start)
      if ((starts >> start & 1) && !(taken & span(start, kComputeProfiles[p].slices)))
        ++left;
  }
  return left;
}

uint32_t best_compute_start(uint32_t gpu_slices, uint32_t taken, uint32_t slices) {
  const uint32_t starts = compute_starts(gpu_slices, slices);
  uint32_t best = kNone;
  int most = -1;
  for (uint32_t start = 0; start < kComputeSlices; ++start) {
    if (!(starts >> start & 1) || (taken & span(start, slices)))
      continue;
    const int left = compute_left(gpu_slices, taken | span(start, slices));
    if (left > most) {
      most = left;
      best = start;
    }
  }
  return best;
}

} // namespace

uint32_t gpu_instance_id(uint32_t start, uint32_t size) {
  switch (size) {
  case 8:
    return 0;
  case 4:
    return 1 + start / 4;
  case 2:
    return 3 + start / 2;
  default:
    return 7 + start;
  }
}

bool gpu_placement_fits(const DeviceState &device, size_t profile, uint32_t start) {
  return fits(taken_of(device), kNodeModels[device.model].profiles[profile], start);
}

uint32_t gpu_capacity(const DeviceState &device, size_t at) {
  const MigProfile &profile = kNodeModels[device.model].profiles[at];
  Taken taken = taken_of(device);
  uint32_t count = 0;
  // Placements of one profile either coincide or do not touch, so taking each in turn is the most.
  for (uint32_t start = 0; start < kMemorySlices; ++start)
    if (fits(taken, profile, start)) {
      ++count;
      taken.memory |= span(start, profile.memory_slices);
      taken.compute += profile.compute_slices;
      taken.media = taken.media || profile.media;
    }
  return count;
}

MigOutcome create_gpu_instance(DeviceState &device, size_t at, uint32_t start, int *made) {
  const MigProfile &profile = kNodeModels[device.model].profiles[at];
  if (!device.mig)
    return MigOutcome::kNotSupported;
  if (start != kNone && !may_begin(profile, start))
    return MigOutcome::kBadPlacement;
  if (start == kNone)
    start = best_start(device, profile);
  if (start == kNone || !fits(taken_of(device), profile, start))
    return MigOutcome::kNoRoom;
  for (int i = 0; i < kMostInstances; ++i) {
    GpuInstance &gi = device.instances[i];
    if (gi.used)
      continue;
    std::memset(static_cast<void *>(&gi), 0, sizeof gi);
    gi.used = 1;
    gi.profile = static_cast<uint8_t>(at);
    gi.start = static_cast<uint8_t>(start);
    gi.size = static_cast<uint8_t>(profile.memory_slices);
    gi.id = static_cast<uint8_t>(gpu_instance_id(start, profile.memory_slices));
    gi.serial = ++device.next_serial;
    *made = i;
    return MigOutcome::kDone;
  }
  return MigOutcome::kNoRoom;
}

MigOutcome destroy_gpu_instance(DeviceState &device, int at, bool used) {
  GpuInstance &gi = device.instances[at];
  for (const ComputeInstance &ci : gi.compute)
    used = used || ci.used;
  if (used)
    return MigOutcome::kInUse;
  std::memset(static_cast<void *>(&gi), 0, sizeof gi);
  return MigOutcome::kDone;
}

bool has_compute_profile(uint32_t gpu_slices, const ComputeProfile &profile) {
  return profile.gpu_slices >> gpu_slices & 1;
}

uint32_t compute_starts(uint32_t gpu_slices, uint32_t slices) {
  const uint32_t step = slices == 1 ? 1 : slices == 2 ? 2 : slices <= 4 ? 4 : 8;
  uint32_t starts = 0;
  for (uint32_t start = 0; start + slices <= gpu_slices; start += step)
    starts |= 1u << start;
  return starts;
}

uint32_t compute_capacity(const DeviceState &device, int at, size_t profile) {
  const GpuInstance &gi = device.instances[at];
  const uint32_t slices = kComputeProfiles[profile].slices, gpu = gpu_slices_of(device, gi);
  if (!has_compute_profile(gpu, kComputeProfiles[profile]))
    return 0;
  const uint32_t starts = compute_starts(gpu, slices), taken = compute_taken(gi);
  uint32_t count = 0;
  for (uint32_t start = 0; start < kComputeSlices; ++start)
    if ((starts >> start & 1) && !(taken & span(start, slices)))
      ++count;
  return count;
}

MigOutcome create_compute_instance(DeviceState &device, int at, size_t profile, uint32_t start,
                                   int *made) {
  GpuInstance &gi = device.instances[at];
  const uint32_t slices = kComputeProfiles[profile].slices, gpu = gpu_slices_of(device, gi);
  if (!has_compute_profile(gpu, kComputeProfiles[profile]))
    return MigOutcome::kNotSupported;
  const uint32_t taken = compute_taken(gi);
  if (start != kNone && (start >= kComputeSlices || !(compute_starts(gpu, slices) >> start & 1)))
    return MigOutcome::kBadPlacement;
  if (start == kNone)
    start = best_compute_start(gpu, taken, slices);
  if (start == kNone || (taken & span(start, slices)))
    return MigOutcome::kNoRoom;
  uint32_t ids = 0;
  for (const ComputeInstance &other : gi.compute)
    ids |= other.used ? 1u << other.id : 0;
  for (int i = 0; i < kMostInstances; ++i) {
    ComputeInstance &ci = gi.compute[i];
    if (ci.used)
      continue;
    std::memset(static_cast<void *>(&ci), 0, sizeof ci);
    ci.used = 1;
    while (ids >> ci.id & 1)
      ++ci.id;
    ci.profile = static_cast<uint8_t>(profile);
    ci.start = static_cast<uint8_t>(start);
    ci.slices = static_cast<uint8_t>(slices);
    ci.serial = ++device.next_serial;
    ci.uuid = mig_uuid(device.uuid, gi.id, ci.id);
    *made = i;
    return MigOutcome::kDone;
  }
  return MigOutcome::kNoRoom;
}

MigOutcome destroy_compute_instance(DeviceState &device, int gi, int ci, bool used) {
  if (used)
    return MigOutcome::kInUse;
  std::memset(static_cast<void *>(&device.instances[gi].compute[ci]), 0, sizeof(ComputeInstance));
  return MigOutcome::kDone;
}

Share share_of(const DeviceState &device, const GpuInstance &gi, const ComputeInstance &ci) {
  const NodeModel &model = kNodeModels[device.model];
  const MigProfile &p = model.profiles[gi.profile];
  Share s{};
  s.sms = ci.slices * kSmsPerSlice;
  s.copy_engines = p.copy_engines;
  s.decoders = p.decoders;
  s.encoders = p.encoders;
  s.jpegs = p.jpegs;
  s.ofas = p.ofas;
  s.gpu_slices = p.compute_slices;
  s.compute_slices = ci.slices;
  s.memory_slices = p.memory_slices;
  s.memory_bytes = p.memory_bytes;
  s.l2_bytes = model.l2_bytes * p.memory_slices / kMemorySlices;
  s.bus_bits = model.bus_bits * p.memory_slices / kMemorySlices;
  return s;
}

} // namespace va::node
