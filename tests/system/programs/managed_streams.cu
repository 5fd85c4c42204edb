// Managed memory, several streams that wait for each other by events, callbacks, a default stream.
#include "check.cuh"

__managed__ int launches;

__global__ void scale(float *data, int n, float by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    data[i] *= by;
  if (i == 0)
    atomicAdd(&launches, 1);
}

__global__ void add(float *to, const float *from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    to[i] += from[i];
}

void CUDART_CB count(void *user) { ++*static_cast<int *>(user); }

int main() {
  const int n = 10000, streams = 4;
  float *parts[streams];
  cudaStream_t stream[streams];
  cudaEvent_t done[streams];
  int called = 0;
  for (int s = 0; s < streams; ++s) {
    CHECK(cudaMallocManaged(&parts[s], n * sizeof(float)));
    CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
    for (int i = 0; i < n; ++i)
      parts[s][i] = static_cast<float>(i % 100 + s);
  }
  int device = 0;
  CHECK(cudaGetDevice(&device));
  for (int s = 0; s < streams; ++s) {
    scale<<<(n + 255) / 256, 256, 0, stream[s]>>>(parts[s], n, static_cast<float>(s + 1));
    CHECK(cudaLaunchHostFunc(stream[s], count, &called));
    CHECK(cudaEventRecord(done[s], stream[s]));
  }
  for (int s = 1; s < streams; ++s) {
    CHECK(cudaStreamWaitEvent(stream[0], done[s], 0));
    add<<<(n + 255) / 256, 256, 0, stream[0]>>>(parts[0], parts[s], n);
  }
  CHECK(cudaStreamSynchronize(stream[0]));
  CHECK(cudaDeviceSynchronize());
  long wrong = called != streams || launches != streams || cudaEventQuery(done[0]) != cudaSuccess;
  for (int i = 0; i < n; ++i) {
    float expected = 0;
    for (int s = 0; s < streams; ++s)
      expected += static_cast<float>((i % 100 + s) * (s + 1));
    wrong += parts[0][i] != expected;
  }
  for (int s = 0; s < streams; ++s) {
    CHECK(cudaFree(parts[s]));
    CHECK(cudaStreamDestroy(stream[s]));
    CHECK(cudaEventDestroy(done[s]));
  }
  return outcome("managed_streams", wrong);
}
