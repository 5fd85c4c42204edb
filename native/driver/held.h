// Streams that work of other libraries holds; va100/outside.h says what that means.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "objects.h"

namespace va {

extern std::atomic<unsigned> held_count;

void settle_held(const Stream &stream);
void settle_held(const Context &context);

// Wait for what holds a stream; one load where nothing holds any.
inline void settle(const Stream &stream) {
  if (held_count.load(std::memory_order_relaxed))
    settle_held(stream);
}
inline void settle(const Context &context) {
  if (held_count.load(std::memory_order_relaxed))
    settle_held(context);
}

// What holds a graph's lanes holds the stream that the graph was launched in, too.
void pass_held(const std::vector<std::unique_ptr<Stream>> &lanes, const Stream &outer);
// The stream goes: nothing waits for it any more.
void forget_held(const Stream &stream);

// Marks the stream whose host function runs in this thread.
class RunningHost {
public:
  explicit RunningHost(Stream &stream);
  ~RunningHost();
  RunningHost(const RunningHost &) = delete;
  RunningHost &operator=(const RunningHost &) = delete;

private:
  Stream *before_;
};

bool is_trusted(CUhostFn call);

// A handle's stream, without waiting for what holds it.
Stream &stream_unsettled(CUstream handle);

} // namespace va
