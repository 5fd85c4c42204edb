// Stream capture: calls on a capturing stream become nodes of a graph instead of running.
//
// Outside a capture all of this costs a call one load.
#pragma once

#include "graph.h"
#include "modules.h"

namespace va {

struct Capture;

// The place in a capture that an event stands for.
struct CapturedPoint {
  std::weak_ptr<Capture> capture;
  std::vector<CUgraphNode> needs;
};

std::atomic<int> &active_captures();

inline bool capturing_anywhere() {
  return active_captures().load(std::memory_order_relaxed) != 0;
}

// Whether a stream is capturing; fails when its capture is broken, or when the legacy stream
// would wait for a capture.
bool takes_part(Stream &stream);
inline bool in_capture(Stream &stream) { return capturing_anywhere() && takes_part(stream); }

// Add what a call asked for to the stream's capture.
GraphNode &capture(Stream &stream, Work work);
KernelWork kernel_work(Function &function, const Shape &shape, const uint8_t *parameters,
                       Attributes attributes);
// The same for memory, whose address is known at once.
CUdeviceptr capture_alloc(Stream &stream, uint64_t bytes, int alloc_type,
                          const CUmemLocation &location);
void capture_free(Stream &stream, CUdeviceptr address);
// The same for an event; ends what an earlier capture knew of it.
void capture_record(Stream &stream, Event &event);
// Whether a capture deals with a stream's wait for an event.
bool capture_wait(Stream &stream, Event &event);

// The host may not wait for what has not run: these fail, and break the captures concerned.
void break_waited(Stream &stream);
void break_waited(Context &context);
void break_waited(Event &event);
void break_by_unsafe_call();
[[noreturn]] void break_unsupported(Stream &stream);

inline void require_wait_allowed(Stream &stream) {
  if (capturing_anywhere())
    break_waited(stream);
}
inline void require_wait_allowed(Context &context) {
  if (capturing_anywhere())
    break_waited(context);
}
void require_wait_allowed(Event &event);
// Calls that may wait for the device behind the caller's back.
inline void require_unsafe_allowed() {
  if (capturing_anywhere())
    break_by_unsafe_call();
}

} // namespace va
