// Making graphs executable, launching and destroying them; conditional handles.

#include "capture.h"
#include "driver_api.h"
#include "graph_exec.h"
#include "settings.h"

namespace va {
namespace {

using ExecTable = HandleTable<GraphExec, CUgraphExec, Kind::kGraphExec>;

struct Executables {
  ExecTable table;
  std::map<CUgraphExec, std::shared_ptr<GraphExec>> owned;
  unsigned next_id = 1;
};

Executables &all() {
  static Executables *const instance = new Executables;
  return *instance;
}

constexpr uint64_t kKnownFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

// A graph that device code may launch runs where nobody but the device is asked.
void require_launchable_by_device(Plan &plan) {
  for_each_step(plan, [](const Step &step) {
    const auto *const copy = std::get_if<CopyWork>(&step.work);
    const bool has_array = copy && (copy->copy.src_type == CU_MEMORYTYPE_ARRAY ||
                                    copy->copy.dst_type == CU_MEMORYTYPE_ARRAY);
    const bool fits = std::holds_alternative<KernelWork>(step.work) || (copy && !has_array) ||
                      std::holds_alternative<FillWork>(step.work) ||
                      std::holds_alternative<ChildWork>(step.work);
    if (!fits)
      throw PlanFailure{CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, step.node,
                        CUDA_ERROR_NOT_SUPPORTED};
  });
}

std::shared_ptr<GraphExec> instantiated(Graph &graph, uint64_t flags) {
  if (flags & ~kKnownFlags)
    fail(CUDA_ERROR_INVALID_VALUE);
  constexpr uint64_t kForDevice = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  if (flags & kForDevice && flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (graph.executables && graph.has_memory_nodes())
    fail(CUDA_ERROR_NOT_SUPPORTED); // its addresses are one executable graph's at a time
  auto exec = std::make_shared<GraphExec>();
  exec->plan = make_plan(graph, healthy_context());
  if (flags & kForDevice)
    require_launchable_by_device(*exec->plan);
  exec->flags = flags;
  exec->id = all().next_id++;
  exec->graph = graph.shared_from_this();
  ++graph.executables;
  add_reference(graph.objects);
  exec->objects = graph.objects;
  exec->handle = all().table.add(exec.get());
  all().owned[exec->handle] = exec;
  return exec;
}

CUresult instantiate(CUgraphExec *out, CUgraph graph, uint64_t flags, CUgraphNode *error_node,
                     CUgraphInstantiateResult *result) {
  const GraphLock lock;
  PlanFailure outcome{CUDA_GRAPH_INSTANTIATE_SUCCESS, nullptr, CUDA_SUCCESS};
  try {
    *out = instantiated(graph_of(graph), flags)->handle;
  } catch (const PlanFailure &failure) {
    outcome = failure;
  } catch (const Failure &failure) {
    outcome = {CUDA_GRAPH_INSTANTIATE_ERROR, nullptr, failure.code};
  }
  if (error_node)
    *error_node = outcome.node;
  if (result)
    *result = outcome.result;
  return outcome.code;
}

// What one launch allocated has to be free before the next one.
void require_allocations_free(GraphExec &exec) {
  const bool frees = exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  for_each_step(*exec.plan, [&](Step &step) {
    const auto *const alloc = std::get_if<AllocWork>(&step.work);
    if (!alloc || !is_live(*alloc->block))
      return;
    bool released = false;
    if (!frees)
      fail(CUDA_ERROR_INVALID_VALUE);
    release_graph_block(alloc->block->base, &released, true);
  });
}

bool does_nothing(const Plan &plan) { return plan.steps.empty(); }

CUresult launch(GraphExec &exec, Stream &stream) {
  require_healthy(*stream.context);
  if (in_capture(stream))
    break_unsupported(stream);
  const std::lock_guard<std::recursive_mutex> running(exec.running);
  require_allocations_free(exec);
  const std::lock_guard<std::recursive_mutex> order(stream.order);
  if (!does_nothing(*exec.plan))
    log_gap(stream.track, stream.context->device->ordinal);
  run_plan(*exec.plan, stream);
  return CUDA_SUCCESS;
}

} // namespace

GraphExec::~GraphExec() {
  const GraphLock lock;
  all().table.remove(handle);
  drop_reference(objects);
  if (const std::shared_ptr<Graph> source = graph.lock())
    --source->executables;
}

Condition::~Condition() {
  if (address)
    va_arena_free(address);
}

std::shared_ptr<GraphExec> exec_of(CUgraphExec handle) {
  started();
  const GraphLock lock;
  GraphExec *const exec = all().table.find(handle);
  if (!exec)
    fail(CUDA_ERROR_INVALID_VALUE);
  return exec->shared_from_this();
}

namespace api {

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, uint64_t flags) {
  return instantiate(exec, graph, flags, nullptr, nullptr);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
                               char *log, size_t log_bytes) {
  if (log && log_bytes)
    log[0] = '\0';
  return instantiate(exec, graph, 0, error_node, nullptr);
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                            size_t log_bytes) {
  return cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  if (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
    stream_of(params->upload_stream);
  return instantiate(exec, graph, params->flags, &params->error_node, &params->result);
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  const GraphLock lock;
  exec_of(handle);
  all().table.remove(handle);
  all().owned.erase(handle);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags) {
  *flags = exec_of(exec)->flags;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecGetId(CUgraphExec exec, unsigned int *id) {
  *id = exec_of(exec)->id;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream) {
  const std::shared_ptr<GraphExec> exec = exec_of(handle);
  return launch(*exec, stream_of(stream));
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  exec_of(handle);
  Stream &stream = stream_of(stream_handle);
  require_healthy(*stream.context);
  if (in_capture(stream))
    break_unsupported(stream);
  return CUDA_SUCCESS; // there is nothing to bring anywhere
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph_handle,
                                        CUcontext context_handle, unsigned int initial,
                                        unsigned int flags) {
  constexpr unsigned kAssignDefault = 1;
  const GraphLock lock;
  Graph &graph = graph_of(graph_handle);
  const Context &context = context_handle ? context_of(context_handle) : current_context();
  if (flags & ~kAssignDefault)
    return CUDA_ERROR_INVALID_VALUE;
  auto condition = std::make_shared<Condition>();
  condition->address = va_arena_alloc(context.device->ordinal, sizeof(uint32_t), 1);
  if (!condition->address)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *reinterpret_cast<uint32_t *>(condition->address) = 0; // nobody else's leftovers
  condition->initial = initial;
  condition->assigned = flags & kAssignDefault;
  *handle = condition->address;
  graph.conditions.push_back(std::move(condition));
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
