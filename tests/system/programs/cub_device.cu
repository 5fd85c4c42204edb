// CUB in a block, and over a whole device: reduce, scan, radix sort, histogram, select, runs and
// segments.
#include <algorithm>
#include <numeric>

#include <cub/cub.cuh>

#include "check.cuh"

// Calls an algorithm twice, as all of them are: for the size of its storage, then to run.
template <typename Algorithm> void run(Algorithm algorithm) {
  size_t bytes = 0;
  CHECK(algorithm(nullptr, bytes));
  Buffer<char> storage(bytes + 1);
  CHECK(algorithm(static_cast<char *>(storage), bytes));
  CHECK(cudaDeviceSynchronize());
}

template <typename T> long differing(const std::vector<T> &found, const std::vector<T> &right) {
  long wrong = 0;
  for (size_t i = 0; i < right.size(); ++i)
    wrong += found[i] != right[i];
  return wrong;
}

template <int kBlock> __global__ void block_sums(const int *in, int *sums, int *prefixes) {
  using Reduce = cub::BlockReduce<int, kBlock>;
  using Scan = cub::BlockScan<int, kBlock>;
  __shared__ typename Reduce::TempStorage reduce_storage;
  __shared__ typename Scan::TempStorage scan_storage;
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int value = in[i];
  const int sum = Reduce(reduce_storage).Sum(value);
  if (threadIdx.x == 0)
    sums[blockIdx.x] = sum;
  int prefix;
  Scan(scan_storage).ExclusiveSum(value, prefix);
  prefixes[i] = prefix;
}

long in_blocks(const std::vector<int> &values) {
  const int block = 128, grid = 20;
  Buffer<int> in(values), sums(grid), prefixes(grid * block);
  block_sums<block><<<grid, block>>>(in, sums, prefixes);
  CHECK(cudaDeviceSynchronize());
  const std::vector<int> found = sums.host(), scanned = prefixes.host();
  long wrong = 0;
  for (int b = 0; b < grid; ++b) {
    int sum = 0;
    for (int i = b * block; i < (b + 1) * block; ++i) {
      wrong += scanned[i] != sum;
      sum += values[i];
    }
    wrong += found[b] != sum;
  }
  return wrong;
}

struct IsOdd {
  __host__ __device__ bool operator()(int x) const { return x & 1; }
};

long reduce_and_scan(const std::vector<int> &values) {
  const int n = static_cast<int>(values.size());
  Buffer<int> in(values), sum(1), least(1), scanned(n), exclusive(n);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::Sum(storage, bytes, (int *)in, (int *)sum, n);
  });
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceReduce::Min(storage, bytes, (int *)in, (int *)least, n);
  });
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::InclusiveSum(storage, bytes, (int *)in, (int *)scanned, n);
  });
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(storage, bytes, (int *)in, (int *)exclusive, n);
  });
  std::vector<int> sums(n), before(n);
  std::partial_sum(values.begin(), values.end(), sums.begin());
  for (int i = 1; i < n; ++i)
    before[i] = sums[i - 1];
  return (sum.host()[0] != sums.back()) +
         (least.host()[0] != *std::min_element(values.begin(), values.end())) +
         differing(scanned.host(), sums) + differing(exclusive.host(), before);
}

long sort(const std::vector<int> &values) {
  const int n = static_cast<int>(values.size());
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  Buffer<int> in(values), numbers(places), keys(n), carried(n);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairs(storage, bytes, (const int *)in, (int *)keys,
                                           (const int *)numbers, (int *)carried, n);
  });
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return values[a] < values[b]; });
  std::vector<int> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return differing(keys.host(), sorted) + differing(carried.host(), places);
}

long histogram(const std::vector<int> &values) {
  const int n = static_cast<int>(values.size()), bins = 16, low = -800, high = 800;
  Buffer<int> in(values), counts(bins);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceHistogram::HistogramEven(storage, bytes, (int *)in, (int *)counts, bins + 1,
                                               low, high, n);
  });
  std::vector<int> right(bins);
  for (int v : values)
    if (v >= low && v < high)
      ++right[(v - low) / ((high - low) / bins)];
  return differing(counts.host(), right);
}

long selects(const std::vector<int> &values) {
  const int n = static_cast<int>(values.size());
  std::vector<int> keys(n);
  for (int i = 0; i < n; ++i)
    keys[i] = i / (1 + values[i / 32 * 32] % 7 * (values[i / 32 * 32] > 0));
  Buffer<int> in(values), odd(n), count(1), on_keys(keys), heads(n), firsts(n), kinds(1);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSelect::If(storage, bytes, (int *)in, (int *)odd, (int *)count, n, IsOdd());
  });
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSelect::UniqueByKey(storage, bytes, (int *)on_keys, (int *)in, (int *)heads,
                                          (int *)firsts, (int *)kinds, n);
  });
  std::vector<int> kept, unique_keys, unique_values;
  for (int i = 0; i < n; ++i) {
    if (values[i] & 1)
      kept.push_back(values[i]);
    if (i == 0 || keys[i] != keys[i - 1])
      unique_keys.push_back(keys[i]), unique_values.push_back(values[i]);
  }
  return (count.host()[0] != static_cast<int>(kept.size())) + differing(odd.host(), kept) +
         (kinds.host()[0] != static_cast<int>(unique_keys.size())) +
         differing(heads.host(), unique_keys) + differing(firsts.host(), unique_values);
}

long runs_and_segments(const std::vector<int> &values) {
  const int n = static_cast<int>(values.size()), segments = 40;
  std::vector<int> steps(n), begins(segments + 1);
  for (int i = 0; i < n; ++i)
    steps[i] = values[i] / 500;
  for (int s = 0; s <= segments; ++s)
    begins[s] = n * s / segments * s / segments;
  Buffer<int> in(steps), kinds(n), lengths(n), count(1), data(values), offsets(begins);
  Buffer<int> most(segments);
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceRunLengthEncode::Encode(storage, bytes, (int *)in, (int *)kinds,
                                              (int *)lengths, (int *)count, n);
  });
  run([&](void *storage, size_t &bytes) {
    return cub::DeviceSegmentedReduce::Max(storage, bytes, (int *)data, (int *)most, segments,
                                           (int *)offsets, (int *)offsets + 1);
  });
  std::vector<int> right_kinds, right_lengths, right_most(segments, INT_MIN);
  for (int i = 0; i < n; ++i) {
    if (i == 0 || steps[i] != steps[i - 1])
      right_kinds.push_back(steps[i]), right_lengths.push_back(0);
    ++right_lengths.back();
  }
  for (int s = 0; s < segments; ++s)
    for (int i = begins[s]; i < begins[s + 1]; ++i)
      right_most[s] = std::max(right_most[s], values[i]);
  return (count.host()[0] != static_cast<int>(right_kinds.size())) +
         differing(kinds.host(), right_kinds) + differing(lengths.host(), right_lengths) +
         differing(most.host(), right_most);
}

int main() {
  const int n = 10007; // several tiles and a rest
  std::vector<int> values(n);
  unsigned state = 9;
  for (int &v : values)
    v = static_cast<int>(next_random(state) >> 21) - 1000;
  long wrong = in_blocks(values);
  wrong += reduce_and_scan(values);
  wrong += sort(values);
  wrong += histogram(values);
  wrong += selects(values);
  wrong += runs_and_segments(values);
  return outcome("cub_device", wrong);
}
