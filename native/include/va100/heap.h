/* Memory that device code takes with malloc: of a heap that a context has, and whose size is one
 * of its limits. */
#ifndef VA100_HEAP_H
#define VA100_HEAP_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

#define VA_DEFAULT_HEAP_BYTES (8u << 20)

/* The heap of launches that this thread makes from now on, by a number, and its size. */
VA_EXPORT void va_exec_use_heap(uint64_t heap, uint64_t limit_bytes);
/* Free all that is left in a heap. */
VA_EXPORT void va_exec_drop_heap(uint64_t heap);

#ifdef __cplusplus
}
#endif
#endif
