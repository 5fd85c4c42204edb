// Compiling while a kernel runs: who asks, who answers, on which stack.
#include <cstdio>

#include "chunks.h"
#include "pool.h"

extern "C" void va_call_on(void *stack, void (*call)(void *), void *argument);

namespace va {
namespace {

void answer(void *argument) {
  auto *demand = static_cast<Demand *>(argument);
  demand->met = demand->supply(demand->function, demand->number, demand->why, sizeof demand->why);
}

// A warp's own stack is too small for a compiler: what lies below the scheduler's frame is free.
void answer_here(Worker *worker, Demand *demand) {
  if (!worker->fibers) return answer(demand);
  auto top = reinterpret_cast<uintptr_t>(worker->sp) - 256;
  va_call_on(reinterpret_cast<void *>(top & ~uintptr_t{63}), answer, demand);
}

}  // namespace

void Pool::answer_demands() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!demands_.empty()) {
    Demand *demand = demands_.back();
    demands_.pop_back();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    lock.unlock();
    answer(demand);
    lock.lock();
    demand->done = true;
    answered_.notify_all();
  }
}

void Pool::ask(Demand *demand) {
  std::unique_lock<std::mutex> lock(mutex_);
  demands_.push_back(demand);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  done_.notify_all();
  answered_.wait(lock, [demand] { return demand->done; });
}

uint64_t demand_chunk(va_warp *w, uint32_t function, uint32_t number) {
  Worker *worker = warp_of(w)->cta->worker;
  const va_variant *variant = worker->launch->request->variant;
  Demand demand{variant->supply, function, number, {}, 0, false};
  if (worker->launcher)
    answer_here(worker, &demand);
  else
    pool().ask(&demand);
  if (!demand.met) {
    char text[400];
    snprintf(text, sizeof text, "a part of the kernel could not be compiled: %s", demand.why);
    fault(w, VA_FAULT_RESOURCES, 0xffffffffu, 0, 0, 0, 0, false, text);
  }
  return variant->chunked[function].table[number];
}

}  // namespace va
