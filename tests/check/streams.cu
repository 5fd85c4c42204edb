// Two streams at work on the same memory, in ways that are ordered and ways that are not.
#include <cuda_runtime.h>

#include <cstring>

__global__ void put(int *to) { to[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

__global__ void move(int *to, const int *from) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

static void call(void *flag) { *static_cast<volatile int *>(flag) = 1; }

int main(int, char **arguments) {
  auto is = [&](const char *mode) { return !strcmp(arguments[1], mode); };
  const size_t bytes = 4096 * sizeof(int);
  int *a, *b, *pinned;
  volatile int flag = 0;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMallocHost(&pinned, bytes);
  cudaStream_t s, t, free;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaMemset(a, 0, bytes);
  cudaDeviceSynchronize();

  if (is("early")) cudaEventRecord(event, s);
  if (is("free") || is("legacy"))
    put<<<32, 128>>>(a);
  else if (is("copy_in"))
    cudaMemcpyAsync(a, pinned, bytes, cudaMemcpyHostToDevice, s);
  else
    put<<<32, 128, 0, s>>>(a);
  if (is("event") || is("event_query")) cudaEventRecord(event, s);
  if (is("event") || is("early")) cudaStreamWaitEvent(t, event, 0);
  if (is("query"))
    while (cudaStreamQuery(s) != cudaSuccess) {
    }
  if (is("event_query"))
    while (cudaEventQuery(event) != cudaSuccess) {
    }
  if (is("callback")) {
    cudaLaunchHostFunc(s, call, const_cast<int *>(&flag));
    while (!flag) {
    }
  }
  move<<<32, 128, 0, is("free") ? free : t>>>(b, a);
  return cudaDeviceSynchronize();
}
