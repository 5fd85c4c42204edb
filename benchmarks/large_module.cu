// Many of CUB's device algorithms for several types: a module as large programs have them.
// benchmarks/large_module.py compiles it with -lineinfo.
#include <cub/cub.cuh>
#include <cuda/std/functional>

struct Less {
  template <class T>
  __device__ bool operator()(const T& a, const T& b) const { return a < b; }
};

template <class K, class V>
void sorts(void* room, size_t& bytes, K* keys, V* values, int count) {
  cub::DeviceRadixSort::SortPairs(room, bytes, keys, keys, values, values, count);
  cub::DeviceRadixSort::SortPairsDescending(room, bytes, keys, keys, values, values, count);
  cub::DeviceMergeSort::SortPairs(room, bytes, keys, values, count, Less{});
}

template <class K>
void passes(void* room, size_t& bytes, K* keys, int* found, int count) {
  cub::DeviceReduce::Sum(room, bytes, keys, keys, count);
  cub::DeviceScan::InclusiveSum(room, bytes, keys, keys, count);
  cub::DeviceScan::ExclusiveSum(room, bytes, keys, keys, count);
  cub::DeviceSelect::Unique(room, bytes, keys, keys, found, count);
  cub::DeviceSelect::Flagged(room, bytes, keys, found, keys, found, count);
  cub::DeviceRunLengthEncode::Encode(room, bytes, keys, keys, found, found, count);
  cub::DeviceReduce::ReduceByKey(room, bytes, keys, keys, keys, keys, found, cuda::std::plus<>{},
                                 count);
}

#define INSTANTIATE(K)                                              \
  template void sorts<K, int>(void*, size_t&, K*, int*, int);       \
  template void sorts<K, double>(void*, size_t&, K*, double*, int); \
  template void passes<K>(void*, size_t&, K*, int*, int);

INSTANTIATE(int)
INSTANTIATE(unsigned long long)
INSTANTIATE(float)
INSTANTIATE(double)
