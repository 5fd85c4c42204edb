// Dynamic parallelism: kernels that launch kernels, sorted by a recursion, summed by a tail launch.
#include <algorithm>
#include <vector>

#include "../check.cuh"

struct Range {
  int low, high;
};

// Quicksort: each range is parted by one thread, its parts are sorted by child grids.
__global__ void sort(int *data, Range range, int depth) {
  if (range.high - range.low < 2)
    return;
  const int pivot = data[(range.low + range.high) / 2];
  int i = range.low, j = range.high - 1;
  while (i <= j) {
    while (data[i] < pivot)
      ++i;
    while (data[j] > pivot)
      --j;
    if (i <= j) {
      const int swapped = data[i];
      data[i++] = data[j];
      data[j--] = swapped;
    }
  }
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  sort<<<1, 1, 0, stream>>>(data, Range{range.low, j + 1}, depth + 1);
  cudaStreamDestroy(stream);
  sort<<<1, 1>>>(data, Range{i, range.high}, depth + 1);
}

__global__ void sum(const int *data, int count, long long *total) {
  long long own = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    own += data[i];
  atomicAdd(reinterpret_cast<unsigned long long *>(total), static_cast<unsigned long long>(own));
}

__global__ void fill(int *data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    data[i] = (i * 7919) % 1009;
}

__global__ void parent(int *data, int count, long long *total, int *errors) {
  sum<<<1, 64, 0, cudaStreamTailLaunch>>>(data, count, total);
  fill<<<(count + 63) / 64, 64>>>(data, count);
  sort<<<1, 1>>>(data, Range{0, count}, 0);
  errors[0] = cudaGetLastError();
  fill<<<0, 64>>>(data, count);
  errors[1] = cudaGetLastError();
  errors[2] = cudaGetLastError();
}

int main() {
  constexpr int kCount = 300;
  Buffer<int> data(kCount), errors(3);
  Buffer<long long> total(std::vector<long long>{0});
  parent<<<1, 1>>>(data, kCount, total, errors);
  CHECK(cudaDeviceSynchronize());
  std::vector<int> expected(kCount);
  long long sum = 0;
  for (int i = 0; i < kCount; ++i)
    sum += expected[static_cast<size_t>(i)] = (i * 7919) % 1009;
  std::sort(expected.begin(), expected.end());
  const std::vector<int> told = errors.host(), wanted = {0, cudaErrorInvalidConfiguration, 0};
  long wrong = told != wanted;
  wrong += total.host()[0] != sum;
  const std::vector<int> got = data.host();
  for (size_t i = 0; i < kCount; ++i)
    wrong += got[i] != expected[i];
  return outcome("dynamic", wrong);
}
