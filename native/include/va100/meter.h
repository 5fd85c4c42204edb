// What watches device memory from outside: who is told how much is used, and how much others use.
#pragma once

#include <stdint.h>

#include "va100/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct va_arena_watcher {
  void (*used)(int device, uint64_t bytes); // called under the arena's lock
  uint64_t (*elsewhere)(int device);        // bytes that other processes hold of the same memory
} va_arena_watcher;

// Once, before any allocation.
VA_EXPORT void va_arena_watch(const va_arena_watcher *watcher);

#ifdef __cplusplus
}
#endif
