// What memory accesses of observed CTAs amount to: sectors, bank conflicts, hits in L1 and L2.
#pragma once

#include <cstdint>
#include <memory>

struct va_warp;

namespace va {

struct Cta;
struct Launch;
struct Worker;
class Memory;
class Recorder;

// What counters hold after those of blocks, and then of each instruction.
enum ObservedLaunch : uint32_t {
  kObservedCtas,
  kWrittenBack,      // sectors that L2 gave to DRAM, to the end of the launch
  kSectorSquares,    // over CTAs, of global sectors: for the error of a sample
  kWavefrontSquares, // of wavefronts of shared memory
  kObservedLaunchFields = 8
};
enum ObservedSite : uint32_t {
  kExecutions,  // by warps, or by parts of one
  kLanes,
  kSectors,     // 32-byte pieces of global or local memory, or of a warp's request to L2
  kWavefronts,  // turns of the banks of shared memory
  kLines,       // 128-byte lines asked for
  kL1Hits,      // sectors
  kL2Sectors,   // sectors asked of L2
  kL2Hits,
  kObservedSiteFields
};

// L2 of a launch.
void free_memory(Memory *memory);
struct FreeMemory {
  void operator()(Memory *memory) const { free_memory(memory); }
};
// Null where nothing is observed.
std::unique_ptr<Memory, FreeMemory> make_memory(const Launch *launch);
// Adds what L2 still has to write.
void finish_memory(Launch *launch);

// A CTA begins: whether it is one of those that are observed.
bool observes(const Launch *launch, uint64_t index);
void begin_observing(Cta *cta);
// All warps of a CTA have come to a barrier.
void observe_barrier(Cta *cta);
// A CTA has ended: replay its accesses, warps in turn.
void end_observing(Cta *cta);

struct FreeRecorder {
  void operator()(Recorder *recorder) const;
};

}  // namespace va
