// Which of the machine's GPUs a process gets to see.
#include "visible.h"

#include <algorithm>
#include <cstdlib>
#include <strings.h>

#include "settings.h"

namespace va {
namespace {

constexpr char kGpu[] = "GPU-", kMig[] = "MIG-";

bool starts_with(const std::string &text, const std::string &beginning) {
  return !strncasecmp(text.c_str(), beginning.c_str(), beginning.size());
}

// Entries without the blanks around them.
std::vector<std::string> entries_of(const std::string &text) {
  std::vector<std::string> entries;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const size_t first = std::min(text.find_first_not_of(" \t", at), comma);
    const size_t last = text.find_last_not_of(" \t", comma ? comma - 1 : 0);
    const bool blank = first >= comma;
    entries.push_back(blank ? std::string() : text.substr(first, last + 1 - first));
    at = comma + 1;
  }
  return entries;
}

// The index that an entry begins with, as strtol reads it; the count of GPUs where there is none.
size_t by_index(const std::string &entry, size_t count) {
  char *end = nullptr;
  const long index = std::strtol(entry.c_str(), &end, 10);
  const bool is_one = end != entry.c_str() && index >= 0 && static_cast<size_t>(index) < count;
  return is_one ? static_cast<size_t>(index) : count;
}

// The one GPU whose UUID begins so.
size_t by_uuid(const std::string &entry, const std::vector<std::string> &uuids) {
  size_t found = uuids.size();
  for (size_t i = 0; i < uuids.size(); ++i) {
    if (!starts_with(uuids[i], entry))
      continue;
    if (found != uuids.size())
      return uuids.size();
    found = i;
  }
  return found;
}

// "MIG-GPU-<uuid>/<GPU instance>/<compute instance>", as older drivers spelled slices.
bool is_spelled(const std::string &entry, const Card &card, const Slice &slice) {
  const std::string spelled = "MIG-" + card.uuid + "/" + std::to_string(slice.gpu_instance) + "/" +
                              std::to_string(slice.compute_instance);
  return !strcasecmp(entry.c_str(), spelled.c_str());
}

// The one slice whose UUID begins so.
std::vector<Place> by_slice(const std::string &entry, const std::vector<Card> &cards) {
  std::vector<Place> found;
  for (size_t seat = 0; seat < cards.size(); ++seat)
    for (const Slice &slice : cards[seat].slices)
      if (starts_with(slice.uuid, entry) || is_spelled(entry, cards[seat], slice))
        found.push_back(Place{seat, slice.gpu_instance, slice.compute_instance});
  if (found.size() != 1)
    say("CUDA_VISIBLE_DEVICES=%s names %s MIG device of this node, so no device is visible",
        entry.c_str(), found.empty() ? "no" : "more than one");
  return found.size() == 1 ? found : std::vector<Place>();
}

// What a process sees that may use these GPUs: the first slice among them, else those without MIG.
std::vector<Place> seen_of(const std::vector<size_t> &seats, const std::vector<Card> &cards) {
  std::vector<Place> whole;
  for (const size_t seat : seats) {
    const Card &card = cards[seat];
    if (!card.slices.empty())
      return {Place{seat, card.slices[0].gpu_instance, card.slices[0].compute_instance}};
    if (!card.mig && !card.lost)
      whole.push_back(Place{seat});
  }
  return whole;
}

} // namespace

std::vector<Place> all_places(const std::vector<Card> &cards) {
  std::vector<size_t> seats(cards.size());
  for (size_t i = 0; i < seats.size(); ++i)
    seats[i] = i;
  return seen_of(seats, cards);
}

std::vector<Place> visible_places(const std::string &text, const std::vector<Card> &cards) {
  const std::vector<std::string> entries = entries_of(text);
  if (starts_with(entries[0], kMig))
    return by_slice(entries[0], cards);
  const bool named = starts_with(entries[0], kGpu);
  std::vector<std::string> uuids;
  for (const Card &card : cards)
    uuids.push_back(card.uuid);
  std::vector<size_t> seats;
  for (const std::string &entry : entries) {
    if (named != starts_with(entry, kGpu))
      break;
    const size_t seat = named ? by_uuid(entry, uuids) : by_index(entry, uuids.size());
    if (seat == uuids.size())
      break;
    if (std::count(seats.begin(), seats.end(), seat))
      return {};
    seats.push_back(seat);
  }
  return seen_of(seats, cards);
}

} // namespace va
