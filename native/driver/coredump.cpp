// Dumps of faults: their attributes, of all contexts and of each, and the file.
//
// The file is text for people: the fault, and the memory its context held.  No debugger reads it.
#include "coredump.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

#include "blocks.h"
#include "driver_api.h"
#include "settings.h"

namespace va {
namespace {

enum DumpAttribute {
  kOnException = 1,
  kTriggerHost = 2,
  kLightweight = 3,
  kUserTrigger = 4,
  kFile = 5,
  kPipe = 6,
  kGenerationFlags = 7
};

constexpr int kSkipMemory = 1 << 1, kSkipAbort = 1 << 4, kLogOnly = 1 << 31;
constexpr int kLightweightFlags = 0x12F; // what the lightweight flag stands for
constexpr size_t kMostText = 1023;

struct DumpSettings {
  bool on_exception = settings().dump_on_exception;
  std::string file = settings().dump_file;
  std::string pipe = "corepipe.cuda.%h.%p";
  int flags = settings().dump_lightweight ? kLightweightFlags : 0;
};

struct Dumps {
  std::mutex mutex;
  DumpSettings global;
  std::map<CUcontext, DumpSettings> by_context;
};

Dumps &dumps() {
  static Dumps *const instance = new Dumps;
  return *instance;
}

DumpSettings settings_for(CUcontext handle) {
  Dumps &all = dumps();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto it = all.by_context.find(handle);
  return it == all.by_context.end() ? all.global : it->second;
}

template <typename Value> CUresult put(void *out, size_t *size, Value value) {
  if (out && *size < sizeof value)
    return CUDA_ERROR_INVALID_VALUE;
  if (out)
    std::memcpy(out, &value, sizeof value);
  *size = sizeof value;
  return CUDA_SUCCESS;
}

CUresult put_text(void *out, size_t *size, const std::string &text) {
  const size_t bytes = text.size() + 1;
  if (out && *size < bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (out)
    std::memcpy(out, text.c_str(), bytes);
  *size = bytes;
  return CUDA_SUCCESS;
}

CUresult get(const DumpSettings &d, int attribute, void *out, size_t *size) {
  switch (attribute) {
  case kOnException:
    return put(out, size, d.on_exception);
  case kTriggerHost:
    return put(out, size, !(d.flags & kSkipAbort));
  case kLightweight:
    return put(out, size, (d.flags & kLightweightFlags) == kLightweightFlags);
  case kUserTrigger:
    return put(out, size, false);
  case kFile:
    return put_text(out, size, d.file);
  case kPipe:
    return put_text(out, size, d.pipe);
  case kGenerationFlags:
    return put(out, size, d.flags);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

template <typename Value> Value taken(const void *from, size_t size) {
  if (size < sizeof(Value))
    fail(CUDA_ERROR_INVALID_VALUE);
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::string taken_text(const void *from, size_t size) {
  const char *const text = static_cast<const char *>(from);
  const size_t length = strnlen(text, size);
  if (!length || length > kMostText)
    fail(CUDA_ERROR_INVALID_VALUE);
  return std::string(text, length);
}

void set_bits(int *flags, int bits, bool on) { *flags = on ? *flags | bits : *flags & ~bits; }

CUresult set(DumpSettings *d, int attribute, const void *value, size_t size) {
  switch (attribute) {
  case kOnException:
    d->on_exception = taken<bool>(value, size);
    return CUDA_SUCCESS;
  case kTriggerHost:
    set_bits(&d->flags, kSkipAbort, !taken<bool>(value, size));
    return CUDA_SUCCESS;
  case kLightweight:
    set_bits(&d->flags, kLightweightFlags, taken<bool>(value, size));
    return CUDA_SUCCESS;
  case kUserTrigger: // nothing runs that could be dumped from outside
    return taken<bool>(value, size) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
  case kFile:
    d->file = taken_text(value, size);
    return CUDA_SUCCESS;
  case kPipe:
    d->pipe = taken_text(value, size);
    return CUDA_SUCCESS;
  case kGenerationFlags:
    d->flags = taken<int>(value, size);
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

// %h host, %p process, %t seconds since 1970.
std::string expanded(const std::string &pattern) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char kind = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : 0;
    char text[256] = "";
    if (kind == 'h')
      gethostname(text, sizeof text - 1);
    else if (kind == 'p')
      snprintf(text, sizeof text, "%d", getpid());
    else if (kind == 't')
      snprintf(text, sizeof text, "%lld", static_cast<long long>(std::time(nullptr)));
    if (kind == 'h' || kind == 'p' || kind == 't') {
      path += text;
      ++i;
    } else {
      path += pattern[i];
    }
  }
  return path;
}

void write_memory(FILE *file, const Context &context) {
  static const char *const kOrigins[] = {"device", "managed", "pinned", "registered", "mapped",
                                         "imported"};
  std::fprintf(file, "\nmemory of the context:\n");
  for (const Block &block : blocks_of(context.handle))
    std::fprintf(file, "  0x%llx  %12llu bytes  %s\n", static_cast<unsigned long long>(block.base),
                 static_cast<unsigned long long>(block.bytes),
                 kOrigins[static_cast<size_t>(block.origin)]);
}

bool write(const std::string &path, const Context &context, const std::string &report, int flags) {
  FILE *const file = std::fopen(path.c_str(), "w");
  if (!file)
    return false;
  std::fprintf(file, "va100 fault dump: device %d, context %llu\n\n%s\n", context.device->ordinal,
               static_cast<unsigned long long>(context.id), report.c_str());
  if (!(flags & kSkipMemory))
    write_memory(file, context);
  return !std::fclose(file);
}

} // namespace

void dump_fault(const Context &context, const std::string &report) {
  const DumpSettings d = settings_for(context.handle);
  if (!d.on_exception)
    return;
  if (!(d.flags & kLogOnly)) {
    const std::string path = expanded(d.file);
    if (write(path, context, report, d.flags))
      say("wrote what is known of the fault to %s", path.c_str());
    else
      say("could not write a dump to %s", path.c_str());
  }
  if (!(d.flags & kSkipAbort))
    std::abort(); // as asked for: the host's dump, too
}

namespace api {

CUresult cuCoredumpGetAttribute(CUcoredumpSettings attribute, void *value, size_t *size) {
  return get(settings_for(current_context().handle), attribute, value, size);
}

CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attribute, void *value, size_t *size) {
  started();
  return get(settings_for(nullptr), attribute, value, size);
}

CUresult cuCoredumpSetAttribute(CUcoredumpSettings attribute, void *value, size_t *size) {
  const CUcontext context = current_context().handle;
  Dumps &all = dumps();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto it = all.by_context.try_emplace(context, all.global).first;
  return value ? set(&it->second, attribute, value, *size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attribute, void *value, size_t *size) {
  started();
  Dumps &all = dumps();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return value ? set(&all.global, attribute, value, *size) : CUDA_ERROR_INVALID_VALUE;
}

} // namespace api
} // namespace va
