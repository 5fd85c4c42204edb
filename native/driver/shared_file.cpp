#include "shared_file.h"

#include <fcntl.h>
#include <iterator>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entry.h"

namespace va {
namespace {

const char kPrefix[] = "/memfd:va100-"; // as the system spells names of ours
const char kSuffix[] = " (deleted)";

// The name of a file in memory that this library made, in this process or another; empty if not.
std::string name_of(int fd) {
  char link[64], text[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, text, sizeof text);
  if (length <= 0)
    return "";
  std::string name(text, static_cast<size_t>(length));
  if (name.compare(0, sizeof kPrefix - 1, kPrefix))
    return "";
  name.erase(0, sizeof kPrefix - 1);
  const size_t tail = name.rfind(kSuffix);
  return tail == std::string::npos ? name : name.substr(0, tail);
}

} // namespace

std::shared_ptr<SharedFile> SharedFile::make(const std::string &name) {
  const int fd = memfd_create(("va100-" + name).c_str(), MFD_CLOEXEC);
  if (fd < 0)
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  return std::shared_ptr<SharedFile>(new SharedFile(fd, name));
}

std::shared_ptr<SharedFile> SharedFile::adopt(int fd) {
  const std::string name = name_of(fd);
  const int own = name.empty() ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0)
    return nullptr;
  return std::shared_ptr<SharedFile>(new SharedFile(own, name));
}

SharedFile::~SharedFile() { close(fd_); }

uint64_t SharedFile::id() const {
  struct stat status;
  return fstat(fd_, &status) ? 0 : status.st_ino;
}

int SharedFile::duplicate() const {
  const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 3);
  if (fd < 0)
    fail(CUDA_ERROR_OPERATING_SYSTEM);
  return fd;
}

bool SharedFile::holds(uint64_t offset, uint64_t bytes) const {
  struct stat status;
  if (fstat(fd_, &status))
    return false;
  const uint64_t end = static_cast<uint64_t>(status.st_size);
  return offset <= end && bytes <= end - offset;
}

uint64_t SharedFile::take(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [offset, size] = *it;
    if (size < bytes)
      continue;
    free_.erase(it);
    if (size > bytes)
      free_[offset + bytes] = size - bytes;
    return offset;
  }
  if (ftruncate(fd_, static_cast<off_t>(end_ + bytes)))
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  end_ += bytes;
  return end_ - bytes;
}

void SharedFile::give(uint64_t offset, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
  const auto after = free_.find(offset + bytes);
  if (after != free_.end()) {
    bytes += after->second;
    free_.erase(after);
  }
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset)
    std::prev(next)->second += bytes;
  else
    free_[offset] = bytes;
}

} // namespace va
