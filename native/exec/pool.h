// Threads that help to run a grid, kept from one launch to the next.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "worker.h"

namespace va {

// Code that a warp cannot go on without.
struct Demand {
  va_supply supply;
  uint32_t function, number;
  char why[256];
  int met;
  bool done;
};

class Pool {
 public:
  explicit Pool(void (*work)(Launch *, bool)) : work_(work) {}

  // Run the launch on this thread and on helpers - 1 others.
  void run(Launch *launch, uint32_t workers) {
    if (getpid() != pid_) restart_after_fork();
    while (threads_ + 1 < workers) {
      std::thread(&Pool::serve, this).detach();
      threads_++;
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      launch_ = launch;
      wanted_ = workers - 1;
      active_ = workers - 1;
    }
    if (workers > 1) wake_.notify_all();
    work_(launch, true);
    std::unique_lock<std::mutex> lock(mutex_);
    // Helpers that have not woken by now find nothing left to do.
    active_ -= wanted_;
    wanted_ = 0;
    while (active_) {
      done_.wait(lock, [this] { return active_ == 0 || !demands_.empty(); });
      lock.unlock();
      answer_demands();
      lock.lock();
    }
    launch_ = nullptr;
  }

  // What helpers wait for is compiled by the thread that launched, whenever it looks here.
  void look_for_demands() {
    if (waiting_.load(std::memory_order_relaxed)) answer_demands();
  }
  // Wait until the thread that launched has answered.
  void ask(Demand *demand);

  std::mutex launches;  // one grid at a time

 private:
  void answer_demands();

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return wanted_ > 0; });
      wanted_--;
      Launch *launch = launch_;
      lock.unlock();
      work_(launch, false);
      lock.lock();
      if (--active_ == 0) done_.notify_all();
    }
  }

  void restart_after_fork() {
    pid_ = getpid();
    threads_ = 0;
    wanted_ = active_ = 0;
  }

  void (*work_)(Launch *, bool launcher);
  std::mutex mutex_;
  std::condition_variable wake_, done_, answered_;
  std::vector<Demand *> demands_;
  std::atomic<uint32_t> waiting_{0};
  Launch *launch_ = nullptr;
  uint32_t wanted_ = 0, active_ = 0, threads_ = 0;
  pid_t pid_ = getpid();
};

Pool &pool();

}  // namespace va
