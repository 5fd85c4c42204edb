// Graphs that decide on the device: while, if with else, switch, one in another; captured bodies.
#include "check.cuh"

__global__ void count_down(cudaGraphConditionalHandle handle, int *left, int *rounds) {
  if (threadIdx.x == 0) {
    *rounds += 1;
    cudaGraphSetConditional(handle, --*left > 0);
  }
}

__global__ void choose(cudaGraphConditionalHandle handle, const int *value) {
  cudaGraphSetConditional(handle, *value);
}

__global__ void store(int *to, int value) { *to = value; }

static cudaGraphNode_t add_node(cudaGraph_t graph, const cudaGraphNode_t *after,
                                cudaGraphNodeParams *params) {
  cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
  CHECK(cudaGraphAddNode(&node, graph, after, nullptr, after ? 1 : 0, params));
#else
  CHECK(cudaGraphAddNode(&node, graph, after, after ? 1 : 0, params));
#endif
  return node;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const cudaGraphNode_t *after, void *function,
                                  void **arguments) {
  cudaGraphNodeParams params = {cudaGraphNodeTypeKernel};
  params.kernel.func = function;
  params.kernel.gridDim = dim3(1);
  params.kernel.blockDim = dim3(1);
  params.kernel.kernelParams = arguments;
  return add_node(graph, after, &params);
}

static std::vector<cudaGraph_t> add_conditional(cudaGraph_t graph, const cudaGraphNode_t *after,
                                                cudaGraphConditionalHandle handle,
                                                cudaGraphConditionalNodeType type, unsigned size) {
  cudaGraphNodeParams params = {cudaGraphNodeTypeConditional};
  params.conditional.handle = handle;
  params.conditional.type = type;
  params.conditional.size = size;
  add_node(graph, after, &params);
  return {params.conditional.phGraph_out, params.conditional.phGraph_out + size};
}

static void run(cudaGraph_t graph) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaGraphExecDestroy(exec));
}

static long while_loop() {
  const std::vector<int> start{10, 0};
  Buffer<int> words(start);
  int *left = words, *rounds = left + 1;
  cudaGraph_t graph;
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  const cudaGraph_t body =
      add_conditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1).front();
  // The body is captured.
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                      cudaStreamCaptureModeRelaxed));
  count_down<<<1, 32, 0, stream>>>(handle, left, rounds);
  cudaGraph_t same;
  CHECK(cudaStreamEndCapture(stream, &same));
  run(graph);
  const std::vector<int> now = words.host();
  return (same != body) + (now[0] != 0) + (now[1] != 10);
}

static long branches(cudaGraphConditionalNodeType type, unsigned size, int value, int expected) {
  const std::vector<int> start{value, -1};
  Buffer<int> words(start);
  int *choice = words, *result = choice + 1;
  cudaGraph_t graph;
  cudaGraphConditionalHandle handle;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  void *arguments[] = {&handle, &choice};
  const cudaGraphNode_t first =
      add_kernel(graph, nullptr, reinterpret_cast<void *>(choose), arguments);
  int branch = 0;
  for (cudaGraph_t body : add_conditional(graph, &first, handle, type, size)) {
    void *stored[] = {&result, &branch};
    add_kernel(body, nullptr, reinterpret_cast<void *>(store), stored);
    ++branch;
  }
  run(graph);
  return words.host()[1] != expected;
}

int main() {
  long wrong = while_loop();
  wrong += branches(cudaGraphCondTypeIf, 1, 7, 0);
  wrong += branches(cudaGraphCondTypeIf, 1, 0, -1);
  wrong += branches(cudaGraphCondTypeIf, 2, 0, 1);
  wrong += branches(cudaGraphCondTypeSwitch, 4, 2, 2);
  wrong += branches(cudaGraphCondTypeSwitch, 4, 9, -1);
  return outcome("graph_conditionals", wrong);
}
