// Virtual time: when each piece of work would start and end on the chip.
//
// A kernel starts one launch gap after the work before it in its stream, as kernels that follow each
// other in a stream do; events take the time at which the work before them ended.  So a pair of events
// around one tiny kernel reads the gap and the kernel, 2.6 us, and around n of them n times that.
// A graph is launched as one: a gap before it and none inside.
// Left out: what recording an event costs the chip, and the host's own time between two calls.
//
// Work is logged as it runs.  Durations of kernels come from the compiler's side, in batches, and
// only when somebody asks; until then an event's time is unknown.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "va100/exec.h"

namespace va {

// When an event happened.
struct Moment {
  double time_s = 0;
  bool known = false;
};

struct TrackGroup;

// One stream's place in virtual time.
struct Track {
  uint32_t id = 0;
  bool blocking = true; // orders itself with the legacy default stream
  bool legacy = false;
  bool graph = false; // kernels follow each other without a gap
  double ready_s = 0;
  std::shared_ptr<TrackGroup> group;
};

// The streams of one context.
struct TrackGroup {
  double legacy_ready_s = 0;   // end of the legacy stream's work
  double blocking_ready_s = 0; // end of all blocking streams' work
  double all_ready_s = 0;
  double host_s = 0; // when the host last stopped waiting; nothing starts before
};

struct LaunchWork {
  uint64_t compiler_id, variant_id;
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t device;
  uint64_t footprint_bytes; // of the allocations that its arguments point into
  std::shared_ptr<std::vector<uint64_t>> counters;
};

void log_launch(const std::shared_ptr<Track> &track, LaunchWork work);
void log_record(const std::shared_ptr<Track> &track, const std::shared_ptr<Moment> &moment);
void log_wait(const std::shared_ptr<Track> &track, const std::shared_ptr<Moment> &moment);
// What comes next is launched as a whole, one launch gap after what came before.
void log_gap(const std::shared_ptr<Track> &track, int device);
// The host waited for a stream's work, or for all of a context's.
void log_join(const std::shared_ptr<Track> &track);
void log_join(const std::shared_ptr<TrackGroup> &group);
// The host waited for an event.
void log_join(const std::shared_ptr<TrackGroup> &group, const std::shared_ptr<Moment> &moment);
// The host saw that work is done, without waiting: order for the checker, and no time.
void log_seen(const std::shared_ptr<Track> &track);
void log_seen(const std::shared_ptr<Moment> &moment);

// Work out every time that is still unknown.
void resolve_timeline();
double time_of(const Moment &moment);

// How long the chip takes to move bytes.
enum class Way { kHostToDevice, kDeviceToHost, kWithinDevice, kBetweenDevices, kSet, kHostToHost };
void log_transfer(const std::shared_ptr<Track> &track, int device, uint64_t bytes, Way way);

} // namespace va
