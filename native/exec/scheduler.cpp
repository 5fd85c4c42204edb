// Running a grid: CTAs handed to worker threads, warps on stacks of their own where they wait.
//
// A kernel that never waits runs warp after warp on the worker's stack.  One that has barriers or
// may spin gives each warp a stack; CTAs are then admitted one by one, another only when all that
// live do nothing but spin, up to what the virtual chip holds.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "check_state.h"  // and worker.h
#include "pool.h"
#include "stacks.h"

namespace va {
namespace {

constexpr uint32_t kSharedUnit = 128;  // SHARED_UNIT_BYTES of va100.work

uint32_t whole_units(uint32_t bytes) { return (bytes + kSharedUnit - 1) & ~(kSharedUnit - 1); }

// ------------------------------------------------------------------ warps with stacks

thread_local Worker *t_worker = nullptr;

void leave_cta(Warp *warp);

// Reached by the first switch to a warp: its worker is the one that switches.
void run_fiber() {
  Worker *worker = t_worker;
  Warp *warp = worker->running;
  worker->launch->request->variant->enter(&warp->view, 1);
  leave_cta(warp);
  pass_on(warp);
  __builtin_unreachable();
}

void prime(Warp *warp, uint32_t colour) {
  // Tops are spread over cache sets: a thousand equal ones would fight for the same lines.
  auto top = reinterpret_cast<uintptr_t>(warp->stack.base + kStackBytes);
  top = (top - 256 - (colour % 61) * 192) & ~uintptr_t{63};
  auto *slot = reinterpret_cast<void **>(top);
  *--slot = nullptr;  // the frame's fake return address: rsp = 8 mod 16 at entry
  *--slot = reinterpret_cast<void *>(&run_fiber);
  for (int i = 0; i < 6; i++) *--slot = nullptr;
  warp->sp = slot;
}

void resume(Worker *worker, Warp *warp) {
  worker->running = warp;
  va_switch(&worker->sp, warp->sp);
  worker->running = nullptr;
}

// ------------------------------------------------------------------ CTAs

void set_view(Worker *worker, Warp *warp, uint32_t index) {
  Launch *launch = worker->launch;
  const va_launch *request = launch->request;
  va_warp &v = warp->view;
  v.params = launch->params;
  v.counters = worker->counters.data();
  v.regions = worker->regions.data();
  v.globals = request->variant->globals;
  v.warp_id = index;
  for (int i = 0; i < 3; i++) v.nctaid[i] = request->grid[i];
  uint32_t first = index * VA_LANES;
  uint32_t lanes = std::min<uint32_t>(VA_LANES, launch->threads_per_cta - first);
  v.live = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1u;
  v.shared_bytes = launch->shared_bytes;
  v.dynamic_bytes = request->dynamic_shared_bytes;
  v.local_stride = launch->local_stride;
  v.gridid = launch->serial;
  v.envreg12 = launch->workspace;
  v.scheduler = warp;
}

size_t cta_window_bytes(const Launch *launch) {
  size_t shared = (launch->shared_bytes + 255) & ~size_t{255};
  size_t local = size_t{launch->local_stride} * VA_LANES * launch->warps_per_cta;
  return std::max<size_t>(shared + ((local + 255) & ~size_t{255}), 256);
}

// A CTA that cannot have its memory must not be left out in silence.
void out_of_memory(Launch *launch) {
  if (launch->stop.exchange(true)) return;
  va_fault &f = launch->request->fault;
  f = va_fault{};
  f.kind = VA_FAULT_RESOURCES;
  f.site = 0xffffffffu;
  snprintf(f.text, sizeof f.text,
           "out of memory: a CTA needs %zu bytes of shared and local memory, and %u stacks",
           cta_window_bytes(launch), launch->warps_per_cta);
}

std::unique_ptr<Cta> make_cta(Worker *worker) {
  Launch *launch = worker->launch;
  auto cta = std::make_unique<Cta>();
  cta->worker = worker;
  uint64_t window = va_arena_alloc(VA_WINDOW_DEVICE, cta_window_bytes(launch), 256);
  if (!window) return nullptr;
  cta->shared = reinterpret_cast<uint8_t *>(window);
  cta->local = cta->shared + ((launch->shared_bytes + 255) & ~size_t{255});
  cta->warps.resize(launch->warps_per_cta);
  for (uint32_t i = 0; i < launch->warps_per_cta; i++) {
    Warp &warp = cta->warps[i];
    set_view(worker, &warp, i);
    warp.cta = cta.get();
    warp.view.shared = cta->shared;
    warp.view.local = cta->local + size_t{launch->local_stride} * VA_LANES * i;
  }
  return cta;
}

// Where a CTA stands in its grid, and the SM it is said to run on.
struct Place {
  uint32_t ctaid[3];
  uint32_t smid;

  Place(const va_launch *request, uint64_t index) {
    ctaid[0] = static_cast<uint32_t>(index % request->grid[0]);
    ctaid[1] = static_cast<uint32_t>(index / request->grid[0] % request->grid[1]);
    ctaid[2] = static_cast<uint32_t>(index / request->grid[0] / request->grid[1]);
    smid = static_cast<uint32_t>(index % std::max(request->sm_count, 1u));
  }

  // CTAs from here on that differ in ctaid.x and smid only.
  uint64_t row(const va_launch *request) const {
    return std::min(request->grid[0] - ctaid[0], std::max(request->sm_count, 1u) - smid);
  }

  // On by some CTAs, not past the end of their row, without a division.
  void step(const va_launch *request, uint64_t count) {
    smid += static_cast<uint32_t>(count);
    if (smid >= request->sm_count) smid = 0;
    ctaid[0] += static_cast<uint32_t>(count);
    if (ctaid[0] < request->grid[0]) return;
    ctaid[0] = 0;
    if (++ctaid[1] < request->grid[1]) return;
    ctaid[1] = 0;
    ctaid[2]++;
  }
};

// Give a CTA the fields in which CTAs of a grid differ.  Machine code looks for them in the first
// warp it is called with: for a whole CTA that is one view.
void number(Cta *cta, uint64_t index, const Place &place, size_t views) {
  cta->index = index;
  for (size_t i = 0; i < views; i++) {
    va_warp &view = cta->warps[i].view;
    std::memcpy(view.ctaid, place.ctaid, sizeof view.ctaid);
    view.smid = place.smid;
  }
}

void clear_shared(Cta *cta) {
  uint32_t bytes = cta->worker->launch->shared_bytes;
  if (bytes) std::memset(cta->shared, 0, bytes);
}

void begin(Cta *cta, uint64_t index) {
  Launch *launch = cta->worker->launch;
  number(cta, index, Place(launch->request, index), cta->warps.size());
  clear_shared(cta);
  begin_observing(cta);
  cta->live_warps = launch->warps_per_cta;
  for (Barrier &b : cta->barriers) b = Barrier{};
  for (Warp &warp : cta->warps) {
    warp.state = WarpState::kReady;
  }
}

bool left_out(const Launch *launch, uint64_t index) {
  return launch->request->observed_only && launch->memory && !observes(launch, index);
}

// The next CTA that is to run.
bool take_cta(Launch *launch, uint64_t *index) {
  if (launch->stop.load(std::memory_order_relaxed)) return false;
  do {
    *index = launch->next_cta.fetch_add(1, std::memory_order_relaxed);
    if (*index >= launch->cta_count) return false;
    *index = launch->order(*index);
  } while (left_out(launch, *index));
  return true;
}

// ------------------------------------------------------------------ kernels that never wait

// CTAs one after another: the next one's place follows from the last one's.
void run_chunk(Cta *cta, uint64_t first, uint64_t last) {
  Launch *launch = cta->worker->launch;
  const va_launch *request = launch->request;
  va_warp_function enter = request->variant->enter;
  const bool goes_on = (request->variant->flags & VA_GOES_ON) && !launch->shared_bytes;
  Place place(request, first);
  uint64_t count = 1;
  for (uint64_t index = first; index < last; index += count) {
    if (goes_on) count = std::min(last - index, place.row(request));
    if (left_out(launch, index)) {
      place.step(request, count);
      continue;
    }
    number(cta, index, place, 1);
    cta->warps[0].view.more = count - 1;
    clear_shared(cta);
    begin_observing(cta);
    enter(&cta->warps[0].view, launch->warps_per_cta);
    end_observing(cta);
    place.step(request, count);
  }
}

// As run_chunk, in another order: warps of a CTA too.
void run_shuffled(Cta *cta, uint64_t first, uint64_t last) {
  Launch *launch = cta->worker->launch;
  const va_launch *request = launch->request;
  for (uint64_t place = first; place < last; place++) {
    uint64_t index = launch->order(place);
    if (left_out(launch, index)) continue;
    number(cta, index, Place(request, index), cta->warps.size());
    clear_shared(cta);
    begin_observing(cta);
    Order order(launch->warps_per_cta, request->shuffle + index);
    for (uint32_t i = 0; i < launch->warps_per_cta; i++)
      request->variant->enter(&cta->warps[order(i)].view, 1);
    end_observing(cta);
  }
}

void run_direct(Worker *worker) {
  Launch *launch = worker->launch;
  std::unique_ptr<Cta> cta = make_cta(worker);
  if (!cta) return out_of_memory(launch);
  uint64_t limit = thread_stack_limit();
  for (Warp &warp : cta->warps) warp.view.stack_limit = limit;
  if (_setjmp(worker->escape) == 0) {
    while (!launch->stop.load(std::memory_order_relaxed)) {
      if (worker->launcher) pool().look_for_demands();
      uint64_t first = launch->next_cta.fetch_add(launch->chunk, std::memory_order_relaxed);
      if (first >= launch->cta_count) break;
      uint64_t last = std::min(first + launch->chunk, launch->cta_count);
      if (launch->request->shuffle)
        run_shuffled(cta.get(), first, last);
      else
        run_chunk(cta.get(), first, last);
    }
  }
  va_arena_free(reinterpret_cast<uint64_t>(cta->shared));
}

// ------------------------------------------------------------------ kernels whose warps wait

bool admit(Worker *worker) {
  Launch *launch = worker->launch;
  uint32_t limit = launch->request->resident_ctas;
  if (limit && launch->resident.fetch_add(1) >= limit) {
    launch->resident.fetch_sub(1);
    return false;
  }
  uint64_t index;
  if (!take_cta(launch, &index)) {
    if (limit) launch->resident.fetch_sub(1);
    return false;
  }
  std::unique_ptr<Cta> cta;
  if (!worker->spare.empty()) {
    cta = std::move(worker->spare.back());
    worker->spare.pop_back();
  } else {
    cta = make_cta(worker);
    if (!cta) {
      out_of_memory(launch);
      return false;
    }
    for (Warp &warp : cta->warps) {
      warp.stack = take_stack(worker);
      if (!warp.stack.base) {
        worker->spare.push_back(std::move(cta));
        out_of_memory(launch);
        return false;
      }
      warp.view.stack_limit = reinterpret_cast<uint64_t>(warp.stack.base) + kStackReserve;
    }
  }
  begin(cta.get(), index);
  uint32_t colour = 0;
  for (Warp &warp : cta->warps) prime(&warp, colour++);
  worker->resident.push_back(std::move(cta));
  launch->progress.fetch_add(1, std::memory_order_relaxed);
  return true;
}

uint32_t live_threads(const Cta *cta) { return cta->live_warps * VA_LANES; }

// Let go of a barrier that is full, or that warps which have left cannot fill any more.
bool release(Cta *cta, uint32_t id) {
  Barrier &b = cta->barriers[id];
  uint32_t expected = b.expected ? b.expected : live_threads(cta);
  if (__builtin_expect(b.arrived < expected || b.arrived == 0, 1)) return false;
  check_released(cta, id, b.expected == 0);
  observe_barrier(cta);
  for (Warp &warp : cta->warps) {
    if (warp.state != WarpState::kBarrier || warp.barrier != id) continue;
    warp.state = WarpState::kReady;
    warp.reduced = b.popc | (b.all ? 0x40000000u : 0) | (b.any ? 0x80000000u : 0);
  }
  b = Barrier{};
  cta->worker->moves++;
  return true;
}

// A warp has come to its end.
void leave_cta(Warp *warp) {
  Cta *cta = warp->cta;
  warp->state = WarpState::kDone;
  cta->live_warps--;
  cta->worker->moves++;
  for (uint32_t id = 0; id < kBarriers; id++)
    if (cta->barriers[id].arrived) release(cta, id);
}

// Give every ready warp of a CTA its turn; true when one of them did more than spin.
// A warp that waits hands over to the next by itself, so one turn may run them all.
bool step(Cta *cta) {
  Worker *worker = cta->worker;
  uint64_t before = worker->moves;
  const uint32_t shuffle = worker->launch->request->shuffle;
  const Order order(shuffle ? cta->warps.size() : 0, shuffle + cta->index);
  for (size_t i = 0; i < cta->warps.size(); i++) {
    Warp &warp = cta->warps[order(i)];
    if (warp.state != WarpState::kReady) continue;
    resume(worker, &warp);
    if (worker->launch->stop.load(std::memory_order_relaxed)) return true;
  }
  return worker->moves != before;
}

bool all_at_barriers(const Cta *cta) {
  for (const Warp &warp : cta->warps)
    if (warp.state == WarpState::kReady) return false;
  return cta->live_warps != 0;
}

void locate(va_fault *f, const va_launch *request, const va_warp *view, uint32_t lane) {
  uint32_t linear = view->warp_id * VA_LANES + lane;
  const va_warp *first = &warp_of(view)->cta->warps[0].view;
  for (int i = 0; i < 3; i++) f->ctaid[i] = first->ctaid[i];
  f->tid[0] = linear % request->block[0];
  f->tid[1] = linear / request->block[0] % request->block[1];
  f->tid[2] = linear / request->block[0] / request->block[1];
}

void report_barrier_deadlock(Cta *cta) {
  for (Warp &warp : cta->warps) {
    if (warp.state != WarpState::kBarrier) continue;
    const Barrier &b = cta->barriers[warp.barrier];
    char text[256];
    snprintf(text, sizeof text,
             "deadlock: warp %u waits at barrier %u, which has %u of %u threads; no thread that "
             "could still arrive is running",
             warp.view.warp_id, warp.barrier, b.arrived,
             b.expected ? b.expected : live_threads(cta));
    va_fault &f = cta->worker->launch->request->fault;
    if (cta->worker->launch->stop.exchange(true)) return;
    f = va_fault{};
    f.kind = VA_FAULT_DEADLOCK;
    f.site = warp.site;
    locate(&f, cta->worker->launch->request, &warp.view, 0);
    snprintf(f.text, sizeof f.text, "%s", text);
    return;
  }
}

void retire(Worker *worker, size_t slot) {
  Launch *launch = worker->launch;
  if (launch->request->resident_ctas) launch->resident.fetch_sub(1);
  launch->progress.fetch_add(1, std::memory_order_relaxed);
  end_observing(worker->resident[slot].get());
  worker->spare.push_back(std::move(worker->resident[slot]));
  worker->resident.erase(worker->resident.begin() + static_cast<long>(slot));
}

// One pass over the resident CTAs; true when anything moved.
bool round(Worker *worker) {
  bool moved = false;
  for (size_t slot = 0; slot < worker->resident.size();) {
    Cta *cta = worker->resident[slot].get();
    if (step(cta)) moved = true;
    if (worker->launch->stop.load(std::memory_order_relaxed)) return true;
    if (cta->live_warps == 0) {
      retire(worker, slot);
      moved = true;
      continue;
    }
    if (all_at_barriers(cta)) {
      report_barrier_deadlock(cta);
      return true;
    }
    slot++;
  }
  return moved;
}

void report_spin_deadlock(Worker *worker) {
  if (worker->launch->stop.exchange(true)) return;
  va_fault &f = worker->launch->request->fault;
  f = va_fault{};
  f.kind = VA_FAULT_DEADLOCK;
  f.site = 0xffffffffu;
  for (auto &cta : worker->resident) {
    for (Warp &warp : cta->warps) {
      if (warp.state == WarpState::kDone) continue;
      f.site = warp.site;
      locate(&f, worker->launch->request, &warp.view, 0);
      snprintf(f.text, sizeof f.text,
               "deadlock: every resident warp only spins; %zu CTAs are resident on this worker "
               "and no other may start (the chip holds %u at once)",
               worker->resident.size(), worker->launch->request->resident_ctas);
      return;
    }
  }
}

void free_cta(std::unique_ptr<Cta> cta) {
  for (Warp &warp : cta->warps) return_stack(cta->worker, warp.stack);
  va_arena_free(reinterpret_cast<uint64_t>(cta->shared));
}

// How long a worker has done nothing but spin.
class Idleness {
 public:
  explicit Idleness(Launch *launch) : launch_(launch) { launch->working.fetch_add(1); }
  ~Idleness() {
    moved();
    launch_->working.fetch_sub(1);
  }

  void moved() {
    if (stuck_) launch_->stuck.fetch_sub(1);
    stuck_ = false;
    rounds_ = 0;
  }

  // One more round without a move; true when no worker has made any for a while: one that is in
  // the middle of long work has not come to the end of its round.
  bool hopeless() {
    uint64_t now = launch_->progress.load(std::memory_order_relaxed);
    if (now != seen_) {
      seen_ = now;
      moved();
    }
    if (rounds_++ == 0) since_ = std::chrono::steady_clock::now();
    if ((rounds_ & 15) == 15) std::this_thread::yield();
    if (rounds_ % 64 || std::chrono::steady_clock::now() - since_ < kPatience) return false;
    if (!stuck_) launch_->stuck.fetch_add(1);
    stuck_ = true;
    return launch_->stuck.load() >= launch_->working.load();
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{1000};

  Launch *launch_;
  uint64_t rounds_ = 0, seen_ = 0;
  std::chrono::steady_clock::time_point since_;
  bool stuck_ = false;
};

void run_fibers(Worker *worker) {
  Launch *launch = worker->launch;
  bool all_resident = launch->request->cooperative != 0;
  Idleness idleness(launch);
  while (!launch->stop.load(std::memory_order_relaxed)) {
    if (worker->launcher) pool().look_for_demands();
    if (all_resident) {
      while (admit(worker)) {
      }
      all_resident = false;
    }
    if (worker->resident.empty() && !admit(worker)) {
      if (launch->next_cta.load() >= launch->cta_count) break;
      idleness.hopeless();  // others may wait for CTAs that the chip has no room for
      std::this_thread::yield();
      continue;
    }
    if (round(worker)) {
      idleness.moved();
      continue;
    }
    if (!admit(worker) && idleness.hopeless()) report_spin_deadlock(worker);
  }
}

// Stacks are kept from one launch to the next: making one costs two system calls.
void work(Launch *launch, bool launcher) {
  static thread_local std::unique_ptr<Worker> kept;
  if (!kept) kept = std::make_unique<Worker>();
  Worker *worker = kept.get();
  worker->launch = launch;
  worker->launcher = launcher;
  worker->counters.assign(launch->request->variant->counter_count + 8, 0);
  worker->regions.assign(launch->request->variant->region_count, va_region{});
  worker->fibers = launch->request->variant->flags & VA_USES_BARRIERS;
  t_worker = worker;
  if (worker->fibers)
    run_fibers(worker);
  else
    run_direct(worker);
  for (auto &cta : worker->resident) free_cta(std::move(cta));
  for (auto &cta : worker->spare) free_cta(std::move(cta));
  worker->resident.clear();
  worker->spare.clear();
  for (uint8_t *frame : worker->frames) std::free(frame);
  worker->frames.clear();
  static std::mutex merge;
  std::lock_guard<std::mutex> lock(merge);
  if (launch->request->counters)
    for (uint32_t i = 0; i < launch->request->variant->counter_count; i++)
      launch->request->counters[i] += worker->counters[i];
}

// ------------------------------------------------------------------ launching

uint32_t worker_count(const va_launch *request, uint64_t cta_count, bool ordered) {
  if (ordered) return 1;
  static const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());  // reads a file
  const uint32_t workers = request->workers ? request->workers : cores;
  return static_cast<uint32_t>(std::min<uint64_t>(workers, cta_count));
}

}  // namespace

Pool &pool() {
  static Pool *instance = new Pool(work);  // never destroyed: clients call from static destructors
  return *instance;
}

void yield(Warp *warp) { va_switch(&warp->sp, warp->cta->worker->sp); }

// Whose turn it is after a warp of a CTA that can do nothing: its stack, or the scheduler's.
static void *next_stack(Warp *warp) {
  Cta *cta = warp->cta;
  Worker *worker = cta->worker;
  size_t count = cta->warps.size();
  size_t here = static_cast<size_t>(warp - cta->warps.data());
  for (size_t step = 1; step < count; step++) {
    size_t next = here + step < count ? here + step : here + step - count;
    Warp *other = &cta->warps[next];
    if (other->state != WarpState::kReady) continue;
    worker->running = other;
    return other->sp;
  }
  return worker->sp;
}

void pass_on(Warp *warp) { va_switch(&warp->sp, next_stack(warp)); }

void fault(va_warp *view, uint32_t kind, uint32_t site, uint32_t lane, uint64_t address,
           uint32_t size, uint32_t space, bool write, const char *text) {
  Warp *warp = warp_of(view);
  Worker *worker = warp->cta->worker;
  Launch *launch = worker->launch;
  if (!launch->stop.exchange(true)) {
    va_fault &f = launch->request->fault;
    f = va_fault{};
    f.kind = kind;
    f.site = site;
    f.address = address;
    f.size = size;
    f.space = space;
    f.write = write;
    locate(&f, launch->request, view, lane);
    if (text) snprintf(f.text, sizeof f.text, "%s", text);
  }
  if (worker->fibers) {
    warp->state = WarpState::kDone;
    va_switch(&warp->sp, worker->sp);
  }
  _longjmp(worker->escape, 1);
}

}  // namespace va

// ------------------------------------------------------------------ barriers, called by kernels

namespace {

using va::Barrier;
using va::Cta;
using va::Warp;

// votes: lanes whose predicate holds; lanes: those that came, without any that have exited.
// True when that was the last one that the barrier waited for.
bool arrive(va_warp *view, uint32_t site, uint32_t id, uint32_t threads, uint32_t votes,
            uint32_t lanes) {
  Warp *warp = va::warp_of(view);
  Cta *cta = warp->cta;
  if (id >= va::kBarriers)
    va::fault(view, VA_FAULT_ILLEGAL_INSTRUCTION, site, 0, 0, 0, 0, false,
              "barrier number above 15");
  if (threads % VA_LANES)
    va::fault(view, VA_FAULT_ILLEGAL_INSTRUCTION, site, 0, 0, 0, 0, false,
              "barrier thread count is no multiple of the warp size");
  Barrier &b = cta->barriers[id];
  b.arrived += VA_LANES;
  if (threads) b.expected = threads;
  lanes &= view->live;
  if (votes & lanes) {
    b.popc += static_cast<uint32_t>(__builtin_popcount(votes & lanes));
    b.any = true;
  }
  b.all = b.all && (votes & lanes) == lanes;
  warp->barrier = id;
  warp->site = site;
  warp->state = va::WarpState::kBarrier;
  return va::release(cta, id);
}

}  // namespace

extern "C" {

uint32_t va_h_bar_sync(va_warp *w, uint32_t site, uint32_t id, uint32_t threads, uint32_t votes,
                       uint32_t lanes);
void *va_next_after_barrier(va_warp *w, uint32_t site, uint32_t id, uint32_t threads,
                            uint32_t votes, uint32_t lanes) __attribute__((visibility("hidden")));
void va_h_bar_arrive(va_warp *w, uint32_t site, uint32_t id, uint32_t threads);
void va_h_spin(va_warp *w, uint32_t site);

uint32_t va_h_bar_sync(va_warp *w, uint32_t site, uint32_t id, uint32_t threads, uint32_t votes,
                       uint32_t lanes) {
  Warp *warp = va::warp_of(w);
  if (!arrive(w, site, id, threads, votes, lanes)) va::pass_on(warp);
  return warp->reduced;
}

// Called by va_h_bar_wait, which has saved the warp's stack: the stack to go on with.
void *va_next_after_barrier(va_warp *w, uint32_t site, uint32_t id, uint32_t threads,
                            uint32_t votes, uint32_t lanes) {
  Warp *warp = va::warp_of(w);
  return arrive(w, site, id, threads, votes, lanes) ? warp->sp : va::next_stack(warp);
}

void va_h_bar_arrive(va_warp *w, uint32_t site, uint32_t id, uint32_t threads) {
  Cta *cta = va::warp_of(w)->cta;
  if (id >= va::kBarriers || threads == 0 || threads % VA_LANES)
    va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site, 0, 0, 0, 0, false,
              "barrier.arrive needs a barrier below 16 and a thread count that is a multiple of "
              "the warp size");
  Barrier &b = cta->barriers[id];
  b.arrived += VA_LANES;
  b.expected = threads;
  va::release(cta, id);
}

// A loop that may wait for another thread has used up its turn.
void va_h_spin(va_warp *w, uint32_t site) {
  Warp *warp = va::warp_of(w);
  if (!warp->cta->worker->fibers) return;
  warp->site = site;
  va::yield(warp);
}

int va_exec_launch(va_launch *request) {
  if (va_arena_open()) return request->fault.kind = VA_FAULT_ILLEGAL_INSTRUCTION;
  va::Pool &pool = va::pool();
  std::lock_guard<std::mutex> lock(pool.launches);
  static uint64_t serial = 0;
  static uint8_t *params = reinterpret_cast<uint8_t *>(va_arena_alloc(VA_WINDOW_DEVICE, 65536, 256));
  static uint64_t workspace = va_arena_alloc(VA_WINDOW_DEVICE, 4096, 256);
  const va_variant *variant = request->variant;
  request->fault = va_fault{};
  if (variant->param_bytes) std::memcpy(params, request->params, variant->param_bytes);
  va::Launch launch;
  launch.request = request;
  launch.params = params;
  launch.cta_count = uint64_t{request->grid[0]} * request->grid[1] * request->grid[2];
  launch.threads_per_cta = request->block[0] * request->block[1] * request->block[2];
  launch.warps_per_cta = (launch.threads_per_cta + VA_LANES - 1) / VA_LANES;
  launch.shared_bytes = variant->static_shared_bytes + request->dynamic_shared_bytes;
  // A chip gives whole units, and lets all of the last be touched; the checker holds to what was asked.
  if (!variant->check_id) launch.shared_bytes = va::whole_units(launch.shared_bytes);
  launch.local_stride = variant->local_bytes;
  launch.serial = ++serial;
  launch.ordered = variant->flags & VA_ORDERED;
  launch.order = va::Order(launch.cta_count, request->shuffle);
  launch.chunk = static_cast<uint32_t>(std::clamp<uint64_t>(launch.cta_count / 64, 1, 4096));
  if (request->cooperative) {
    std::memset(reinterpret_cast<void *>(workspace), 0, 4096);
    launch.workspace = workspace;
  }
  va::enter_heap(&launch);
  va::check_begin(&launch);
  launch.memory = va::make_memory(&launch);
  pool.run(&launch, va::worker_count(request, launch.cta_count, launch.ordered));
  va::check_end(&launch);
  va::finish_memory(&launch);
  va::flush_output(&launch);
  va::keep_children(&launch);
  return static_cast<int>(request->fault.kind);
}

}  // extern "C"
