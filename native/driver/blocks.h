// Who asked for which piece of memory: the driver's view on top of the arena.
#pragma once

#include "objects.h"
#include "shared_file.h"

namespace va {

enum class Origin { kDevice, kManaged, kPinned, kRegistered, kMapped, kImported };

struct Block {
  uint64_t base = 0, bytes = 0;
  Origin origin = Origin::kDevice;
  CUcontext context = nullptr;
  int device = 0;
  unsigned flags = 0;
  CUmemoryPool pool = nullptr;
  uint64_t id = 0;
  bool on_host = false; // of mapped memory, and of pools that are shared
  // Of mapped memory alone:
  unsigned handle_types = 0;
  uint64_t access = 0; // two bits a region, as CUmemAccess_flags
  // Of memory that lies in a file other processes may have:
  std::shared_ptr<SharedFile> file;
  uint64_t offset = 0;
  bool owns_file_piece = false;
};

// Allocate for the current context; fails with OUT_OF_MEMORY.
uint64_t allocate(Context &context, uint64_t bytes, Origin origin, unsigned flags,
                  CUmemoryPool pool = nullptr);
// The same in a file of the pool's; and a piece that another process allocated there.
uint64_t allocate_shared(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                         CUmemoryPool pool, bool on_host);
uint64_t import_shared(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                       uint64_t offset, CUmemoryPool pool, bool on_host);
// Free by base address if it is of the wanted origin; false when there is none.
bool release(uint64_t base, bool pinned);
// Map a piece of a file that another process allocated; undone by release_import alone.
uint64_t import_piece(Context &context, uint64_t bytes, const std::shared_ptr<SharedFile> &file,
                      uint64_t offset);
bool release_import(uint64_t base);
// All of a context's.
std::vector<Block> blocks_of(CUcontext context);
// The block that holds an address, registered host memory included.
bool find_block(uint64_t address, Block *out);

// Whether memory is the host's, which kernels reach.
inline bool is_host(const Block &block) {
  return block.origin == Origin::kPinned || block.origin == Origin::kRegistered || block.on_host;
}

// Whether an address lies where device memory may lie at all.
inline bool in_arena(uint64_t address) {
  return address >= VA_ARENA_BASE && address - VA_ARENA_BASE < VA_ARENA_BYTES;
}

// Fails unless [address, address + bytes) lies inside one allocation.
void require_device_range(uint64_t address, uint64_t bytes);

} // namespace va
