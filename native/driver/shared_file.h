// Files in memory that back what is mapped in more than one place, and who has which piece of one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace va {

// Its pages go back to the system when the last descriptor and mapping anywhere are gone.
class SharedFile {
public:
  // A new file, empty; its name is what other processes know it by.  Fails with OUT_OF_MEMORY.
  static std::shared_ptr<SharedFile> make(const std::string &name);
  // A file that another process made: a descriptor of its own.  Null when it is none of ours.
  static std::shared_ptr<SharedFile> adopt(int fd);
  ~SharedFile();
  SharedFile(const SharedFile &) = delete;
  SharedFile &operator=(const SharedFile &) = delete;

  int fd() const { return fd_; }
  const std::string &name() const { return name_; }
  // The same number in every process that has it, and no other file's meanwhile.
  uint64_t id() const;
  // One more descriptor, for the client to pass on and close.  Fails with OPERATING_SYSTEM.
  int duplicate() const;

  // A piece in units of VA_VIRTUAL_UNIT, reading as zero; fails with OUT_OF_MEMORY.
  uint64_t take(uint64_t bytes);
  void give(uint64_t offset, uint64_t bytes);
  // Whether the file reaches that far.
  bool holds(uint64_t offset, uint64_t bytes) const;

private:
  SharedFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  int fd_;
  std::string name_;
  std::mutex mutex_;
  uint64_t end_ = 0;
  std::map<uint64_t, uint64_t> free_; // offset to size
};

} // namespace va
