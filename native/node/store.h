// A node's store: finding or making its file, reading it as a whole, changing it as a whole.
//
// The lock is the kernel's (flock on a description opened for each change), not a word in the file:
// it goes with its holder, survives no restart of the machine, and works across containers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>
#include <string>

#include "state.h"

namespace va::node {

// Why a node cannot be had; `text` is for people.
struct Refusal {
  enum Why { kNone, kNoSuchNode, kExists, kInUse, kBadLayout, kSystem, kBadName, kBadKind } why = kNone;
  std::string text;
  explicit operator bool() const { return why != kNone; }
};

struct DeviceWish {
  std::string model;
  uint32_t domain = 0, bus = 0, slot = 0;
  int32_t numa = -1;
};

struct NodeWish {
  std::string kind;
  uint32_t board = 0;
  std::string seed; // of UUIDs and serial numbers; empty: as without a node
  std::vector<DeviceWish> devices;
};

class Store {
public:
  ~Store();
  Store(const Store &) = delete;

  static std::unique_ptr<Store> open(const std::string &path, Refusal *refusal);
  static Refusal create(const std::string &path, const NodeWish &wish);
  static std::unique_ptr<Store> in_memory(const NodeWish &wish);
  // Unlink it, unless somebody uses it.
  static Refusal remove(const std::string &path, bool even_used);

  File &file() { return *file_; }
  const File &file() const { return *file_; }
  const std::string &path() const { return path_; }
  // Whether both are one file, rather than one made anew under the other's name.
  bool is_same(const Store &other) const {
    return !path_.empty() && path_ == other.path_ && inode_ == other.inode_;
  }
  bool chosen() const { return chosen_; } // by name, rather than the one that everybody has
  void set_chosen(bool chosen) { chosen_ = chosen; }

  // Read settled state.  May run more than once, and on words that just change; what it leaves of
  // its last run is whole.
  template <typename Function> void read(Function function) const {
    for (;;) {
      const uint64_t generation = file_->generation.load(std::memory_order_acquire);
      function(file_->copies[generation & 1]);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (file_->generation.load(std::memory_order_relaxed) == generation)
        return;
    }
  }
  DeviceState device(int index) const;
  uint64_t generation() const { return file_->generation.load(std::memory_order_acquire); }

  // Change settled state under the lock; what `function` returns false for is not kept.
  // False where the lock could not be had.
  bool change(const std::function<bool(NodeState &)> &function);
  // The same, unless somebody else holds the lock.
  bool try_change(const std::function<bool(NodeState &)> &function);

  // Whether somebody lives in a slot, as the kernel tells.
  bool is_alive(int slot) const;
  // Take a slot for this process; nothing where all are taken.
  Slot *claim(const char *name);
  // Fold in what the processes that are gone left, and free their slots.
  void reap();

private:
  Store() = default;
  static std::unique_ptr<Store> map(int fd, const std::string &path, Refusal *refusal);
  bool changed(const std::function<bool(NodeState &)> &function, bool wait);
  void reap_slot(NodeState &state, int index);
  void restart_if_rebooted();
  int liveness() const;

  File *file_ = nullptr;
  std::string path_; // empty: in memory
  uint64_t inode_ = 0;
  bool chosen_ = false;
  mutable std::atomic<int> alive_fd_{-1};
  std::atomic<int> own_slot_{-1};
};

} // namespace va::node
