// This process's seats in a node: which GPUs it has, and what it reports of their use.
//
// The node is the one that NVML tells of (native/node); devices are numbered here as CUDA does.
#pragma once

#include <cstdint>

#include "joined.h"
#include "objects.h"

namespace va {

// Find the node and the devices that are visible; returns how many.
int open_board();
// Fill in what a device is from where it sits; its ordinal is set.
void seat_device(Device &device);

// A context of a device came or went; fails where the GPU's compute mode lets no more in.
void enter_context(const Device &device);
void leave_context(const Device &device);
// The fault that met a context from outside, such as its GPU's loss; CUDA_SUCCESS: none.
CUresult struck(const Context &context);
// Bytes of a device's memory that other processes hold; 0 where the process has its cards alone.
uint64_t held_elsewhere(int device);

struct GridShape {
  uint64_t variant_id, ctas;
  uint32_t warps_per_sm; // resident
  uint64_t footprint_bytes;
};

// While it lives, a grid runs.
class RunningGrid {
public:
  RunningGrid(const Device &device, const GridShape &grid);
  ~RunningGrid();
  RunningGrid(const RunningGrid &) = delete;

private:
  int device_;
  bool known_ = false; // what it does, as launches like it were priced
  uint64_t began_ns_ = 0;
};

// What busy neighbours cost a MIG slice just now: factors on the time of its work, where it computes
// and where it waits for memory.
struct Crowding {
  double compute = 1, memory = 1;
};
Crowding crowding_of(int device);

// Work of a device that is priced: what the chip would have taken.
void priced(int device, double seconds);
void copied_over_pcie(int device, uint64_t to_device_bytes, uint64_t from_device_bytes);
void sent_over_links(int from, int to, uint64_t bytes);

// What joins the node's GPUs, as its state has it; false before there is a node.  `generation` says
// which state `out` is of, and nothing is read when it still is.
bool read_links(node::Joined *out, uint64_t *generation);

} // namespace va
