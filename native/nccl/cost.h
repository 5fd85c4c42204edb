// Seconds that calls take on the chip: va100.perf.transport in C++, with the same generated facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace va::nccl {

// As va100.perf.transport numbers them.
enum class Pattern { kReduceAndGather, kReduce, kGather, kChain, kExchange, kOneRoot, kPair };

// What a communicator's ranks have to talk over.
struct Ring {
  int links = 0; // NVLinks that rings use out of each GPU; 0: over PCIe
  bool bridged = false;
  double tuner_bytes_per_s = 0;
};

// Rings through these GPUs of the node, by place in it.
Ring ring_through(const std::vector<int> &gpus);

struct Price {
  double seconds;
  uint64_t sent_bytes; // out of each rank
};

Price price(Pattern pattern, double bytes, int ranks, bool narrow, const Ring &ring);
// Sends and receives of one rank that run together: bytes out and in, other ranks they are with.
Price price_exchange(double out_bytes, double in_bytes, int peers, const Ring &ring);

} // namespace va::nccl
