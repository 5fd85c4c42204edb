/* Grids that device code launches.  They run when their parent has ended, one after another in
 * launch order, and are run by whoever ran the parent: kernels are found by address, which only
 * the parent's module can explain. */
#ifndef VA100_CHILDREN_H
#define VA100_CHILDREN_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What device code fills (src/va100/ptx/devicelib.py); the parameter block lies behind it. */
typedef struct va_child_grid {
  uint64_t function; /* the kernel's address */
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t reserved;
  uint64_t stream; /* VA_STREAM_TAIL: after all others that the parent launched */
  uint64_t pad[2];
} va_child_grid;

#define VA_STREAM_TAIL 3

/* The children of the launch that ended last on this thread, in the order they are to run; each
 * address is given once.  Returns how many there were; call until 0. */
VA_EXPORT size_t va_exec_take_children(uint64_t *records, size_t capacity);
/* Free a child's record and parameters. */
VA_EXPORT void va_exec_release_child(uint64_t record);

#ifdef __cplusplus
}
#endif
#endif
