// The calls that make nodes, and that ask and change what they do.
#include <cstring>

#include "driver_api.h"
#include "graph_params.h"

namespace va {
namespace {

// Make a node; `made` gives what it does, once the nodes it comes after are known.
template <typename Made>
CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies, size_t count,
             Made made) {
  const GraphLock lock;
  Graph &graph = graph_of(handle);
  const std::vector<GraphNode *> needs = nodes_of(graph, dependencies, count);
  GraphNode &node = add_node(graph, needs, made(graph, needs));
  if (const auto *const conditional = std::get_if<ConditionalWork>(&node.work))
    for (const std::shared_ptr<Graph> &body : conditional->bodies)
      node.shown_bodies.push_back(body->handle);
  *out = node.handle;
  return CUDA_SUCCESS;
}

CUresult add_any(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
                 const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params) {
  const GraphLock lock;
  require_plain_edges(edges, count);
  const CUresult result = add(out, graph, dependencies, count,
                              [&](Graph &g, const std::vector<GraphNode *> &needs) {
                                return work_from(g, needs, *params);
                              });
  GraphNode &node = node_of(*out);
  if (const auto *const alloc = std::get_if<AllocWork>(&node.work))
    params->alloc.address = alloc->params.address;
  if (std::holds_alternative<ConditionalWork>(node.work))
    params->conditional.bodies = node.shown_bodies.data();
  return result;
}

template <typename Kind> Kind &work_of(CUgraphNode handle) {
  Kind *const work = std::get_if<Kind>(&node_of(handle).work);
  if (!work)
    fail(CUDA_ERROR_INVALID_VALUE);
  return *work;
}

CUresult set(CUgraphNode handle, const CUgraphNodeParams &params) {
  const GraphLock lock;
  GraphNode &node = node_of(handle);
  node.work = changed(node.work, params);
  return CUDA_SUCCESS;
}

CUgraphNodeParams blank(CUgraphNodeType type) {
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = type;
  return params;
}

CUDA_KERNEL_NODE_PARAMS lifted(const CUDA_KERNEL_NODE_PARAMS_v1 &kernel) {
  return {kernel, nullptr, nullptr};
}

void require_attribute(int attribute) {
  constexpr int kLast = 18;
  if (attribute < CU_LAUNCH_ATTRIBUTE_IGNORE || attribute > kLast)
    fail(CUDA_ERROR_INVALID_VALUE);
}

} // namespace

namespace api {

// ------------------------------------------------------------------ making

CUresult cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params) {
  return add_any(node, graph, dependencies, edges, count, params);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params) {
  return add_any(node, graph, dependencies, edges, count, params);
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        size_t count, CUgraphNodeParams *params) {
  return add_any(node, graph, dependencies, nullptr, count, params);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS *params) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return kernel_from(*params); });
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params) {
  const CUDA_KERNEL_NODE_PARAMS all = lifted(*params);
  return cuGraphAddKernelNode_v2(node, graph, dependencies, count, &all);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *copy, CUcontext context) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return copy_from(*copy, context); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *fill,
                              CUcontext context) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return fill_from(*fill, context); });
}

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *host) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return host_from(*host); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph,
                                  const CUgraphNode *dependencies, size_t count, CUgraph child) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return child_from(child, false); });
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count) {
  return add(node, graph, dependencies, count,
             [](auto &, const auto &) -> Work { return EmptyWork{}; });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t count, CUevent event) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return record_from(event); });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, CUevent event) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return wait_from(event); });
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
  return add(node, graph, dependencies, count, [&](auto &, const auto &needs) -> Work {
    AllocWork work = alloc_from(*params, needs);
    params->address = work.params.address;
    return work;
  });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr address) {
  return add(node, graph, dependencies, count,
             [&](const Graph &g, const auto &) -> Work { return free_from(g, address); });
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph,
                                  const CUgraphNode *dependencies, size_t count,
                                  const CUDA_BATCH_MEM_OP_NODE_PARAMS *params) {
  return add(node, graph, dependencies, count,
             [&](auto &, const auto &) -> Work { return memory_ops_from(*params); });
}

// ------------------------------------------------------------------ asking

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  const GraphLock lock;
  *type = type_of(node_of(node).work);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetContainingGraph(CUgraphNode node, CUgraph *graph) {
  const GraphLock lock;
  *graph = node_of(node).graph->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetLocalId(CUgraphNode node, unsigned int *id) {
  const GraphLock lock;
  *id = node_of(node).local_id;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetToolsId(CUgraphNode handle, uint64_t *id) {
  const GraphLock lock;
  const GraphNode &node = node_of(handle);
  *id = static_cast<uint64_t>(node.graph->id) << 32 | node.local_id;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetParams(CUgraphNode node, CUgraphNodeParams *params) {
  const GraphLock lock;
  *params = params_of(node_of(node));
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
  const GraphLock lock;
  work_of<KernelWork>(node);
  *params = params_of(node_of(node)).kernel;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params) {
  const GraphLock lock;
  work_of<KernelWork>(node);
  *params = params_of(node_of(node)).kernel.launch;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *copy) {
  const GraphLock lock;
  *copy = work_of<CopyWork>(node).copy;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *fill) {
  const GraphLock lock;
  *fill = work_of<FillWork>(node).fill;
  return CUDA_SUCCESS;
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *host) {
  const GraphLock lock;
  const HostWork &work = work_of<HostWork>(node);
  *host = {work.call, work.data};
  return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph) {
  const GraphLock lock;
  *graph = work_of<ChildWork>(node).graph->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event) {
  const GraphLock lock;
  *event = work_of<RecordWork>(node).event;
  return CUDA_SUCCESS;
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event) {
  const GraphLock lock;
  *event = work_of<WaitWork>(node).event;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params) {
  const GraphLock lock;
  work_of<AllocWork>(node);
  *params = params_of(node_of(node)).alloc;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *address) {
  const GraphLock lock;
  *address = work_of<FreeWork>(node).address;
  return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params) {
  const GraphLock lock;
  work_of<MemoryOpsWork>(node);
  *params = params_of(node_of(node)).memory_ops;
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------ changing

CUresult cuGraphNodeSetParams_v2(CUgraphNode node, CUgraphNodeParams *params) {
  return set(node, *params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params) {
  return set(node, *params);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_KERNEL);
  params.kernel = *kernel;
  return set(node, params);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel) {
  return set(node, as_params(*kernel));
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_MEMCPY);
  params.copy.copy = *copy;
  return set(node, params);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_MEMSET);
  params.fill.fill = *fill;
  return set(node, params);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_HOST);
  params.host = *host;
  return set(node, params);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.event = event;
  return set(node, params);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.event = event;
  return set(node, params);
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS *operations) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  params.memory_ops = *operations;
  return set(node, params);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       CUkernelNodeAttrValue *value) {
  const GraphLock lock;
  const KernelWork &work = work_of<KernelWork>(node);
  require_attribute(attribute);
  const auto found = work.attributes.find(attribute);
  std::memset(value, 0, sizeof *value);
  if (found != work.attributes.end())
    *value = found->second;
  else if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    value->cooperative = work.shape.cooperative;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                       const CUkernelNodeAttrValue *value) {
  const GraphLock lock;
  KernelWork &work = work_of<KernelWork>(node);
  require_attribute(attribute);
  if (attribute == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
      (value->cluster[0] > 1 || value->cluster[1] > 1 || value->cluster[2] > 1))
    return CUDA_ERROR_NOT_SUPPORTED; // clusters come with compute capability 9.0
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    work.shape.cooperative = value->cooperative != 0;
  work.attributes[attribute] = *value;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  const GraphLock lock;
  const KernelWork &source = work_of<KernelWork>(from);
  KernelWork &target = work_of<KernelWork>(to);
  target.attributes = source.attributes;
  target.shape.cooperative = source.shape.cooperative;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
