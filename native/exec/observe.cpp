// The caches of the virtual chip, for CTAs that are observed: an L1 for each, one L2 for all.
//
// Warps run one after another here and side by side on a chip, so accesses are kept until their
// CTA has ended and then replayed, one of each warp in turn, from barrier to barrier.  An L1 has
// the share of one CTA among those that an SM holds, an L2 that of the observed CTAs among all.
#include "observe.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "worker.h"

extern "C" void va_h_observe(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *addresses);

namespace va {
namespace {

constexpr uint32_t kLineBytes = 128, kSectorBytes = 32, kBanks = 32, kWordBytes = 4;
constexpr uint32_t kEverySector = 0xf;
constexpr size_t kMostKept = 1 << 18;  // lines of a CTA until its accesses are replayed early

enum Kind : uint32_t { kLoad, kStore, kAtomic };
enum Space : uint32_t { kGeneric, kGlobal, kShared, kLocal };

uint32_t popcount(uint32_t v) { return static_cast<uint32_t>(__builtin_popcount(v)); }

// Lines of four sectors, the one used longest ago leaves first.
class SectorCache {
 public:
  explicit SectorCache(uint64_t bytes) : room_(static_cast<uint32_t>(bytes / kLineBytes)) {}

  // Sectors of a line that were there; those asked for are then, unless `allocate` is unset.
  uint32_t touch(uint64_t line, uint32_t sectors, bool allocate, bool dirty = false) {
    const auto found = place_.find(line);
    uint32_t at;
    if (found != place_.end()) {
      at = found->second;
      unlink(at);
    } else {
      if (!allocate || !room_) {
        if (dirty) written_ += popcount(sectors);
        return 0;
      }
      at = take();
      entries_[at] = {line, 0, 0, 0, 0};
      place_.emplace(line, at);
    }
    link(at);
    Entry &e = entries_[at];
    const uint32_t hits = e.valid & sectors;
    if (allocate) e.valid |= static_cast<uint8_t>(sectors);
    if (dirty) e.dirty |= static_cast<uint8_t>(sectors & e.valid);
    return hits;
  }

  // Sectors that were written back, with all that still have to be.
  uint64_t written() const {
    uint64_t sum = written_;
    for (const auto &[line, at] : place_) sum += popcount(entries_[at].dirty);
    return sum;
  }

 private:
  struct Entry {
    uint64_t line;
    uint32_t before, after;
    uint8_t valid, dirty;
  };

  uint32_t take() {
    if (entries_.size() <= room_) {
      if (entries_.empty()) entries_.push_back({0, 0, 0, 0, 0});  // the ring's head
      if (entries_.size() <= room_) {
        entries_.push_back({});
        return static_cast<uint32_t>(entries_.size() - 1);
      }
    }
    const uint32_t oldest = entries_[0].before;
    unlink(oldest);
    written_ += popcount(entries_[oldest].dirty);
    place_.erase(entries_[oldest].line);
    return oldest;
  }

  void unlink(uint32_t at) {
    entries_[entries_[at].before].after = entries_[at].after;
    entries_[entries_[at].after].before = entries_[at].before;
  }

  void link(uint32_t at) {
    entries_[at].before = 0;
    entries_[at].after = entries_[0].after;
    entries_[entries_[0].after].before = at;
    entries_[0].after = at;
  }

  uint32_t room_;
  uint64_t written_ = 0;
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, uint32_t> place_;
};

struct Line {
  uint64_t number;
  uint32_t sectors;
};

struct Access {
  uint32_t site;
  uint8_t kind;
  bool cached;  // in L1
  uint16_t line_count;
  size_t first_line;
};

// A request that L1 could not answer.
struct Request {
  uint32_t site;
  uint32_t kind;
  Line line;
};

struct WarpAccesses {
  std::vector<Access> accesses;
  std::vector<Line> lines;
  std::vector<size_t> ends;  // of the stretches between barriers
  size_t next = 0;
};

uint64_t *site_counts(Cta *cta, uint32_t site) {
  Worker *worker = cta->worker;
  return worker->counters.data() + worker->launch->request->variant->observed_at +
         kObservedLaunchFields + size_t{site} * kObservedSiteFields;
}

uint64_t observed_count(const va_launch *request, uint64_t ctas) {
  return std::min<uint64_t>(request->observe_ctas, ctas);
}

// Turns that banks of four bytes take; wide accesses go in halves and quarters of a warp.
uint32_t wavefronts(uint32_t lanes, const uint64_t *addresses, uint32_t bytes, bool atomic) {
  const uint32_t words = std::max(bytes / kWordBytes, 1u);
  if (words == 1 && !atomic) {
    // Words that lie in as many banks as there are: the usual case, at a glance.
    uint64_t least = ~uint64_t{0}, most = 0;
    for (uint32_t m = lanes; m; m &= m - 1) {
      const uint64_t word = addresses[__builtin_ctz(m)] / kWordBytes;
      least = std::min(least, word);
      most = std::max(most, word);
    }
    if (most - least < kBanks) return 1;
  }
  const uint32_t together = VA_LANES / std::min(words, 4u);
  uint32_t turns = 0;
  for (uint32_t first = 0; first < VA_LANES; first += together) {
    uint64_t seen[kBanks][VA_LANES];
    uint8_t count[kBanks] = {};
    uint32_t most = 0;
    for (uint32_t lane = first; lane < first + together; lane++) {
      if (!(lanes >> lane & 1)) continue;
      for (uint32_t k = 0; k < words; k++) {
        const uint64_t word = addresses[lane] / kWordBytes + k;
        const uint32_t bank = word % kBanks;
        uint8_t &n = count[bank];
        const bool known = !atomic && std::find(seen[bank], seen[bank] + n, word) != seen[bank] + n;
        if (known || n == VA_LANES) continue;
        seen[bank][n++] = word;
        most = std::max<uint32_t>(most, n);
      }
    }
    turns += most;
  }
  return turns;
}

}  // namespace

// L2, shared by the workers of a launch.
class Memory {
 public:
  explicit Memory(uint64_t bytes) : cache_(bytes) {}

  void answer(const std::vector<Request> &requests, Cta *cta) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Request &r : requests) {
      uint64_t *counts = site_counts(cta, r.site);
      counts[kL2Sectors] += popcount(r.line.sectors);
      counts[kL2Hits] += popcount(
          cache_.touch(r.line.number, r.line.sectors, true, r.kind != kLoad));
    }
  }

  uint64_t written() const { return cache_.written(); }

 private:
  std::mutex mutex_;
  SectorCache cache_;
};

// What an observed CTA has done since its start, or since it was replayed last.
class Recorder {
 public:
  explicit Recorder(Cta *cta)
      : cta_(cta), warps_(cta->warps.size()), l1_(cta->worker->launch->request->l1_cta_bytes) {}

  void access(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *addresses) {
    const auto site = static_cast<uint32_t>(info);
    const auto bytes = static_cast<uint32_t>(info >> 32 & 0xff);
    auto space = static_cast<uint32_t>(info >> 40 & 7);
    const auto kind = static_cast<uint32_t>(info >> 43 & 3);
    uint64_t *counts = site_counts(cta_, site);
    counts[kExecutions]++;
    counts[kLanes] += popcount(lanes);
    uint64_t places[VA_LANES];
    std::copy_n(addresses, VA_LANES, places);
    if (space == kGeneric) space = sort_out(w, lanes, places);
    if (space == kShared) {
      const uint32_t turns = wavefronts(lanes, places, bytes, kind == kAtomic);
      counts[kWavefronts] += turns;
      turns_ += turns;
      return;
    }
    if (space == kLocal) interleave(w, lanes, places);
    Line lines[VA_LANES * 2];
    const uint32_t count = lines_of(lanes, places, bytes, lines);
    uint32_t sectors = 0;
    for (uint32_t i = 0; i < count; i++) sectors += popcount(lines[i].sectors);
    counts[kSectors] += sectors;
    counts[kLines] += count;
    sectors_ += sectors;
    WarpAccesses &warp = warps_[w->warp_id];
    warp.accesses.push_back({site, static_cast<uint8_t>(kind), (info >> 45 & 1) == 0,
                             static_cast<uint16_t>(count), warp.lines.size()});
    warp.lines.insert(warp.lines.end(), lines, lines + count);
    kept_ += count;
    if (kept_ >= kMostKept) replay();
  }

  void barrier() {
    for (WarpAccesses &warp : warps_) warp.ends.push_back(warp.accesses.size());
  }

  void end() {
    replay();
    uint64_t *sums = cta_->worker->counters.data() +
                     cta_->worker->launch->request->variant->observed_at;
    sums[kObservedCtas]++;
    sums[kSectorSquares] += sectors_ * sectors_;
    sums[kWavefrontSquares] += turns_ * turns_;
  }

 private:
  // Generic addresses of one access are taken to be of one space: that of its first lane.
  uint32_t sort_out(va_warp *w, uint32_t lanes, uint64_t *places) {
    const uint64_t first = places[__builtin_ctz(lanes)];
    const auto shared = reinterpret_cast<uint64_t>(cta_->shared);
    if (first - shared < w->shared_bytes) {
      for (int lane = 0; lane < VA_LANES; lane++) places[lane] -= shared;
      return kShared;
    }
    const auto local = reinterpret_cast<uint64_t>(w->local);
    if (first - local >= uint64_t{w->local_stride} * VA_LANES) return kGlobal;
    for (uint64_t lane = 0; lane < VA_LANES; lane++) places[lane] -= local + lane * w->local_stride;
    return kLocal;
  }

  // Words of one thread's local memory lie a warp's width apart on a chip.
  static void interleave(va_warp *w, uint32_t lanes, uint64_t *places) {
    const auto base = reinterpret_cast<uint64_t>(w->local);
    for (uint32_t m = lanes; m; m &= m - 1) {
      const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
      const uint64_t word = places[lane] / kWordBytes;
      places[lane] = base + (word * VA_LANES + lane) * kWordBytes + places[lane] % kWordBytes;
    }
  }

  static uint32_t lines_of(uint32_t lanes, const uint64_t *places, uint32_t bytes, Line *lines) {
    uint32_t count = 0;
    for (uint32_t m = lanes; m; m &= m - 1) {
      const uint64_t first = places[__builtin_ctz(m)], last = first + bytes - 1;
      for (uint64_t sector = first / kSectorBytes; sector <= last / kSectorBytes; sector++) {
        const uint64_t number = sector / (kLineBytes / kSectorBytes);
        const uint32_t bit = 1u << sector % (kLineBytes / kSectorBytes);
        uint32_t i = count;
        while (i && lines[i - 1].number != number) i--;
        if (i)
          lines[i - 1].sectors |= bit;
        else if (count < VA_LANES * 2)
          lines[count++] = {number, bit};
      }
    }
    return count;
  }

  void replay() {
    barrier();
    const size_t stretches = warps_.front().ends.size();
    for (size_t k = 0; k < stretches; k++)
      for (bool more = true; more;) {
        more = false;
        for (WarpAccesses &warp : warps_) {
          if (warp.next >= warp.ends[k]) continue;
          answer(warp, warp.accesses[warp.next++]);
          more = true;
        }
      }
    for (WarpAccesses &warp : warps_) {
      warp.accesses.clear();
      warp.lines.clear();
      warp.ends.clear();
      warp.next = 0;
    }
    kept_ = 0;
    cta_->worker->launch->memory->answer(requests_, cta_);
    requests_.clear();
  }

  // L1 is written through, and keeps what is loaded.
  void answer(const WarpAccesses &warp, const Access &a) {
    for (size_t i = a.first_line; i < a.first_line + a.line_count; i++) {
      Line line = warp.lines[i];
      if (a.kind == kLoad && a.cached) {
        const uint32_t hits = l1_.touch(line.number, line.sectors, true);
        site_counts(cta_, a.site)[kL1Hits] += popcount(hits);
        line.sectors &= kEverySector & ~hits;
      } else if (a.kind == kStore) {
        l1_.touch(line.number, line.sectors, false);
      }
      if (line.sectors) requests_.push_back({a.site, a.kind, line});
    }
  }

  Cta *cta_;
  std::vector<WarpAccesses> warps_;
  SectorCache l1_;
  std::vector<Request> requests_;
  size_t kept_ = 0;
  uint64_t sectors_ = 0, turns_ = 0;
};

void FreeRecorder::operator()(Recorder *recorder) const { delete recorder; }

std::unique_ptr<Memory, FreeMemory> make_memory(const Launch *launch) {
  const va_launch *request = launch->request;
  const uint64_t observed = observed_count(request, launch->cta_count);
  if (!request->variant->observed_at || !observed) return nullptr;
  const double share = static_cast<double>(observed) / static_cast<double>(launch->cta_count);
  return std::unique_ptr<Memory, FreeMemory>(
      new Memory(static_cast<uint64_t>(static_cast<double>(request->l2_bytes) * share)));
}

void free_memory(Memory *memory) { delete memory; }

void finish_memory(Launch *launch) {
  if (!launch->memory || !launch->request->counters) return;
  launch->request->counters[launch->request->variant->observed_at + kWrittenBack] +=
      launch->memory->written();
}

// One CTA of each of as many stretches of the grid as are to be observed, at no regular distance.
bool observes(const Launch *launch, uint64_t index) {
  if (!launch->memory) return false;
  if (launch->request->observed_only == VA_OBSERVE_ROW)
    return index - launch->request->observe_first < launch->request->observe_ctas;
  const uint64_t wanted = observed_count(launch->request, launch->cta_count);
  const auto stretch = static_cast<uint64_t>(
      static_cast<unsigned __int128>(index) * wanted / launch->cta_count);
  const auto start_of = [&](uint64_t k) {
    return static_cast<uint64_t>(
        (static_cast<unsigned __int128>(k) * launch->cta_count + wanted - 1) / wanted);
  };
  const uint64_t first = start_of(stretch), length = start_of(stretch + 1) - first;
  return index == first + (stretch * 0x9E3779B97F4A7C15ull >> 33) % length;
}

void begin_observing(Cta *cta) {
  if (!cta->worker->launch->memory) return;
  const bool on = observes(cta->worker->launch, cta->index);
  if (on) cta->recorder.reset(new Recorder(cta));
  for (Warp &warp : cta->warps) warp.view.observed = on;
}

void observe_barrier(Cta *cta) {
  if (cta->recorder) cta->recorder->barrier();
}

void end_observing(Cta *cta) {
  if (!cta->recorder) return;
  cta->recorder->end();
  cta->recorder.reset();
}

extern const HelperEntry kObserveHelpers[];
const HelperEntry kObserveHelpers[] = {
    {"va_h_observe", reinterpret_cast<const void *>(va_h_observe)},
    {nullptr, nullptr},
};

}  // namespace va

// info: site, bytes of a lane << 32, space << 40, kind << 43, past L1 << 45.
void va_h_observe(va_warp *w, uint64_t info, uint32_t lanes, const uint64_t *addresses) {
  lanes &= w->live;
  va::Recorder *recorder = va::warp_of(w)->cta->recorder.get();
  if (lanes && recorder) recorder->access(w, info, lanes, addresses);
}
