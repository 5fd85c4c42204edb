// Physical memory without an address, and where it is mapped.
#pragma once

#include <memory>

#include "blocks.h"
#include "shared_file.h"
#include "va100/virtual.h"

namespace va {

// Lives while the client holds its handle or anything maps it.
struct Physical {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties{};
  uint64_t bytes = 0;
  int region = 0; // a device's ordinal, or VA_HOST_DEVICE
  bool charged = false;
  std::shared_ptr<SharedFile> file;
  uint64_t offset = 0;

  ~Physical();
};

// Fails with INVALID_VALUE on a handle that is not held.
std::shared_ptr<Physical> physical_of(CUmemGenericAllocationHandle handle);
// The client holds the handle once more.
void retain(const std::shared_ptr<Physical> &physical);

// The region a location names; fails on locations an A100 has no memory at.
int region_of(const CUmemLocation &location);

// The mapping that holds an address: as a block, and what it maps.
bool find_mapping(uint64_t address, Block *out);
std::shared_ptr<Physical> mapped_at(uint64_t address);

inline bool is_virtual(uint64_t address) {
  return address >= VA_VIRTUAL_BASE && address < VA_VIRTUAL_END;
}

} // namespace va
