// The geometry of MIG: which instances fit where, which identifiers follow, what is refused.
//
// A GPU has 8 memory slices and 7 compute slices.  A set of GPU instances is legal while their memory
// ranges do not overlap, their compute slices are at most seven, and at most one has the media
// extensions.  Within a GPU instance the same holds of compute slices.  Where nothing is asked for, a
// new instance goes where it leaves most placements to others, the lowest of several.
#pragma once

#include "models.h"
#include "state.h"

namespace va::node {

enum class MigOutcome { kDone, kNotSupported, kNoRoom, kInUse, kNoSuch, kBadPlacement };

// The identifier that a placement gives: 0 the whole; 1, 2 halves; 3 to 6 quarters; then eighths.
uint32_t gpu_instance_id(uint32_t start, uint32_t size);

bool gpu_placement_fits(const DeviceState &device, size_t profile, uint32_t start);
// How many more of a profile there can be.
uint32_t gpu_capacity(const DeviceState &device, size_t profile);
// `start` of kNone: where it leaves most.  `*made` is its place in the table.
MigOutcome create_gpu_instance(DeviceState &device, size_t profile, uint32_t start, int *made);
// `used`: whether a process holds it.
MigOutcome destroy_gpu_instance(DeviceState &device, int gi, bool used);

// Whether GPU instances of so many slices have a compute profile.
bool has_compute_profile(uint32_t gpu_slices, const ComputeProfile &profile);
// A bit a compute slice where one may begin.
uint32_t compute_starts(uint32_t gpu_slices, uint32_t slices);
uint32_t compute_capacity(const DeviceState &device, int gi, size_t profile);
MigOutcome create_compute_instance(DeviceState &device, int gi, size_t profile, uint32_t start,
                                   int *made);
MigOutcome destroy_compute_instance(DeviceState &device, int gi, int ci, bool used);

// What a compute instance has.
struct Share {
  uint32_t sms, copy_engines, decoders, encoders, jpegs, ofas;
  uint32_t gpu_slices, compute_slices, memory_slices;
  uint64_t memory_bytes, l2_bytes;
  uint32_t bus_bits;
};
Share share_of(const DeviceState &device, const GpuInstance &gi, const ComputeInstance &ci);

} // namespace va::node
