#include "lock.h"

#include <cerrno>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

namespace va::node {
namespace {

std::mutex &process_mutex() {
  static std::mutex *const mutex = new std::mutex;
  return *mutex;
}

void before_fork() { process_mutex().lock(); }
void after_fork() { process_mutex().unlock(); }

bool watch_forks() {
  static const bool once = !pthread_atfork(before_fork, after_fork, after_fork);
  return once;
}

} // namespace

FileLock::FileLock(const std::string &path, bool wait) {
  watch_forks();
  if (wait)
    process_mutex().lock();
  else if (!process_mutex().try_lock())
    return;
  inside_ = true;
  if (path.empty()) { // in memory
    held_ = true;
    return;
  }
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0)
    return;
  int result;
  do
    result = flock(fd_, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
  while (result && errno == EINTR);
  held_ = !result;
}

FileLock::~FileLock() {
  if (fd_ >= 0)
    ::close(fd_);
  if (inside_)
    process_mutex().unlock();
}

} // namespace va::node
