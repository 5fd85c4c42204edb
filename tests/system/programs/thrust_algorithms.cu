// Thrust: sorts, scans, reductions by key and of transformed values, on vectors of the device.
#include <algorithm>
#include <map>
#include <numeric>

#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include "check.cuh"

template <typename T>
long differing(const thrust::device_vector<T> &found, const std::vector<T> &right) {
  std::vector<T> host(right.size());
  thrust::copy(found.begin(), found.begin() + right.size(), host.begin());
  long wrong = 0;
  for (size_t i = 0; i < right.size(); ++i)
    wrong += host[i] != right[i];
  return wrong;
}

struct Square {
  __host__ __device__ long operator()(int x) const { return static_cast<long>(x) * x; }
};

struct IsEven {
  __host__ __device__ bool operator()(int x) const { return (x & 1) == 0; }
};

struct Group {
  __host__ __device__ int operator()(int x) const { return x / 64; }
};

// By the last digit, then as they stood: a comparison that no radix sort knows.
struct ByDigit {
  __host__ __device__ bool operator()(int a, int b) const { return a % 10 < b % 10; }
};

int main() {
  long wrong = 0;
  const int n = 6001;
  std::vector<int> values(n);
  unsigned state = 17;
  for (int &v : values)
    v = static_cast<int>(next_random(state) >> 19);
  const thrust::device_vector<int> in(values.begin(), values.end());

  const long squares = thrust::transform_reduce(in.begin(), in.end(), Square(), 0L,
                                                thrust::plus<long>());
  long right = 0;
  for (int v : values)
    right += Square()(v);
  wrong += squares != right;
  wrong += thrust::reduce(in.begin(), in.end()) !=
           std::accumulate(values.begin(), values.end(), 0);
  wrong += thrust::count_if(in.begin(), in.end(), IsEven()) !=
           std::count_if(values.begin(), values.end(), IsEven());
  wrong += thrust::max_element(in.begin(), in.end()) - in.begin() !=
           std::max_element(values.begin(), values.end()) - values.begin();

  std::vector<int> sums(n);
  std::partial_sum(values.begin(), values.end(), sums.begin());
  thrust::device_vector<int> scanned(n);
  thrust::inclusive_scan(in.begin(), in.end(), scanned.begin());
  wrong += differing(scanned, sums);

  std::vector<int> sorted = values, digits = values;
  std::sort(sorted.begin(), sorted.end());
  thrust::device_vector<int> keys = in, places(n), by_digit = in;
  thrust::sequence(places.begin(), places.end());
  thrust::sort_by_key(keys.begin(), keys.end(), places.begin());
  wrong += differing(keys, sorted);
  for (int i = 0; i < n; i += 97)
    wrong += values[places[i]] != sorted[i];
  thrust::stable_sort(by_digit.begin(), by_digit.end(), ByDigit());
  std::stable_sort(digits.begin(), digits.end(), ByDigit());
  wrong += differing(by_digit, digits);
  wrong += thrust::lower_bound(keys.begin(), keys.end(), sorted[n / 2]) - keys.begin() !=
           std::lower_bound(sorted.begin(), sorted.end(), sorted[n / 2]) - sorted.begin();

  std::map<int, int> counts;
  for (int v : sorted)
    ++counts[v / 64];
  thrust::device_vector<int> groups(n), heads(n), lengths(n);
  thrust::transform(keys.begin(), keys.end(), groups.begin(), Group());
  const auto ends =
      thrust::reduce_by_key(groups.begin(), groups.end(), thrust::make_constant_iterator(1),
                            heads.begin(), lengths.begin());
  wrong += ends.first - heads.begin() != static_cast<long>(counts.size());
  std::vector<int> right_heads, right_lengths;
  for (const auto &group : counts)
    right_heads.push_back(group.first), right_lengths.push_back(group.second);
  wrong += differing(heads, right_heads) + differing(lengths, right_lengths);

  const auto last = thrust::unique_by_key(groups.begin(), groups.end(), places.begin());
  wrong += last.first - groups.begin() != static_cast<long>(counts.size());
  wrong += differing(groups, right_heads);

  thrust::device_vector<int> parted = in;
  const auto middle = thrust::stable_partition(parted.begin(), parted.end(), IsEven());
  std::vector<int> right_parted = values;
  std::stable_partition(right_parted.begin(), right_parted.end(), IsEven());
  wrong += middle - parted.begin() != std::count_if(values.begin(), values.end(), IsEven());
  wrong += differing(parted, right_parted);
  return outcome("thrust_algorithms", wrong);
}
