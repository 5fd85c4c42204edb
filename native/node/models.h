// Facts of each A100 model that a node tells of, and the nodes people ask for by name: the shape of
// the generated tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace va::node {

struct MigProfile {
  const char *name; // "1g.5gb"
  uint32_t id;      // as tools print it
  uint32_t nvml;    // as nvml.h numbers it
  uint32_t instances;
  uint64_t memory_bytes;
  uint32_t sms, compute_slices, memory_slices;
  uint32_t copy_engines, decoders, jpegs, ofas, encoders;
  uint32_t starts; // a bit a memory slice where it may begin
  bool media;      // the one with media extensions
};

struct ComputeProfile {
  const char *name; // "1c"
  uint32_t id, nvml, slices;
  uint32_t gpu_slices; // a bit a count of slices of the GPU instances that have it
};

struct NodeModel {
  const char *key;
  const char *name;
  uint64_t memory_bytes, reserved_bytes, cuda_bytes, bar1_bytes, l2_bytes;
  uint32_t sms, bus_bits, cores;
  uint32_t boost_mhz, idle_mhz, step_mhz, application_mhz, memory_mhz, video_mhz, idle_video_mhz;
  uint32_t limit_mw, least_limit_mw, most_limit_mw, idle_mw;
  int32_t shutdown_c, slowdown_c, operating_c, memory_operating_c;
  uint32_t pci_device, pci_subsystem; // both with the vendor's half
  uint32_t pcie_generation, pcie_lanes;
  uint32_t links;
  uint64_t link_bytes_per_s;
  bool sxm;
  const MigProfile *profiles;
  size_t profile_count;
};

// Where a kind's cards sit.
struct Seat {
  uint32_t domain, bus, slot;
  int32_t numa;
};

struct Kind {
  const char *name;
  const char *model;
  uint32_t board; // place in topology.h
  const Seat *seats;
  size_t count;
  uint32_t pcie_generation; // of the machine
};

extern const NodeModel kNodeModels[];
extern const size_t kNodeModelCount;
extern const ComputeProfile kComputeProfiles[];
extern const size_t kComputeProfileCount;
extern const Kind kKinds[];
extern const size_t kKindCount;

// Added to the time of an instance's work by busy ones that fill the rest of the card.
extern const double kSharingComputeRatio, kSharingMemoryRatio;

constexpr uint32_t kComputeSlices = 7, kMemorySlices = 8;
constexpr uint32_t kSmsPerSlice = 14;

// Place in kNodeModels; the count where there is none.  Letter case does not matter.
size_t model_named(const char *name);
const Kind *kind_named(const char *name);

} // namespace va::node
