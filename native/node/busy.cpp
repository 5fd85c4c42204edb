#include "busy.h"

#include <algorithm>
#include <cstddef>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "clock.h"
#include "state.h"

namespace va::node {
namespace {

class Descriptor {
public:
  explicit Descriptor(const std::string &path)
      : fd_(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0)
      ::close(fd_);
  }
  Descriptor(const Descriptor &) = delete;
  int number() const { return fd_; }

  bool is_file(uint64_t bytes) const {
    struct stat info{};
    return fd_ >= 0 && !fstat(fd_, &info) && S_ISREG(info.st_mode) &&
           static_cast<uint64_t>(info.st_size) >= bytes;
  }
  bool read(void *to, size_t bytes, size_t from) const {
    return pread(fd_, to, bytes, static_cast<off_t>(from)) == static_cast<ssize_t>(bytes);
  }
  template <typename Word> bool word(Word *to, size_t from) const { return read(to, sizeof *to, from); }

private:
  int fd_;
};

// Whether the kernel says that somebody holds a slot's byte.
bool is_held(const Descriptor &alive, int slot) {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = slot;
  range.l_len = 1;
  return alive.number() >= 0 && !fcntl(alive.number(), F_GETLK, &range) && range.l_type != F_UNLCK;
}

// The words of a process's use of one GPU that lie before its buckets.
struct Use {
  uint64_t since = 0, seen = 0, busy = 0;
};

bool read_use(const Descriptor &file, size_t at, Use *use) {
  return file.word(&use->since, at + offsetof(DeviceUse, active_since_ns)) &&
         file.word(&use->seen, at + offsetof(DeviceUse, seen_ns)) &&
         file.word(&use->busy, at + offsetof(DeviceUse, busy_ns));
}

void add_slot(const Descriptor &file, const Descriptor &alive, int slot, uint32_t devices,
              uint64_t at_ns, Work *work) {
  const bool lives = is_held(alive, slot);
  bool runs = false;
  for (uint32_t i = 0; i < devices; ++i) {
    const size_t at = offsetof(File, slots) + sizeof(Slot) * static_cast<size_t>(slot) +
                      offsetof(Slot, devices) + sizeof(DeviceUse) * i;
    Use use;
    if (!read_use(file, at, &use))
      return;
    work->busy_ns += use.busy;
    const uint64_t until = lives ? at_ns : use.seen; // a dead one's work is told as it will be folded
    if (use.since && until > use.since)
      work->busy_ns += until - use.since;
    runs = runs || (lives && use.since);
  }
  work->running += runs;
}

} // namespace

bool read_work(const std::string &path, Work *work) {
  *work = {};
  const Descriptor file(path);
  uint64_t magic = 0, generation = 0;
  uint32_t version = 0, bytes = 0, slots = 0;
  if (!file.is_file(sizeof(File)) || !file.word(&magic, offsetof(File, magic)) ||
      !file.word(&version, offsetof(File, version)) || !file.word(&bytes, offsetof(File, bytes)) ||
      magic != kMagic || version != kLayoutVersion || bytes != sizeof(File))
    return false;
  auto state = std::make_unique<NodeState>();
  if (!file.word(&generation, offsetof(File, generation)) ||
      !file.word(&slots, offsetof(File, most_slots)) ||
      !file.read(state.get(), sizeof(NodeState),
                 offsetof(File, copies) + sizeof(NodeState) * (generation & 1)))
    return false;
  const uint32_t devices = std::min<uint32_t>(state->device_count, kMostDevices);
  for (uint32_t i = 0; i < devices; ++i)
    work->busy_ns += state->devices[i].busy_ns;
  const Descriptor alive(path + ".alive");
  const uint64_t now = now_ns();
  for (int i = 0; i < static_cast<int>(std::min<uint32_t>(slots, kMostProcesses)); ++i) {
    const size_t at = offsetof(File, slots) + sizeof(Slot) * static_cast<size_t>(i);
    uint32_t pid = 0;
    uint64_t incarnation = 0;
    if (!file.word(&pid, at + offsetof(Slot, pid)) ||
        !file.word(&incarnation, at + offsetof(Slot, incarnation)))
      return false;
    if (pid && incarnation != state->folded[i])
      add_slot(file, alive, i, devices, now, work);
  }
  return true;
}

} // namespace va::node
