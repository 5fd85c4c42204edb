#include "nccl_entry.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <strings.h>
#include <unistd.h>

namespace va::nccl {
namespace {

enum Level { kNone = 0, kVersionOnly, kWarn, kInfo };

int level_of(const char *text) {
  static const char *const kNames[] = {"", "VERSION", "WARN", "INFO"};
  if (text && !strcasecmp(text, "TRACE"))
    return kInfo;
  for (int level = kVersionOnly; text && level <= kInfo; ++level)
    if (!strcasecmp(text, kNames[level]))
      return level;
  return kNone;
}

int &level() {
  static int value = level_of(std::getenv("NCCL_DEBUG"));
  return value;
}

void print(const char *kind, const char *text) {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  std::fprintf(stderr, "%s:%d [va100] NCCL %s %s\n", host, static_cast<int>(getpid()), kind, text);
}

std::string &kept() {
  static thread_local std::string text;
  return text;
}

std::string formatted(const char *format, va_list arguments) {
  char text[1024];
  vsnprintf(text, sizeof text, format, arguments);
  return text;
}

} // namespace

void read_debug_settings() { level() = level_of(std::getenv("NCCL_DEBUG")); }

void fail(ncclResult_t code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::string text = formatted(format, arguments);
  va_end(arguments);
  throw Failure{code, std::move(text)};
}

void require_cuda(int result, const char *call) {
  if (result)
    fail(ncclUnhandledCudaError, "%s returned CUDA error %d", call, result);
}

void remember(const std::string &text) {
  kept() = text;
  if (level() >= kWarn)
    print("WARN", text.c_str());
}

const char *last_error() { return kept().c_str(); }

void inform(const char *format, ...) {
  if (level() < kInfo)
    return;
  va_list arguments;
  va_start(arguments, format);
  const std::string text = formatted(format, arguments);
  va_end(arguments);
  print("INFO", text.c_str());
}

ncclResult_t failed(const char *name, ncclResult_t code, const std::string &text) noexcept {
  try {
    remember(std::string(name) + ": " + text);
  } catch (...) {
  }
  return code;
}

ncclResult_t refused(const char *name) noexcept {
  return failed(name, ncclInvalidUsage, "not supported by va100's NCCL (docs/nccl.md)");
}

} // namespace va::nccl
