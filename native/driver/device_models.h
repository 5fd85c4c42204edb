// What each A100 model says of itself: the shape of the generated tables.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace va {

struct DeviceAttribute {
  int number;
  int value;
};

struct DeviceModel {
  const char *key;  // as VA100_MODEL spells it
  const char *name; // as the driver reports it
  uint64_t memory_bytes;
  double launch_gap_s;     // between two kernels of one stream
  double copy_bytes_per_s; // within the device, read and written bytes together
  double fill_bytes_per_s;
  double pcie_copy_bytes_per_s;
  uint32_t l1_shared_bytes;         // L1 and shared memory of an SM together
  uint32_t shared_carveout_bytes[8]; // what may be shared memory of it, rising
  const DeviceAttribute *attributes; // ordered by number
  size_t attribute_count;
};

extern const DeviceModel kDeviceModels[];
extern const size_t kDeviceModelCount;

} // namespace va
