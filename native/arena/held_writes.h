// Pages that nobody writes to for a moment, while kernels run.
#pragma once

#include <cstdint>

namespace va {

// While it lives, a thread that writes to these pages waits; reading goes on.  One at a time.
// The pages must be writable again, in whatever way, before it goes.
class HeldWrites {
public:
  HeldWrites(uint64_t first, uint64_t last);
  ~HeldWrites();
  HeldWrites(const HeldWrites &) = delete;
  HeldWrites &operator=(const HeldWrites &) = delete;

private:
  uint64_t first_, last_;
};

} // namespace va
