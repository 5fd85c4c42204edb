// Changing executable graphs: node by node, and all at once to what another graph says.
#include <algorithm>
#include <cstring>

#include "driver_api.h"
#include "graph_exec.h"
#include "graph_params.h"

namespace va {
namespace {

struct Difference {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  CUgraphNode node = nullptr, from = nullptr;
};

// Of a box only the place and the value may change.
bool fits(const CUDA_MEMSET_NODE_PARAMS &old, const CUDA_MEMSET_NODE_PARAMS &now) {
  if (old.height <= 1 && now.height <= 1)
    return true;
  return old.width == now.width && old.height == now.height && old.pitch == now.pitch &&
         old.element_bytes == now.element_bytes;
}

bool fits(const CUDA_MEMCPY3D &old, const CUDA_MEMCPY3D &now) {
  return old.src_type == now.src_type && old.dst_type == now.dst_type;
}

// Whether work may take the place of work of its kind.
struct Comparer {
  const Work &fresh;

  int operator()(const KernelWork &old) const {
    const auto &now = std::get<KernelWork>(fresh);
    if (old.context != now.context)
      return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    return old.shape.cooperative == now.shape.cooperative
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  int operator()(const CopyWork &old) const {
    const auto &now = std::get<CopyWork>(fresh);
    return parameters(old.context == now.context && fits(old.copy, now.copy));
  }
  int operator()(const FillWork &old) const {
    const auto &now = std::get<FillWork>(fresh);
    return parameters(old.context == now.context && fits(old.fill, now.fill));
  }
  int operator()(const AllocWork &old) const {
    return parameters(old.block == std::get<AllocWork>(fresh).block);
  }
  int operator()(const FreeWork &old) const {
    return parameters(old.address == std::get<FreeWork>(fresh).address);
  }
  int operator()(const MemoryOpsWork &old) const {
    const auto &now = std::get<MemoryOpsWork>(fresh);
    return parameters(old.context == now.context &&
                      old.operations.size() == now.operations.size());
  }
  int operator()(const ConditionalWork &old) const {
    return parameters(old.type == std::get<ConditionalWork>(fresh).type);
  }
  template <typename Other> int operator()(const Other &) const {
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  }

  static int parameters(bool kept) {
    return kept ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
};

Difference compare(const Plan &old, const Plan &fresh);

// Of as many edges, the one that `old` lacks comes from this node.
CUgraphNode changed_source(const Step &old, const Step &fresh, const Plan &plan) {
  if (old.needs.size() != fresh.needs.size())
    return nullptr;
  for (const size_t need : fresh.needs)
    if (std::find(old.needs.begin(), old.needs.end(), need) == old.needs.end())
      return plan.steps[need].node;
  return nullptr;
}

Difference compare_steps(const Step &old, const Step &fresh, const Plan &plan) {
  if (old.work.index() != fresh.work.index())
    return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, fresh.node, nullptr};
  if (!std::is_permutation(old.needs.begin(), old.needs.end(), fresh.needs.begin(),
                           fresh.needs.end()))
    return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, fresh.node,
            changed_source(old, fresh, plan)};
  const int result = std::visit(Comparer{fresh.work}, old.work);
  if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
    return {result, fresh.node, nullptr};
  if (old.inner.size() != fresh.inner.size())
    return {CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, fresh.node, nullptr};
  for (size_t i = 0; i < old.inner.size(); ++i) {
    const Difference found = compare(*old.inner[i], *fresh.inner[i]);
    if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return found;
  }
  return {};
}

// Nodes correspond by the order in which they were made.
Difference compare(const Plan &old, const Plan &fresh) {
  if (old.steps.size() != fresh.steps.size())
    return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
  for (size_t i = 0; i < old.steps.size(); ++i) {
    const Difference found = compare_steps(old.steps[i], fresh.steps[i], fresh);
    if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return found;
  }
  return {};
}

void take_over(Plan &plan, Plan &fresh) {
  plan.conditions = std::move(fresh.conditions);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    plan.steps[i].work = std::move(fresh.steps[i].work);
    for (size_t k = 0; k < plan.steps[i].inner.size(); ++k)
      take_over(*plan.steps[i].inner[k], *fresh.steps[i].inner[k]);
  }
}

Difference update(Plan &plan, const Graph &graph) {
  std::unique_ptr<Plan> fresh;
  try {
    fresh = make_plan(graph, current_context());
  } catch (const PlanFailure &failure) {
    return {CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, failure.node, nullptr};
  }
  const Difference found = compare(plan, *fresh);
  if (found.result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
    take_over(plan, *fresh);
  return found;
}

Difference update(CUgraphExec handle, CUgraph graph_handle) {
  const std::shared_ptr<GraphExec> exec = exec_of(handle);
  const std::lock_guard<std::recursive_mutex> running(exec->running);
  const GraphLock lock;
  Graph &graph = graph_of(graph_handle);
  const Difference found = update(*exec->plan, graph);
  if (found.result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
    return found;
  add_reference(graph.objects);
  drop_reference(exec->objects); // what only the former work needed
  exec->objects = graph.objects;
  return found;
}

// Let `visit` change the step of a node; its kind has to be the wanted one.
template <typename Visit>
CUresult change(CUgraphExec handle, CUgraphNode node, Visit visit) {
  const std::shared_ptr<GraphExec> exec = exec_of(handle);
  const std::lock_guard<std::recursive_mutex> running(exec->running);
  const GraphLock lock;
  Step *const step = step_of(*exec->plan, node);
  if (!step)
    return CUDA_ERROR_INVALID_VALUE;
  return visit(*step);
}

CUresult set(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams &params) {
  return change(exec, node, [&](Step &step) {
    Work fresh = changed(step.work, params);
    if (std::visit(Comparer{fresh}, step.work) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return CUDA_ERROR_INVALID_VALUE;
    step.work = std::move(fresh);
    return CUDA_SUCCESS;
  });
}

CUgraphNodeParams blank(CUgraphNodeType type) {
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = type;
  return params;
}

bool can_be_disabled(const Work &work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
         std::holds_alternative<FillWork>(work);
}

} // namespace

namespace api {

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  const Difference found = update(exec, graph);
  *info = {found.result, found.node, found.from};
  return found.result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
                                                      : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                           CUgraphExecUpdateResult *result) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
  *node = info.error_node;
  *result = info.result;
  return code;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params) {
  return set(exec, node, *params);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS *kernel) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_KERNEL);
  params.kernel = *kernel;
  return set(exec, node, params);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *kernel) {
  return set(exec, node, as_params(*kernel));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *copy, CUcontext context) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_MEMCPY);
  params.copy.copy = *copy;
  params.copy.context = context;
  return set(exec, node, params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_MEMSET);
  params.fill.fill = *fill;
  params.fill.context = context;
  return set(exec, node, params);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *host) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_HOST);
  params.host = *host;
  return set(exec, node, params);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  params.event = event;
  return set(exec, node, params);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  params.event = event;
  return set(exec, node, params);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS *operations) {
  CUgraphNodeParams params = blank(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  params.memory_ops = *operations;
  return set(exec, node, params);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return change(exec, node, [&](Step &step) {
    if (!std::holds_alternative<ChildWork>(step.work) ||
        update(*step.inner[0], graph_of(child)).result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  return change(exec, node, [&](Step &step) {
    if (!can_be_disabled(step.work))
      return CUDA_ERROR_INVALID_VALUE;
    step.enabled = enabled != 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled) {
  return change(exec, node, [&](const Step &step) {
    if (!can_be_disabled(step.work))
      return CUDA_ERROR_INVALID_VALUE;
    *enabled = step.enabled;
    return CUDA_SUCCESS;
  });
}

} // namespace api
} // namespace va
