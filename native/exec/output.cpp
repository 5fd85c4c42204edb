// What kernels print, in the order of CTA, warp and call, whatever order they ran in.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "worker.h"

namespace va {
namespace {

struct OutputKey {
  uint64_t cta;
  uint32_t warp;
  uint64_t sequence;
  bool operator<(const OutputKey &o) const {
    return std::tie(cta, warp, sequence) < std::tie(o.cta, o.warp, o.sequence);
  }
};

std::mutex g_output_mutex;
std::map<OutputKey, std::string> g_pending;
std::string g_output;
uint64_t g_sequence = 0;

}  // namespace

void print(va_warp *view, const std::string &text) {
  const Cta *cta = warp_of(view)->cta;
  // Not cta->index, which is that of the first where a call runs several.
  const va_warp &first = cta->warps[0].view;
  const uint32_t *grid = cta->worker->launch->request->grid;
  uint64_t index = first.ctaid[0] + grid[0] * (first.ctaid[1] + uint64_t{grid[1]} * first.ctaid[2]);
  std::lock_guard<std::mutex> lock(g_output_mutex);
  g_pending[{index, view->warp_id, g_sequence++}] = text;
}

void flush_output(Launch *) {
  std::lock_guard<std::mutex> lock(g_output_mutex);
  for (auto &[key, text] : g_pending) g_output += text;
  g_pending.clear();
}

}  // namespace va

extern "C" {

size_t va_exec_take_output(char *buffer, size_t capacity) {
  std::lock_guard<std::mutex> lock(va::g_output_mutex);
  size_t n = std::min(capacity, va::g_output.size());
  std::memcpy(buffer, va::g_output.data(), n);
  va::g_output.erase(0, n);
  return n;
}

}  // extern "C"
