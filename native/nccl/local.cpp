// Collectives among ranks of one process: straight from buffer to buffer.
#include <algorithm>
#include <cstring>

#include "clique.h"

namespace va::nccl {
namespace {

constexpr size_t kPiece = 1 << 14; // elements that are summed before they are handed out

void copy(uint8_t *to, const uint8_t *from, size_t bytes) {
  if (to != from && bytes)
    std::memmove(to, from, bytes);
}

class Local {
public:
  Local(const std::vector<TicketPtr> &by_rank, int ranks)
      : all_(by_rank), ranks_(ranks), first_(*by_rank[0]), width_(width_of(first_.type)) {}

  void run() {
    switch (first_.kind) {
    case Kind::kAllReduce:
      return sum(first_.count, [&](size_t at, size_t bytes, const uint8_t *part) {
        for (const TicketPtr &ticket : all_)
          copy(ticket->to + at, part, bytes);
      });
    case Kind::kReduce:
      return reduce_to_root();
    case Kind::kReduceScatter:
      return reduce_scatter();
    case Kind::kBroadcast:
      for (const TicketPtr &ticket : all_)
        copy(ticket->to, root().from, root().bytes());
      return;
    case Kind::kAllGather:
      for (const TicketPtr &to : all_)
        for (const TicketPtr &from : all_)
          copy(part_of(to->to, from->rank), from->from, first_.bytes());
      return;
    case Kind::kAllToAll:
      return all_to_all();
    case Kind::kGather:
      for (const TicketPtr &from : all_)
        copy(part_of(root().to, from->rank), from->from, first_.bytes());
      return;
    case Kind::kScatter:
      for (const TicketPtr &to : all_)
        copy(to->to, root().from + to->rank * first_.bytes(), first_.bytes());
      return;
    default:
      fail(ncclInternalError, "no collective");
    }
  }

private:
  const Ticket &root() const { return *all_[static_cast<size_t>(first_.root)]; }
  uint8_t *part_of(uint8_t *buffer, int rank) const {
    return buffer + static_cast<size_t>(rank) * first_.bytes();
  }

  // Add up elements [first, first + count) of all ranks' buffers into `to`, rank `last` last.
  void add(size_t first, size_t count, int last, uint8_t *to) {
    std::vector<const void *> inputs;
    scaled_.resize(static_cast<size_t>(ranks_) * kPiece * width_);
    for (int k = 1; k <= ranks_; ++k) {
      const auto rank = static_cast<size_t>((last + k) % ranks_);
      const uint8_t *from = all_[rank]->from + first * width_;
      if (all_[rank]->scaling.multiply) {
        uint8_t *const room = &scaled_[rank * kPiece * width_];
        scale(first_.type, from, room, count, all_[rank]->scaling.factor);
        from = room;
      }
      inputs.push_back(from);
    }
    reduce(first_.type, first_.op, inputs.data(), inputs.size(), to, count,
           first_.scaling.divide_by);
  }

  // The sum of everything, piece by piece: hand(byte offset, bytes, piece).
  template <typename Hand> void sum(size_t total, Hand hand) {
    std::vector<uint8_t> piece(kPiece * width_);
    for (size_t first = 0; first < total; first += kPiece) {
      const size_t here = std::min(kPiece, total - first);
      for_each_block(total, ranks_, first, here, [&](size_t at, size_t count, int block) {
        add(at, count, block, &piece[(at - first) * width_]);
      });
      hand(first * width_, here * width_, piece.data());
    }
  }

  // Around the ring to the root, which comes last.
  void reduce_to_root() {
    std::vector<uint8_t> piece(kPiece * width_);
    for (size_t first = 0; first < first_.count; first += kPiece) {
      const size_t here = std::min(kPiece, first_.count - first);
      add(first, here, first_.root, piece.data());
      copy(root().to + first * width_, piece.data(), here * width_);
    }
  }

  void reduce_scatter() {
    std::vector<uint8_t> piece(kPiece * width_);
    for (const TicketPtr &to : all_)
      for (size_t first = 0; first < first_.count; first += kPiece) {
        const size_t here = std::min(kPiece, first_.count - first);
        add(static_cast<size_t>(to->rank) * first_.count + first, here, to->rank, piece.data());
        copy(to->to + first * width_, piece.data(), here * width_);
      }
  }

  // In place it goes by way of a copy.
  void all_to_all() {
    std::vector<std::vector<uint8_t>> kept(all_.size());
    std::vector<const uint8_t *> from(all_.size());
    const size_t bytes = first_.bytes() * static_cast<size_t>(ranks_);
    for (size_t rank = 0; rank < all_.size(); ++rank) {
      from[rank] = all_[rank]->from;
      if (all_[rank]->from != all_[rank]->to)
        continue;
      kept[rank].assign(from[rank], from[rank] + bytes);
      from[rank] = kept[rank].data();
    }
    for (const TicketPtr &to : all_)
      for (size_t rank = 0; rank < all_.size(); ++rank)
        copy(part_of(to->to, static_cast<int>(rank)),
             from[rank] + static_cast<size_t>(to->rank) * first_.bytes(), first_.bytes());
  }

  const std::vector<TicketPtr> &all_;
  const int ranks_;
  const Ticket &first_;
  const size_t width_;
  std::vector<uint8_t> scaled_;
};

} // namespace

void run_locally(const std::vector<TicketPtr> &by_rank, int ranks) {
  Local(by_rank, ranks).run();
}

void settle_split(const std::vector<TicketPtr> &mine, const std::vector<std::pair<int, int>> &all,
                  const std::string &name, uint64_t serial) {
  for (const TicketPtr &ticket : mine) {
    const auto [color, key] = all[static_cast<size_t>(ticket->rank)];
    if (color < 0)
      continue;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank].first != color)
        continue;
      ++ticket->made_ranks;
      const bool before = all[rank].second < key ||
                          (all[rank].second == key && static_cast<int>(rank) < ticket->rank);
      ticket->made_rank += before;
    }
    ticket->made = name + "-" + std::to_string(serial) + "." + std::to_string(color);
  }
}

double seconds_of(const Ticket &ticket, int ranks, const Ring &ring, uint64_t *sent) {
  static const Pattern kPatterns[] = {Pattern::kReduceAndGather, Pattern::kChain, Pattern::kChain,
                                      Pattern::kGather,          Pattern::kReduce,
                                      Pattern::kExchange,        Pattern::kOneRoot,
                                      Pattern::kOneRoot};
  const bool parts = ticket.kind != Kind::kAllReduce && ticket.kind != Kind::kReduce &&
                     ticket.kind != Kind::kBroadcast;
  const double bytes = static_cast<double>(ticket.bytes()) * (parts ? ranks : 1);
  const bool narrow = width_of(ticket.type) == 1;
  const Price found =
      price(kPatterns[static_cast<size_t>(ticket.kind)], bytes, ranks, narrow, ring);
  *sent = found.sent_bytes;
  return found.seconds;
}

} // namespace va::nccl
