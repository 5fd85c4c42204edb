// Node parameters: what is checked when a node is made or changed, and what queries give back.
#include "graph_params.h"

#include <algorithm>
#include <cstring>

#include "blocks.h"
#include "modules.h"

namespace va {
namespace {

Context &context_or_current(CUcontext handle) {
  return handle ? context_of(handle) : current_context();
}

// A handle made for this graph, or for one that it is within.
std::shared_ptr<Condition> condition_of(const Graph &graph, CUgraphConditionalHandle handle) {
  for (const Graph *where = &graph; where; where = where->parent)
    for (const std::shared_ptr<Condition> &condition : where->conditions)
      if (condition->address == handle)
        return condition;
  return nullptr;
}

// Fails unless what is new can be done by what is there: the same kind, in the same context.
template <typename Kind> const Kind &same_kind(const Work &before) {
  const Kind *const found = std::get_if<Kind>(&before);
  if (!found)
    fail(CUDA_ERROR_INVALID_VALUE);
  return *found;
}

CUkernel kernel_of_function(const Function &f) {
  if (f.module->library)
    for (const std::unique_ptr<Kernel> &kernel : f.module->library->kernels)
      if (kernel->name == f.name)
        return kernel->handle;
  return nullptr;
}

CUDA_KERNEL_NODE_PARAMS shown_kernel(GraphNode &node, KernelWork &work) {
  const Function &f = function_of(work.function);
  node.shown.clear();
  for (const Parameter &parameter : f.parameters)
    node.shown.push_back(work.parameters.data() + parameter.offset);
  CUDA_KERNEL_NODE_PARAMS params{};
  params.launch.function = work.function;
  std::copy_n(work.shape.grid, 3, params.launch.grid);
  std::copy_n(work.shape.block, 3, params.launch.block);
  params.launch.shared_bytes = work.shape.shared_bytes;
  params.launch.parameters = node.shown.data();
  params.kernel = kernel_of_function(f);
  params.context = work.context;
  return params;
}

struct Shower {
  GraphNode &node;
  CUgraphNodeParams &params;

  void operator()(KernelWork &work) const { params.kernel = shown_kernel(node, work); }
  void operator()(CopyWork &work) const { params.copy = {0, 0, work.context, work.copy}; }
  void operator()(FillWork &work) const { params.fill = {work.fill, work.context}; }
  void operator()(HostWork &work) const { params.host = {work.call, work.data}; }
  void operator()(ChildWork &work) const { params.child = {work.graph->handle, 0}; }
  void operator()(EmptyWork &) const {}
  void operator()(WaitWork &work) const { params.event = work.event; }
  void operator()(RecordWork &work) const { params.event = work.event; }
  void operator()(AllocWork &work) const {
    params.alloc = work.params;
    params.alloc.access = work.access.data();
  }
  void operator()(FreeWork &work) const { params.freed = work.address; }
  void operator()(MemoryOpsWork &work) const {
    params.memory_ops = {work.context, static_cast<unsigned>(work.operations.size()),
                         work.operations.data(), work.flags};
  }
  void operator()(ConditionalWork &work) const {
    params.conditional = {work.condition->address, work.type,
                          static_cast<unsigned>(work.bodies.size()), node.shown_bodies.data(),
                          work.context};
  }
};

} // namespace

KernelWork kernel_from(const CUDA_KERNEL_NODE_PARAMS &params) {
  CUfunction handle = params.launch.function;
  if (!handle)
    handle = reinterpret_cast<CUfunction>(params.kernel);
  if (!handle)
    fail(CUDA_ERROR_INVALID_VALUE);
  Function &f = function_for(handle, context_or_current(params.context));
  const Context &context = *f.module->context;
  KernelWork work{f.handle, context.handle, {}, {}, {}};
  std::copy_n(params.launch.grid, 3, work.shape.grid);
  std::copy_n(params.launch.block, 3, work.shape.block);
  work.shape.shared_bytes = params.launch.shared_bytes;
  require_launchable(*context.device, f, work.shape);
  work.parameters.resize(f.parameter_bytes);
  pack_parameters(f, params.launch.parameters, params.launch.extra, work.parameters.data());
  return work;
}

CopyWork copy_from(const CUDA_MEMCPY3D &copy, CUcontext context) {
  require_copy(copy);
  return {copy, context_or_current(context).handle};
}

FillWork fill_from(const CUDA_MEMSET_NODE_PARAMS &fill, CUcontext context) {
  require_fill(fill);
  if (!fill.width || !fill.height)
    fail(CUDA_ERROR_INVALID_VALUE);
  return {fill, context_or_current(context).handle};
}

HostWork host_from(const CUDA_HOST_NODE_PARAMS &host) {
  if (!host.call)
    fail(CUDA_ERROR_INVALID_VALUE);
  return {host.call, host.data};
}

MemoryOpsWork memory_ops_from(const CUDA_BATCH_MEM_OP_NODE_PARAMS &params) {
  constexpr unsigned kMost = 256;
  if (!params.count || params.count > kMost || !params.operations || params.flags)
    fail(CUDA_ERROR_INVALID_VALUE);
  for (unsigned i = 0; i < params.count; ++i)
    require_memory_operation(params.operations[i]);
  return {context_or_current(params.context).handle, params.flags,
          {params.operations, params.operations + params.count}};
}

ChildWork child_from(CUgraph handle, bool moved) {
  Graph &graph = graph_of(handle);
  if (graph.has_conditional_nodes())
    fail(CUDA_ERROR_NOT_SUPPORTED);
  if (!moved) {
    ChildWork work{clone_graph(graph)};
    work.graph->embedded = true;
    return work;
  }
  if (graph.embedded)
    fail(CUDA_ERROR_INVALID_VALUE);
  ChildWork work{graph.shared_from_this()};
  graph.embedded = true;
  forget_graph(handle);
  return work;
}

RecordWork record_from(CUevent event) {
  event_of(event);
  return {event};
}

WaitWork wait_from(CUevent event) {
  event_of(event);
  return {event};
}

AllocWork alloc_from(const CUDA_MEM_ALLOC_NODE_PARAMS &params,
                     const std::vector<GraphNode *> &needs) {
  AllocWork work{params, {}, make_graph_block(params, needs)};
  if (params.access)
    work.access.assign(params.access, params.access + params.access_count);
  work.params.address = work.block->base;
  return work;
}

// Each address once a graph, and none but what graphs allocate.
FreeWork free_from(const Graph &graph, CUdeviceptr address) {
  bool owned = false, freed_already = false;
  for (const std::unique_ptr<GraphNode> &node : graph.nodes) {
    const auto *const freed = std::get_if<FreeWork>(&node->work);
    const auto *const alloc = std::get_if<AllocWork>(&node->work);
    if (freed && freed->address == address)
      freed_already = true;
    if (alloc && alloc->block->base == address) {
      owned = true;
      freed_already = false; // memory that is used a second time may be freed a second time
    }
  }
  if (freed_already || !may_be_freed(address, owned))
    fail(CUDA_ERROR_INVALID_VALUE);
  return {address};
}

ConditionalWork conditional_from(const Graph &graph, const CUDA_CONDITIONAL_NODE_PARAMS &params) {
  const std::shared_ptr<Condition> condition = condition_of(graph, params.handle);
  const unsigned most = params.type == CU_GRAPH_COND_TYPE_IF ? 2 : 1;
  if (!condition || !params.size || params.type < CU_GRAPH_COND_TYPE_IF ||
      params.type > CU_GRAPH_COND_TYPE_SWITCH ||
      (params.type != CU_GRAPH_COND_TYPE_SWITCH && params.size > most))
    fail(CUDA_ERROR_INVALID_VALUE);
  ConditionalWork work{condition, params.type, context_or_current(params.context).handle, {}};
  for (unsigned i = 0; i < params.size; ++i) {
    const std::shared_ptr<Graph> body = make_graph();
    forget_graph(body->handle);
    body->embedded = body->body = true;
    work.bodies.push_back(body);
  }
  return work;
}

Work work_from(Graph &graph, const std::vector<GraphNode *> &needs,
               const CUgraphNodeParams &p) {
  if (p.reserved0[0] || p.reserved0[1] || p.reserved0[2] || p.reserved2)
    fail(CUDA_ERROR_INVALID_VALUE);
  switch (p.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return kernel_from(p.kernel);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return copy_from(p.copy.copy, p.copy.context);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return fill_from(p.fill.fill, p.fill.context);
  case CU_GRAPH_NODE_TYPE_HOST:
    return host_from(p.host);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return child_from(p.child.graph, p.child.ownership == 1);
  case CU_GRAPH_NODE_TYPE_EMPTY:
    return EmptyWork{};
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return wait_from(p.event);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return record_from(p.event);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return alloc_from(p.alloc, needs);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    return free_from(graph, p.freed);
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    return memory_ops_from(p.memory_ops);
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return conditional_from(graph, p.conditional);
  default:
    // External semaphores, batches of copies and what came after them.
    fail(p.type >= 0 && p.type <= 18 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE);
  }
}

Work changed(const Work &before, const CUgraphNodeParams &p) {
  if (type_of(before) != p.type)
    fail(CUDA_ERROR_INVALID_VALUE);
  switch (p.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: {
    const KernelWork &old = same_kind<KernelWork>(before);
    KernelWork fresh = kernel_from(p.kernel);
    fresh.attributes = old.attributes;
    fresh.shape.cooperative = old.shape.cooperative;
    return fresh;
  }
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return copy_from(p.copy.copy, p.copy.context ? p.copy.context
                                                 : same_kind<CopyWork>(before).context);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return fill_from(p.fill.fill, p.fill.context ? p.fill.context
                                                 : same_kind<FillWork>(before).context);
  case CU_GRAPH_NODE_TYPE_HOST:
    return host_from(p.host);
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return wait_from(p.event);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return record_from(p.event);
  case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    return memory_ops_from(p.memory_ops);
  default:
    fail(CUDA_ERROR_NOT_SUPPORTED); // made once and for all
  }
}

CUgraphNodeParams params_of(GraphNode &node) {
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = type_of(node.work);
  std::visit(Shower{node, params}, node.work);
  return params;
}

CUgraphNodeParams as_params(const CUDA_KERNEL_NODE_PARAMS_v1 &kernel) {
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  params.kernel = {kernel, nullptr, nullptr};
  return params;
}

} // namespace va
