// The calls: what each checks, and what it puts on the list.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/random.h>

#include "comm.h"
#include "nccl_api.h"
#include "va100/arena.h"

extern "C" {
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxGetCurrent(void **context);
int cuCtxSetCurrent(void *context);
}

namespace va::nccl {
namespace {

constexpr char kIdMark[] = "va100-nccl-1:";

template <typename T> T *given(T *pointer, const char *name) {
  if (!pointer)
    fail(ncclInvalidArgument, "%s is NULL", name);
  return pointer;
}

// Four words of randomness, or of what NCCL_COMM_ID says, so that every process makes the same.
std::string name_for_id() {
  uint64_t words[2] = {0x243F6A8885A308D3ULL, 0x13198A2E03707344ULL};
  const char *const agreed = std::getenv("NCCL_COMM_ID");
  if (agreed && *agreed)
    for (const char *c = agreed; *c; ++c)
      for (uint64_t &word : words)
        word = (word ^ static_cast<unsigned char>(*c)) * 0x100000001B3ULL + (word >> 29);
  else if (getrandom(words, sizeof words, 0) != sizeof words)
    fail(ncclSystemError, "no random bytes");
  char text[40];
  snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(words[0]),
           static_cast<unsigned long long>(words[1]));
  return text;
}

std::string name_of(const ncclUniqueId &id) {
  if (std::memcmp(id.internal, kIdMark, sizeof kIdMark - 1))
    fail(ncclInvalidArgument, "the unique id was not made by ncclGetUniqueId of this library");
  const char *const name = id.internal + sizeof kIdMark - 1;
  const size_t length = strnlen(name, 33);
  if (length != 32 || strspn(name, "0123456789abcdef") != 32)
    fail(ncclInvalidArgument, "the unique id is damaged");
  return std::string(name, 32);
}

void require_config(const ncclConfig_t *config) {
  if (!config)
    return;
  if (config->magic != kConfigMagic)
    fail(ncclInvalidArgument, "the configuration was not initialised with NCCL_CONFIG_INITIALIZER");
  if (config->blocking != kUndefined && config->blocking != 0 && config->blocking != 1)
    fail(ncclInvalidArgument, "blocking is %d; it has to be 0 or 1", config->blocking);
}

void require_type(int type) {
  if (type < 0 || type >= kTypes)
    fail(ncclInvalidArgument, "data type %d is none", type);
}

void require_rank(const ncclComm &comm, int rank, const char *what) {
  if (rank < 0 || rank >= comm.ranks)
    fail(ncclInvalidArgument, "%s %d is not among ranks 0 to %d", what, rank, comm.ranks - 1);
}

// Memory that GPUs reach, all of it.
void require_buffer(const void *buffer, size_t bytes, const char *what) {
  given(buffer, what);
  if (!va_arena_accessible(reinterpret_cast<uint64_t>(buffer), bytes))
    fail(ncclInvalidArgument, "%s %p: these %zu bytes are not memory that GPUs reach", what, buffer,
         bytes);
}

void require_usable(const ncclComm &comm) {
  if (comm.finalized)
    fail(ncclInvalidUsage, "the communicator is finalized");
}

// Sums of eight-bit floats began with compute capability 9.0.
void set_op(Ticket &ticket, const ncclComm &comm, int op) {
  if (ticket.type == kFloat8e4m3 || ticket.type == kFloat8e5m2)
    fail(ncclInvalidArgument, "FP8 reductions need compute capability 9.0; an A100 has 8.0");
  if (op >= 0 && op < kBuiltInOps) {
    ticket.op = static_cast<ReduceOp>(op);
    if (ticket.op == kAvg && is_float(ticket.type)) {
      ticket.scaling.multiply = true;
      ticket.scaling.factor = reciprocal(ticket.type, comm.ranks);
    } else if (ticket.op == kAvg) {
      ticket.scaling.divide_by = static_cast<uint64_t>(comm.ranks);
    }
    return;
  }
  const auto found = comm.ops.find(op);
  if (found == comm.ops.end())
    fail(ncclInvalidArgument, "operation %d is none of this communicator's", op);
  if (found->second.type != ticket.type)
    fail(ncclInvalidArgument, "operation %d was made for data type %d, not %d", op,
         found->second.type, ticket.type);
  ticket.op = kAvg; // the same in every rank, whatever the numbers of their operations
  ticket.scaling.multiply = true;
  ticket.scaling.factor = found->second.factor;
  if (found->second.address)
    std::memcpy(&ticket.scaling.factor, found->second.address, width_of(ticket.type));
}

TicketPtr ticket_for(ncclComm &comm, Kind kind, const void *from, void *to, size_t count,
                     int type) {
  require_usable(comm);
  require_type(type);
  auto ticket = std::make_shared<Ticket>();
  ticket->kind = kind;
  ticket->rank = comm.rank;
  ticket->from = static_cast<const uint8_t *>(from);
  ticket->to = static_cast<uint8_t *>(to);
  ticket->count = count;
  ticket->type = type;
  if (count > SIZE_MAX / 16 / static_cast<size_t>(comm.ranks))
    fail(ncclInvalidArgument, "%zu elements are more than there is memory", count);
  return ticket;
}

// Buffers of so many bytes each; 0: the call does not use it in this rank.
ncclResult_t run(ncclComm &comm, cudaStream_t stream, TicketPtr ticket, size_t from_bytes,
                 size_t to_bytes) {
  if (from_bytes)
    require_buffer(ticket->from, from_bytes, "the send buffer");
  if (to_bytes)
    require_buffer(ticket->to, to_bytes, "the receive buffer");
  if (ticket->count)
    later_run(comm, stream, std::move(ticket));
  return ncclSuccess;
}

ncclResult_t run_leg(ncclComm_t handle, cudaStream_t stream, bool send, void *data, size_t count,
                     int type, int peer) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kPeers, nullptr, nullptr, count, type);
  require_rank(comm, peer, "peer");
  if (!count)
    return ncclSuccess;
  require_buffer(data, ticket->bytes(), send ? "the send buffer" : "the receive buffer");
  ticket->legs.push_back({send, peer, static_cast<uint8_t *>(data), ticket->bytes()});
  later_run(comm, stream, std::move(ticket));
  return ncclSuccess;
}

} // namespace

namespace api {

ncclResult_t ncclGetVersion(int *version) {
  *given(version, "version") = kVersion;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  std::memset(given(id, "id"), 0, sizeof *id);
  const std::string text = kIdMark + name_for_id();
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
  case ncclSystemError:
    return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclInternalError:
    return "internal error - please report this issue to the NCCL developers";
  case ncclInvalidArgument:
    return "invalid argument (run with NCCL_DEBUG=WARN for details)";
  case ncclInvalidUsage:
    return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return last_error(); }

void ncclResetDebugInit() { read_debug_settings(); }

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  given(comm, "comm");
  require_config(config);
  later_join(comm, joined(name_of(id), ranks, rank));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int id_count,
                                      ncclUniqueId *ids, ncclConfig_t *config) {
  if (id_count < 1 || id_count > ranks)
    fail(ncclInvalidArgument, "%d ids for %d ranks", id_count, ranks);
  return ncclCommInitRankConfig(comm, ranks, *given(ids, "ids"), rank, config);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
  given(comms, "comms");
  int there = 0;
  require_cuda(cuInit(0), "cuInit");
  require_cuda(cuDeviceGetCount(&there), "cuDeviceGetCount");
  if (count < 1 || (!devices && count > there))
    fail(ncclInvalidArgument, "%d devices are asked for, and there are %d", count, there);
  void *before = nullptr;
  require_cuda(cuCtxGetCurrent(&before), "cuCtxGetCurrent");
  const std::string name = name_for_id();
  ncclGroupStart();
  try {
    for (int rank = 0; rank < count; ++rank) {
      const int device = devices ? devices[rank] : rank;
      if (device < 0 || device >= there)
        fail(ncclInvalidArgument, "device %d is not among 0 to %d", device, there - 1);
      void *context = nullptr;
      require_cuda(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
      require_cuda(cuCtxSetCurrent(context), "cuCtxSetCurrent");
      later_join(&comms[rank], joined(name, count, rank));
    }
  } catch (const Failure &failure) {
    cuCtxSetCurrent(before);
    abandon_group();
    throw;
  }
  require_cuda(cuCtxSetCurrent(before), "cuCtxSetCurrent");
  return ncclGroupEnd();
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  ncclComm &mine = comm_of(comm);
  require_usable(mine);
  mine.clique->drain(mine.rank);
  mine.finalized = true;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  ncclComm &mine = comm_of(comm);
  mine.clique->drain(mine.rank);
  retire(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  comm_of(comm).clique->give_up();
  retire(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config) {
  ncclComm &mine = comm_of(comm);
  require_usable(mine);
  require_config(config);
  given(made, "newcomm");
  if (color < -1)
    fail(ncclInvalidArgument, "color %d: it is -1 for no part, or not negative", color);
  auto ticket = std::make_shared<Ticket>();
  ticket->kind = Kind::kSplit;
  ticket->rank = mine.rank;
  ticket->color = color;
  ticket->key = key;
  later_split(mine, made, std::move(ticket));
  return ncclSuccess;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *made,
                            ncclConfig_t *config, int flags) {
  ncclComm &mine = comm_of(comm);
  require_config(config);
  given(made, "newcomm");
  if (count < 1 || count >= mine.ranks || flags < 0 || flags > 1)
    fail(ncclInvalidArgument, "%d of %d ranks are to go, with flags %d", count, mine.ranks, flags);
  std::vector<bool> gone(static_cast<size_t>(mine.ranks));
  for (int i = 0; i < count; ++i) {
    require_rank(mine, given(excluded, "excludeRanksList")[i], "rank");
    gone[static_cast<size_t>(excluded[i])] = true;
  }
  if (gone[static_cast<size_t>(mine.rank)])
    fail(ncclInvalidArgument, "rank %d is to go and cannot make the new communicator", mine.rank);
  std::string name = mine.name + "-s" + std::to_string(++mine.shrinks) + ".";
  int left = 0, rank = 0;
  for (int i = 0; i < mine.ranks; ++i) {
    name += gone[static_cast<size_t>(i)] ? '0' : '1';
    rank += !gone[static_cast<size_t>(i)] && i < mine.rank;
    left += !gone[static_cast<size_t>(i)];
  }
  later_join(made, joined_like(mine, name, left, rank));
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  *given(error, "asyncError") = comm_of(comm).clique->error();
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *given(count, "count") = comm_of(comm).ranks;
  return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  *given(device, "device") = comm_of(comm).device;
  return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *given(rank, "rank") = comm_of(comm).rank;
  return ncclSuccess;
}

// Registered or not, buffers are as near here.
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle) {
  comm_of(comm);
  if (bytes)
    require_buffer(buffer, bytes, "the buffer");
  *given(handle, "handle") = buffer;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *) {
  comm_of(comm);
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **pointer, size_t bytes) {
  uint64_t address = 0;
  require_cuda(cuMemAlloc_v2(&address, bytes), "cuMemAlloc");
  *given(pointer, "ptr") = reinterpret_cast<void *>(address);
  return ncclSuccess;
}

ncclResult_t ncclMemFree(void *pointer) {
  require_cuda(cuMemFree_v2(reinterpret_cast<uint64_t>(pointer)), "cuMemFree");
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  ncclComm &mine = comm_of(comm);
  given(op, "op");
  given(scalar, "scalar");
  require_type(type);
  if (type == kFloat8e4m3 || type == kFloat8e5m2)
    fail(ncclInvalidArgument, "FP8 reductions need compute capability 9.0; an A100 has 8.0");
  if (residence != 0 && residence != 1)
    fail(ncclInvalidArgument, "residence %d is none", residence);
  ncclComm::UserOp made{type, nullptr, 0};
  if (residence == 1) {
    std::memcpy(&made.factor, scalar, width_of(type));
  } else {
    require_buffer(scalar, width_of(type), "the scalar");
    made.address = scalar;
  }
  *op = mine.next_op++;
  mine.ops[*op] = made;
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  if (op >= 0 && op < kBuiltInOps)
    fail(ncclInvalidArgument, "operation %d is NCCL's own", op);
  if (!comm_of(comm).ops.erase(op))
    fail(ncclInvalidArgument, "operation %d is none of this communicator's", op);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kAllReduce, from, to, count, type);
  set_op(*ticket, comm, op);
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket), bytes, bytes);
}

ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kReduce, from, to, count, type);
  set_op(*ticket, comm, op);
  require_rank(comm, root, "root");
  ticket->root = root;
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket), bytes, comm.rank == root ? bytes : 0);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kBroadcast, from, to, count, type);
  require_rank(comm, root, "root");
  ticket->root = root;
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket), comm.rank == root ? bytes : 0, bytes);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kReduceScatter, from, to, count, type);
  set_op(*ticket, comm, op);
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket), bytes * static_cast<size_t>(comm.ranks), bytes);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kAllGather, from, to, count, type);
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket), bytes, bytes * static_cast<size_t>(comm.ranks));
}

ncclResult_t ncclAlltoAll(const void *from, void *to, size_t count, ncclDataType_t type,
                          ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kAllToAll, from, to, count, type);
  const size_t bytes = ticket->bytes() * static_cast<size_t>(comm.ranks);
  return run(comm, stream, std::move(ticket), bytes, bytes);
}

ncclResult_t ncclGather(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                        ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kGather, from, to, count, type);
  require_rank(comm, root, "root");
  ticket->root = root;
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket), bytes,
             comm.rank == root ? bytes * static_cast<size_t>(comm.ranks) : 0);
}

ncclResult_t ncclScatter(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                         ncclComm_t handle, cudaStream_t stream) {
  ncclComm &comm = comm_of(handle);
  TicketPtr ticket = ticket_for(comm, Kind::kScatter, from, to, count, type);
  require_rank(comm, root, "root");
  ticket->root = root;
  const size_t bytes = ticket->bytes();
  return run(comm, stream, std::move(ticket),
             comm.rank == root ? bytes * static_cast<size_t>(comm.ranks) : 0, bytes);
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return run_leg(comm, stream, true, const_cast<void *>(from), count, type, peer);
}

ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return run_leg(comm, stream, false, to, count, type, peer);
}

} // namespace api
} // namespace va::nccl
