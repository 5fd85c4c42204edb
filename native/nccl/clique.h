// The ranks of one communicator that live in this process, and the work they have asked for.
//
// A rank's work is a list in the order it was asked for.  A collective runs when it is first in the
// list of every rank of this process, in the thread that completed the set; with other processes it
// goes on together, through the segment, and the thread waits for them.  Sends and receives of this
// process meet by memory; with other processes they go through queues of bytes.  Until a rank's
// work has run, its stream is held.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cost.h"
#include "nccl_entry.h"
#include "reduce.h"
#include "segment.h"

namespace va::nccl {

enum class Kind : uint32_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kGather,
  kScatter,
  kSplit,
  kPeers // sends and receives that run together
};

// One send or receive.
struct Leg {
  bool send;
  int peer;
  uint8_t *data;
  size_t bytes;
  size_t moved = 0; // of the header and the data, through a queue
  struct {
    uint64_t bytes;
    double ready_s; // when the sender could begin
  } header{0, 0};
  bool done = false;
};

// What a rank has asked for.
struct Ticket {
  Kind kind;
  int rank;
  const uint8_t *from = nullptr;
  uint8_t *to = nullptr;
  size_t count = 0; // elements a rank: of the whole buffer, or of each part
  int type = kInt8;
  ReduceOp op = kSum;
  Scaling scaling;
  int root = 0;
  std::vector<Leg> legs;
  int color = 0, key = 0; // of a split
  std::string made;       // name of the communicator that a split made; empty: none
  int made_rank = 0, made_ranks = 0;

  void *stream = nullptr; // the driver's; null where no stream is held
  double begin_s = 0;     // when it can begin, where ranks of other processes take part
  bool done = false;
  ncclResult_t result = ncclSuccess;
  std::string text; // of a failure
  uint64_t sent_bytes = 0;

  size_t bytes() const { return count * width_of(type); }
};

using TicketPtr = std::shared_ptr<Ticket>;

class Clique : public std::enable_shared_from_this<Clique> {
public:
  Clique(std::string name, int ranks) : name_(std::move(name)), ranks_(ranks) {}

  const std::string &name() const { return name_; }
  int ranks() const { return ranks_; }

  // A rank comes: its place is taken at once.
  void join(int rank, const Seat &seat);
  // Wait until all ranks are there.
  void await_all();
  void leave(int rank);

  // Put work in ranks' lists and run what can run.  Returns when the work is done, or when only
  // ranks of this process are missing.
  void post(const std::vector<TicketPtr> &tickets);
  void wait_for(const TicketPtr &ticket);
  // Wait for all that a rank has asked for.
  void drain(int rank);
  void give_up();
  ncclResult_t error();
  const Ring &ring() const { return ring_; }

private:
  using Lock = std::unique_lock<std::mutex>;

  bool ready_set(std::vector<TicketPtr> *set) const;
  bool step();
  void run_set(const std::vector<TicketPtr> &set);
  void run_split(const std::vector<TicketPtr> &set);
  bool move_legs();
  bool move_legs_of(Ticket &ticket);
  bool meet_locally(Ticket &ticket, Leg &leg);
  bool move_remotely(Ticket &ticket, Leg &leg) const;
  bool remote_legs_wait() const;
  bool await_queues(Lock &lock);
  void finish(const std::vector<TicketPtr> &set, ncclResult_t result, const std::string &text,
              double seconds);
  void fail_all(ncclResult_t result, const std::string &text);
  bool is_local(int rank) const { return lists_.count(rank) != 0; }
  void complete();
  std::string missing() const;

  const std::string name_;
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::deque<TicketPtr>> lists_; // by rank of this process
  std::shared_ptr<Segment> segment_;           // null once all ranks are known to be this process's
  std::vector<int> gpus_;                      // by rank
  Ring ring_;
  bool complete_ = false;
  std::atomic<bool> gave_up_{false};
  ncclResult_t error_ = ncclSuccess;
  std::string error_text_;
  uint64_t turn_ = 0; // of the slots
  uint64_t splits_ = 0;
};

// Wait for what other communicators hold the stream with.
void await_others(const void *stream, const Clique *clique);

// How a collective is done within one process, and with others through their segment.
void run_locally(const std::vector<TicketPtr> &by_rank, int ranks);
void run_shared(const std::vector<TicketPtr> &mine, int ranks, Segment &segment, uint64_t *turn);
// Names and ranks of what a split makes; colors and keys are by rank.
void settle_split(const std::vector<TicketPtr> &mine, const std::vector<std::pair<int, int>> &all,
                  const std::string &name, uint64_t serial);

double seconds_of(const Ticket &ticket, int ranks, const Ring &ring, uint64_t *sent);

// Sum order: the elements lie in as many blocks as there are ranks, and block b is summed around
// the ring from rank b + 1 on, so that rank b comes last.  Calls visit(first, count, order) for the
// runs of elements [first, first + count) that share an order.
template <typename Visit>
void for_each_block(size_t total, int ranks, size_t first, size_t count, Visit visit) {
  const size_t block = (total + static_cast<size_t>(ranks) - 1) / static_cast<size_t>(ranks);
  for (const size_t end = first + count; first < end;) {
    const size_t index = first / block;
    const size_t here = std::min(end, (index + 1) * block) - first;
    visit(first, here, static_cast<int>(index));
    first += here;
  }
}

} // namespace va::nccl
