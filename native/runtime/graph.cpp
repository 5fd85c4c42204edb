// Graphs of the runtime: as wholes, executable, and what belongs to them.  Nodes are in
// graph_node.cpp.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, uint64_t flags) {
  enter();
  return from_driver(cuGraphInstantiateWithFlags(exec, graph, flags));
}

} // namespace

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags) {
  enter();
  return from_driver(cuGraphCreate(graph, flags));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  enter();
  return from_driver(cuGraphDestroy(graph));
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph) {
  enter();
  return from_driver(cuGraphClone(clone, graph));
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
  enter();
  return from_driver(cuGraphNodeFindInClone(node, original, clone));
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  enter();
  return from_driver(cuGraphDestroyNode(node));
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags) {
  enter();
  return from_driver(cuGraphDebugDotPrint(graph, path, flags));
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  enter();
  return from_driver(cuGraphGetNodes(graph, nodes, count));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  enter();
  return from_driver(cuGraphGetRootNodes(graph, nodes, count));
}

// ------------------------------------------------------------------ edges

#if VA100_CUDART_MAJOR < 13

cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                 cudaGraphEdgeData *edges, size_t *count) {
  enter();
  return from_driver(cuGraphGetEdges_v2(graph, from, to, edges, count));
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              size_t *count) {
  return cudaGraphGetEdges_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                            cudaGraphEdgeData *edges, size_t *count) {
  enter();
  return from_driver(cuGraphNodeGetDependencies_v2(node, nodes, edges, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         size_t *count) {
  return cudaGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}

cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                              cudaGraphEdgeData *edges, size_t *count) {
  enter();
  return from_driver(cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           size_t *count) {
  return cudaGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}

cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count) {
  enter();
  return from_driver(cuGraphAddDependencies_v2(graph, from, to, edges, count));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, size_t count) {
  return cudaGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                           const cudaGraphNode_t *to,
                                           const cudaGraphEdgeData *edges, size_t count) {
  enter();
  return from_driver(cuGraphRemoveDependencies_v2(graph, from, to, edges, count));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, size_t count) {
  return cudaGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}

#else

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count) {
  enter();
  return from_driver(cuGraphGetEdges_v2(graph, from, to, edges, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges, size_t *count) {
  enter();
  return from_driver(cuGraphNodeGetDependencies_v2(node, nodes, edges, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           cudaGraphEdgeData *edges, size_t *count) {
  enter();
  return from_driver(cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count) {
  enter();
  return from_driver(cuGraphAddDependencies_v2(graph, from, to, edges, count));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count) {
  enter();
  return from_driver(cuGraphRemoveDependencies_v2(graph, from, to, edges, count));
}

cudaError_t cudaGraphGetId(cudaGraph_t graph, unsigned int *id) {
  enter();
  return from_driver(cuGraphGetId(graph, id));
}

cudaError_t cudaGraphExecGetId(cudaGraphExec_t exec, unsigned int *id) {
  enter();
  return from_driver(cuGraphExecGetId(exec, id));
}

#endif

// ------------------------------------------------------------------ executable graphs

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, uint64_t flags) {
  return instantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          uint64_t flags) {
  return instantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params) {
  enter();
  params->upload_stream = stream(params->upload_stream);
  return from_driver(cuGraphInstantiateWithParams(exec, graph, params));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  enter();
  return from_driver(cuGraphExecDestroy(exec));
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, uint64_t *flags) {
  enter();
  return from_driver(cuGraphExecGetFlags(exec, flags));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info) {
  enter();
  return from_driver(cuGraphExecUpdate_v2(exec, graph, info));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  enter();
  return from_driver(cuGraphLaunch(exec, stream(handle)));
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t handle) {
  enter();
  return from_driver(cuGraphUpload(exec, stream(handle)));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int initial, unsigned int flags) {
  enter();
  return from_driver(cuGraphConditionalHandleCreate(handle, graph, nullptr, initial, flags));
}

#if VA100_CUDART_MAJOR >= 13
cudaError_t cudaGraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *handle,
                                                cudaGraph_t graph, cudaExecutionContext_t context,
                                                unsigned int initial, unsigned int flags) {
  if (context)
    return cudaErrorNotSupported; // contexts with a part of the chip
  return cudaGraphConditionalHandleCreate(handle, graph, initial, flags);
}
#endif

// ------------------------------------------------------------------ user objects and memory

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags) {
  enter();
  return from_driver(cuUserObjectCreate(object, data, destroy, references, flags));
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  enter();
  return from_driver(cuUserObjectRetain(object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  enter();
  return from_driver(cuUserObjectRelease(object, count));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
  enter();
  return from_driver(cuGraphRetainUserObject(graph, object, count, flags));
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count) {
  enter();
  return from_driver(cuGraphReleaseUserObject(graph, object, count));
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void *value) {
  enter();
  return from_driver(cuDeviceGetGraphMemAttribute(device, attribute, value));
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute,
                                           void *value) {
  enter();
  return from_driver(cuDeviceSetGraphMemAttribute(device, attribute, value));
}

cudaError_t cudaDeviceGraphMemTrim(int device) {
  enter();
  return from_driver(cuDeviceGraphMemTrim(device));
}

} // namespace va::rt
