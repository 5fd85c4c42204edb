#include "timeline.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "activity.h"
#include "board.h"
#include "compiler.h"
#include "objects.h"
#include "transfers.h"
#include "va100/check.h"
#include "va100/driver.h"
#include "va100/outside.h"

namespace va {
namespace {

// Without a compiler to ask, a launch takes the least that any launch takes.
constexpr double kLaunchFloorSeconds = 1.3e-6;
constexpr size_t kKeepLaunches = 1u << 19;
constexpr size_t kResolveAfter = 1u << 16;
constexpr size_t kKeepKnown = 1u << 16;

// What a copy costs before its first byte; what joins two devices is fabric.h's to know.
constexpr double kCopyFloorSeconds = 1.5e-6;

enum class What { kLaunch, kTransfer, kGap, kRecord, kWait, kJoin };

struct Work {
  What what;
  std::shared_ptr<Track> track;
  std::shared_ptr<TrackGroup> group;
  std::shared_ptr<Moment> moment;
  double duration_s = 0;
  uint64_t serial = 0; // of the launch or transfer
};

struct Launch {
  LaunchWork work;
  uint32_t stream;
  double duration_s = kLaunchFloorSeconds;
  double start_s = 0;
  Crowding crowding{};
  std::vector<Reach> reach; // mostly nothing
};

// Launches alike in all of this take equally long.  Counters are compared by place: equal ones
// share a copy, which Known keeps.
struct Alike {
  uint64_t variant_id;
  const void *counters;
  uint32_t grid[3], shared_bytes, device;
  uint64_t footprint_bytes;

  bool operator<(const Alike &other) const {
    const auto parts = [](const Alike &a) {
      return std::tie(a.variant_id, a.counters, a.grid[0], a.grid[1], a.grid[2], a.shared_bytes,
                      a.device, a.footprint_bytes);
    };
    return parts(*this) < parts(other);
  }
};

struct Known {
  double duration_s = kLaunchFloorSeconds;
  std::shared_ptr<std::vector<uint64_t>> counters;
};

struct Log {
  std::mutex mutex;
  std::deque<va_driver_transfer> transfers;
  uint64_t first_transfer = 0;
  std::deque<Work> pending;
  std::deque<Launch> launches;
  std::map<Alike, Known> known;
  uint64_t first_launch = 0; // serial number of launches.front()
  uint64_t unpriced = 0;     // serial number of the first launch without a price
};

Log &log() {
  static Log *const instance = new Log;
  return *instance;
}

Launch *launch_at(Log &l, uint64_t serial) {
  if (serial < l.first_launch || serial - l.first_launch >= l.launches.size())
    return nullptr;
  return &l.launches[serial - l.first_launch];
}

va_launch_record record_of(const Launch &launch) {
  va_launch_record r{};
  r.compiler_id = launch.work.compiler_id;
  r.variant_id = launch.work.variant_id;
  std::copy_n(launch.work.grid, 3, r.grid);
  std::copy_n(launch.work.block, 3, r.block);
  r.dynamic_shared_bytes = launch.work.dynamic_shared_bytes;
  r.stream = launch.stream;
  r.device = launch.work.device;
  if (launch.work.counters) {
    r.counter_count = static_cast<uint32_t>(launch.work.counters->size());
    r.counters = launch.work.counters->data();
  }
  r.footprint_bytes = launch.work.footprint_bytes;
  r.duration_s = launch.duration_s;
  return r;
}

Alike key_of(const LaunchWork &work) {
  return Alike{work.variant_id,
               work.counters.get(),
               {work.grid[0], work.grid[1], work.grid[2]},
               work.dynamic_shared_bytes,
               work.device,
               work.footprint_bytes};
}

// What is to be asked: one launch of each kind that is not known yet.
void collect_unknown(Log &l, std::map<Alike, Known> *known, std::vector<Alike> *keys,
                     std::vector<va_launch_record> *records) {
  for (uint64_t i = std::max(l.unpriced, l.first_launch); Launch *launch = launch_at(l, i); ++i) {
    const Alike key = key_of(launch->work);
    if (l.known.count(key) || !known->emplace(key, Known{0, launch->work.counters}).second)
      continue;
    keys->push_back(key);
    records->push_back(record_of(*launch));
  }
}

// What a launch takes with what goes on around it: what its neighbours do, and that memory of other
// GPUs is as far as the link to it; bytes go where the allocations are, in proportion to their size.
double in_company(const Launch &launch, double alone_s) {
  const LaunchWork &work = launch.work;
  va_activity does{};
  known_activity(work.variant_id, uint64_t{work.grid[0]} * work.grid[1] * work.grid[2], &does);
  const double memory = does.permille[0] * 1e-3;
  const Crowding &crowding = launch.crowding;
  double seconds = alone_s * (crowding.compute * (1 - memory) + crowding.memory * memory);
  for (const Reach &reach : launch.reach) {
    const double loaded = static_cast<double>(does.load_bytes) * reach.share;
    const double stored = static_cast<double>(does.store_bytes) * reach.share;
    // Whether an allocation is read or written is not known, so all goes one way.
    seconds = std::max(seconds, (loaded + stored) / reach.bytes_per_s);
    sent_over_links(reach.device, static_cast<int>(work.device), static_cast<uint64_t>(loaded));
    sent_over_links(static_cast<int>(work.device), reach.device, static_cast<uint64_t>(stored));
  }
  return seconds;
}

void apply_known(Log &l) {
  uint64_t i = std::max(l.unpriced, l.first_launch);
  for (; Launch *launch = launch_at(l, i); ++i) {
    const auto it = l.known.find(key_of(launch->work));
    if (it == l.known.end())
      break; // came while we asked
    launch->duration_s = in_company(*launch, it->second.duration_s);
    priced(static_cast<int>(launch->work.device), launch->duration_s);
  }
  l.unpriced = i;
}

// Ask the compiler's side for durations.  No lock is held meanwhile: it may have to wait for the
// interpreter, whose holder may wait for us.
void price_launches() {
  Log &l = log();
  std::map<Alike, Known> answers;
  std::vector<Alike> keys;
  std::vector<va_launch_record> records;
  {
    const std::lock_guard<std::mutex> lock(l.mutex);
    if (l.known.size() > kKeepKnown)
      l.known.clear();
    collect_unknown(l, &answers, &keys, &records);
  }
  if (!records.empty() && !price(records.data(), records.size()))
    return;
  for (size_t i = 0; i < records.size(); ++i)
    answers[keys[i]].duration_s = records[i].duration_s;
  const std::lock_guard<std::mutex> lock(l.mutex);
  l.known.insert(answers.begin(), answers.end());
  apply_known(l);
}

double begin_of(const Track &track) {
  const TrackGroup &group = *track.group;
  double start = std::max(track.ready_s, group.host_s);
  if (track.legacy)
    start = std::max({start, group.blocking_ready_s, group.legacy_ready_s});
  else if (track.blocking)
    start = std::max(start, group.legacy_ready_s);
  return start;
}

void end_at(Track &track, double end) {
  track.ready_s = end;
  TrackGroup &group = *track.group;
  group.all_ready_s = std::max(group.all_ready_s, end);
  if (track.legacy)
    group.legacy_ready_s = std::max(group.legacy_ready_s, end);
  else if (track.blocking)
    group.blocking_ready_s = std::max(group.blocking_ready_s, end);
}

const DeviceModel &model_of(uint32_t device) { return *driver().devices[device]->model; }

void place(Log &l, Work &work) {
  if (work.what == What::kJoin) {
    TrackGroup &group = work.track ? *work.track->group : *work.group;
    const double until = work.track    ? begin_of(*work.track)
                         : work.moment ? work.moment->time_s
                                       : group.all_ready_s;
    group.host_s = std::max(group.host_s, until);
    return;
  }
  Track &track = *work.track;
  double start = begin_of(track);
  switch (work.what) {
  case What::kLaunch: {
    Launch *const launch = launch_at(l, work.serial);
    if (!track.graph)
      start += model_of(launch ? launch->work.device : 0).launch_gap_s;
    if (launch)
      launch->start_s = start;
    end_at(track, start + (launch ? launch->duration_s : kLaunchFloorSeconds));
    break;
  }
  case What::kTransfer:
    if (work.serial >= l.first_transfer)
      l.transfers[work.serial - l.first_transfer].start_s = start;
    end_at(track, start + work.duration_s);
    break;
  case What::kGap:
    end_at(track, start + work.duration_s);
    break;
  case What::kRecord:
    work.moment->time_s = start;
    work.moment->known = true;
    end_at(track, start);
    break;
  case What::kWait:
    if (work.moment->known)
      start = std::max(start, work.moment->time_s);
    end_at(track, start);
    break;
  case What::kJoin:
    break;
  }
}

double transfer_s(int device, uint64_t bytes, Way way) {
  const DeviceModel &model = model_of(static_cast<uint32_t>(device));
  const double size = static_cast<double>(bytes);
  double rate = model.fill_bytes_per_s;
  if (way == Way::kHostToDevice || way == Way::kDeviceToHost)
    rate = model.pcie_copy_bytes_per_s * (1 << va_fabric_pcie_generation()) / 16.0; // the cards' is 4
  else if (way == Way::kWithinDevice)
    rate = model.copy_bytes_per_s / 2; // read and written
  return kCopyFloorSeconds + size / rate;
}

va_check_stream told(const Track &track) {
  return {track.id, track.legacy, track.blocking, track.group.get()};
}

// The checker of races follows the order of streams.
void tell_checker(const Work &work) {
  if (!(va_check_tools() & VA_CHECK_RACE))
    return;
  const va_check_stream stream = work.track ? told(*work.track) : va_check_stream{};
  if (work.what == What::kRecord)
    va_check_event_recorded(&stream, work.moment.get());
  else if (work.what == What::kWait)
    va_check_event_awaited(&stream, work.moment.get());
  else if (work.what == What::kJoin)
    va_check_host_waited(work.track ? &stream : nullptr, work.group.get(), work.moment.get());
}

void tell_checker(const Track &track) {
  const va_check_stream stream = told(track);
  if (va_check_tools() & VA_CHECK_RACE)
    va_check_work(&stream);
}

bool repeats(const Work &before, const Work &work) {
  return before.what == work.what && before.track == work.track && before.group == work.group &&
         before.moment == work.moment;
}

void add(Work work) {
  tell_checker(work);
  bool full;
  {
    Log &l = log();
    const std::lock_guard<std::mutex> lock(l.mutex);
    if (work.what == What::kJoin && (l.pending.empty() || repeats(l.pending.back(), work)))
      return; // nothing happened since
    l.pending.push_back(std::move(work));
    full = l.pending.size() >= kResolveAfter;
  }
  if (full)
    resolve_timeline();
}

} // namespace

void log_launch(const std::shared_ptr<Track> &track, LaunchWork work) {
  tell_checker(*track);
  const Crowding crowding = crowding_of(static_cast<int>(work.device));
  uint64_t serial;
  {
    Log &l = log();
    const std::lock_guard<std::mutex> lock(l.mutex);
    if (l.launches.size() >= kKeepLaunches) {
      l.launches.pop_front();
      ++l.first_launch;
    }
    serial = l.first_launch + l.launches.size();
    Launch launch;
    launch.work = std::move(work);
    launch.stream = track->id;
    launch.crowding = crowding;
    launch.reach = take_reach();
    l.launches.push_back(std::move(launch));
  }
  Work entry{What::kLaunch, track, nullptr, nullptr, 0, serial};
  add(std::move(entry));
}

void log_transfer(const std::shared_ptr<Track> &track, int device, uint64_t bytes, Way way) {
  log_transfer_lasting(track, device, bytes, way, transfer_s(device, bytes, way));
}

void log_transfer_lasting(const std::shared_ptr<Track> &track, int device, uint64_t bytes, Way way,
                          double seconds) {
  tell_checker(*track);
  if (way == Way::kHostToHost)
    return;
  if (way == Way::kHostToDevice || way == Way::kDeviceToHost)
    copied_over_pcie(device, way == Way::kHostToDevice ? bytes : 0,
                     way == Way::kDeviceToHost ? bytes : 0);
  va_driver_transfer transfer{};
  transfer.kind = static_cast<uint32_t>(way);
  transfer.device = static_cast<uint32_t>(device);
  transfer.stream = track->id;
  transfer.bytes = bytes;
  transfer.duration_s = seconds;
  uint64_t serial;
  {
    Log &l = log();
    const std::lock_guard<std::mutex> lock(l.mutex);
    if (l.transfers.size() >= kKeepLaunches) {
      l.transfers.pop_front();
      ++l.first_transfer;
    }
    serial = l.first_transfer + l.transfers.size();
    l.transfers.push_back(transfer);
  }
  add({What::kTransfer, track, nullptr, nullptr, transfer.duration_s, serial});
}

void log_record(const std::shared_ptr<Track> &track, const std::shared_ptr<Moment> &moment) {
  add({What::kRecord, track, nullptr, moment, 0, 0});
}

void log_wait(const std::shared_ptr<Track> &track, const std::shared_ptr<Moment> &moment) {
  add({What::kWait, track, nullptr, moment, 0, 0});
}

void log_gap(const std::shared_ptr<Track> &track, int device) {
  const double gap_s = model_of(static_cast<uint32_t>(device)).launch_gap_s;
  add({What::kGap, track, nullptr, nullptr, gap_s, 0});
}

void log_join(const std::shared_ptr<Track> &track) {
  add({What::kJoin, track, nullptr, nullptr, 0, 0});
}

void log_join(const std::shared_ptr<TrackGroup> &group) {
  add({What::kJoin, nullptr, group, nullptr, 0, 0});
}

void log_join(const std::shared_ptr<TrackGroup> &group, const std::shared_ptr<Moment> &moment) {
  add({What::kJoin, nullptr, group, moment, 0, 0});
}

void log_seen(const std::shared_ptr<Track> &track) {
  tell_checker({What::kJoin, track, nullptr, nullptr, 0, 0});
}

void log_seen(const std::shared_ptr<Moment> &moment) {
  tell_checker({What::kJoin, nullptr, nullptr, moment, 0, 0});
}

void resolve_timeline() {
  price_launches();
  Log &l = log();
  const std::lock_guard<std::mutex> lock(l.mutex);
  for (Work &work : l.pending)
    place(l, work);
  l.pending.clear();
}

double time_of(const Moment &moment) {
  const std::lock_guard<std::mutex> lock(log().mutex);
  return moment.time_s;
}

} // namespace va

static_assert(static_cast<uint32_t>(va::Way::kSet) == VA_TRANSFER_SET, "kinds are Way's numbers");

extern "C" size_t va_driver_transfers(size_t first, va_driver_transfer *out, size_t capacity) {
  try {
    va::resolve_timeline();
    va::Log &l = va::log();
    const std::lock_guard<std::mutex> lock(l.mutex);
    for (size_t i = 0; i < capacity && out && first + i < l.transfers.size(); ++i)
      out[i] = l.transfers[first + i];
    return l.transfers.size();
  } catch (...) {
    return 0;
  }
}

extern "C" size_t va_driver_launches(size_t first, va_driver_launch *out, size_t capacity) {
  try {
    va::resolve_timeline();
    va::Log &l = va::log();
    const std::lock_guard<std::mutex> lock(l.mutex);
    for (size_t i = 0; i < capacity && out; ++i) {
      const va::Launch *const launch = va::launch_at(l, l.first_launch + first + i);
      if (!launch)
        break;
      out[i].record = va::record_of(*launch);
      out[i].start_s = launch->start_s;
    }
    return l.launches.size();
  } catch (...) {
    return 0;
  }
}

extern "C" uint64_t va_driver_launches_dropped(void) {
  va::Log &l = va::log();
  const std::lock_guard<std::mutex> lock(l.mutex);
  return l.first_launch;
}
