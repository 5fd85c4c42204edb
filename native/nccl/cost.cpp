#include "cost.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "nccl_facts.h"
#include "va100/outside.h"

namespace va::nccl {
namespace {

enum Protocol { kLl, kLl128, kSimple, kProtocols };

constexpr double kFullLinks = 12;
constexpr double kAloneSeconds = 3e-6;

struct Call {
  Pattern pattern;
  double bytes;
  int ranks;
  bool narrow;

  int steps() const {
    if (pattern == Pattern::kReduceAndGather)
      return 2 * (ranks - 1);
    return pattern == Pattern::kPair ? 1 : ranks - 1;
  }
  double sent() const {
    if (pattern == Pattern::kChain || pattern == Pattern::kPair)
      return ranks > 1 ? bytes : 0;
    return steps() * bytes / ranks;
  }
};

// What NCCL's tuner reckons; negative where it would not take the protocol.
double reckoned(const Call &call, const Ring &ring, Protocol protocol) {
  if (protocol == kLl128 && !ring.links)
    return -1;
  const double rate = ring.tuner_bytes_per_s;
  const double shares[kProtocols] = {
      std::min(rate * tuner::kLlRatio, tuner::kLlMostBytesPerS[0]),
      std::min(rate * tuner::kLl128Ratio,
               tuner::kChannelCount * tuner::kRingLl128ChannelBytesPerS),
      rate};
  const double *const hops = ring.links ? tuner::kRingNvlinkS : tuner::kRingPciS;
  return tuner::kRingBaseS[protocol] + call.steps() * hops[protocol] +
         call.sent() / shares[protocol];
}

Protocol chosen(const Call &call, const Ring &ring) {
  Protocol best = kSimple;
  double least = std::numeric_limits<double>::infinity();
  for (const Protocol protocol : {kLl, kLl128, kSimple}) {
    const double seconds = reckoned(call, ring, protocol);
    if (seconds >= 0 && seconds < least) {
      least = seconds;
      best = protocol;
    }
  }
  return best;
}

double near_rate(const Ring &ring, Protocol protocol) {
  static const double kRates[kProtocols] = {cost::kLlBytesPerS, cost::kLl128BytesPerS,
                                            cost::kSimpleBytesPerS};
  static const double kShares[kProtocols] = {tuner::kLlRatio, tuner::kLl128Ratio, 1};
  if (ring.links)
    return kRates[protocol] * ring.links / kFullLinks;
  const double full = cost::kPciBytesPerS * ring.tuner_bytes_per_s / (2 * tuner::kPciBytesPerS);
  return full * kShares[protocol];
}

double hop(const Ring &ring, Protocol protocol) {
  static const double kSteps[kProtocols] = {cost::kLlStepS, cost::kLl128StepS, cost::kSimpleStepS};
  const double added =
      ring.links ? 0 : tuner::kRingPciS[protocol] - tuner::kRingNvlinkS[protocol];
  return kSteps[protocol] + added;
}

// What large messages lose until NVLinks run at full rate, less what bridges save.
double extra(const Ring &ring, double transfer_s) {
  if (!ring.links)
    return 0;
  return cost::kRampS * (1 - std::exp(-transfer_s / cost::kRampTimeS)) -
         (ring.bridged ? cost::kBridgeSavedS : 0);
}

double widening(double bytes) {
  return bytes ? cost::kLlWidenS * bytes / (bytes + cost::kLlWidenBytes) : 0;
}

double pci_base(const Ring &ring) { return ring.links ? 0 : cost::kPciBaseS; }

double fill_of(Pattern pattern) {
  switch (pattern) {
  case Pattern::kReduceAndGather:
    return cost::kReduceFillRatio;
  case Pattern::kGather:
    return cost::kGatherFillRatio;
  case Pattern::kReduce:
    return cost::kScatterFillRatio;
  default:
    return 0;
  }
}

double ring_s(const Call &call, const Ring &ring) {
  static const double kBases[kProtocols] = {cost::kLlBaseS, cost::kLl128BaseS, cost::kSimpleBaseS};
  const Protocol protocol = chosen(call, ring);
  const double rate = near_rate(ring, protocol);
  double latency = kBases[protocol] + pci_base(ring) + call.steps() * hop(ring, protocol);
  double transfer = call.sent() / rate;
  if (call.pattern != Pattern::kChain)
    transfer += (protocol == kLl ? cost::kLlFillRatio : fill_of(call.pattern)) * call.bytes /
                call.ranks / rate;
  if (protocol == kLl)
    latency += widening(call.bytes);
  if (protocol == kSimple) {
    if (call.narrow) {
      const double adding = call.pattern == Pattern::kReduceAndGather ? 0.5
                            : call.pattern == Pattern::kReduce        ? 1.0
                                                                      : 0.0;
      transfer *= 1 + (1 / cost::kNarrowReduceRatio - 1) * adding;
    }
    latency += extra(ring, transfer);
  }
  return latency + transfer;
}

// Every peer at once: `part` bytes with each of `peers` others.
double peers_s(double bytes, double part, int peers, const Ring &ring, bool small) {
  double rate = near_rate(ring, small ? kLl : kSimple);
  if (!small && ring.links)
    rate *= cost::kP2pBytesPerS / cost::kSimpleBytesPerS;
  const double fill = small ? cost::kLlFillRatio : cost::kReduceFillRatio;
  const double transfer = (peers + fill) * part / rate;
  const double latency = peers * cost::kP2pPeerS + pci_base(ring) +
                         (small ? cost::kP2pBaseS + widening(bytes)
                                : cost::kSimpleBaseS + extra(ring, transfer));
  return latency + transfer;
}

double pair_s(double bytes, const Ring &ring) {
  const double rate =
      ring.links ? cost::kPairBytesPerS * ring.links / kFullLinks : cost::kPciBytesPerS;
  return cost::kPairBaseS + bytes / rate;
}

bool closes(const std::vector<int> &gpus, std::vector<size_t> &path, std::vector<bool> &used) {
  if (path.size() == gpus.size())
    return va_fabric_links(gpus[path.back()], gpus[path.front()]) > 0;
  for (size_t next = 0; next < gpus.size(); ++next) {
    if (used[next] || !va_fabric_links(gpus[path.back()], gpus[next]))
      continue;
    used[next] = true;
    path.push_back(next);
    if (closes(gpus, path, used))
      return true;
    path.pop_back();
    used[next] = false;
  }
  return false;
}

int ring_links(const std::vector<int> &gpus) {
  if (gpus.size() < 2)
    return gpus.empty() ? 0 : va_fabric_gpu_links(gpus.front());
  std::vector<size_t> path{0};
  std::vector<bool> used(gpus.size());
  used[0] = true;
  if (!closes(gpus, path, used))
    return 0;
  int least = INT32_MAX;
  for (const int gpu : gpus) {
    int sum = 0;
    for (const int peer : gpus)
      sum += va_fabric_links(gpu, peer);
    least = std::min({least, va_fabric_gpu_links(gpu), sum});
  }
  return least;
}

} // namespace

Ring ring_through(const std::vector<int> &gpus) {
  Ring ring;
  ring.links = ring_links(gpus);
  ring.bridged = ring.links && va_fabric_bridged();
  ring.tuner_bytes_per_s =
      ring.links ? ring.links * tuner::kLinkBytesPerS
                 : tuner::kPciBytesPerS * std::pow(2, va_fabric_pcie_generation() - 3);
  return ring;
}

Price price(Pattern pattern, double bytes, int ranks, bool narrow, const Ring &ring) {
  const Call call{pattern, bytes, ranks, narrow};
  const auto sent = static_cast<uint64_t>(call.sent());
  if (ranks == 1)
    return {kAloneSeconds, 0};
  if (pattern == Pattern::kPair)
    return {pair_s(bytes, ring), sent};
  if (pattern == Pattern::kExchange || pattern == Pattern::kOneRoot) {
    const double part = bytes / ranks;
    return {std::min(peers_s(bytes, part, ranks - 1, ring, true),
                     peers_s(bytes, part, ranks - 1, ring, false)),
            sent};
  }
  return {ring_s(call, ring), sent};
}

Price price_exchange(double out_bytes, double in_bytes, int peers, const Ring &ring) {
  const double most = std::max(out_bytes, in_bytes);
  const auto sent = static_cast<uint64_t>(out_bytes);
  if (!peers)
    return {kAloneSeconds, 0};
  if (peers == 1)
    return {pair_s(most, ring), sent};
  return {std::min(peers_s(most, most / peers, peers, ring, true),
                   peers_s(most, most / peers, peers, ring, false)),
          sent};
}

} // namespace va::nccl

// For tests: the same function of the same arguments as va100.perf.collectives.
extern "C" VA_EXPORT double va_nccl_seconds(int pattern, double bytes, int ranks, int narrow,
                                            int links, int bridged, double tuner_bytes_per_s) {
  const va::nccl::Ring ring{links, bridged != 0, tuner_bytes_per_s};
  return va::nccl::price(static_cast<va::nccl::Pattern>(pattern), bytes, ranks, narrow != 0, ring)
      .seconds;
}
