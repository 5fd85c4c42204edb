// A graph of two kernels that write the same words: unordered, or with any argument one after the
// other.
#include <cstdio>

__global__ void put(int *to, int value) { to[threadIdx.x] = value; }

int main(int count, char **) {
  int *words, value = 1;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t first, second;
  cudaMalloc(&words, 128);
  cudaGraphCreate(&graph, 0);
  void *arguments[] = {&words, &value};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void *>(put);
  kernel.gridDim = dim3(1);
  kernel.blockDim = dim3(32);
  kernel.kernelParams = arguments;
  const bool ordered = count > 1;
  cudaGraphAddKernelNode(&first, graph, nullptr, 0, &kernel);
  value = 2;
  cudaGraphAddKernelNode(&second, graph, ordered ? &first : nullptr, ordered, &kernel);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 2; ++i)
    cudaGraphLaunch(exec, nullptr);
  std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
  cudaFree(words);
}
