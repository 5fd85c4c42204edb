// Nodes of the runtime's graphs.  Kernels are named by host functions, and copies are spelled the
// runtime's way; all else is the driver's.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

CUDA_KERNEL_NODE_PARAMS driver_kernel(const cudaKernelNodeParams &p) {
  CUDA_KERNEL_NODE_PARAMS kernel{p, nullptr, nullptr};
  kernel.launch.function = function_of(reinterpret_cast<const void *>(p.function));
  return kernel;
}

cudaKernelNodeParams runtime_kernel(const CUDA_KERNEL_NODE_PARAMS &kernel) {
  cudaKernelNodeParams p = kernel.launch;
  if (const void *const host = host_function_of(kernel.kernel))
    p.function = static_cast<CUfunction>(const_cast<void *>(host));
  return p;
}

// The union's copy is the runtime's structure at the driver's place.
cudaMemcpy3DParms &copy_in(cudaGraphNodeParams &p) {
  return reinterpret_cast<cudaMemcpy3DParms &>(p.copy.copy);
}

CUgraphNodeParams driver_params(const cudaGraphNodeParams &given) {
  CUgraphNodeParams p = given;
  switch (p.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    p.kernel = driver_kernel(p.kernel.launch);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    p.copy.copy = node_copy(copy_in(p));
    p.copy.context = nullptr;
    break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    p.fill.context = nullptr;
    break;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    p.conditional.context = nullptr;
    break;
  default:
    break;
  }
  return p;
}

cudaError_t add(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                const cudaGraphEdgeData *edges, size_t count, CUgraphNodeParams *p) {
  return from_driver(cuGraphAddNode_v2(out, graph, dependencies, edges, count, p));
}

cudaError_t add_copy(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                     size_t count, const CUDA_MEMCPY3D &copy) {
  return from_driver(cuGraphAddMemcpyNode(out, graph, dependencies, count, &copy, nullptr));
}

cudaError_t add_any(cudaGraphNode_t *out, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                    const cudaGraphEdgeData *edges, size_t count, cudaGraphNodeParams *given) {
  enter();
  CUgraphNodeParams p = driver_params(*given);
  const cudaError_t result = add(out, graph, dependencies, edges, count, &p);
  if (result == cudaSuccess && p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    given->alloc.address = p.alloc.address;
  if (result == cudaSuccess && p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    given->conditional.bodies = p.conditional.bodies;
  return result;
}

} // namespace

// ------------------------------------------------------------------ making

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const cudaKernelNodeParams *params) {
  enter();
  const CUDA_KERNEL_NODE_PARAMS kernel = driver_kernel(*params);
  return from_driver(cuGraphAddKernelNode_v2(out, graph, dependencies, count, &kernel));
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const cudaMemcpy3DParms *copy) {
  enter();
  return add_copy(out, graph, dependencies, count, node_copy(*copy));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *out, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count, void *to,
                                     const void *from, size_t bytes, cudaMemcpyKind kind) {
  enter();
  return add_copy(out, graph, dependencies, count, node_copy(to, from, bytes, kind));
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *out, cudaGraph_t graph,
                                           const cudaGraphNode_t *dependencies, size_t count,
                                           const void *symbol, const void *from, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
  enter();
  return add_copy(out, graph, dependencies, count,
                  node_copy_to_symbol(symbol, from, bytes, offset, kind));
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *out, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies, size_t count,
                                             void *to, const void *symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  enter();
  return add_copy(out, graph, dependencies, count,
                  node_copy_from_symbol(to, symbol, bytes, offset, kind));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const cudaMemsetParams *fill) {
  enter();
  return from_driver(cuGraphAddMemsetNode(out, graph, dependencies, count, fill, nullptr));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const cudaHostNodeParams *host) {
  enter();
  return from_driver(cuGraphAddHostNode(out, graph, dependencies, count, host));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child) {
  enter();
  return from_driver(cuGraphAddChildGraphNode(out, graph, dependencies, count, child));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count) {
  enter();
  return from_driver(cuGraphAddEmptyNode(out, graph, dependencies, count));
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event) {
  enter();
  return from_driver(cuGraphAddEventRecordNode(out, graph, dependencies, count, event));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event) {
  enter();
  return from_driver(cuGraphAddEventWaitNode(out, graph, dependencies, count, event));
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     cudaMemAllocNodeParams *params) {
  enter();
  return from_driver(cuGraphAddMemAllocNode(out, graph, dependencies, count, params));
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *out, cudaGraph_t graph,
                                    const cudaGraphNode_t *dependencies, size_t count,
                                    void *pointer) {
  enter();
  return from_driver(cuGraphAddMemFreeNode(out, graph, dependencies, count,
                                           reinterpret_cast<CUdeviceptr>(pointer)));
}

#if VA100_CUDART_MAJOR < 13

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *out, cudaGraph_t graph,
                                const cudaGraphNode_t *dependencies,
                                const cudaGraphEdgeData *edges, size_t count,
                                cudaGraphNodeParams *params) {
  return add_any(out, graph, dependencies, edges, count, params);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, size_t count,
                             cudaGraphNodeParams *params) {
  return add_any(out, graph, dependencies, nullptr, count, params);
}

#else

cudaError_t cudaGraphAddNode(cudaGraphNode_t *out, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                             size_t count, cudaGraphNodeParams *params) {
  return add_any(out, graph, dependencies, edges, count, params);
}

cudaError_t cudaGraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  enter();
  return from_driver(cuGraphNodeGetContainingGraph(node, graph));
}

cudaError_t cudaGraphNodeGetLocalId(cudaGraphNode_t node, unsigned int *id) {
  enter();
  return from_driver(cuGraphNodeGetLocalId(node, id));
}

cudaError_t cudaGraphNodeGetToolsId(cudaGraphNode_t node, uint64_t *id) {
  enter();
  return from_driver(cuGraphNodeGetToolsId(node, id));
}

cudaError_t cudaGraphNodeGetParams(cudaGraphNode_t node, cudaGraphNodeParams *params) {
  enter();
  check(cuGraphNodeGetParams(node, params));
  if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
    params->kernel = {runtime_kernel(params->kernel), nullptr, nullptr};
  else if (params->type == CU_GRAPH_NODE_TYPE_MEMCPY)
    copy_in(*params) = runtime_copy(params->copy.copy);
  return cudaSuccess;
}

#endif

// ------------------------------------------------------------------ asking

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType *type) {
  enter();
  return from_driver(cuGraphNodeGetType(node, type));
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams *params) {
  enter();
  CUDA_KERNEL_NODE_PARAMS kernel{};
  check(cuGraphKernelNodeGetParams_v2(node, &kernel));
  *params = runtime_kernel(kernel);
  return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms *params) {
  enter();
  CUDA_MEMCPY3D copy{};
  check(cuGraphMemcpyNodeGetParams(node, &copy));
  *params = runtime_copy(copy);
  return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams *params) {
  enter();
  return from_driver(cuGraphMemsetNodeGetParams(node, params));
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams *params) {
  enter();
  return from_driver(cuGraphHostNodeGetParams(node, params));
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph) {
  enter();
  return from_driver(cuGraphChildGraphNodeGetGraph(node, graph));
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  enter();
  return from_driver(cuGraphEventRecordNodeGetEvent(node, event));
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event) {
  enter();
  return from_driver(cuGraphEventWaitNodeGetEvent(node, event));
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams *params) {
  enter();
  return from_driver(cuGraphMemAllocNodeGetParams(node, params));
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *pointer) {
  enter();
  return from_driver(cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr *>(pointer)));
}

// ------------------------------------------------------------------ changing

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams *params) {
  enter();
  CUgraphNodeParams p = driver_params(*params);
  return from_driver(cuGraphNodeSetParams(node, &p));
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams *params) {
  enter();
  const CUDA_KERNEL_NODE_PARAMS kernel = driver_kernel(*params);
  return from_driver(cuGraphKernelNodeSetParams_v2(node, &kernel));
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms *params) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy(*params);
  return from_driver(cuGraphMemcpyNodeSetParams(node, &copy));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                           size_t bytes, cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy(to, from, bytes, kind);
  return from_driver(cuGraphMemcpyNodeSetParams(node, &copy));
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                 const void *from, size_t bytes, size_t offset,
                                                 cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy_to_symbol(symbol, from, bytes, offset, kind);
  return from_driver(cuGraphMemcpyNodeSetParams(node, &copy));
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *to,
                                                   const void *symbol, size_t bytes,
                                                   size_t offset, cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy_from_symbol(to, symbol, bytes, offset, kind);
  return from_driver(cuGraphMemcpyNodeSetParams(node, &copy));
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams *params) {
  enter();
  return from_driver(cuGraphMemsetNodeSetParams(node, params));
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams *params) {
  enter();
  return from_driver(cuGraphHostNodeSetParams(node, params));
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  enter();
  return from_driver(cuGraphEventRecordNodeSetEvent(node, event));
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  enter();
  return from_driver(cuGraphEventWaitNodeSetEvent(node, event));
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value) {
  enter();
  return from_driver(cuGraphKernelNodeGetAttribute(node, attribute, value));
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value) {
  enter();
  return from_driver(cuGraphKernelNodeSetAttribute(node, attribute, value));
}

#if VA100_CUDART_MAJOR < 13
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t from, cudaGraphNode_t to) {
#else
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
#endif
  enter();
  return from_driver(cuGraphKernelNodeCopyAttributes(to, from));
}

// ------------------------------------------------------------------ changing executable graphs

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams *params) {
  enter();
  CUgraphNodeParams p = driver_params(*params);
  return from_driver(cuGraphExecNodeSetParams(exec, node, &p));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams *params) {
  enter();
  const CUDA_KERNEL_NODE_PARAMS kernel = driver_kernel(*params);
  return from_driver(cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms *params) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy(*params);
  return from_driver(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, nullptr));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void *to, const void *from, size_t bytes,
                                               cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy(to, from, bytes, kind);
  return from_driver(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, nullptr));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void *symbol, const void *from,
                                                     size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy_to_symbol(symbol, from, bytes, offset, kind);
  return from_driver(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, nullptr));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void *to, const void *symbol, size_t bytes,
                                                       size_t offset, cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY3D copy = node_copy_from_symbol(to, symbol, bytes, offset, kind);
  return from_driver(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, nullptr));
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams *params) {
  enter();
  return from_driver(cuGraphExecMemsetNodeSetParams(exec, node, params, nullptr));
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams *params) {
  enter();
  return from_driver(cuGraphExecHostNodeSetParams(exec, node, params));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child) {
  enter();
  return from_driver(cuGraphExecChildGraphNodeSetParams(exec, node, child));
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  enter();
  return from_driver(cuGraphExecEventRecordNodeSetEvent(exec, node, event));
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  enter();
  return from_driver(cuGraphExecEventWaitNodeSetEvent(exec, node, event));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int enabled) {
  enter();
  return from_driver(cuGraphNodeSetEnabled(exec, node, enabled));
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int *enabled) {
  enter();
  return from_driver(cuGraphNodeGetEnabled(exec, node, enabled));
}

} // namespace va::rt
