// Races between pieces of work in streams that nothing orders: kernels, copies and fills.
//
// Work runs when it is issued, one piece at a time, so what it touched is known when it ends; it is
// then compared with what unordered work before it touched.  Who is after whom is kept in clocks, one
// a stream and one for the host, which learns when it waits.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "check_page.h"
#include "check_stream.h"

namespace va::check {
namespace {

constexpr size_t kMostMoments = 1 << 16;  // older ones count as after everything
constexpr uint32_t kPageWords = kPageBytes / 4;

using Clock = std::vector<uint32_t>;  // by stream: the last piece of its work known

struct StreamOrder {
  va_check_stream who{};
  Clock clock;
  uint32_t issued = 0;
};

// Who touched words of a page, by which line of which kernel.
struct PastUse {
  uint32_t stream, serial, kernel;
  Use use;
};

// Bytes that a copy or fill touched.
struct PastRange {
  uint32_t stream, serial;
  HostRange range;
};

struct Streams {
  std::vector<StreamOrder> streams;
  std::map<const void *, Clock> moments;
  std::deque<const void *> recorded;  // oldest first
  Clock host;
  std::map<uint64_t, std::vector<PastUse>> pages;
  std::vector<PastRange> ranges;
};

Streams &order() {
  static Streams *const instance = new Streams;
  return *instance;
}

// What this thread did and no stream has claimed yet.
struct Unclaimed {
  std::vector<LaunchUses> launches;
  std::vector<HostRange> ranges;
};
thread_local Unclaimed t_unclaimed;

// ------------------------------------------------------------------ clocks

uint32_t at(const Clock &clock, uint32_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

void join(Clock *into, const Clock &other) {
  if (into->size() < other.size()) into->resize(other.size());
  for (size_t i = 0; i < other.size(); i++) (*into)[i] = std::max((*into)[i], other[i]);
}

uint32_t index_of(const va_check_stream &who) {
  std::vector<StreamOrder> &streams = order().streams;
  for (uint32_t i = 0; i < streams.size(); i++)
    if (streams[i].who.id == who.id) return i;
  streams.push_back({who, {}, 0});
  return static_cast<uint32_t>(streams.size() - 1);
}

// What work issued to a stream now comes after: the legacy stream waits for those that block.
Clock known_to(uint32_t index) {
  const Streams &o = order();
  const va_check_stream &who = o.streams[index].who;
  Clock clock = o.streams[index].clock;
  join(&clock, o.host);
  for (const StreamOrder &other : o.streams) {
    if (other.who.group != who.group) continue;
    if (who.legacy ? other.who.blocking : who.blocking && other.who.legacy)
      join(&clock, other.clock);
  }
  return clock;
}

// ------------------------------------------------------------------ conflicts

void tell_words(va_check_finding *f, uint64_t address, uint32_t size) {
  f->address = address;
  f->size = size;
  f->space = kGlobal;
  tell_near(f, address);
}

void describe_use(va_check_access *a, const Use &u) {
  a->site = u.site;
  a->kind = u.kind;
  std::memcpy(a->ctaid, u.ctaid, sizeof a->ctaid);
  std::memcpy(a->tid, u.tid, sizeof a->tid);
}

// Of a finding: kernels, and of each access its site, or a copy's kind.
using Key = std::array<uint32_t, 4>;

uint32_t kind_of(const HostRange &r) {
  return r.fill ? VA_ACCESS_HOST_FILL : r.writes ? VA_ACCESS_HOST_WRITE : VA_ACCESS_HOST_READ;
}

void describe_range(va_check_access *a, const HostRange &r) {
  a->site = kNoSite;
  a->kind = kind_of(r);
}

class Comparison {
 public:
  Comparison(State &s, uint32_t stream, const Clock &clock) : s_(s), stream_(stream), clock_(clock) {}

  bool ordered(uint32_t stream, uint32_t serial) const { return at(clock_, stream) >= serial; }

  // A kernel's use of a page's words against all before it.
  void use(uint32_t kernel, uint64_t page, const Use &u) {
    for (const PastUse &past : order().pages[page]) {
      if (ordered(past.stream, past.serial) || !conflict(u, past.use)) continue;
      uint32_t word = first_common(u, past.use);
      if (word >= kPageWords) continue;
      va_check_finding *f = add({kernel, past.kernel, u.site, past.use.site}, past.stream);
      if (!f) continue;
      tell_words(f, page * kPageBytes + word * 4, 4);
      describe_use(&f->first, u);
      describe_use(&f->second, past.use);
    }
    for (const PastRange &past : order().ranges)
      if (!ordered(past.stream, past.serial)) meet(kernel, page, u, past.range, past.stream);
  }

  // A copy's or fill's bytes against all before it.
  void range(const HostRange &r) {
    auto &pages = order().pages;
    auto end = pages.upper_bound((r.end - 1) / kPageBytes);
    for (auto it = pages.lower_bound(r.begin / kPageBytes); it != end; ++it)
      for (const PastUse &past : it->second)
        if (!ordered(past.stream, past.serial))
          meet(past.kernel, it->first, past.use, r, past.stream);
    for (const PastRange &past : order().ranges) {
      const HostRange &p = past.range;
      if (ordered(past.stream, past.serial) || !(r.writes || p.writes)) continue;
      if (p.begin >= r.end || r.begin >= p.end) continue;
      va_check_finding *f = add({0, 0, kind_of(r), kind_of(p)}, past.stream);
      if (!f) continue;
      tell_words(f, std::max(p.begin, r.begin), 1);
      describe_range(&f->first, r);
      describe_range(&f->second, p);
    }
  }

 private:
  static bool conflict(const Use &a, const Use &b) {
    if (!(a.writes || b.writes)) return false;
    return !(a.strong && b.strong);
  }

  static uint32_t first_common(const Use &a, const Use &b) {
    for (uint32_t i = 0; i < kUseWords; i++)
      if (uint64_t both = a.words[i] & b.words[i])
        return i * 64 + static_cast<uint32_t>(__builtin_ctzll(both));
    return kPageWords;
  }

  void meet(uint32_t kernel, uint64_t page, const Use &u, const HostRange &r, uint32_t other) {
    if (!(u.writes || r.writes)) return;
    uint64_t base = page * kPageBytes;
    if (r.end <= base || r.begin >= base + kPageBytes) return;
    for (uint32_t word = 0; word < kPageWords; word++) {
      if (!(u.words[word / 64] >> (word % 64) & 1)) continue;
      uint64_t address = base + word * 4;
      if (address + 4 <= r.begin || address >= r.end) continue;
      va_check_finding *f = add({kernel, 0, u.site, kind_of(r)}, other);
      if (!f) return;
      tell_words(f, address, 4);
      describe_use(&f->first, u);
      describe_range(&f->second, r);
      return;
    }
  }

  // The finding for two places of the program in two streams; null when it is known.
  va_check_finding *add(const Key &key, uint32_t other) {
    auto known = made_.find(key);
    if (known != made_.end()) {
      s_.findings[known->second].count++;
      return nullptr;
    }
    made_[key] = s_.findings.size();
    va_check_finding f{};
    f.kind = VA_FOUND_RACE;
    f.kernel = key[0];
    f.second_kernel = key[1];
    f.relaxed = VA_RACE_STREAMS;
    f.launch = s_.checked;
    f.count = 1;
    f.streams[0] = order().streams[stream_].who.id;
    f.streams[1] = order().streams[other].who.id;
    s_.findings.push_back(f);
    return &s_.findings.back();
  }

  State &s_;
  uint32_t stream_;
  const Clock &clock_;
  std::map<Key, size_t> made_;
};

// ------------------------------------------------------------------ remembering

// Whatever comes is after what the host waited for.
template <typename Past>
void drop_known(std::vector<Past> *list) {
  const Clock &host = order().host;
  auto known = [&](const Past &p) { return at(host, p.stream) >= p.serial; };
  list->erase(std::remove_if(list->begin(), list->end(), known), list->end());
}

void remember(uint64_t page, PastUse now) {
  std::vector<PastUse> &list = order().pages[page];
  drop_known(&list);
  for (PastUse &old : list) {
    if (old.stream != now.stream || old.kernel != now.kernel || old.use.site != now.use.site ||
        old.use.kind != now.use.kind)
      continue;
    for (uint32_t i = 0; i < kUseWords; i++) old.use.words[i] &= ~now.use.words[i];
  }
  auto empty = [](const PastUse &p) {
    return std::all_of(p.use.words, p.use.words + kUseWords, [](uint64_t w) { return !w; });
  };
  list.erase(std::remove_if(list.begin(), list.end(), empty), list.end());
  list.push_back(now);
}

void forget_known() {
  Streams &o = order();
  drop_known(&o.ranges);
  for (auto it = o.pages.begin(); it != o.pages.end();) {
    drop_known(&it->second);
    it = it->second.empty() ? o.pages.erase(it) : std::next(it);
  }
}

bool following(const State &s) { return s.on(VA_CHECK_RACE) && s.streams; }

void claim(State &s, const va_check_stream &who) {
  uint32_t index = index_of(who);
  Clock clock = known_to(index);
  Comparison comparison(s, index, clock);
  for (const LaunchUses &launch : t_unclaimed.launches)
    for (const PageUses &page : launch.pages)
      for (const Use &u : page.uses) comparison.use(launch.kernel, page.number, u);
  for (const HostRange &r : t_unclaimed.ranges) comparison.range(r);
  StreamOrder &stream = order().streams[index];
  uint32_t serial = ++stream.issued;
  if (clock.size() <= index) clock.resize(index + 1);
  clock[index] = serial;
  for (const LaunchUses &launch : t_unclaimed.launches)
    for (const PageUses &page : launch.pages)
      for (const Use &u : page.uses)
        remember(page.number, PastUse{index, serial, launch.kernel, u});
  drop_known(&order().ranges);
  for (const HostRange &r : t_unclaimed.ranges) order().ranges.push_back({index, serial, r});
  stream.clock = std::move(clock);
}

}  // namespace

void launch_ended(State &s, LaunchUses uses) {
  if (following(s) && !uses.pages.empty()) t_unclaimed.launches.push_back(std::move(uses));
}

void host_touched(State &s, uint64_t begin, uint64_t bytes, bool writes, bool fill) {
  if (following(s) && bytes && begin - VA_ARENA_BASE < VA_ARENA_BYTES)
    t_unclaimed.ranges.push_back({begin, begin + bytes, writes, fill});
}

void forget_work(uint64_t begin, uint64_t end) {
  auto &pages = order().pages;
  pages.erase(pages.lower_bound(begin / kPageBytes), pages.upper_bound((end - 1) / kPageBytes));
  auto &ranges = order().ranges;
  auto inside = [&](const PastRange &p) { return p.range.begin < end && begin < p.range.end; };
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), inside), ranges.end());
}

void forget_all_work() {
  order() = Streams{};
  t_unclaimed = Unclaimed{};
}

}  // namespace va::check

extern "C" {

using namespace va::check;

void va_check_stream_made(void) {
  State &s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.streams = true;
}

void va_check_work(const va_check_stream *stream) {
  State &s = state();
  void (*sink)(void) = nullptr;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    if (following(s)) {
      size_t before = s.findings.size();
      claim(s, *stream);
      if (s.findings.size() > before && !s.launch) sink = s.sink;
    }
  }
  t_unclaimed = Unclaimed{};
  if (sink) sink();
}

void va_check_event_recorded(const va_check_stream *stream, const void *event) {
  State &s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!following(s)) return;
  Streams &o = order();
  uint32_t index = index_of(*stream);
  Clock clock = known_to(index);
  o.moments[event] = clock;
  o.streams[index].clock = std::move(clock);
  o.recorded.push_back(event);
  if (o.recorded.size() <= kMostMoments) return;
  o.moments.erase(o.recorded.front());
  o.recorded.pop_front();
}

void va_check_event_awaited(const va_check_stream *stream, const void *event) {
  State &s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!following(s)) return;
  Streams &o = order();
  Clock &clock = o.streams[index_of(*stream)].clock;
  auto it = o.moments.find(event);
  if (it != o.moments.end()) return join(&clock, it->second);
  for (const StreamOrder &other : o.streams) join(&clock, Clock(other.clock));
}

void va_check_host_waited(const va_check_stream *stream, const void *group, const void *event) {
  State &s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!following(s)) return;
  Streams &o = order();
  auto it = event ? o.moments.find(event) : o.moments.end();
  if (stream) {
    Clock known = known_to(index_of(*stream));
    join(&o.host, known);
  } else if (it != o.moments.end()) {
    join(&o.host, it->second);
  } else {
    for (const StreamOrder &other : o.streams)
      if (!group || other.who.group == group) join(&o.host, other.clock);
    forget_known();
  }
}

}  // extern "C"
