// This process's seats in a node: which GPUs it has, and what it reports of their use.
//
// The node is the one that NVML tells of (native/node); devices are numbered here as CUDA does.
#pragma once

#include <cstdint>

#include "objects.h"

namespace va {

// Find the node and the devices that are visible; returns how many.
int open_board();
// Fill in what a device is from where it sits; its ordinal is set.
void seat_device(Device &device);

// A context of a device came or went; fails where the GPU's compute mode lets no more in.
void enter_context(const Device &device);
void leave_context(const Device &device);
// Bytes of a device's memory that other processes hold; 0 where the process has its cards alone.
uint64_t held_elsewhere(int device);

// While it lives, a grid runs.
class RunningGrid {
public:
  RunningGrid(const Device &device, uint64_t ctas, uint32_t warps_per_sm, uint64_t footprint_bytes);
  ~RunningGrid();
  RunningGrid(const RunningGrid &) = delete;

private:
  int device_;
};

// Work of a device that is priced: what the chip would have taken.
void priced(int device, double seconds);
void copied_over_pcie(int device, uint64_t to_device_bytes, uint64_t from_device_bytes);
void sent_over_links(int from, int to, uint64_t bytes);

// What joins the node's GPUs, as its state has it; false before there is a node.  `generation` says
// which state `out` is of, and nothing is read when it still is.
struct NodeLinks;
bool read_links(NodeLinks *out, uint64_t *generation);

} // namespace va
