#include "comm.h"

#include <cstring>
#include <mutex>
#include <set>

#include "va100/outside.h"

extern "C" {
int cuInit(unsigned flags);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuCtxGetDevice(int *device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDeviceGetUuid_v2(void *uuid, int device);
int cuDeviceGetName(char *name, int bytes, int device);
}

namespace va::nccl {
namespace {

constexpr int kBeyond = 1 << 16; // more than any node has GPUs

struct Comms {
  std::mutex mutex;
  std::set<ncclComm_t> live;
  std::map<std::pair<std::string, int>, std::weak_ptr<Clique>> cliques; // by name and size
};

Comms &comms() {
  static Comms *const instance = new Comms;
  return *instance;
}

std::shared_ptr<Clique> clique_named(const std::string &name, int ranks) {
  const std::lock_guard<std::mutex> lock(comms().mutex);
  std::weak_ptr<Clique> &known = comms().cliques[{name, ranks}];
  std::shared_ptr<Clique> clique = known.lock();
  if (!clique) {
    clique = std::make_shared<Clique>(name, ranks);
    known = clique;
  }
  return clique;
}

// A thread that has chosen no device yet has the first one.
void require_context(void **context, int *device) {
  require_cuda(cuInit(0), "cuInit");
  require_cuda(cuCtxGetCurrent(context), "cuCtxGetCurrent");
  if (!*context) {
    require_cuda(cuDevicePrimaryCtxRetain(context, 0), "cuDevicePrimaryCtxRetain");
    require_cuda(cuCtxSetCurrent(*context), "cuCtxSetCurrent");
  }
  require_cuda(cuCtxGetDevice(device), "cuCtxGetDevice");
}

// An instance of a MIG GPU meets no other device but through host memory.
Seat seat_of(int device) {
  Seat seat{va_fabric_gpu(device), {}};
  char name[256] = "";
  require_cuda(cuDeviceGetUuid_v2(seat.uuid.data(), device), "cuDeviceGetUuid");
  require_cuda(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
  if (std::strstr(name, " MIG "))
    seat.gpu += kBeyond;
  return seat;
}

std::unique_ptr<ncclComm> placed(const std::string &name, int ranks, int rank, void *context,
                                 int device) {
  if (ranks < 1 || ranks > kMostRanks)
    fail(ncclInvalidArgument, "%d ranks: va100's NCCL takes 1 to %d", ranks, kMostRanks);
  if (rank < 0 || rank >= ranks)
    fail(ncclInvalidArgument, "rank %d is not among 0 to %d", rank, ranks - 1);
  auto comm = std::make_unique<ncclComm>();
  comm->name = name;
  comm->rank = rank;
  comm->ranks = ranks;
  comm->device = device;
  comm->context = context;
  comm->clique = clique_named(name, ranks);
  comm->clique->join(rank, seat_of(device));
  return comm;
}

} // namespace

ncclComm &comm_of(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(comms().mutex);
  if (!comms().live.count(comm))
    fail(ncclInvalidArgument, "no communicator, or one that was destroyed");
  return *comm;
}

OnDevice::OnDevice(const ncclComm &comm) {
  require_cuda(cuCtxPushCurrent_v2(comm.context), "cuCtxPushCurrent");
}

OnDevice::~OnDevice() {
  void *context;
  cuCtxPopCurrent_v2(&context);
}

std::unique_ptr<ncclComm> joined(const std::string &name, int ranks, int rank) {
  void *context = nullptr;
  int device = 0;
  require_context(&context, &device);
  return placed(name, ranks, rank, context, device);
}

std::unique_ptr<ncclComm> joined_like(const ncclComm &parent, const std::string &name, int ranks,
                                      int rank) {
  return placed(name, ranks, rank, parent.context, parent.device);
}

ncclComm_t publish(std::unique_ptr<ncclComm> comm) {
  const std::lock_guard<std::mutex> lock(comms().mutex);
  comms().live.insert(comm.get());
  return comm.release();
}

void retire(ncclComm_t comm) {
  {
    const std::lock_guard<std::mutex> lock(comms().mutex);
    comms().live.erase(comm);
  }
  comm->clique->leave(comm->rank);
  const std::string name = comm->name;
  const int ranks = comm->ranks;
  delete comm;
  const std::lock_guard<std::mutex> lock(comms().mutex);
  const auto known = comms().cliques.find({name, ranks});
  if (known != comms().cliques.end() && known->second.expired())
    comms().cliques.erase(known);
}

} // namespace va::nccl
