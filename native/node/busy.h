// How long a node's GPUs were at work, told from its file alone.
#pragma once

#include <cstdint>
#include <string>

namespace va::node {

struct Work {
  uint64_t busy_ns = 0; // of all GPUs together, ever
  uint32_t running = 0; // processes that have something on a GPU just now
};

// Read a file that may be somebody else's and wrong in any way: nothing in it is trusted, nothing is
// mapped (whoever owns it may cut it off at any moment) and nothing is written.  False where it is
// no node of this layout.
bool read_work(const std::string &path, Work *work);

} // namespace va::node
