// Communicators as programs hold them, and the group of calls that a thread has open.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clique.h"

struct ncclComm {
  std::shared_ptr<va::nccl::Clique> clique;
  std::string name;
  int rank = 0, ranks = 0, device = 0;
  void *context = nullptr; // of the device
  struct UserOp {
    int type;
    const void *address; // of the factor on the device; null when it is kept here
    uint64_t factor;
  };
  std::map<int, UserOp> ops; // by number
  int next_op = va::nccl::kBuiltInOps;
  uint64_t shrinks = 0;
  bool finalized = false;
};

namespace va::nccl {

// Fails unless it is a live communicator.
ncclComm &comm_of(ncclComm_t comm);

// The communicator's device is the thread's while this lives.
class OnDevice {
public:
  explicit OnDevice(const ncclComm &comm);
  ~OnDevice();
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;
};

// A communicator of this rank, whose device is the thread's current one; the place is taken.
std::unique_ptr<ncclComm> joined(const std::string &name, int ranks, int rank);
// The same on another communicator's device.
std::unique_ptr<ncclComm> joined_like(const ncclComm &parent, const std::string &name, int ranks,
                                      int rank);
ncclComm_t publish(std::unique_ptr<ncclComm> comm);
void retire(ncclComm_t comm);

// What calls of this thread do at once, or at the end of its group.
void later_join(ncclComm_t *out, std::unique_ptr<ncclComm> comm);
void later_split(ncclComm &comm, ncclComm_t *out, TicketPtr ticket);
void later_run(ncclComm &comm, cudaStream_t stream, TicketPtr ticket);
// Close the innermost group; what it held is forgotten.
void abandon_group();

} // namespace va::nccl
