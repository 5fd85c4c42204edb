// The lock that changes of a node's settled state are made under.
#pragma once

#include <mutex>
#include <string>

namespace va::node {

// Held by a description of its own, so that threads, and copies of this code in one process, wait
// for each other; nobody forks while it is held, so that no child holds it on.
class FileLock {
public:
  FileLock(const std::string &path, bool wait);
  ~FileLock();
  FileLock(const FileLock &) = delete;
  explicit operator bool() const { return held_; }

private:
  int fd_ = -1;
  bool held_ = false;
  bool inside_ = false;
};

} // namespace va::node
