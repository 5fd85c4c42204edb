#include "telemetry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "clock.h"
#include "models.h"
#include "thermal.h"

namespace va::node {
namespace {

constexpr uint64_t kSampleBuckets = 7; // 175 ms: a card samples every sixth of a second to a second
constexpr uint64_t kHoldStepNs = 50'000'000;
constexpr int kMostTries = 10'000;
constexpr uint64_t kSettleNs = 250'000'000;

uint64_t bucket_of(uint64_t at_ns) { return at_ns / kBucketNs; }

Bucket &place_of(DeviceUse &use, uint64_t bucket) { return use.buckets[bucket % kBuckets]; }
const Bucket &place_of(const DeviceUse &use, uint64_t bucket) {
  return use.buckets[bucket % kBuckets];
}

uint64_t overlap(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  const uint64_t from = std::max(a, c), to = std::min(b, d);
  return from < to ? to - from : 0;
}

bool is_current(const Bucket &bucket, uint64_t number) {
  return bucket.head.load(std::memory_order_acquire) >> 32 == (number & 0xFFFFFFFF);
}

// The bucket, emptied if it holds an older time's.
Bucket &renewed(DeviceUse &use, uint64_t number) {
  Bucket &bucket = place_of(use, number);
  if (!is_current(bucket, number)) {
    bucket.energy_nj.store(0);
    bucket.pcie_bytes.store(0);
    for (auto &unit : bucket.unit_ns)
      unit.store(0);
    bucket.head.store(number << 32, std::memory_order_release);
  }
  return bucket;
}

// What a process did until now, with what it is doing.
struct Tally {
  uint64_t since = 0, energy_nj = 0, busy_ns = 0;
  uint32_t mw = 0, permille[kUnits] = {};
};

Tally tally_of(const DeviceUse &use) {
  Tally t;
  for (int i = 0; i < kMostTries; ++i) {
    const uint32_t turn = use.turn.load(std::memory_order_acquire);
    t.since = use.active_since_ns.load();
    t.mw = use.active_mw.load();
    for (int unit = 0; unit < kUnits; ++unit)
      t.permille[unit] = use.active_permille[unit].load();
    t.energy_nj = use.energy_nj.load();
    t.busy_ns = use.busy_ns.load();
    if (!(turn & 1) && use.turn.load(std::memory_order_acquire) == turn)
      break;
  }
  return t;
}

struct Held {
  uint64_t since, until, before;
};

Held held_of(const Board &board) {
  Held h{};
  for (int i = 0; i < kMostTries; ++i) {
    const uint32_t turn = board.turn.load(std::memory_order_acquire);
    h = Held{board.held_since_ns.load(), board.held_until_ns.load(), board.held_before_ns.load()};
    if (!(turn & 1) && board.turn.load(std::memory_order_acquire) == turn)
      break;
  }
  return h;
}

// Whether work that began while clocks were up still runs, which keeps them up.
bool runs_since(const File &file, int device, uint64_t until) {
  const uint32_t most = file.most_slots.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < most; ++i) {
    if (!file.slots[i].pid.load(std::memory_order_acquire))
      continue;
    const uint64_t since = file.slots[i].devices[device].active_since_ns.load();
    if (since && since <= until)
      return true;
  }
  return false;
}

// The energy in nanojoules of so many milliwatts for so long.
uint64_t nanojoules(uint64_t mw, uint64_t ns) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(mw) * ns / 1000);
}

// All processes' work on one GPU.
struct Sum {
  uint64_t busy_ns = 0, unit_ns[kUnits] = {}, window_nj = 0, energy_nj = 0, contexts = 0;
  uint64_t now_mw = 0;
  uint64_t tx_kib = 0, rx_kib = 0;
  uint32_t mhz = UINT32_MAX; // the lowest of those that run
  bool runs = false;
};

void add_bucket(Sum &sum, const DeviceUse &use, const Tally &t, uint64_t number, uint64_t at_ns,
                bool in_sample, bool in_window) {
  const uint64_t begin = number * kBucketNs, end = std::min(begin + kBucketNs, at_ns);
  uint64_t busy = 0, units[kUnits] = {}, energy = 0;
  const Bucket &bucket = place_of(use, number);
  if (is_current(bucket, number)) {
    busy = bucket.head.load() & 0xFFFFFFFF;
    for (int unit = 0; unit < kUnits; ++unit)
      units[unit] = bucket.unit_ns[unit].load();
    energy = bucket.energy_nj.load();
  }
  if (t.since) {
    const uint64_t open = overlap(t.since, at_ns, begin, end);
    busy += open;
    for (int unit = 0; unit < kUnits; ++unit)
      units[unit] += open * t.permille[unit] / 1000;
    energy += nanojoules(t.mw, open);
  }
  if (in_sample) {
    sum.busy_ns += busy;
    for (int unit = 0; unit < kUnits; ++unit)
      sum.unit_ns[unit] += units[unit];
  }
  if (in_window)
    sum.window_nj += energy;
}

uint64_t window_bucket(uint64_t at_ns) {
  const uint64_t now = bucket_of(at_ns);
  return now % 4 ? now / 4 * 4 : (now >= 4 ? now - 4 : 0);
}

Sum sum_of(const Store &store, int device, uint64_t at_ns) {
  Sum sum;
  const File &file = store.file();
  const uint64_t now = bucket_of(at_ns), window = window_bucket(at_ns);
  const uint32_t most = file.most_slots.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < most; ++i) {
    const Slot &slot = file.slots[i];
    if (!slot.pid.load(std::memory_order_acquire))
      continue;
    const DeviceUse &use = slot.devices[device];
    const Tally t = tally_of(use);
    sum.energy_nj += t.energy_nj;
    if (t.since && t.since < at_ns) {
      sum.energy_nj += nanojoules(t.mw, at_ns - t.since);
      if (use.seen_ns.load() < at_ns)
        const_cast<DeviceUse &>(use).seen_ns.store(at_ns);
      sum.runs = true;
      sum.now_mw += t.mw;
      sum.mhz = std::min(sum.mhz, use.active_mhz.load());
    }
    if (!use.contexts.load())
      continue;
    sum.contexts += use.contexts.load();
    for (uint64_t b = now >= kSampleBuckets ? now - kSampleBuckets + 1 : 0; b <= now; ++b)
      add_bucket(sum, use, t, b, at_ns, true, b == window);
    const Bucket &last = place_of(use, now - 1);
    if (is_current(last, now - 1)) {
      sum.rx_kib += last.pcie_bytes.load() >> 32;
      sum.tx_kib += last.pcie_bytes.load() & 0xFFFFFFFF;
    }
  }
  return sum;
}

uint32_t percent(uint64_t part, uint64_t whole) {
  return whole ? static_cast<uint32_t>(std::min<uint64_t>(100, (part * 100 + whole / 2) / whole)) : 0;
}

uint64_t sample_ns(uint64_t at_ns) {
  const uint64_t now = bucket_of(at_ns);
  return at_ns - (now >= kSampleBuckets ? now - kSampleBuckets + 1 : 0) * kBucketNs;
}

double relaxed(double from, double to, double seconds) {
  return to + (from - to) * std::exp(-seconds / kRelaxSeconds);
}

double temperature_at(const DeviceState &d, uint64_t energy, uint64_t at_ns) {
  const NodeModel &model = kNodeModels[d.model];
  if (at_ns <= d.gpu_c_at_ns)
    return d.gpu_c;
  const double seconds = static_cast<double>(at_ns - d.gpu_c_at_ns) * 1e-9;
  const uint64_t used = energy > d.gpu_c_energy_nj ? energy - d.gpu_c_energy_nj : 0;
  const double watts = static_cast<double>(used) * 1e-9 / seconds;
  const double goal = kIdleC + kDegreesPerWatt * std::max(0.0, watts - model.idle_mw * 1e-3);
  return std::min(relaxed(d.gpu_c, goal, seconds), static_cast<double>(model.slowdown_c) - 1);
}

uint64_t held_ns(const Held &h, uint64_t at_ns) {
  return h.before + (at_ns > h.since ? std::min(at_ns, h.until) - std::min(h.since, h.until) : 0);
}

uint64_t total_energy(const Store &store, const DeviceState &d, int device, const Sum &sum,
                      uint64_t at_ns) {
  uint64_t boot = 0;
  store.read([&](const NodeState &state) { boot = state.boot_ns; });
  Held h = held_of(store.file().boards[device]);
  if (at_ns > h.until && h.until && runs_since(store.file(), device, h.until))
    h.until = at_ns;
  const NodeModel &model = kNodeModels[d.model];
  return nanojoules(model.idle_mw, at_ns > boot ? at_ns - boot : 0) +
         nanojoules(kClocksUpMw, held_ns(h, at_ns)) + sum.energy_nj + d.energy_nj;
}

} // namespace

uint64_t energy_nj(const Store &store, const DeviceState &state, int device, uint64_t at_ns) {
  return total_energy(store, state, device, sum_of(store, device, at_ns), at_ns);
}

uint64_t used_bytes(const DeviceUse &use) {
  const uint64_t contexts = use.contexts.load();
  return contexts ? use.arena_bytes.load() + contexts * kContextBytes : 0;
}

static Sum recent_sum(const DeviceUse &use, uint64_t at_ns) {
  Sum sum;
  const Tally t = tally_of(use);
  const uint64_t now = bucket_of(at_ns);
  for (uint64_t b = now >= kSampleBuckets ? now - kSampleBuckets + 1 : 0; b <= now; ++b)
    add_bucket(sum, use, t, b, at_ns, true, false);
  return sum;
}

uint32_t busy_percent(const DeviceUse &use, uint64_t at_ns, bool memory) {
  const Sum sum = recent_sum(use, at_ns);
  return percent(memory ? sum.unit_ns[kMemoryUnit] : sum.busy_ns, sample_ns(at_ns));
}

uint32_t busy_permille(const DeviceUse &use, uint64_t at_ns, int unit) {
  const Sum sum = recent_sum(use, at_ns);
  const uint64_t part = unit < kUnits ? sum.unit_ns[unit] : sum.busy_ns, whole = sample_ns(at_ns);
  return static_cast<uint32_t>(std::min<uint64_t>(1000, part * 1000 / std::max<uint64_t>(whole, 1)));
}

uint32_t limited_mw(const DeviceState &state, uint32_t mw, uint32_t *mhz) {
  const NodeModel &model = kNodeModels[state.model];
  uint32_t clock = model.boost_mhz;
  if (state.clock_high_mhz)
    clock = std::min(clock, std::max(state.clock_high_mhz, model.idle_mhz));
  const bool slowed = state.faults.thermal || state.faults.power_brake;
  if (slowed)
    clock = std::min(clock, model.boost_mhz / 2 / model.step_mhz * model.step_mhz);
  const uint32_t room = state.power_limit_mw > model.idle_mw + kClocksUpMw
                            ? state.power_limit_mw - model.idle_mw - kClocksUpMw
                            : 0;
  const auto needed = [&](uint32_t at) {
    return mw * power_share(static_cast<double>(at) / model.boost_mhz);
  };
  while (clock > model.idle_mhz && needed(clock) > room)
    clock -= model.step_mhz;
  *mhz = clock;
  return static_cast<uint32_t>(std::min<double>(needed(clock), room));
}

Reading read_device(const Store &store, int device, uint64_t at_ns) {
  const DeviceState d = store.device(device);
  const NodeModel &model = kNodeModels[d.model];
  const Sum sum = sum_of(store, device, at_ns);
  const Held h = held_of(store.file().boards[device]);
  Reading r{};
  r.contexts = sum.contexts;
  r.gpu_percent = percent(sum.busy_ns, sample_ns(at_ns));
  r.memory_percent = std::min(r.gpu_percent, percent(sum.unit_ns[kMemoryUnit], sample_ns(at_ns)));
  r.busy = sum.runs;
  r.clocks_up = sum.runs || (sum.contexts && at_ns < h.until) || r.gpu_percent > 0;
  r.energy_nj = total_energy(store, d, device, sum, at_ns);
  const uint64_t begin = window_bucket(at_ns) * kBucketNs;
  const uint64_t until = sum.runs ? std::max(h.until, at_ns) : h.until;
  const uint64_t up_ns = overlap(h.since, until, begin, begin + kBucketNs);
  const uint64_t window_mw = model.idle_mw + kClocksUpMw * up_ns / kBucketNs +
                             static_cast<uint64_t>(static_cast<unsigned __int128>(sum.window_nj) * 1000 /
                                                   kBucketNs);
  const uint64_t least = model.idle_mw + (r.clocks_up ? kClocksUpMw : 0);
  const uint64_t most = std::max<uint64_t>(d.power_limit_mw, least);
  r.power_mw = static_cast<uint32_t>(std::min(std::max(window_mw, least), most));
  r.instant_power_mw = static_cast<uint32_t>(std::min(least + sum.now_mw, most));
  uint32_t mhz = model.boost_mhz; // without work: what locked clocks and faults leave
  limited_mw(d, 0, &mhz);
  r.capped = sum.runs && sum.mhz < mhz;
  mhz = std::min(mhz, sum.mhz);
  r.sm_mhz = r.clocks_up ? mhz : std::max(model.idle_mhz, d.clock_low_mhz);
  r.memory_mhz = model.memory_mhz;
  r.video_mhz = r.clocks_up ? model.video_mhz : model.idle_video_mhz;
  r.gpu_c = temperature_at(d, r.energy_nj, at_ns);
  if (d.faults.thermal)
    r.gpu_c = std::max(r.gpu_c, static_cast<double>(model.slowdown_c));
  r.memory_c = r.gpu_c + kMemoryAboveC;
  r.pcie_tx_kib_s = sum.tx_kib * 1'000'000'000 / kBucketNs;
  r.pcie_rx_kib_s = sum.rx_kib * 1'000'000'000 / kBucketNs;
  return r;
}

void forget(Board &board) {
  board.turn.store(0);
  board.held_since_ns.store(0);
  board.held_until_ns.store(0);
  board.held_before_ns.store(0);
}

void hold_clocks(File &file, int device, uint64_t at_ns) {
  Board &board = file.boards[device];
  const uint64_t goal = at_ns + kClocksStayNs;
  uint64_t until = board.held_until_ns.load();
  if (until + kHoldStepNs > goal)
    return;
  if (until >= at_ns || (until && runs_since(file, device, until))) {
    while (until < goal && !board.held_until_ns.compare_exchange_weak(until, goal)) {
    }
    return;
  }
  uint32_t turn = board.turn.load();
  if (turn & 1 || !board.turn.compare_exchange_strong(turn, turn + 1))
    return; // another process begins it just now
  board.held_before_ns.store(held_ns(Held{board.held_since_ns.load(), until, board.held_before_ns.load()}, at_ns));
  board.held_since_ns.store(at_ns);
  board.held_until_ns.store(goal);
  board.turn.store(turn + 2, std::memory_order_release);
}

void release_clocks(File &file, uint64_t at_ns) {
  const uint32_t most = file.most_slots.load();
  for (int device = 0; device < kMostDevices; ++device) {
    Board &board = file.boards[device];
    uint64_t until = board.held_until_ns.load();
    if (board.turn.load() & 1) // whoever began it is gone, or will begin again
      board.turn.fetch_add(1);
    bool used = until <= at_ns;
    for (uint32_t i = 0; i < most && !used; ++i)
      used = file.slots[i].pid.load() && file.slots[i].devices[device].contexts.load();
    if (!used)
      board.held_until_ns.compare_exchange_strong(until, at_ns);
  }
}

void clear(DeviceUse &use) { std::memset(static_cast<void *>(&use), 0, sizeof use); }

void fold(NodeState &state, Slot &slot) {
  for (uint32_t i = 0; i < state.device_count; ++i) {
    DeviceUse &use = slot.devices[i];
    DeviceState &d = state.devices[i];
    Tally t = tally_of(use);
    const uint64_t seen = use.seen_ns.load();
    if (t.since && seen > t.since) { // it had been told of until then
      t.energy_nj += nanojoules(t.mw, seen - t.since);
      t.busy_ns += seen - t.since;
    }
    d.energy_nj += t.energy_nj;
    d.busy_ns += t.busy_ns;
    d.pcie_tx_bytes += use.pcie_tx_bytes.load();
    d.pcie_rx_bytes += use.pcie_rx_bytes.load();
    for (int link = 0; link < kMostLinks; ++link) {
      d.link_tx_bytes[link] += use.link_tx_bytes[link].load();
      d.link_rx_bytes[link] += use.link_rx_bytes[link].load();
    }
    if (!d.accounting || !use.peak_bytes.load())
      continue;
    EndedProcess &ended = d.ended[d.ended_count++ % kMostEnded];
    const uint64_t lived = std::max<uint64_t>(1, now_ns() - slot.started_ns.load());
    ended.pid = slot.pid.load();
    ended.peak_bytes = use.peak_bytes.load();
    ended.busy_ns = t.busy_ns;
    ended.lived_ns = lived;
    ended.utilization_percent = percent(t.busy_ns, lived);
    ended.started_us = slot.started_us;
  }
}

void settle_temperature(Store &store, int device, uint64_t at_ns) {
  const DeviceState d = store.device(device);
  if (at_ns < d.gpu_c_at_ns + kSettleNs)
    return;
  store.try_change([&](NodeState &state) {
    DeviceState &now = state.devices[device];
    if (now.gpu_c_at_ns != d.gpu_c_at_ns)
      return false;
    const uint64_t energy = energy_nj(store, d, device, at_ns);
    now.gpu_c = temperature_at(d, energy, at_ns);
    now.gpu_c_at_ns = at_ns;
    now.gpu_c_energy_nj = energy;
    return true;
  });
}

// ---- the process's own side

Meter::Meter(Store *store, Slot *slot, int device)
    : store_(store), use_(&slot->devices[device]), device_(device) {}

void Meter::begin(uint64_t at, const Activity &activity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (depth_++)
    return;
  use_->active_mw.store(activity.mw, std::memory_order_relaxed);
  use_->active_mhz.store(activity.mhz, std::memory_order_relaxed);
  for (int unit = 0; unit < kUnits; ++unit)
    use_->active_permille[unit].store(activity.permille[unit], std::memory_order_relaxed);
  use_->active_since_ns.store(at, std::memory_order_release);
  hold_clocks(store_->file(), device_, at);
}

void Meter::end(uint64_t at) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--depth_)
    return;
  const uint64_t since = use_->active_since_ns.load(std::memory_order_relaxed);
  hold_clocks(store_->file(), device_, at);
  use_->turn.fetch_add(1);
  close(since, at);
  use_->active_since_ns.store(0);
  use_->turn.fetch_add(1, std::memory_order_release);
}

void Meter::close(uint64_t from, uint64_t to) {
  const uint32_t mw = use_->active_mw.load();
  use_->busy_ns.store(use_->busy_ns.load() + (to - from));
  use_->energy_nj.store(use_->energy_nj.load() + nanojoules(mw, to - from));
  const uint64_t last = bucket_of(to);
  for (uint64_t b = std::max(bucket_of(from), last >= kBuckets ? last - kBuckets + 1 : 0); b <= last; ++b) {
    const uint64_t part = overlap(from, to, b * kBucketNs, (b + 1) * kBucketNs);
    Bucket &bucket = renewed(*use_, b);
    bucket.energy_nj.store(bucket.energy_nj.load() + nanojoules(mw, part));
    for (int unit = 0; unit < kUnits; ++unit) {
      const uint64_t busy = part * use_->active_permille[unit].load() / 1000;
      bucket.unit_ns[unit].store(bucket.unit_ns[unit].load() + busy);
    }
    bucket.head.store(bucket.head.load() + part);
  }
}

void Meter::copied(uint64_t at, uint64_t to_device_bytes, uint64_t from_device_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  use_->pcie_rx_bytes.store(use_->pcie_rx_bytes.load() + to_device_bytes);
  use_->pcie_tx_bytes.store(use_->pcie_tx_bytes.load() + from_device_bytes);
  Bucket &bucket = renewed(*use_, bucket_of(at));
  bucket.pcie_bytes.store(bucket.pcie_bytes.load() + ((to_device_bytes >> 10) << 32) +
                          (from_device_bytes >> 10));
}

} // namespace va::node
