// A node in memory whose clock is the caller's: the door through which tests put histories of work
// to the telemetry of native/node.
#include <array>
#include <cstdio>
#include <memory>

#include "joined.h"
#include "models.h"
#include "setup.h"
#include "store.h"
#include "telemetry.h"

#define VA_NODE extern "C" __attribute__((visibility("default")))

namespace va::node {
namespace {

constexpr int kProcesses = 4;

struct Trial {
  std::unique_ptr<Store> store;
  std::array<std::unique_ptr<Meter>, kProcesses> meters;
};

} // namespace
} // namespace va::node

using namespace va::node;

// The node came up at time 0.
VA_NODE void *va100_node_trial_new(const char *model, unsigned power_limit_mw) {
  auto *const trial = new Trial;
  trial->store = Store::in_memory(plain_wish(model, 1));
  NodeState &state = trial->store->file().copies[0];
  state.boot_ns = 0;
  state.devices[0].gpu_c_at_ns = 0;
  if (power_limit_mw)
    state.devices[0].power_limit_mw = power_limit_mw;
  trial->store->file().most_slots.store(kProcesses);
  for (int i = 0; i < kProcesses; ++i)
    trial->meters[static_cast<size_t>(i)] =
        std::make_unique<Meter>(trial->store.get(), &trial->store->file().slots[i], 0);
  return trial;
}

// Links over which one GPU talks to another, with what is broken; -1 as the peer: those that are up.
VA_NODE uint32_t va100_node_trial_links(unsigned board, int gpus, const uint32_t *down,
                                        uint32_t switches_down, int gpu, int peer) {
  Joined joined;
  joined.board = board;
  joined.gpus = gpus;
  joined.switches_down = switches_down;
  for (int i = 0; i < gpus; ++i)
    joined.down[static_cast<size_t>(i)] = down[i];
  return peer < 0 ? links_up(joined, gpu) : links_to(joined, gpu, peer);
}

VA_NODE void va100_node_trial_delete(void *handle) { delete static_cast<Trial *>(handle); }

// A process comes with a context and memory, or with no memory goes.
VA_NODE void va100_node_trial_use(void *handle, int process, uint64_t bytes, uint64_t at_ns) {
  auto *const trial = static_cast<Trial *>(handle);
  Slot &slot = trial->store->file().slots[process];
  DeviceUse &use = slot.devices[0];
  if (bytes) {
    clear(use);
    slot.incarnation.fetch_add(1);
    slot.pid.store(static_cast<uint32_t>(process) + 1);
    use.contexts.store(1);
    use.arena_bytes.store(bytes);
    return;
  }
  trial->store->change([&](NodeState &state) {
    fold(state, slot);
    return true;
  });
  slot.pid.store(0);
  release_clocks(trial->store->file(), at_ns);
}

VA_NODE void va100_node_trial_begin(void *handle, int process, unsigned mw, uint64_t at_ns) {
  auto *const trial = static_cast<Trial *>(handle);
  Activity activity;
  activity.mw = limited_mw(trial->store->device(0), mw, &activity.mhz);
  activity.permille[kMemoryUnit] = 500;
  trial->meters[static_cast<size_t>(process)]->begin(at_ns, activity);
}

VA_NODE void va100_node_trial_end(void *handle, int process, uint64_t at_ns) {
  static_cast<Trial *>(handle)->meters[static_cast<size_t>(process)]->end(at_ns);
}

// Busy percent, sensor's and instant milliwatts, nanojoules, SM megahertz, centidegrees, contexts,
// used bytes, whether clocks are held down.
VA_NODE void va100_node_trial_read(void *handle, uint64_t at_ns, uint64_t *out) {
  auto *const trial = static_cast<Trial *>(handle);
  settle_temperature(*trial->store, 0, at_ns);
  const Reading r = read_device(*trial->store, 0, at_ns);
  uint64_t used = 0;
  for (int i = 0; i < kProcesses; ++i)
    if (trial->store->file().slots[i].pid.load())
      used += used_bytes(trial->store->file().slots[i].devices[0]);
  const uint64_t all[] = {r.gpu_percent, r.power_mw,  r.instant_power_mw,
                          r.energy_nj,   r.sm_mhz,    static_cast<uint64_t>(r.gpu_c * 100),
                          r.contexts,    used,        r.capped};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
    out[i] = all[i];
}
