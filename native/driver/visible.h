// Which of the machine's GPUs, or which slice of one, a process gets to see: CUDA_VISIBLE_DEVICES.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace va {

constexpr uint32_t kNoInstance = 0xFFFFFFFF;

// A compute instance of a GPU in MIG mode.
struct Slice {
  std::string uuid; // with "MIG-" before it
  uint32_t gpu_instance, compute_instance;
};

// A GPU of the machine; in MIG mode it is seen by its slices alone.
struct Card {
  std::string uuid; // with "GPU-" before it
  bool mig = false;
  bool lost = false;
  std::vector<Slice> slices;
};

// A GPU by its seat in the machine, or a slice of it.
struct Place {
  size_t seat;
  uint32_t gpu_instance = kNoInstance, compute_instance = kNoInstance;
};

// Places in the order in which the process numbers them.
//
// An entry is an index or the beginning of a UUID, as the first one is; the first entry that names
// no GPU, or more than one, ends the list.  A GPU that is named twice leaves none.  A process that
// sees a slice sees that one alone: the first that is named, or without a list the first there is.
std::vector<Place> visible_places(const std::string &text, const std::vector<Card> &cards);
std::vector<Place> all_places(const std::vector<Card> &cards);

} // namespace va
