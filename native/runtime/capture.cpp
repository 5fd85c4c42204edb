// Stream capture of the runtime.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  enter();
  return from_driver(cuStreamBeginCapture_v2(stream(handle), mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          cudaStreamCaptureMode mode) {
  enter();
  return from_driver(
      cuStreamBeginCaptureToGraph(stream(handle), graph, dependencies, edges, count, mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph) {
  enter();
  return from_driver(cuStreamEndCapture(stream(handle), graph));
}

#if VA100_CUDART_MAJOR < 13

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                        uint64_t *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies,
                                        const cudaGraphEdgeData **edges, size_t *count) {
  enter();
  return from_driver(
      cuStreamGetCaptureInfo_v3(stream(handle), status, id, graph, dependencies, edges, count));
}

cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                        uint64_t *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, size_t *count) {
  return cudaStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, nullptr, count);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                     uint64_t *id) {
  return cudaStreamGetCaptureInfo_v3(handle, status, id, nullptr, nullptr, nullptr, nullptr);
}

cudaError_t cudaStreamUpdateCaptureDependencies_v2(cudaStream_t handle,
                                                   cudaGraphNode_t *dependencies,
                                                   const cudaGraphEdgeData *edges, size_t count,
                                                   unsigned int flags) {
  enter();
  return from_driver(
      cuStreamUpdateCaptureDependencies_v2(stream(handle), dependencies, edges, count, flags));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t handle, cudaGraphNode_t *dependencies,
                                                size_t count, unsigned int flags) {
  return cudaStreamUpdateCaptureDependencies_v2(handle, dependencies, nullptr, count, flags);
}

#else

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                     uint64_t *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
  enter();
  return from_driver(
      cuStreamGetCaptureInfo_v3(stream(handle), status, id, graph, dependencies, edges, count));
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t handle, cudaGraphNode_t *dependencies,
                                                const cudaGraphEdgeData *edges, size_t count,
                                                unsigned int flags) {
  enter();
  return from_driver(
      cuStreamUpdateCaptureDependencies_v2(stream(handle), dependencies, edges, count, flags));
}

#endif

} // namespace va::rt
