#include "held.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "board.h"
#include "capture.h"
#include "settings.h"
#include "transfers.h"
#include "va100/outside.h"

namespace va {

std::atomic<unsigned> held_count{0};

namespace {

struct Place {
  const Stream *stream; // null when it is gone
  const Context *context;
  std::shared_ptr<Track> track;
  int device;
};

struct Hold {
  void *ticket;
  va_outside_settle settle;
  std::vector<Place> places; // the first one is where the work runs
};

struct Holds {
  std::mutex mutex;
  std::list<Hold> all;
};

Holds &holds() {
  static Holds *const instance = new Holds;
  return *instance;
}

Stream *&running() {
  static thread_local Stream *stream = nullptr;
  return stream;
}

std::atomic<void (*)(void *)> trusted{nullptr};

Place place_of(const Stream &stream) {
  return {&stream, stream.context, stream.track, stream.context->device->ordinal};
}

template <typename Matches> void settle_where(Matches matches) {
  for (;;) {
    va_outside_settle settle = nullptr;
    void *ticket = nullptr;
    {
      const std::lock_guard<std::mutex> lock(holds().mutex);
      for (const Hold &hold : holds().all)
        if (std::any_of(hold.places.begin(), hold.places.end(), matches)) {
          settle = hold.settle;
          ticket = hold.ticket;
          break;
        }
    }
    if (!settle)
      return;
    settle(ticket); // no lock is held: it waits for other threads
  }
}

// Take the tickets' holds out.
std::list<Hold> taken(void *const *tickets, size_t count) {
  std::list<Hold> found;
  const std::lock_guard<std::mutex> lock(holds().mutex);
  for (auto it = holds().all.begin(); it != holds().all.end();) {
    const auto next = std::next(it);
    if (std::find(tickets, tickets + count, it->ticket) != tickets + count) {
      found.splice(found.end(), holds().all, it);
      held_count.fetch_sub(1);
    }
    it = next;
  }
  return found;
}

std::shared_ptr<Moment> recorded(const Place &place) {
  auto moment = std::make_shared<Moment>();
  log_record(place.track, moment);
  return moment;
}

// Rings: each rank sends to the next one.  Where others are in other processes, nobody here receives.
void count_links(const std::list<Hold> &done, void *const *tickets, const uint64_t *sent,
                 size_t count) {
  for (auto it = done.begin(); it != done.end(); ++it) {
    const auto next = std::next(it) == done.end() ? done.begin() : std::next(it);
    const int from = it->places.front().device, to = next->places.front().device;
    const auto index =
        static_cast<size_t>(std::find(tickets, tickets + count, it->ticket) - tickets);
    if (from != to && va_fabric_links(va_fabric_gpu(from), va_fabric_gpu(to)))
      sent_over_links(from, to, sent[index]);
  }
}

void log_done(const std::list<Hold> &done, void *const *tickets, const uint64_t *sent, size_t count,
              double not_before_s, double seconds) {
  std::vector<std::shared_ptr<Moment>> ready{std::make_shared<Moment>(Moment{not_before_s, true})};
  for (const Hold &hold : done)
    ready.push_back(recorded(hold.places.front()));
  for (const Hold &hold : done) {
    const Place &place = hold.places.front();
    for (const std::shared_ptr<Moment> &moment : ready)
      log_wait(place.track, moment);
    const auto index =
        static_cast<size_t>(std::find(tickets, tickets + count, hold.ticket) - tickets);
    log_transfer_lasting(place.track, place.device, sent[index], Way::kBetweenDevices, seconds);
    if (hold.places.size() == 1)
      continue;
    const std::shared_ptr<Moment> over = recorded(place);
    for (size_t i = 1; i < hold.places.size(); ++i)
      log_wait(hold.places[i].track, over);
  }
}

} // namespace

void settle_held(const Stream &stream) {
  // The legacy stream waits for its context's blocking streams.
  if (stream.track->legacy)
    settle_where([&](const Place &place) {
      return place.context == stream.context && place.track->blocking;
    });
  else
    settle_where([&](const Place &place) { return place.stream == &stream; });
}

void settle_held(const Context &context) {
  settle_where([&](const Place &place) { return place.context == &context; });
}

void pass_held(const std::vector<std::unique_ptr<Stream>> &lanes, const Stream &outer) {
  if (!held_count.load(std::memory_order_relaxed))
    return;
  const std::lock_guard<std::mutex> lock(holds().mutex);
  for (Hold &hold : holds().all) {
    const auto is = [&](const Stream *stream) {
      return std::any_of(hold.places.begin(), hold.places.end(),
                         [&](const Place &place) { return place.stream == stream; });
    };
    const bool in_lane = std::any_of(lanes.begin(), lanes.end(),
                                     [&](const auto &lane) { return is(lane.get()); });
    if (in_lane && !is(&outer))
      hold.places.push_back(place_of(outer));
  }
}

void forget_held(const Stream &stream) {
  if (!held_count.load(std::memory_order_relaxed))
    return;
  const std::lock_guard<std::mutex> lock(holds().mutex);
  for (Hold &hold : holds().all)
    for (Place &place : hold.places)
      if (place.stream == &stream)
        place.stream = nullptr;
}

RunningHost::RunningHost(Stream &stream) : before_(running()) { running() = &stream; }
RunningHost::~RunningHost() { running() = before_; }

bool is_trusted(CUhostFn call) {
  return call == reinterpret_cast<CUhostFn>(trusted.load(std::memory_order_relaxed));
}

} // namespace va

using namespace va;

extern "C" int va_outside_stream(void *handle, va_outside_place *out) {
  return guarded([&] {
    healthy_context();
    Stream &stream = stream_unsettled(static_cast<CUstream>(handle));
    *out = {&stream, stream.context->device->ordinal, in_capture(stream)};
    return CUDA_SUCCESS;
  });
}

extern "C" va_outside_place va_outside_running(void) {
  Stream *const stream = running();
  if (!stream)
    return {nullptr, -1, 0};
  return {stream, stream->context->device->ordinal, 0};
}

extern "C" void va_outside_trust(void (*call)(void *)) { trusted = call; }

extern "C" void va_outside_hold(void *stream, va_outside_settle settle, void *ticket) {
  const std::lock_guard<std::mutex> lock(holds().mutex);
  holds().all.push_back({ticket, settle, {place_of(*static_cast<Stream *>(stream))}});
  held_count.fetch_add(1);
}

extern "C" double va_outside_ready(void *stream) {
  const std::shared_ptr<Moment> moment = recorded(place_of(*static_cast<Stream *>(stream)));
  resolve_timeline();
  return time_of(*moment);
}

extern "C" void va_outside_done(void *const *tickets, const uint64_t *sent, size_t count,
                                double not_before_s, double seconds) {
  const std::list<Hold> done = taken(tickets, count);
  count_links(done, tickets, sent, count);
  log_done(done, tickets, sent, count, not_before_s, seconds);
}

extern "C" void va_outside_drop(void *const *tickets, size_t count) { taken(tickets, count); }
