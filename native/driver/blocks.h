// Who asked for which piece of memory: the driver's view on top of the arena.
#pragma once

#include "objects.h"

namespace va {

enum class Origin { kDevice, kManaged, kPinned, kRegistered };

struct Block {
  uint64_t base = 0, bytes = 0;
  Origin origin = Origin::kDevice;
  CUcontext context = nullptr;
  int device = 0;
  unsigned flags = 0;
  CUmemoryPool pool = nullptr;
  uint64_t id = 0;
};

// Allocate for the current context; fails with OUT_OF_MEMORY.
uint64_t allocate(Context &context, uint64_t bytes, Origin origin, unsigned flags,
                  CUmemoryPool pool = nullptr);
// Free by base address if it is of the wanted origin; false when there is none.
bool release(uint64_t base, bool pinned);
// The block that holds an address, registered host memory included.
bool find_block(uint64_t address, Block *out);

// Whether an address lies where device memory may lie at all.
inline bool in_arena(uint64_t address) {
  return address >= VA_ARENA_BASE && address - VA_ARENA_BASE < VA_ARENA_BYTES;
}

// Fails unless [address, address + bytes) lies inside one allocation.
void require_device_range(uint64_t address, uint64_t bytes);

} // namespace va
