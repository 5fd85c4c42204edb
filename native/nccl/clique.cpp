#include "clique.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "va100/outside.h"

namespace va::nccl {
namespace {

constexpr auto kTick = std::chrono::milliseconds(200);
constexpr int kTicksUntilTold = 150; // half a minute

bool is_collective(const Ticket &ticket) { return ticket.kind != Kind::kPeers; }

Digest digest_of(const Ticket &t) {
  return {static_cast<uint64_t>(t.kind), t.kind == Kind::kSplit ? 0 : t.count,
          static_cast<uint64_t>(t.type), static_cast<uint64_t>(t.op),
          static_cast<uint64_t>(t.root)};
}

// Handed to the driver: whoever uses a held stream waits here.
struct Waiting {
  std::mutex mutex;
  std::map<void *, std::pair<std::shared_ptr<Clique>, TicketPtr>> by_ticket;
};

Waiting &waiting() {
  static Waiting *const instance = new Waiting;
  return *instance;
}

void settle(void *ticket) {
  std::pair<std::shared_ptr<Clique>, TicketPtr> found;
  {
    const std::lock_guard<std::mutex> lock(waiting().mutex);
    const auto it = waiting().by_ticket.find(ticket);
    if (it == waiting().by_ticket.end())
      return;
    found = it->second;
  }
  found.first->wait_for(found.second);
}

void hold(std::shared_ptr<Clique> clique, const TicketPtr &ticket) {
  if (!ticket->stream)
    return;
  {
    const std::lock_guard<std::mutex> lock(waiting().mutex);
    waiting().by_ticket[ticket.get()] = {std::move(clique), ticket};
  }
  va_outside_hold(ticket->stream, settle, ticket.get());
}

bool sharing_allowed() {
  const char *const text = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return text && *text == '1';
}

} // namespace

void await_others(const void *stream, const Clique *clique) {
  for (;;) {
    std::pair<std::shared_ptr<Clique>, TicketPtr> found;
    {
      const std::lock_guard<std::mutex> lock(waiting().mutex);
      for (const auto &[key, held] : waiting().by_ticket)
        if (held.second->stream == stream && held.first.get() != clique)
          found = held;
    }
    if (!found.first)
      return;
    found.first->wait_for(found.second);
  }
}

void Clique::join(int rank, const Seat &seat) {
  const Lock lock(mutex_);
  if (is_local(rank))
    fail(ncclInvalidUsage, "rank %d is there already", rank);
  if (!segment_)
    std::atomic_store(&segment_, std::shared_ptr<Segment>(Segment::open(name_, ranks_)));
  segment_->join(rank, seat);
  lists_[rank];
}

void Clique::await_all() {
  const std::shared_ptr<Segment> segment = [&] {
    const Lock lock(mutex_);
    return segment_;
  }();
  if (segment)
    segment->await_all([&] {
      if (gave_up_)
        fail(ncclInvalidUsage, "the communicator was aborted");
    });
  const Lock lock(mutex_);
  if (!complete_)
    complete();
}

void Clique::complete() {
  segment_->seal();
  std::map<std::array<uint8_t, 16>, int> by_device;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Seat &seat = segment_->place(rank).seat;
    gpus_.push_back(seat.gpu);
    const auto [it, first] = by_device.emplace(seat.uuid, rank);
    if (!first && !sharing_allowed())
      fail(ncclInvalidUsage,
           "Duplicate GPU detected : rank %d and rank %d both on GPU %d of the node; give each "
           "rank its own (VA100_GPUS sets how many there are), or set "
           "NCCL_MULTI_RANK_GPU_ENABLE=1",
           rank, it->second, seat.gpu);
  }
  ring_ = ring_through(gpus_);
  if (segment_->all_here_are_mine())
    std::atomic_store(&segment_, std::shared_ptr<Segment>());
  complete_ = true;
  inform("communicator %s: %d ranks, %zu of them here, %s", name_.c_str(), ranks_, lists_.size(),
         ring_.links ? "NVLink rings" : "rings over PCIe");
}

void Clique::leave(int rank) {
  Lock lock(mutex_);
  lists_.erase(rank);
  if (lists_.empty())
    std::atomic_store(&segment_, std::shared_ptr<Segment>());
}

void Clique::post(const std::vector<TicketPtr> &tickets) {
  Lock lock(mutex_);
  if (error_ != ncclSuccess)
    throw Failure{error_, error_text_};
  for (const TicketPtr &ticket : tickets) {
    for (const Leg &leg : ticket->legs)
      if (segment_ && ticket->stream && !is_local(leg.peer) && !ticket->begin_s)
        ticket->begin_s = va_outside_ready(ticket->stream);
    hold(shared_from_this(), ticket);
    lists_[ticket->rank].push_back(ticket);
  }
  while (step())
    ;
  while (segment_ && remote_legs_wait() && await_queues(lock))
    while (step())
      ;
  for (const TicketPtr &ticket : tickets)
    if (ticket->done && ticket->result != ncclSuccess)
      throw Failure{ticket->result, ticket->text};
}

void Clique::wait_for(const TicketPtr &ticket) {
  Lock lock(mutex_);
  for (int ticks = 0; !ticket->done; ++ticks) {
    while (step())
      ;
    if (ticket->done)
      return;
    if (ticks == kTicksUntilTold)
      std::fprintf(stderr,
                   "va100: NCCL rank %d of %d has waited for half a minute for %s; one thread that "
                   "drives several ranks has to call them between ncclGroupStart and "
                   "ncclGroupEnd\n",
                   ticket->rank, ranks_, missing().c_str());
    if (gave_up_)
      return fail_all(ncclInvalidUsage, "the communicator was aborted");
    if (segment_ && remote_legs_wait())
      await_queues(lock);
    else
      changed_.wait_for(lock, kTick);
  }
}

// Let others at the lists until something moves; whether they still can.
bool Clique::await_queues(Lock &lock) {
  const std::shared_ptr<Segment> segment = segment_;
  const uint32_t seen = segment->bell();
  if (step()) // it may have rung before we looked
    return true;
  lock.unlock();
  try {
    segment->await_queues(seen);
  } catch (const Failure &failure) {
    lock.lock();
    fail_all(failure.code, failure.text);
    return false;
  }
  lock.lock();
  return true;
}

std::string Clique::missing() const {
  std::string text;
  for (const auto &[rank, list] : lists_)
    if (list.empty())
      text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  return text.empty() ? "ranks of other processes, or for sends and receives without partners"
                      : text + " of this process";
}

void Clique::drain(int rank) {
  for (;;) {
    TicketPtr last;
    {
      const Lock lock(mutex_);
      if (!lists_[rank].empty())
        last = lists_[rank].back();
    }
    if (!last)
      return;
    wait_for(last);
  }
}

void Clique::give_up() {
  gave_up_ = true;
  const std::shared_ptr<Segment> segment = std::atomic_load(&segment_);
  if (segment)
    segment->give_up();
  Lock lock(mutex_);
  fail_all(ncclInvalidUsage, "the communicator was aborted");
}

ncclResult_t Clique::error() {
  // Not the lock: it is held while ranks of other processes are waited for.
  const std::shared_ptr<Segment> segment = std::atomic_load(&segment_);
  if (segment && segment->given_up() && !gave_up_)
    return ncclRemoteError;
  Lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() ? error_ : ncclSuccess;
}

bool Clique::ready_set(std::vector<TicketPtr> *set) const {
  if (!complete_ || (!segment_ && lists_.size() != static_cast<size_t>(ranks_)))
    return false;
  for (const auto &[rank, list] : lists_) {
    if (list.empty() || !is_collective(*list.front()))
      return false;
    set->push_back(list.front());
  }
  return !set->empty();
}

// Run what can run; whether anything did.
bool Clique::step() {
  if (error_ != ncclSuccess)
    return false;
  std::vector<TicketPtr> set;
  try {
    if (ready_set(&set)) {
      run_set(set);
      return true;
    }
    return move_legs();
  } catch (const Failure &failure) {
    if (segment_)
      segment_->give_up();
    fail_all(failure.code, failure.text);
  } catch (const std::bad_alloc &) {
    fail_all(ncclSystemError, "out of host memory");
  }
  return false;
}

void Clique::run_set(const std::vector<TicketPtr> &set) {
  const Digest said = digest_of(*set.front());
  for (const TicketPtr &ticket : set)
    if (digest_of(*ticket) != said)
      fail(ncclInvalidUsage,
           "ranks %d and %d called different collectives, or with other counts, types, operations "
           "or roots",
           set.front()->rank, ticket->rank);
  if (set.front()->kind == Kind::kSplit)
    return run_split(set);
  if (segment_)
    run_shared(set, ranks_, *segment_, &turn_);
  else
    run_locally(set, ranks_);
  uint64_t sent = 0;
  const double seconds = seconds_of(*set.front(), ranks_, ring_, &sent);
  for (const TicketPtr &ticket : set)
    ticket->sent_bytes = sent;
  finish(set, ncclSuccess, "", seconds);
}

void Clique::run_split(const std::vector<TicketPtr> &set) {
  std::vector<std::pair<int, int>> all(static_cast<size_t>(ranks_));
  for (const TicketPtr &ticket : set) {
    all[static_cast<size_t>(ticket->rank)] = {ticket->color, ticket->key};
    if (!segment_)
      continue;
    segment_->place(ticket->rank).color = ticket->color;
    segment_->place(ticket->rank).key = ticket->key;
  }
  if (segment_) {
    segment_->meet();
    for (int rank = 0; rank < ranks_; ++rank)
      all[static_cast<size_t>(rank)] = {segment_->place(rank).color, segment_->place(rank).key};
    segment_->meet();
  }
  settle_split(set, all, name_, ++splits_);
  finish(set, ncclSuccess, "", 0);
}

bool Clique::move_legs() {
  bool moved = false;
  for (const auto &[rank, list] : lists_)
    if (!list.empty() && !is_collective(*list.front()))
      moved |= move_legs_of(*list.front());
  std::vector<TicketPtr> over;
  double seconds = 0;
  for (const auto &[rank, list] : lists_) {
    if (list.empty() || is_collective(*list.front()))
      continue;
    Ticket &ticket = *list.front();
    if (std::any_of(ticket.legs.begin(), ticket.legs.end(), [](const Leg &l) { return !l.done; }))
      continue;
    double out = 0, in = 0;
    std::set<int> peers;
    for (const Leg &leg : ticket.legs) {
      if (leg.peer == ticket.rank)
        continue;
      (leg.send ? out : in) += static_cast<double>(leg.bytes);
      peers.insert(leg.peer);
    }
    const Price found = price_exchange(out, in, static_cast<int>(peers.size()), ring_);
    ticket.sent_bytes = found.sent_bytes;
    seconds = std::max(seconds, found.seconds);
    over.push_back(list.front());
  }
  if (!over.empty())
    finish(over, ncclSuccess, "", seconds);
  return moved || !over.empty();
}

// Of the legs with one peer and one direction only the first that is not done may move.
bool Clique::move_legs_of(Ticket &ticket) {
  bool moved = false;
  std::set<std::pair<int, bool>> waits;
  for (Leg &leg : ticket.legs) {
    if (leg.done || waits.count({leg.peer, leg.send}))
      continue;
    moved |= is_local(leg.peer) ? meet_locally(ticket, leg) : move_remotely(ticket, leg);
    if (!leg.done)
      waits.insert({leg.peer, leg.send});
  }
  return moved;
}

bool Clique::meet_locally(Ticket &ticket, Leg &leg) {
  const std::deque<TicketPtr> &list = lists_[leg.peer];
  if (list.empty() || is_collective(*list.front()))
    return false;
  for (Leg &other : list.front()->legs) {
    if (other.done || other.peer != ticket.rank || other.send == leg.send)
      continue;
    Leg &from = leg.send ? leg : other, &to = leg.send ? other : leg;
    if (from.bytes != to.bytes)
      fail(ncclInvalidUsage, "rank %d and rank %d do not agree: %zu bytes sent, %zu expected",
           ticket.rank, leg.peer, from.bytes, to.bytes);
    std::memmove(to.data, from.data, to.bytes);
    from.done = to.done = true;
    return true;
  }
  return false;
}

// A header says how many bytes follow, and from when on they could.
bool Clique::move_remotely(Ticket &ticket, Leg &leg) const {
  constexpr size_t kHeader = sizeof leg.header;
  const Segment &segment = *segment_;
  const auto go = [&](void *data, size_t bytes) {
    return leg.send ? segment.push(ticket.rank, leg.peer, data, bytes)
                    : segment.pull(leg.peer, ticket.rank, data, bytes);
  };
  const size_t before = leg.moved;
  if (leg.moved < kHeader) {
    if (leg.send && !leg.moved)
      leg.header = {leg.bytes, ticket.begin_s};
    leg.moved += go(reinterpret_cast<uint8_t *>(&leg.header) + leg.moved, kHeader - leg.moved);
    if (leg.moved == kHeader)
      ticket.begin_s = std::max(ticket.begin_s, leg.header.ready_s);
    if (leg.moved == kHeader && leg.header.bytes != leg.bytes)
      fail(ncclInvalidUsage, "rank %d expects %zu bytes of rank %d, which sends %zu", ticket.rank,
           leg.bytes, leg.peer, static_cast<size_t>(leg.header.bytes));
  }
  if (leg.moved >= kHeader)
    leg.moved += go(leg.data + (leg.moved - kHeader), kHeader + leg.bytes - leg.moved);
  leg.done = leg.moved == kHeader + leg.bytes;
  return leg.moved != before;
}

bool Clique::remote_legs_wait() const {
  for (const auto &[rank, list] : lists_) {
    if (list.empty() || is_collective(*list.front()))
      continue;
    for (const Leg &leg : list.front()->legs)
      if (!leg.done && !is_local(leg.peer))
        return true;
  }
  return false;
}

void Clique::finish(const std::vector<TicketPtr> &set, ncclResult_t result, const std::string &text,
                    double seconds) {
  std::vector<void *> held;
  std::vector<uint64_t> sent;
  double begin = 0;
  for (const TicketPtr &ticket : set) {
    begin = std::max(begin, ticket->begin_s);
    ticket->result = result;
    ticket->text = text;
    const auto list = lists_.find(ticket->rank);
    if (list != lists_.end() && !list->second.empty() && list->second.front() == ticket)
      list->second.pop_front();
    if (!ticket->stream)
      continue;
    held.push_back(ticket.get());
    sent.push_back(ticket->sent_bytes);
  }
  if (result == ncclSuccess)
    va_outside_done(held.data(), sent.data(), held.size(), begin, seconds);
  else
    va_outside_drop(held.data(), held.size());
  {
    const std::lock_guard<std::mutex> lock(waiting().mutex);
    for (void *const ticket : held)
      waiting().by_ticket.erase(ticket);
  }
  for (const TicketPtr &ticket : set)
    ticket->done = true;
  changed_.notify_all();
}

void Clique::fail_all(ncclResult_t result, const std::string &text) {
  if (error_ == ncclSuccess) {
    error_ = result;
    error_text_ = text;
    remember(text);
  }
  std::vector<TicketPtr> all;
  for (auto &[rank, list] : lists_) {
    all.insert(all.end(), list.begin(), list.end());
    list.clear();
  }
  finish(all, result, text, 0);
}

} // namespace va::nccl
