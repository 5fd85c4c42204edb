#include "stacks.h"

#include <pthread.h>
#include <sys/mman.h>

namespace va {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kStacksKept = 256;

Stack make_stack() {
  void *p = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return {};
  mprotect(p, kGuardBytes, PROT_NONE);
  return {static_cast<uint8_t *>(p) + kGuardBytes};
}

struct StackBounds {
  uint64_t base = 0, bytes = 0;
};

// Asked for once: for the first thread of a process the C library reads the whole memory map.
StackBounds thread_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes)) return {};
  void *low = nullptr;
  size_t bytes = 0;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uint64_t>(low), bytes};
}

}  // namespace

Stack take_stack(Worker *worker) {
  if (worker->stacks.empty()) return make_stack();
  Stack stack = worker->stacks.back();
  worker->stacks.pop_back();
  return stack;
}

void return_stack(Worker *worker, Stack stack) {
  if (!stack.base) return;
  if (worker->stacks.size() < kStacksKept)
    worker->stacks.push_back(stack);
  else
    munmap(stack.base - kGuardBytes, kStackBytes + kGuardBytes);
}

uint64_t thread_stack_limit() {
  static thread_local const StackBounds bounds = thread_stack();
  auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return here - bounds.base < bounds.bytes ? bounds.base + 2 * kStackReserve : 0;
}

}  // namespace va
