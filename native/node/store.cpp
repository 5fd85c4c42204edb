#include "store.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "identity.h"
#include "lock.h"
#include "models.h"
#include "place.h"
#include "setup.h"
#include "telemetry.h"

namespace va::node {
namespace {

std::string read_line(const char *path) {
  char text[128] = {};
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return "";
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  return got > 0 ? std::string(text, strcspn(text, "\n")) : "";
}

std::string boot_id() { return read_line("/proc/sys/kernel/random/boot_id"); }

Refusal refused(Refusal::Why why, const std::string &text) {
  Refusal r;
  r.why = why;
  r.text = text;
  return r;
}

Refusal failed(const std::string &what, const std::string &path) {
  return refused(Refusal::kSystem, what + " " + path + ": " + std::strerror(errno));
}

// A file that is whole before it has its name.
Refusal write_new(const std::string &path, const File &header, const NodeState &state) {
  const std::string making = path + "." + std::to_string(getpid()) + ".new";
  const int fd = ::open(making.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    return failed("cannot create", making);
  Refusal result;
  const off_t state_at = reinterpret_cast<const char *>(&header.copies[0]) -
                         reinterpret_cast<const char *>(&header);
  const ssize_t head_bytes = static_cast<ssize_t>(state_at);
  if (ftruncate(fd, sizeof(File)) || pwrite(fd, &header, static_cast<size_t>(state_at), 0) != head_bytes ||
      pwrite(fd, &state, sizeof state, state_at) != static_cast<ssize_t>(sizeof state))
    result = failed("cannot write", making);
  else if (::link(making.c_str(), path.c_str()))
    result = errno == EEXIST ? refused(Refusal::kExists, "there is a node of this name: " + path)
                             : failed("cannot create", path);
  ::close(fd);
  ::unlink(making.c_str());
  return result;
}

} // namespace

std::unique_ptr<Store> Store::map(int fd, const std::string &path, Refusal *refusal) {
  struct stat info{};
  struct {
    uint64_t magic;
    uint32_t version, bytes;
  } head{};
  const bool whole = !fstat(fd, &info) && pread(fd, &head, sizeof head, 0) == sizeof head &&
                     head.magic == kMagic;
  if (!whole || head.version != kLayoutVersion || head.bytes != sizeof(File) ||
      info.st_size != static_cast<off_t>(sizeof(File))) {
    *refusal = refused(Refusal::kBadLayout,
                       whole ? path + " was made by another version of va100: delete the node and "
                                      "create it anew"
                             : path + " holds no node");
    ::close(fd);
    return nullptr;
  }
  void *const at = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) {
    *refusal = failed("cannot map", path);
    return nullptr;
  }
  std::unique_ptr<Store> store(new Store);
  store->file_ = static_cast<File *>(at);
  store->path_ = path;
  store->inode_ = info.st_ino;
  store->restart_if_rebooted();
  return store;
}

Store::~Store() {
  if (file_)
    munmap(static_cast<void *>(file_), sizeof(File));
  // The descriptor of the liveness file stays: closing it would give up this process's own locks.
}

std::unique_ptr<Store> Store::open(const std::string &path, Refusal *refusal) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    *refusal = errno == ENOENT ? refused(Refusal::kNoSuchNode, "there is no node " + path)
                               : failed("cannot open", path);
    return nullptr;
  }
  return map(fd, path, refusal);
}

Refusal Store::create(const std::string &path, const NodeWish &wish) {
  if (!make_folder_for(path))
    return failed("cannot make the folder of", path);
  auto state = std::make_unique<NodeState>();
  std::memset(static_cast<void *>(state.get()), 0, sizeof *state);
  const Refusal bad = set_up(*state, wish);
  if (bad)
    return bad;
  snprintf(state->boot_id, sizeof state->boot_id, "%s", boot_id().c_str());
  state->boot_ns = now_ns();
  auto header = std::make_unique<File>();
  header->magic = kMagic;
  header->version = kLayoutVersion;
  header->bytes = sizeof(File);
  return write_new(path, *header, *state);
}

std::unique_ptr<Store> Store::in_memory(const NodeWish &wish) {
  void *const at = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return nullptr;
  std::unique_ptr<Store> store(new Store);
  store->file_ = static_cast<File *>(at);
  store->file_->magic = kMagic;
  store->file_->version = kLayoutVersion;
  store->file_->bytes = sizeof(File);
  set_up(store->file_->copies[0], wish);
  store->file_->copies[0].boot_ns = now_ns();
  return store;
}

Refusal Store::remove(const std::string &path, bool even_used) {
  Refusal refusal;
  const auto store = open(path, &refusal);
  if (!store && refusal.why != Refusal::kBadLayout)
    return refusal;
  if (store && !even_used) {
    store->reap();
    for (uint32_t i = 0; i < store->file().most_slots.load(); ++i)
      if (store->file().slots[i].pid.load())
        return refused(Refusal::kInUse, "process " + std::to_string(store->file().slots[i].pid.load()) +
                                            " uses the node");
  }
  if (store)
    store->file().deleted.store(1);
  if (::unlink(path.c_str()))
    return failed("cannot delete", path);
  ::unlink((path + ".alive").c_str());
  return {};
}

DeviceState Store::device(int index) const {
  DeviceState copy;
  read([&](const NodeState &state) {
    std::memcpy(static_cast<void *>(&copy), &state.devices[index], sizeof copy);
  });
  return copy;
}

bool Store::change(const std::function<bool(NodeState &)> &function) { return changed(function, true); }

bool Store::try_change(const std::function<bool(NodeState &)> &function) {
  return changed(function, false);
}

bool Store::changed(const std::function<bool(NodeState &)> &function, bool wait) {
  const FileLock lock(path_, wait);
  if (!lock)
    return false;
  const uint64_t generation = file_->generation.load(std::memory_order_acquire);
  const NodeState &current = file_->copies[generation & 1];
  NodeState &next = file_->copies[(generation + 1) & 1];
  std::memcpy(static_cast<void *>(&next), &current, sizeof next);
  if (function(next))
    file_->generation.store(generation + 1, std::memory_order_release);
  return true;
}

// A restart of the machine takes instances, processes and volatile counts along, as it does a card's.
void Store::restart_if_rebooted() {
  const std::string id = boot_id();
  bool same = true;
  read([&](const NodeState &state) { same = id == state.boot_id; });
  if (same)
    return;
  change([&](NodeState &state) {
    if (id == state.boot_id)
      return false;
    snprintf(state.boot_id, sizeof state.boot_id, "%s", id.c_str());
    restart(state);
    for (Slot &slot : file_->slots)
      slot.pid.store(0);
    for (Board &board : file_->boards)
      forget(board);
    return true;
  });
}

// ---- who is alive

// One description of each liveness file for as long as the process lives: closing any of them would
// give up this process's own locks.  A file that was made anew under its name gets another.
static int liveness_file(const std::string &path) {
  struct Known {
    dev_t device;
    ino_t file;
    int fd;
  };
  static std::mutex *const mutex = new std::mutex;
  static auto *const known = new std::map<std::string, Known>;
  const std::lock_guard<std::mutex> lock(*mutex);
  struct stat info{};
  const auto found = known->find(path);
  if (found != known->end() && !stat(path.c_str(), &info) &&
      info.st_dev == found->second.device && info.st_ino == found->second.file)
    return found->second.fd;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0 && !fstat(fd, &info))
    (*known)[path] = Known{info.st_dev, info.st_ino, fd};
  return fd;
}

int Store::liveness() const {
  int fd = alive_fd_.load(std::memory_order_acquire);
  if (fd >= 0 || path_.empty())
    return fd;
  fd = liveness_file(path_ + ".alive");
  alive_fd_.store(fd);
  return fd;
}

bool Store::is_alive(int slot) const {
  if (path_.empty() || file_->slots[slot].pid.load() == static_cast<uint32_t>(getpid()))
    return true;
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = slot;
  range.l_len = 1;
  const int fd = liveness();
  return fd < 0 || fcntl(fd, F_GETLK, &range) || range.l_type != F_UNLCK;
}

Slot *Store::claim(const char *name) {
  const int fd = liveness();
  for (int i = 0; i < kMostProcesses; ++i) {
    Slot &slot = file_->slots[i];
    struct flock range{};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = i;
    range.l_len = 1;
    if (!path_.empty() && (fd < 0 || fcntl(fd, F_SETLK, &range)))
      continue;
    change([&](NodeState &state) {
      reap_slot(state, i);
      return true;
    });
    for (DeviceUse &use : slot.devices)
      clear(use);
    snprintf(slot.name, sizeof slot.name, "%s", name);
    slot.started_ns.store(now_ns());
    slot.started_us = wall_us();
    slot.incarnation.store(file_->next_incarnation.fetch_add(1) + 1);
    slot.pid.store(static_cast<uint32_t>(getpid()), std::memory_order_release);
    uint32_t most = file_->most_slots.load();
    while (most < static_cast<uint32_t>(i) + 1 &&
           !file_->most_slots.compare_exchange_weak(most, static_cast<uint32_t>(i) + 1)) {
    }
    own_slot_ = i;
    return &slot;
  }
  return nullptr;
}

// Fold in first, settled, then free: whoever is killed between is not counted twice.
void Store::reap_slot(NodeState &state, int index) {
  Slot &slot = file_->slots[index];
  const uint64_t incarnation = slot.incarnation.load();
  if (!slot.pid.load() || state.folded[index] == incarnation)
    return;
  fold(state, slot);
  state.folded[index] = incarnation;
}

void Store::reap() {
  const int most = static_cast<int>(file_->most_slots.load());
  for (int i = 0; i < most; ++i) {
    Slot &slot = file_->slots[i];
    const uint32_t pid = slot.pid.load(std::memory_order_acquire);
    if (!pid || is_alive(i))
      continue;
    const uint64_t incarnation = slot.incarnation.load();
    change([&](NodeState &state) {
      if (slot.incarnation.load() != incarnation || is_alive(i))
        return false;
      reap_slot(state, i);
      return true;
    });
    uint32_t dead = pid;
    if (slot.incarnation.load() == incarnation)
      slot.pid.compare_exchange_strong(dead, 0);
    release_clocks(file(), now_ns());
  }
}

} // namespace va::node
