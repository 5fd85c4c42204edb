// Stacks of warps that wait, and how far a thread's own may be used.
#pragma once

#include "worker.h"

namespace va {

constexpr size_t kStackBytes = 1024 * 1024;
// What the frame of one device function and the native functions it calls may take.
constexpr size_t kStackReserve = 128 * 1024;

// One that an earlier warp has left, or a new one; without a base when there is no memory.
Stack take_stack(Worker *worker);
// Making a stack costs system calls and page faults: some are kept for the next launch.
void return_stack(Worker *worker, Stack stack);
// Where device functions must stop on this thread's own stack; 0 when we are not on it.
uint64_t thread_stack_limit();

}  // namespace va
