// Device-side malloc: the heap is as large as its limit, and lives as long as the context.
#include "check.cuh"

__global__ void take(int *got, size_t bytes) {
  got[threadIdx.x] = malloc(bytes) != nullptr;
}

__global__ void make(int **kept, int count) {
  const int i = threadIdx.x;
  kept[i] = static_cast<int *>(malloc(count * sizeof(int)));
  for (int k = 0; k < count; ++k)
    kept[i][k] = i * 100 + k;
}

__global__ void use(int **kept, int *sums, int count) {
  const int i = threadIdx.x;
  int sum = 0;
  for (int k = 0; k < count; ++k)
    sum += kept[i][k];
  sums[i] = sum;
  free(kept[i]);
}

int taken(size_t bytes) {
  Buffer<int> got(32);
  take<<<1, 32>>>(got, bytes);
  int count = 0;
  for (int one : got.host())
    count += one;
  return count;
}

int main() {
  constexpr size_t kMega = 1 << 20;
  long wrong = 0;
  Buffer<int *> kept(64);
  Buffer<int> sums(64);
  make<<<1, 64>>>(kept, 10);
  use<<<1, 64>>>(kept, sums, 10);
  const std::vector<int> got = sums.host();
  for (int i = 0; i < 64; ++i)
    wrong += got[static_cast<size_t>(i)] != i * 1000 + 45;
  size_t limit = 0;
  CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  wrong += limit != 8 * kMega;
  const int of_default = taken(kMega); // the heap takes some room for itself on a card
  wrong += of_default < 6 || of_default > 8;
  CHECK(cudaDeviceReset());
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * kMega));
  wrong += taken(kMega) != 32;
  return outcome("device_heap", wrong);
}
