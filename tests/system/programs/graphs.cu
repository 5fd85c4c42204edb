// CUDA graphs: captured, built by hand, updated, with memory of their own; each against the same
// work in streams.
#include "check.cuh"

constexpr int kCount = 4096, kBlock = 256;

__global__ void affine(int *x, int factor, int offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount)
    x[i] = x[i] * factor + offset;
}

__global__ void add(int *to, const int *a, const int *b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount)
    to[i] = a[i] + b[i];
}

__global__ void tiny(int *counter) {
  if (threadIdx.x == 0)
    *counter += 1;
}

static std::vector<int> numbers() {
  std::vector<int> x(kCount);
  for (int i = 0; i < kCount; ++i)
    x[i] = i % 97;
  return x;
}

static long differing(const std::vector<int> &a, const std::vector<int> &b) {
  long wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += a[i] != b[i];
  return wrong;
}

static float seconds_of(cudaStream_t stream, cudaEvent_t first, cudaEvent_t last) {
  CHECK(cudaStreamSynchronize(stream));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, first, last));
  return ms * 1e-3f;
}

// 20 tiny kernels, launched 1,000 times as a graph and once in the stream.
static long many_launches() {
  std::vector<int> zero(1, 0);
  Buffer<int> counter(zero);
  cudaStream_t stream;
  cudaEvent_t events[3];
  CHECK(cudaStreamCreate(&stream));
  for (cudaEvent_t &event : events)
    CHECK(cudaEventCreate(&event));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 20; ++i)
    tiny<<<1, 32, 0, stream>>>(counter);
  CHECK(cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaEventRecord(events[0], stream));
  for (int i = 0; i < 20; ++i)
    tiny<<<1, 32, 0, stream>>>(counter);
  CHECK(cudaEventRecord(events[1], stream));
  for (int i = 0; i < 1000; ++i)
    CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaEventRecord(events[2], stream));
  const float streamed = seconds_of(stream, events[0], events[1]);
  const float graphed = seconds_of(stream, events[1], events[2]) / 1000;
  std::printf("20 tiny kernels: %.1f us in a stream, %.1f us in a graph\n", streamed * 1e6f,
              graphed * 1e6f);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  const bool faster = streamed / graphed > 1.7f && streamed / graphed < 2.1f;
  return (nodes != 20) + (counter.host()[0] != 20 * 1001) + !faster;
}

// x in one stream, y in another that waits for the first one's copy; both joined.
static void fork_and_join(cudaStream_t stream, cudaStream_t other, cudaEvent_t fork,
                          cudaEvent_t join, int *x, int *y, int *sum, const int *from) {
  const int blocks = kCount / kBlock;
  CHECK(cudaMemcpyAsync(x, from, kCount * sizeof(int), cudaMemcpyHostToDevice, stream));
  CHECK(cudaEventRecord(fork, stream));
  CHECK(cudaStreamWaitEvent(other, fork, 0));
  CHECK(cudaMemcpyAsync(y, x, kCount * sizeof(int), cudaMemcpyDeviceToDevice, other));
  affine<<<blocks, kBlock, 0, other>>>(y, 7, 1);
  CHECK(cudaEventRecord(join, other));
  CHECK(cudaMemsetAsync(sum, 0, kCount * sizeof(int), stream));
  CHECK(cudaStreamWaitEvent(stream, join, 0));
  affine<<<blocks, kBlock, 0, stream>>>(x, 3, 2);
  add<<<blocks, kBlock, 0, stream>>>(sum, x, y);
}

static long forks() {
  const std::vector<int> input = numbers();
  Buffer<int> x(kCount), y(kCount), sum(kCount);
  cudaStream_t stream, other;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  fork_and_join(stream, other, fork, join, x, y, sum, input.data());
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<int> streamed = sum.host();
  CHECK(cudaMemset(sum, 0xFF, kCount * sizeof(int)));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  fork_and_join(stream, other, fork, join, x, y, sum, input.data());
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(other, &status));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  long wrong = differing(streamed, sum.host()) + (status != cudaStreamCaptureStatusActive);
  for (int i = 0; i < kCount; ++i)
    wrong += streamed[i] != input[i] * 10 + 3;
  // The same again, of other numbers, by updating what was instantiated.
  std::vector<int> more = input;
  for (int &value : more)
    value += 5;
  cudaGraph_t changed;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  fork_and_join(stream, other, fork, join, x, y, sum, more.data());
  CHECK(cudaStreamEndCapture(stream, &changed));
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, changed, &info));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<int> updated = sum.host();
  for (int i = 0; i < kCount; ++i)
    wrong += updated[i] != more[i] * 10 + 3;
  return wrong;
}

struct Call {
  int seen, *from;
};

static void CUDART_CB look(void *data) {
  Call *const call = static_cast<Call *>(data);
  call->seen = call->from[5];
}

// Nodes made by hand: memory, copies, a fill, kernels, a host function, a child graph.
static long by_hand() {
  const std::vector<int> input = numbers();
  std::vector<int> output(kCount, -1);
  Call call{0, output.data()};
  cudaGraph_t graph, child;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphCreate(&child, 0));
  cudaMemAllocNodeParams alloc = {};
  alloc.poolProps.allocType = cudaMemAllocationTypePinned;
  alloc.poolProps.location = {cudaMemLocationTypeDevice, 0};
  alloc.bytesize = kCount * sizeof(int);
  cudaGraphNode_t make, up, scale, inner, down, host, release, in_child;
  CHECK(cudaGraphAddMemAllocNode(&make, graph, nullptr, 0, &alloc));
  int *x = static_cast<int *>(alloc.dptr);
  CHECK(cudaGraphAddMemcpyNode1D(&up, graph, &make, 1, x, input.data(), alloc.bytesize,
                                 cudaMemcpyHostToDevice));
  int factor = 2, offset = 9;
  void *arguments[] = {&x, &factor, &offset};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void *>(affine);
  kernel.gridDim = dim3(kCount / kBlock);
  kernel.blockDim = dim3(kBlock);
  kernel.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&scale, graph, &up, 1, &kernel));
  factor = 5;
  CHECK(cudaGraphAddKernelNode(&in_child, child, nullptr, 0, &kernel));
  CHECK(cudaGraphAddChildGraphNode(&inner, graph, &scale, 1, child));
  CHECK(cudaGraphAddMemcpyNode1D(&down, graph, &inner, 1, output.data(), x, alloc.bytesize,
                                 cudaMemcpyDeviceToHost));
  cudaHostNodeParams function = {look, &call};
  CHECK(cudaGraphAddHostNode(&host, graph, &down, 1, &function));
  CHECK(cudaGraphAddMemFreeNode(&release, graph, &down, 1, x));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  long wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += output[i] != (input[i] * 2 + 9) * 5 + 9;
  wrong += call.seen != output[5];
  // Parameters as they are asked for, and changed for what was instantiated alone.
  cudaKernelNodeParams told = {};
  CHECK(cudaGraphKernelNodeGetParams(scale, &told));
  wrong += told.func != kernel.func || told.blockDim.x != kBlock;
  wrong += *static_cast<int *>(told.kernelParams[1]) != 2;
  factor = 0;
  told.kernelParams[1] = &factor;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, scale, &told));
  CHECK(cudaGraphLaunch(exec, nullptr));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i)
    wrong += output[i] != 9 * 5 + 9;
  return wrong;
}

// Allocations of a stream become nodes; what one launch frees, the next allocates.
static long captured_memory() {
  const std::vector<int> input = numbers();
  Buffer<int> source(input), target(kCount);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int *x = nullptr;
  CHECK(cudaMallocAsync(&x, kCount * sizeof(int), stream));
  CHECK(cudaMemcpyAsync(x, source, kCount * sizeof(int), cudaMemcpyDeviceToDevice, stream));
  affine<<<kCount / kBlock, kBlock, 0, stream>>>(x, 4, 0);
  CHECK(cudaMemcpyAsync(target, x, kCount * sizeof(int), cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaFreeAsync(x, stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i)
    CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  const std::vector<int> output = target.host();
  long wrong = 0;
  for (int i = 0; i < kCount; ++i)
    wrong += output[i] != 4 * input[i];
  return wrong;
}

// What a capture forbids is told, and the program goes on.
static long misuse() {
  cudaStream_t stream;
  cudaGraph_t graph;
  CHECK(cudaStreamCreate(&stream));
  long wrong = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  wrong += cudaStreamSynchronize(stream) != cudaErrorStreamCaptureUnsupported;
  wrong += cudaStreamEndCapture(stream, &graph) != cudaErrorStreamCaptureInvalidated;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int *pointer = nullptr;
  wrong += cudaMalloc(&pointer, 16) != cudaErrorStreamCaptureUnsupported;
  wrong += cudaStreamEndCapture(stream, &graph) != cudaErrorStreamCaptureInvalidated;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  affine<<<1, 32>>>(nullptr, 1, 1); // in the legacy stream
  wrong += cudaGetLastError() != cudaErrorStreamCaptureImplicit;
  wrong += cudaStreamEndCapture(stream, &graph) != cudaErrorStreamCaptureInvalidated;
  wrong += cudaGraphLaunch(nullptr, stream) != cudaErrorInvalidValue;
  cudaGetLastError();
  CHECK(cudaDeviceSynchronize());
  return wrong;
}

int main() {
  long wrong = many_launches();
  wrong += forks();
  wrong += by_hand();
  wrong += captured_memory();
  wrong += misuse();
  return outcome("graphs", wrong);
}
