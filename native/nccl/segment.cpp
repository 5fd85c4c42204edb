#include "segment.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/futex.h>
#include <set>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nccl_entry.h"

namespace va::nccl {

struct SegmentHeader {
  std::atomic<uint32_t> ready;
  uint32_t ranks;
  std::atomic<uint32_t> joined, failed;
  std::atomic<uint32_t> arrived, phase; // of the barrier
  std::atomic<uint32_t> bells[kMostRanks];
  RankPlace places[kMostRanks];
};

struct PairQueue {
  alignas(64) std::atomic<uint64_t> pushed;
  alignas(64) std::atomic<uint64_t> pulled;
  alignas(64) uint8_t data[];
};

namespace {

constexpr uint32_t kReady = 0x4E434C31;
constexpr size_t kPage = 4096;
constexpr int kSpins = 64;
constexpr long kGlanceNs = 50'000'000; // how often a waiting process looks whether others live

size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// A queue's room and a slot's: small where ranks are many, for containers share little memory.
size_t slot_bytes_for(int ranks) { return ranks <= 8 ? size_t{1} << 18 : size_t{1} << 16; }
size_t queue_bytes_for(int ranks) { return ranks <= 8 ? size_t{1} << 15 : size_t{1} << 12; }

void futex_wait(std::atomic<uint32_t> &word, uint32_t seen) {
  const timespec limit{0, kGlanceNs};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// When a process started, in the system's ticks; 0: there is no such process.
uint64_t start_of(int pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return 0;
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  text[std::max<ssize_t>(length, 0)] = '\0';
  const char *at = std::strrchr(text, ')'); // the name before it may hold anything
  if (!at || at[1] != ' ' || at[2] == 'Z')
    return 0;
  for (int field = 2; at && field < 22; ++field)
    at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at + 1, nullptr, 10) : 0;
}

// Where shared memory is, then where files are.
std::string file_of(const std::string &name, bool *made, int *fd) {
  const char *const temporary = std::getenv("TMPDIR");
  const std::string folders[] = {"/dev/shm", temporary && *temporary ? temporary : P_tmpdir};
  for (const std::string &folder : folders) {
    const std::string path = folder + "/va100-nccl-" + name;
    *fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    *made = false;
    if (*fd >= 0)
      return path;
  }
  for (const std::string &folder : folders) {
    const std::string path = folder + "/va100-nccl-" + name;
    *fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *made = *fd >= 0;
    if (*fd < 0 && errno == EEXIST)
      *fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (*fd >= 0)
      return path;
  }
  fail(ncclSystemError, "no file can be made in %s or %s: %s", folders[0].c_str(),
       folders[1].c_str(), std::strerror(errno));
}

} // namespace

std::unique_ptr<Segment> Segment::open(const std::string &name, int ranks) {
  std::unique_ptr<Segment> segment(new Segment);
  segment->ranks_ = ranks;
  segment->slot_bytes_ = slot_bytes_for(ranks);
  segment->queue_bytes_ = rounded(sizeof(PairQueue) + queue_bytes_for(ranks));
  const size_t pairs = static_cast<size_t>(ranks) * static_cast<size_t>(ranks);
  segment->bytes_ = rounded(sizeof(SegmentHeader)) +
                    2 * static_cast<size_t>(ranks) * segment->slot_bytes_ +
                    pairs * segment->queue_bytes_;
  bool made = false;
  int fd = -1;
  segment->path_ = file_of(name, &made, &fd);
  segment->linked_ = true;
  if (made && posix_fallocate(fd, 0, static_cast<off_t>(segment->bytes_))) {
    unlink(segment->path_.c_str());
    close(fd);
    fail(ncclSystemError, "%s has no room for %zu bytes", segment->path_.c_str(), segment->bytes_);
  }
  struct stat status {};
  for (int tries = 0; !made && tries < 5000; ++tries) { // the maker is about to give it its size
    if (fstat(fd, &status) || static_cast<size_t>(status.st_size) >= segment->bytes_)
      break;
    usleep(1000);
  }
  if (!made && static_cast<size_t>(status.st_size) != segment->bytes_) {
    close(fd);
    fail(ncclInvalidArgument, "ranks do not agree on how many they are (here: %d)", ranks);
  }
  void *const base = mmap(nullptr, segment->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED)
    fail(ncclSystemError, "mapping %s: %s", segment->path_.c_str(), std::strerror(errno));
  segment->base_ = static_cast<uint8_t *>(base);
  segment->header_ = static_cast<SegmentHeader *>(base); // zeros are its initial state
  if (made) {
    segment->header_->ranks = static_cast<uint32_t>(ranks);
    segment->header_->ready.store(kReady, std::memory_order_release);
  }
  for (int tries = 0; segment->header_->ready.load(std::memory_order_acquire) != kReady; ++tries) {
    if (tries == 5000)
      fail(ncclSystemError, "%s was never set up: its maker is gone", segment->path_.c_str());
    usleep(1000);
  }
  return segment;
}

Segment::~Segment() {
  if (linked_ && header_ && header_->joined.load() < static_cast<uint32_t>(ranks_))
    unlink(path_.c_str()); // not all came; whoever comes now comes to nothing
  if (base_)
    munmap(base_, bytes_);
}

RankPlace &Segment::place(int rank) const { return header_->places[rank]; }

void Segment::join(int rank, const Seat &seat) {
  RankPlace &mine = place(rank);
  int32_t nobody = 0;
  mine.started = start_of(getpid());
  mine.seat = seat;
  if (!mine.pid.compare_exchange_strong(nobody, getpid()))
    fail(ncclInvalidUsage, "rank %d is there already, in process %d", rank, nobody);
  if (header_->joined.fetch_add(1) + 1 == static_cast<uint32_t>(ranks_))
    unlink(path_.c_str());
  futex_wake(header_->joined);
}

void Segment::await_all(const std::function<void()> &check) const {
  for (uint32_t seen; (seen = header_->joined.load()) < static_cast<uint32_t>(ranks_);) {
    futex_wait(header_->joined, seen);
    require_alive();
    check();
  }
}

void Segment::seal() {
  linked_ = false;
  std::set<int32_t> pids;
  for (int rank = 0; rank < ranks_; ++rank)
    pids.insert(place(rank).pid.load());
  processes_ = static_cast<int>(pids.size());
}

void Segment::require_alive() const {
  if (header_->failed.load())
    fail(ncclRemoteError, "another rank gave up");
  for (int rank = 0; rank < ranks_; ++rank) {
    const int pid = place(rank).pid.load();
    if (pid && pid != getpid() && start_of(pid) != place(rank).started) {
      give_up();
      fail(ncclRemoteError, "rank %d is gone: process %d ended", rank, pid);
    }
  }
}

void Segment::meet() {
  const uint32_t phase = header_->phase.load();
  if (header_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(processes_)) {
    header_->arrived.store(0);
    header_->phase.fetch_add(1);
    futex_wake(header_->phase);
    return;
  }
  for (int spin = 0; spin < kSpins; ++spin)
    if (header_->phase.load() != phase)
      return;
  while (header_->phase.load() == phase) {
    futex_wait(header_->phase, phase);
    if (header_->phase.load() == phase)
      require_alive();
  }
}

uint8_t *Segment::slot(int rank, uint64_t turn) const {
  const size_t index = 2 * static_cast<size_t>(rank) + (turn & 1);
  return base_ + rounded(sizeof(SegmentHeader)) + index * slot_bytes_;
}

PairQueue &Segment::queue(int from, int to) const {
  const size_t index = static_cast<size_t>(from) * static_cast<size_t>(ranks_) +
                       static_cast<size_t>(to);
  uint8_t *const first =
      base_ + rounded(sizeof(SegmentHeader)) + 2 * static_cast<size_t>(ranks_) * slot_bytes_;
  return *reinterpret_cast<PairQueue *>(first + index * queue_bytes_);
}

void Segment::ring(int rank) const {
  // One bell a process: that of its first rank.
  const int pid = place(rank).pid.load();
  int first = 0;
  while (place(first).pid.load() != pid)
    ++first;
  header_->bells[first].fetch_add(1);
  futex_wake(header_->bells[first]);
}

uint32_t Segment::bell() const {
  int first = 0;
  while (place(first).pid.load() != getpid())
    ++first;
  return header_->bells[first].load();
}

void Segment::await_queues(uint32_t seen) const {
  int first = 0;
  while (place(first).pid.load() != getpid())
    ++first;
  futex_wait(header_->bells[first], seen);
  if (header_->bells[first].load() == seen)
    require_alive();
}

// Copies to or from a ring of bytes, around its end.
template <typename Copy> static void around(size_t at, size_t bytes, size_t room, Copy copy) {
  const size_t before_end = std::min(bytes, room - at % room);
  copy(at % room, 0, before_end);
  copy(0, before_end, bytes - before_end);
}

size_t Segment::push(int from, int to, const void *data, size_t bytes) const {
  PairQueue &q = queue(from, to);
  const size_t room = queue_bytes_for(ranks_);
  const uint64_t pushed = q.pushed.load(std::memory_order_relaxed);
  const size_t free = room - static_cast<size_t>(pushed - q.pulled.load(std::memory_order_acquire));
  const size_t here = std::min(bytes, free);
  if (!here)
    return 0;
  around(pushed, here, room, [&](size_t at, size_t offset, size_t count) {
    std::memcpy(q.data + at, static_cast<const uint8_t *>(data) + offset, count);
  });
  q.pushed.store(pushed + here, std::memory_order_release);
  ring(to);
  return here;
}

size_t Segment::pull(int from, int to, void *data, size_t bytes) const {
  PairQueue &q = queue(from, to);
  const size_t room = queue_bytes_for(ranks_);
  const uint64_t pulled = q.pulled.load(std::memory_order_relaxed);
  const size_t there = static_cast<size_t>(q.pushed.load(std::memory_order_acquire) - pulled);
  const size_t here = std::min(bytes, there);
  if (!here)
    return 0;
  around(pulled, here, room, [&](size_t at, size_t offset, size_t count) {
    std::memcpy(static_cast<uint8_t *>(data) + offset, q.data + at, count);
  });
  q.pulled.store(pulled + here, std::memory_order_release);
  ring(from);
  return here;
}

void Segment::give_up() const {
  header_->failed.store(1);
  futex_wake(header_->phase);
  futex_wake(header_->joined);
  for (int rank = 0; rank < ranks_; ++rank)
    futex_wake(header_->bells[rank]);
}

bool Segment::given_up() const { return header_->failed.load() != 0; }

} // namespace va::nccl
