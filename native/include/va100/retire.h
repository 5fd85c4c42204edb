/* Freeing device memory so that its addresses are not given out again soon: what still points there
 * is then seen, whatever was allocated since.  Under the checker all frees of programs are such. */
#ifndef VA100_RETIRE_H
#define VA100_RETIRE_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

/* As va_arena_free.  The addresses come back once there are no others, or after many more. */
VA_EXPORT int va_arena_retire(uint64_t base);

#ifdef __cplusplus
}
#endif
#endif
