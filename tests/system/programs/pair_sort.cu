// A device-wide stable radix sort of pairs of unlike sizes, the largest kernels that people run.
#include <algorithm>
#include <numeric>

#include <cub/device/device_radix_sort.cuh>

#include "check.cuh"

long wrong_sort(int n) {
  std::vector<float> keys(n);
  std::vector<long long> values(n);
  std::vector<int> order(n);
  unsigned state = n;
  for (float &k : keys)
    k = static_cast<float>((next_random(state) >> 8) % 1000) - 400.0f;
  std::iota(values.begin(), values.end(), 1LL << 40);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] > keys[b]; });

  Buffer<float> keys_in(keys), keys_out(n);
  Buffer<long long> values_in(values), values_out(n);
  float *from = keys_in, *to = keys_out;
  long long *with = values_in, *moved = values_out;
  size_t bytes = 0;
  CHECK(cub::DeviceRadixSort::SortPairsDescending(nullptr, bytes, from, to, with, moved, n));
  Buffer<char> scratch(bytes);
  char *memory = scratch;
  CHECK(cub::DeviceRadixSort::SortPairsDescending(memory, bytes, from, to, with, moved, n));
  CHECK(cudaDeviceSynchronize());

  const std::vector<float> sorted = keys_out.host();
  const std::vector<long long> followed = values_out.host();
  long wrong = 0;
  for (int i = 0; i < n; ++i)
    wrong += sorted[i] != keys[order[i]] || followed[i] != values[order[i]];
  return wrong;
}

int main() { return outcome("pair_sort", wrong_sort(9001)); }
