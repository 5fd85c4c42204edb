// What memory pools hold: counted as allocations come and go.
#pragma once

#include "blocks.h"

namespace va {

// How one process tells another of an allocation in a shared pool.  No two allocations are told of
// in the same words, by which clients know what they have imported already.
struct ExportedPiece {
  uint64_t magic, file, serial, offset, bytes, within;
};
constexpr uint64_t kPieceMagic = 0x313030316C6F6F70; // no meaning, but unlikely by chance

// Where a pool's memory lies, as the arena numbers it.
int region_of_pool(const PoolState &pool);
// A handle's pool, unless it is none or was destroyed.
Pool &live_pool(CUmemoryPool handle);
// Fails where an address is memory of another device's pool that grants this one no access.  The
// device is that of the thread's context, which need not be the stream's.
void require_granted(const Device &device, uint64_t address);

// A pool takes in or gives out a block; fails with OUT_OF_MEMORY past its size.
void pool_gives(CUmemoryPool pool, uint64_t bytes);
void pool_takes(CUmemoryPool pool, uint64_t bytes);
// The host waited: pools let go of what they hold beyond their thresholds.
void settle_pools();
// Let go of all that pools of a region hold and nobody uses; false when that was nothing.
bool empty_pools(int region);

} // namespace va
