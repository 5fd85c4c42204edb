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

} // namespace

std::vector<size_t> visible_gpus(const std::string &text, const std::vector<std::string> &uuids) {
  const std::vector<std::string> entries = entries_of(text);
  if (starts_with(entries[0], kMig)) {
    say("CUDA_VISIBLE_DEVICES=%s: there are no MIG devices here, so no device is visible",
        text.c_str());
    return {};
  }
  const bool named = starts_with(entries[0], kGpu);
  std::vector<size_t> places;
  for (const std::string &entry : entries) {
    if (named != starts_with(entry, kGpu))
      break;
    const size_t place = named ? by_uuid(entry, uuids) : by_index(entry, uuids.size());
    if (place == uuids.size())
      break;
    if (std::count(places.begin(), places.end(), place))
      return {};
    places.push_back(place);
  }
  return places;
}

} // namespace va
