// Calls that run at once, or together at the end of their thread's group; stream capture.
#include <algorithm>
#include <iterator>
#include <mutex>

#include "comm.h"
#include "nccl_api.h"
#include "va100/outside.h"

extern "C" {
int cuLaunchHostFunc(void *stream, void (*call)(void *), void *data);
int cuStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *id, void **graph,
                              const void ***dependencies, size_t *count);
int cuUserObjectCreate(void **object, void *data, void (*destroy)(void *), unsigned references,
                       unsigned flags);
int cuGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags);
}

namespace va::nccl {
namespace {

struct Join {
  ncclComm_t *out;
  std::unique_ptr<ncclComm> comm;
};

struct Split {
  ncclComm *comm;
  ncclComm_t *out;
  TicketPtr ticket;
};

struct Work {
  ncclComm *comm;
  cudaStream_t stream;
  TicketPtr ticket;
};

struct Group {
  int depth = 0;
  std::vector<Join> joins;
  std::vector<Split> splits;
  std::vector<Work> work;
};

Group &group() {
  static thread_local Group open;
  return open;
}

void run_joins(std::vector<Join> joins) {
  for (Join &join : joins)
    join.comm->clique->await_all();
  for (Join &join : joins)
    *join.out = publish(std::move(join.comm));
}

void run_splits(std::vector<Split> splits) {
  std::stable_sort(splits.begin(), splits.end(), [](const Split &one, const Split &other) {
    return one.comm->clique->name() < other.comm->clique->name();
  });
  for (const Split &split : splits)
    split.comm->clique->post({split.ticket});
  std::vector<Join> joins;
  for (const Split &split : splits) {
    split.comm->clique->wait_for(split.ticket);
    if (split.ticket->result != ncclSuccess)
      throw Failure{split.ticket->result, split.ticket->text};
    *split.out = nullptr;
    if (split.ticket->made.empty())
      continue;
    joins.push_back({split.out, joined_like(*split.comm, split.ticket->made,
                                            split.ticket->made_ranks, split.ticket->made_rank)});
  }
  run_joins(std::move(joins));
}

// What a node of a graph does each time it runs.
struct Captured {
  std::shared_ptr<Clique> clique;
  Ticket ticket;
};

void run_captured(void *data) {
  const auto &captured = *static_cast<const Captured *>(data);
  guarded("a captured call", [&] {
    const va_outside_place place = va_outside_running();
    auto ticket = std::make_shared<Ticket>(captured.ticket);
    ticket->stream = place.stream;
    await_others(place.stream, captured.clique.get());
    captured.clique->post({ticket});
    return ncclSuccess;
  });
}

void destroy_captured(void *data) { delete static_cast<Captured *>(data); }

void capture(const Work &work) {
  constexpr unsigned kNoSync = 1, kMove = 1;
  int status = 0;
  void *graph = nullptr, *object = nullptr;
  auto captured = std::make_unique<Captured>();
  captured->clique = work.comm->clique;
  captured->ticket = *work.ticket;
  require_cuda(cuStreamGetCaptureInfo_v2(work.stream, &status, nullptr, &graph, nullptr, nullptr),
               "cuStreamGetCaptureInfo");
  require_cuda(cuLaunchHostFunc(work.stream, run_captured, captured.get()), "cuLaunchHostFunc");
  require_cuda(cuUserObjectCreate(&object, captured.get(), destroy_captured, 1, kNoSync),
               "cuUserObjectCreate");
  captured.release();
  require_cuda(cuGraphRetainUserObject(graph, object, 1, kMove), "cuGraphRetainUserObject");
}

// Sends and receives of a rank that are in one group run together, after its collectives.
std::vector<Work> fused(std::vector<Work> work) {
  std::vector<Work> in_order, peers;
  for (Work &one : work) {
    if (one.ticket->kind != Kind::kPeers) {
      in_order.push_back(std::move(one));
      continue;
    }
    const auto same = std::find_if(peers.begin(), peers.end(), [&](const Work &other) {
      return other.comm == one.comm && other.stream == one.stream;
    });
    if (same == peers.end())
      peers.push_back(std::move(one));
    else
      same->ticket->legs.insert(same->ticket->legs.end(), one.ticket->legs.begin(),
                                one.ticket->legs.end());
  }
  std::move(peers.begin(), peers.end(), std::back_inserter(in_order));
  return in_order;
}

void run_work(std::vector<Work> all) {
  static std::once_flag once;
  std::call_once(once, [] { va_outside_trust(run_captured); });
  // One communicator after the other, each with all its ranks at once.
  std::vector<std::pair<std::shared_ptr<Clique>, std::vector<TicketPtr>>> batches;
  for (const Work &work : fused(std::move(all))) {
    const OnDevice device(*work.comm);
    va_outside_place place{};
    require_cuda(va_outside_stream(work.stream, &place), "the stream");
    if (place.capturing) {
      capture(work);
      continue;
    }
    work.ticket->stream = place.stream;
    const auto same = std::find_if(batches.begin(), batches.end(), [&](const auto &batch) {
      return batch.first == work.comm->clique;
    });
    if (same == batches.end())
      batches.push_back({work.comm->clique, {work.ticket}});
    else
      same->second.push_back(work.ticket);
  }
  // In one order in every process: with others there is waiting, and everybody waits in turn.
  std::sort(batches.begin(), batches.end(), [](const auto &one, const auto &other) {
    return one.first->name() < other.first->name();
  });
  for (const auto &[clique, tickets] : batches) {
    for (const TicketPtr &ticket : tickets)
      await_others(ticket->stream, clique.get());
    clique->post(tickets);
  }
}

void run_group() {
  Group open = std::move(group());
  group() = Group();
  run_joins(std::move(open.joins));
  if (!open.splits.empty())
    run_splits(std::move(open.splits));
  if (!open.work.empty())
    run_work(std::move(open.work));
}

} // namespace

void later_join(ncclComm_t *out, std::unique_ptr<ncclComm> comm) {
  *out = nullptr;
  std::vector<Join> joins;
  joins.push_back({out, std::move(comm)});
  if (group().depth)
    group().joins.push_back(std::move(joins.front()));
  else
    run_joins(std::move(joins));
}

void later_split(ncclComm &comm, ncclComm_t *out, TicketPtr ticket) {
  *out = nullptr;
  if (group().depth)
    group().splits.push_back({&comm, out, std::move(ticket)});
  else
    run_splits({{&comm, out, std::move(ticket)}});
}

void later_run(ncclComm &comm, cudaStream_t stream, TicketPtr ticket) {
  if (group().depth)
    group().work.push_back({&comm, stream, std::move(ticket)});
  else
    run_work({{&comm, stream, std::move(ticket)}});
}

void abandon_group() {
  if (--group().depth == 0)
    group() = Group();
}

namespace api {

ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (!group().depth)
    fail(ncclInvalidUsage, "not in a group call");
  if (--group().depth == 0)
    run_group();
  return ncclSuccess;
}

// Microseconds that the group would take; nothing of it runs.
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
  if (!group().depth)
    fail(ncclInvalidUsage, "not in a group call");
  if (info && info->magic != kSimInfoMagic)
    fail(ncclInvalidArgument, "the structure was not initialised with NCCL_SIM_INFO_INITIALIZER");
  if (--group().depth)
    return ncclSuccess;
  Group open = std::move(group());
  group() = Group();
  double seconds = 0;
  std::map<ncclComm *, double> by_rank;
  for (const Work &work : fused(std::move(open.work))) {
    uint64_t sent = 0;
    if (work.ticket->kind == Kind::kPeers) {
      double out = 0, in = 0;
      for (const Leg &leg : work.ticket->legs)
        (leg.send ? out : in) += static_cast<double>(leg.bytes);
      const int peers = static_cast<int>(work.ticket->legs.size() + 1) / 2;
      by_rank[work.comm] += price_exchange(out, in, peers, work.comm->clique->ring()).seconds;
    } else {
      by_rank[work.comm] +=
          seconds_of(*work.ticket, work.comm->ranks, work.comm->clique->ring(), &sent);
    }
    seconds = std::max(seconds, by_rank[work.comm]);
  }
  if (info)
    info->estimatedTime = static_cast<float>(seconds * 1e6);
  return ncclSuccess;
}

} // namespace api
} // namespace va::nccl
