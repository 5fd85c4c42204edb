// Readings from work that ran: how busy, how much power, which clocks, how warm.
//
// The rule that maps virtual time to the clock on the wall: while the emulator executes a kernel or
// a copy, the board is taken to be executing it, stretched to that long.  Utilisation counts that
// time as busy, power is that work's while it lasts, and the energy counter is the integral of
// power over the clock on the wall.  What the work would take on the chip is kept beside it.
#pragma once

#include <cstdint>
#include <mutex>

#include "store.h"

namespace va::node {

struct Reading {
  uint32_t gpu_percent, memory_percent;
  uint32_t power_mw;         // as the sensor tells: 25 ms of each 100
  uint32_t instant_power_mw; // now
  uint64_t energy_nj;
  uint32_t sm_mhz, memory_mhz, video_mhz;
  double gpu_c, memory_c;
  bool busy, clocks_up, capped;
  uint64_t contexts;
  uint64_t pcie_tx_kib_s, pcie_rx_kib_s; // from the device, to it
};

Reading read_device(const Store &store, int device, uint64_t at_ns);
// The share of the last sample period that a process kept a GPU busy, or its memory.
uint32_t busy_percent(const DeviceUse &use, uint64_t at_ns, bool memory);
// The same of one unit, in thousandths; kUnits: of the GPU as a whole.
uint32_t busy_permille(const DeviceUse &use, uint64_t at_ns, int unit);
uint64_t energy_nj(const Store &store, const DeviceState &state, int device, uint64_t at_ns);
// What of `mw` at full clock is left under a limit or locked clocks; `*mhz` is the clock then.
uint32_t limited_mw(const DeviceState &state, uint32_t mw, uint32_t *mhz);

// What a process reserves on a GPU beside its allocations, for each context.  Assumed; it depends
// on the driver and on what kernels need.
constexpr uint64_t kContextBytes = 428ULL << 20;
uint64_t used_bytes(const DeviceUse &use);

// Extend, or end, the time in which a GPU's clocks are up.
void hold_clocks(File &file, int device, uint64_t at_ns);
// End it on GPUs on which nobody has a context.
void release_clocks(File &file, uint64_t at_ns);
void forget(Board &board);

void clear(DeviceUse &use);
// Add what a process that is gone did to what went before.
void fold(NodeState &state, Slot &slot);
// Move the temperature's starting point to now, if it is old.
void settle_temperature(Store &store, int device, uint64_t at_ns);

// What a grid does while it runs.
struct Activity {
  uint32_t mw = 0; // above idle, what limits have left of it (limited_mw)
  uint32_t mhz = 0;
  uint32_t permille[kUnits] = {}; // of the time that it runs, by unit
};

// Writes one process's use of one GPU.
class Meter {
public:
  Meter(Store *store, Slot *slot, int device);
  void begin(uint64_t at_ns, const Activity &activity);
  void end(uint64_t at_ns);
  void copied(uint64_t at_ns, uint64_t to_device_bytes, uint64_t from_device_bytes);
  DeviceUse &use() { return *use_; }

private:
  void close(uint64_t from_ns, uint64_t to_ns);
  Store *store_;
  DeviceUse *use_;
  int device_;
  std::mutex mutex_;
  int depth_ = 0;
};

} // namespace va::node
