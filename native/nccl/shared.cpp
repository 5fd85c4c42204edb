// Collectives with other processes: through slots of the segment, two to a rank, in turns.
//
// Each chunk goes in, all meet, and comes out.  Slots take turns, so that whoever is ahead writes
// into the one that nobody reads: to get there again all have to have met once more.
#include <algorithm>
#include <cstring>

#include "clique.h"
#include "va100/outside.h"

namespace va::nccl {
namespace {

class Shared {
public:
  Shared(const std::vector<TicketPtr> &mine, int ranks, Segment &segment, uint64_t *turn)
      : mine_(mine), ranks_(ranks), segment_(segment), turn_(*turn), first_(*mine[0]),
        width_(width_of(first_.type)), room_(segment.slot_bytes() / width_),
        part_room_(room_ / static_cast<size_t>(ranks)) {}

  void run() {
    require_agreement();
    switch (first_.kind) {
    case Kind::kAllReduce:
    case Kind::kReduce:
      return sum();
    case Kind::kBroadcast:
      return whole([&](const Ticket &t) { return t.rank == first_.root; },
                   [&](const Ticket &t, size_t first, size_t count) {
                     out(t.to + first * width_, first_.root, 0, count);
                   });
    case Kind::kGather:
      return whole([](const Ticket &) { return true; },
                   [&](const Ticket &t, size_t first, size_t count) {
                     if (t.rank == first_.root)
                       gather(t, first, count);
                   });
    case Kind::kAllGather:
      return whole([](const Ticket &) { return true; },
                   [&](const Ticket &t, size_t first, size_t count) { gather(t, first, count); });
    default:
      return parts();
    }
  }

private:
  uint8_t *slot(int rank) const { return segment_.slot(rank, turn_); }

  void in(int rank, size_t at, const uint8_t *from, size_t count) const {
    std::memcpy(slot(rank) + at * width_, from, count * width_);
  }
  void out(uint8_t *to, int rank, size_t at, size_t count) const {
    std::memcpy(to, slot(rank) + at * width_, count * width_);
  }
  void scaled_in(const Ticket &t, size_t at, const uint8_t *from, size_t count) const {
    if (t.scaling.multiply)
      scale(t.type, from, slot(t.rank) + at * width_, count, t.scaling.factor);
    else
      in(t.rank, at, from, count);
  }

  // Every rank says what it is about to do, and from when on it can, before anything moves.
  void require_agreement() {
    const Digest said{static_cast<uint64_t>(first_.kind), first_.count,
                      static_cast<uint64_t>(first_.type), static_cast<uint64_t>(first_.op),
                      static_cast<uint64_t>(first_.root)};
    for (const TicketPtr &ticket : mine_) {
      segment_.place(ticket->rank).digest = said;
      segment_.place(ticket->rank).ready_s = ticket->stream ? va_outside_ready(ticket->stream) : 0;
    }
    segment_.meet();
    bool agreed = true;
    double begin = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      agreed &= segment_.place(rank).digest == said;
      begin = std::max(begin, segment_.place(rank).ready_s);
    }
    for (const TicketPtr &ticket : mine_)
      ticket->begin_s = begin;
    segment_.meet(); // nobody writes anew before all have read
    if (!agreed)
      fail(ncclInvalidUsage, "ranks called different collectives, or with other counts, types, "
                             "operations or roots");
  }

  void add(size_t at, size_t count, int last, void *to) const {
    std::vector<const void *> inputs;
    for (int k = 1; k <= ranks_; ++k)
      inputs.push_back(slot((last + k) % ranks_) + at * width_);
    reduce(first_.type, first_.op, inputs.data(), inputs.size(), to, count,
           first_.scaling.divide_by);
  }

  // Each rank adds up a share of the chunk, in place in its own slot.
  void sum() {
    for (size_t first = 0; first < first_.count; first += room_, ++turn_) {
      const size_t count = std::min(room_, first_.count - first);
      const size_t share = (count + static_cast<size_t>(ranks_) - 1) / static_cast<size_t>(ranks_);
      for (const TicketPtr &t : mine_)
        scaled_in(*t, 0, t->from + first * width_, count);
      segment_.meet();
      for (const TicketPtr &t : mine_)
        add_share(*t, first, count, share);
      segment_.meet();
      for (const TicketPtr &t : mine_)
        if (first_.kind == Kind::kAllReduce || t->rank == first_.root)
          for (int rank = 0; rank < ranks_; ++rank) {
            const size_t at = std::min(count, static_cast<size_t>(rank) * share);
            const size_t here = std::min(share, count - at);
            out(t->to + (first + at) * width_, rank, at, here);
          }
    }
  }

  void add_share(const Ticket &t, size_t first, size_t count, size_t share) const {
    const size_t at = std::min(count, static_cast<size_t>(t.rank) * share);
    const size_t here = std::min(share, count - at);
    if (first_.kind == Kind::kReduce)
      return here ? add(at, here, first_.root, slot(t.rank) + at * width_) : void();
    for_each_block(first_.count, ranks_, first + at, here,
                   [&](size_t begin, size_t length, int block) {
                     add(begin - first, length, block, slot(t.rank) + (begin - first) * width_);
                   });
  }

  // Buffers of `count` elements a rank: who gives, and what each takes.
  template <typename Gives, typename Take> void whole(Gives gives, Take take) {
    for (size_t first = 0; first < first_.count; first += room_, ++turn_) {
      const size_t count = std::min(room_, first_.count - first);
      for (const TicketPtr &t : mine_)
        if (gives(*t))
          in(t->rank, 0, t->from + first * width_, count);
      segment_.meet();
      for (const TicketPtr &t : mine_)
        take(*t, first, count);
    }
  }

  void gather(const Ticket &t, size_t first, size_t count) const {
    for (int rank = 0; rank < ranks_; ++rank)
      out(t.to + (static_cast<size_t>(rank) * first_.count + first) * width_, rank, 0, count);
  }

  // Buffers with a part for each rank, of which a slot holds a piece each.
  void parts() {
    keep_inputs();
    for (size_t first = 0; first < first_.count; first += part_room_, ++turn_) {
      const size_t count = std::min(part_room_, first_.count - first);
      for (size_t i = 0; i < mine_.size(); ++i)
        if (first_.kind != Kind::kScatter || mine_[i]->rank == first_.root)
          for (int rank = 0; rank < ranks_; ++rank)
            scaled_in(*mine_[i], static_cast<size_t>(rank) * part_room_,
                      from_[i] + (static_cast<size_t>(rank) * first_.count + first) * width_,
                      count);
      segment_.meet();
      for (const TicketPtr &t : mine_)
        take_part(*t, first, count);
    }
  }

  void take_part(const Ticket &t, size_t first, size_t count) const {
    const size_t mine = static_cast<size_t>(t.rank) * part_room_;
    if (first_.kind == Kind::kReduceScatter)
      return add(mine, count, t.rank, t.to + first * width_);
    if (first_.kind == Kind::kScatter)
      return out(t.to + first * width_, first_.root, mine, count);
    for (int rank = 0; rank < ranks_; ++rank)
      out(t.to + (static_cast<size_t>(rank) * first_.count + first) * width_, rank, mine, count);
  }

  // What would be overwritten before it is sent: an exchange in place.
  void keep_inputs() {
    kept_.resize(mine_.size());
    for (size_t i = 0; i < mine_.size(); ++i) {
      from_.push_back(mine_[i]->from);
      if (first_.kind != Kind::kAllToAll || mine_[i]->from != mine_[i]->to)
        continue;
      kept_[i].assign(mine_[i]->from,
                      mine_[i]->from + first_.bytes() * static_cast<size_t>(ranks_));
      from_[i] = kept_[i].data();
    }
  }

  const std::vector<TicketPtr> &mine_;
  const int ranks_;
  Segment &segment_;
  uint64_t &turn_;
  const Ticket &first_;
  const size_t width_, room_, part_room_;
  std::vector<const uint8_t *> from_;
  std::vector<std::vector<uint8_t>> kept_;
};

} // namespace

void run_shared(const std::vector<TicketPtr> &mine, int ranks, Segment &segment, uint64_t *turn) {
  Shared(mine, ranks, segment, turn).run();
}

} // namespace va::nccl
