// What every example here needs besides its kernel: checked calls, options, output, a verdict.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Every CUDA call can fail, and a kernel's fault shows up in a later call, so check them all.
#define CHECK(call) example::check((call), #call, __FILE__, __LINE__)

// A launch returns nothing: ask for the error of its shape, then wait for the kernel's own.
#define CHECK_LAUNCH()                                                                             \
  do {                                                                                             \
    CHECK(cudaGetLastError());                                                                     \
    CHECK(cudaDeviceSynchronize());                                                                \
  } while (0)

namespace example {

inline void check(cudaError_t status, const char *call, const char *file, int line) {
  if (status == cudaSuccess)
    return;
  std::fprintf(stderr, "%s:%d: %s\n  CUDA error %d (%s): %s\n", file, line, call,
               static_cast<int>(status), cudaGetErrorName(status), cudaGetErrorString(status));
  std::exit(EXIT_FAILURE);
}

// The value after an option on the command line, or what to take without it.
inline std::string option(int argc, char **argv, const char *name, const char *fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0)
      return argv[i + 1];
  return fallback;
}

inline int number(int argc, char **argv, const char *name, int fallback) {
  const std::string text = option(argc, argv, name, "");
  if (text.empty())
    return fallback;
  char *end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (*end != '\0' || value < 1 || value > (1 << 28)) {
    std::fprintf(stderr, "%s takes a number from 1 to %d, not %s\n", name, 1 << 28, text.c_str());
    std::exit(EXIT_FAILURE);
  }
  return static_cast<int>(value);
}

// Write a result as raw bytes to the file after --out, if there is one.
template <typename T> void write_out(int argc, char **argv, const std::vector<T> &values) {
  const std::string path = option(argc, argv, "--out", "");
  if (path.empty())
    return;
  std::FILE *const file = std::fopen(path.c_str(), "wb");
  const size_t written = file ? std::fwrite(values.data(), sizeof(T), values.size(), file) : 0;
  if (!file || std::fclose(file) != 0 || written != values.size()) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(EXIT_FAILURE);
  }
}

// Numbers without a pattern, the same on every machine: a linear congruential generator.
class Random {
public:
  explicit Random(unsigned seed) : state_(seed) {}
  unsigned bits() { return state_ = state_ * 1664525u + 1013904223u; }
  // Uniform in [-1, 1), a multiple of 2^-23.
  float uniform() { return static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f; }

private:
  unsigned state_;
};

// Say whether the GPU's result agrees with the host's; the value is main's.
inline int verdict(const char *name, double error, double allowed) {
  const bool passed = error <= allowed; // false for NaN too
  std::printf("%s: max error %g, allowed %g: %s\n", name, error, allowed,
              passed ? "PASSED" : "FAILED");
  return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace example
