// Windows: pieces of files that several processes have, at addresses of their own.
#pragma once

#include <cstdint>

namespace va {

// Map bytes of a file and let kernels of a device touch them; the offset need not be a page's.
// Fails with OUT_OF_MEMORY.
uint64_t open_window(int fd, uint64_t offset, uint64_t bytes, int device);
// Undo it, by the address it gave; does nothing to others.
void close_window(uint64_t address);

} // namespace va
