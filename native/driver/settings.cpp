#include "settings.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <strings.h>
#include <unistd.h>

#include "logs.h"
#include "va100/arena.h"
#include "va100/check.h"
#include "va100/version.h"

namespace va {
namespace {

const char *text_of(const char *name, const char *fallback) {
  const char *const value = std::getenv(name);
  return value && *value ? value : fallback;
}

long number_of(const char *name, long fallback, long low, long high) {
  const char *const value = std::getenv(name);
  if (!value || !*value)
    return fallback;
  char *end = nullptr;
  const long number = std::strtol(value, &end, 10);
  if (*end || number < low || number > high) {
    std::fprintf(stderr, "va100: %s=%s is not a number from %ld to %ld; using %ld\n", name, value,
                 low, high, fallback);
    return fallback;
  }
  return number;
}

const DeviceModel *model_of(const char *key) {
  for (size_t i = 0; i < kDeviceModelCount; ++i)
    if (!strcasecmp(kDeviceModels[i].key, key) || !strcasecmp(kDeviceModels[i].name, key))
      return &kDeviceModels[i];
  return nullptr;
}

// Words separated by commas; the Python side refuses those that are unknown.
unsigned tools_of(const std::string &text) {
  static const struct {
    const char *name;
    unsigned bit;
  } kTools[] = {{"memcheck", VA_CHECK_MEMORY},
                {"initcheck", VA_CHECK_INIT},
                {"synccheck", VA_CHECK_SYNC},
                {"racecheck", VA_CHECK_RACE},
                {"strict-warp", VA_CHECK_STRICT_WARP},
                {"keep-context", VA_CHECK_KEEP_CONTEXT}};
  const std::string words = "," + text + ",";
  const std::string parent = ",child-of-";  // then nobody but that process's children is checked
  if (words.find(parent) != std::string::npos &&
      words.find(parent + std::to_string(getppid()) + ",") == std::string::npos)
    return 0;
  unsigned bits = 0;
  for (const auto &tool : kTools)
    if (words.find(std::string(",") + tool.name + ",") != std::string::npos)
      bits |= tool.bit;
  return bits;
}

Settings read() {
  static const char kDefaultModel[] = "A100-SXM4-80GB";
  const char *const wanted = text_of("VA100_MODEL", kDefaultModel);
  const DeviceModel *model = model_of(wanted);
  if (!model) {
    std::fprintf(stderr, "va100: VA100_MODEL=%s is no model known here; using %s\n", wanted,
                 kDefaultModel);
    model = model_of(kDefaultModel);
  }
  Settings s;
  s.device_count = static_cast<int>(number_of("VA100_GPUS", 1, 1, VA_DEVICES));
  s.model = model ? model : &kDeviceModels[0];
  s.driver_version = static_cast<int>(number_of("VA100_DRIVER_VERSION", kNewestCuda, 11000, 99990));
  s.some_visible = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  s.visible = text_of("CUDA_VISIBLE_DEVICES", "");
  s.launch_blocking = std::strcmp(text_of("CUDA_LAUNCH_BLOCKING", "0"), "0") != 0;
  s.eager_loading = !std::strcmp(text_of("CUDA_MODULE_LOADING", ""), "EAGER");
  s.log = std::strcmp(text_of("VA100_LOG", "0"), "0") != 0;
  s.workers = static_cast<unsigned>(number_of("VA100_WORKERS", 0, 0, 4096));
  s.shuffle = static_cast<unsigned>(number_of("VA100_SHUFFLE", 0, 0, 1 << 30));
  s.observe_ctas = static_cast<unsigned>(number_of("VA100_OBSERVE", 64, 0, 1 << 30));
  s.nvrtcs = text_of("VA100_NVRTC", "");
  s.python_library = text_of("VA100_LIBPYTHON", "");
  s.python = text_of("VA100_PYTHON", "");
  s.check = tools_of(text_of("VA100_CHECK", ""));
  s.dump_on_exception = std::strcmp(text_of("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0"), "0") != 0;
  s.dump_lightweight = std::strcmp(text_of("CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "0"), "0") != 0;
  s.dump_file = text_of("CUDA_COREDUMP_FILE", "core_%t_%h_%p.nvcudmp");
  s.backend = text_of("VA100_BACKEND", "va100.assembly:connect");
  return s;
}

void print(const char *format, va_list arguments, LogLevel level, bool shown) {
  char line[4096];
  vsnprintf(line, sizeof line, format, arguments);
  if (shown) {
    std::fflush(stdout); // so that what the program wrote before stands before
    std::fprintf(stderr, "va100: %s\n", line);
  }
  keep_log(level, line);
}

} // namespace

const Settings &settings() {
  static const Settings *const instance = new Settings(read());
  return *instance;
}

void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments, LogLevel::kError, true);
  va_end(arguments);
}

void note(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  print(format, arguments, LogLevel::kWarning, settings().log);
  va_end(arguments);
}

} // namespace va
