// Messages are kept up to a size, handed to callbacks as they come, and dumped on request.
#include "logs.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "driver_api.h"
#include "handles.h"
#include "objects.h"

namespace va {
namespace {

constexpr size_t kMostBytes = 25'600; // as the documentation has it
const char kTruncated[] = "[older messages are left out]\n";

struct Listener {
  CUlogsCallbackHandle handle = nullptr;
  CUlogsCallback call = nullptr;
  void *data = nullptr;
};

struct Logs {
  std::mutex mutex;
  std::deque<std::string> lines; // each ends a line
  unsigned first = 0;            // number of the oldest
  size_t bytes = 0;
  std::vector<Listener> listeners;
  HandleTable<Logs, CUlogsCallbackHandle, Kind::kLogListener> handles;
};

Logs &logs() {
  static Logs *const instance = new Logs;
  return *instance;
}

unsigned end_of(const Logs &l) { return l.first + static_cast<unsigned>(l.lines.size()); }

// Messages from a number on that fit into so many bytes, the newest for certain.
std::string text_from(const Logs &l, unsigned number, size_t room) {
  bool all = number >= l.first;
  size_t from = all ? number - l.first : 0, bytes = 0;
  for (size_t i = from; i < l.lines.size(); ++i)
    bytes += l.lines[i].size();
  const size_t head = sizeof kTruncated - 1;
  while (from < l.lines.size() && bytes + (all ? 0 : head) > room) {
    bytes -= l.lines[from++].size();
    all = false;
  }
  if (from == l.lines.size())
    return "";
  std::string text = all ? "" : kTruncated;
  for (size_t i = from; i < l.lines.size(); ++i)
    text += l.lines[i];
  return text;
}

CUresult dump(CUlogIterator *iterator, size_t room, std::string *text) {
  Logs &l = logs();
  const std::lock_guard<std::mutex> lock(l.mutex);
  const unsigned from = iterator ? *iterator : l.first;
  if (from > end_of(l))
    return CUDA_ERROR_INVALID_VALUE;
  *text = text_from(l, from, room);
  if (text->empty() && from < end_of(l))
    return CUDA_ERROR_INVALID_VALUE;
  if (iterator)
    *iterator = end_of(l);
  return CUDA_SUCCESS;
}

} // namespace

void keep_log(LogLevel level, const char *text) {
  Logs &l = logs();
  std::vector<Listener> listeners;
  {
    const std::lock_guard<std::mutex> lock(l.mutex);
    l.lines.push_back(std::string(text) + "\n");
    l.bytes += l.lines.back().size();
    while (l.bytes > kMostBytes && l.lines.size() > 1) {
      l.bytes -= l.lines.front().size();
      l.lines.pop_front();
      ++l.first;
    }
    listeners = l.listeners;
  }
  std::string copy = text; // callbacks may write into it
  for (const Listener &listener : listeners)
    listener.call(listener.data, static_cast<int>(level), copy.data(), copy.size());
}

namespace api {

CUresult cuLogsRegisterCallback(CUlogsCallback call, void *data, CUlogsCallbackHandle *out) {
  if (!call)
    return CUDA_ERROR_INVALID_VALUE;
  Logs &l = logs();
  Listener listener{l.handles.add(&l), call, data};
  const std::lock_guard<std::mutex> lock(l.mutex);
  l.listeners.push_back(listener);
  if (out)
    *out = listener.handle;
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  Logs &l = logs();
  if (!l.handles.remove(handle))
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(l.mutex);
  l.listeners.erase(std::remove_if(l.listeners.begin(), l.listeners.end(),
                                   [&](const Listener &x) { return x.handle == handle; }),
                    l.listeners.end());
  return CUDA_SUCCESS;
}

CUresult cuLogsCurrent(CUlogIterator *out, unsigned int flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  Logs &l = logs();
  const std::lock_guard<std::mutex> lock(l.mutex);
  *out = end_of(l);
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *path, unsigned int flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  const CUresult result = dump(iterator, SIZE_MAX / 2, &text);
  if (result != CUDA_SUCCESS)
    return result;
  FILE *const file = std::fopen(path, "w");
  if (!file)
    return CUDA_ERROR_INVALID_VALUE;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) || !written ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size,
                            unsigned int flags) {
  const size_t room = *size;
  *size = 0;
  if (flags || !room)
    return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  const CUresult result = dump(iterator, room - 1, &text);
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  *size = text.size();
  return result;
}

} // namespace api
} // namespace va
