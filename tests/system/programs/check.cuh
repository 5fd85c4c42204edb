// What every program here needs: stop at a CUDA error, compare with the CPU, say the outcome.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                              \
  do {                                                                                           \
    const cudaError_t result_ = (call);                                                          \
    if (result_ != cudaSuccess) {                                                                \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(result_));    \
      std::exit(2);                                                                              \
    }                                                                                            \
  } while (0)

// Copies a vector to the device and back; freed with its owner.
template <typename T> class Buffer {
public:
  explicit Buffer(size_t count) : count_(count) { CHECK(cudaMalloc(&data_, count * sizeof(T))); }
  explicit Buffer(const std::vector<T> &from) : Buffer(from.size()) {
    CHECK(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { cudaFree(data_); }
  operator T *() { return data_; }
  std::vector<T> host() const {
    std::vector<T> to(count_);
    CHECK(cudaMemcpy(to.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
  }

private:
  T *data_ = nullptr;
  size_t count_;
};

inline unsigned next_random(unsigned &state) { return state = state * 1664525u + 1013904223u; }

inline bool close(double a, double b, double tolerance) {
  return std::fabs(a - b) <= tolerance * std::fmax(1.0, std::fabs(b));
}

inline int outcome(const char *name, long wrong) {
  std::printf("%s: %ld wrong: %s\n", name, wrong, wrong ? "FAILED" : "PASSED");
  return wrong != 0;
}
