// Pinned and mapped memory, asynchronous copies in chunks over two streams, timed by events.
#include "check.cuh"

__global__ void square(const float *in, float *out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[i] * in[i];
}

__global__ void mark(int *mapped) { mapped[threadIdx.x] = 3 * threadIdx.x; }

int main() {
  const int n = 1 << 18, chunks = 4, each = n / chunks;
  float *in = nullptr, *out = nullptr, *device_in = nullptr, *device_out = nullptr;
  CHECK(cudaMallocHost(&in, n * sizeof(float)));
  CHECK(cudaHostAlloc(&out, n * sizeof(float), cudaHostAllocDefault));
  cudaStream_t streams[2];
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  for (cudaStream_t &stream : streams)
    CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocAsync(&device_in, n * sizeof(float), streams[0]));
  CHECK(cudaMallocAsync(&device_out, n * sizeof(float), streams[0]));
  CHECK(cudaStreamSynchronize(streams[0]));
  for (int i = 0; i < n; ++i)
    in[i] = static_cast<float>(i % 1000);
  CHECK(cudaEventRecord(start));
  for (int c = 0; c < chunks; ++c) {
    const cudaStream_t stream = streams[c % 2];
    const size_t bytes = each * sizeof(float);
    CHECK(cudaMemcpyAsync(device_in + c * each, in + c * each, bytes, cudaMemcpyHostToDevice,
                          stream));
    square<<<each / 256, 256, 0, stream>>>(device_in + c * each, device_out + c * each, each);
    CHECK(cudaMemcpyAsync(out + c * each, device_out + c * each, bytes, cudaMemcpyDeviceToHost,
                          stream));
  }
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  // A megabyte each way over PCIe takes an A100 about 50 us.
  long wrong = !(milliseconds > 0.04f && milliseconds < 1.0f);
  for (int i = 0; i < n; ++i)
    wrong += out[i] != in[i] * in[i];

  int *mapped = nullptr, *seen = nullptr;
  CHECK(cudaHostAlloc(&mapped, 64 * sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&seen, mapped, 0));
  mark<<<1, 64>>>(seen);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i)
    wrong += mapped[i] != 3 * i;
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, device_in));
  wrong += attributes.type != cudaMemoryTypeDevice;
  CHECK(cudaPointerGetAttributes(&attributes, in));
  wrong += attributes.type != cudaMemoryTypeHost;

  CHECK(cudaFreeAsync(device_in, streams[1]));
  CHECK(cudaFreeAsync(device_out, streams[1]));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));
  CHECK(cudaFreeHost(mapped));
  return outcome("pinned_pipeline", wrong);
}
