// What a piece of work touched, for those who judge it against unordered work.
#pragma once

#include "check_order.h"

namespace va::check {

constexpr uint32_t kUseWords = 8;  // a bit for each word of a page

// What one instruction of a kernel did to words of a page, with a thread that did it.
struct Use {
  uint32_t site = 0, kind = 0;  // va_check_access_kind
  uint32_t ctaid[3] = {}, tid[3] = {};
  bool writes = false, strong = false;
  uint64_t words[kUseWords] = {};
};

struct PageUses {
  uint64_t number;
  std::vector<Use> uses;
};

struct LaunchUses {
  uint32_t kernel = 0;
  std::vector<PageUses> pages;
};

struct HostRange {
  uint64_t begin, end;
  bool writes, fill;
};

// Under the state's lock.
void host_touched(State &s, uint64_t begin, uint64_t bytes, bool writes, bool fill);
void forget_work(uint64_t begin, uint64_t end);
void forget_all_work();
// By the thread that launched.
void launch_ended(State &s, LaunchUses uses);
// What a launch did to global memory, from its pages; before those are forgotten.
LaunchUses uses_of(const State &s);
// Add what a lane did to some bytes from an offset of a page on.
void add_use(std::vector<Use> *uses, const State &s, const Mark &m, uint32_t lane, uint32_t offset,
             uint32_t bytes);

}  // namespace va::check
