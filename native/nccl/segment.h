// What the processes of a communicator share: a file in memory with a place for each rank, a
// barrier, two slots a rank for collectives, and a queue for each ordered pair of ranks.
//
// The file has a name only until all ranks are there, so nothing is left behind when processes die
// later.  The processes have to be the same user's, on the same machine.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nccl_types.h"

namespace va::nccl {

constexpr int kMostRanks = 64;

// What a rank is about to do; every rank of a collective has to say the same.
struct Digest {
  uint64_t kind, count, type, op, root;
  bool operator==(const Digest &other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op &&
           root == other.root;
  }
  bool operator!=(const Digest &other) const { return !(*this == other); }
};

// Which device a rank has: a GPU, or an instance of one.
struct Seat {
  int gpu; // place in the node; beyond all GPUs where nothing but host memory leads to it
  std::array<uint8_t, 16> uuid;
};

struct RankPlace {
  std::atomic<int32_t> pid; // 0: not here yet
  uint64_t started;         // of the process, so that a number used again is told apart
  Seat seat;
  int32_t color, key;       // of a split
  Digest digest;
  double ready_s;
};

struct SegmentHeader;
struct PairQueue;

class Segment {
public:
  // Opens, or makes, the file of this name for so many ranks.
  static std::unique_ptr<Segment> open(const std::string &name, int ranks);
  ~Segment();
  Segment(const Segment &) = delete;
  Segment &operator=(const Segment &) = delete;

  RankPlace &place(int rank) const;
  // Take a rank's place; fails when somebody has it.
  void join(int rank, const Seat &seat);
  // Wait until every rank has its place; by then the name is gone.  Threads may wait side by side.
  void await_all(const std::function<void()> &check) const;
  // Once all are here, and by one thread: counts the processes.
  void seal();
  // Whether this process is the only one.
  bool all_here_are_mine() const { return processes_ == 1; }

  // Wait until every process has come here.  Throws Failure when one dies or gives up.
  void meet();
  uint8_t *slot(int rank, uint64_t turn) const;
  size_t slot_bytes() const { return slot_bytes_; }

  // Bytes put into, or taken out of, the queue from one rank to another; as many as fit.
  size_t push(int from, int to, const void *data, size_t bytes) const;
  size_t pull(int from, int to, void *data, size_t bytes) const;
  // Sleep until a queue of this process moves, or a moment passed; throws as meet does.
  void await_queues(uint32_t seen) const;
  uint32_t bell() const;

  void give_up() const; // the others learn of it
  bool given_up() const;
  void require_alive() const;

private:
  Segment() = default;
  PairQueue &queue(int from, int to) const;
  void ring(int rank) const;

  std::string path_;
  uint8_t *base_ = nullptr;
  size_t bytes_ = 0, slot_bytes_ = 0, queue_bytes_ = 0;
  SegmentHeader *header_ = nullptr;
  int ranks_ = 0, processes_ = 0;
  bool linked_ = false;
};

} // namespace va::nccl
