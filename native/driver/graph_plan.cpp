// Putting a graph in order, and running it: each step in a lane, which is a stream of the plan's
// own, after the steps it needs.
#include <algorithm>
#include <queue>
#include <set>

#include "graph_exec.h"
#include "held.h"
#include "modules.h"
#include "va100/check.h"

namespace va {
namespace {

constexpr size_t kSortLanesUpTo = 2048; // steps; beyond, lanes are not used again

struct ContextOf {
  CUcontext operator()(const KernelWork &work) const { return work.context; }
  CUcontext operator()(const CopyWork &work) const { return work.context; }
  CUcontext operator()(const FillWork &work) const { return work.context; }
  CUcontext operator()(const MemoryOpsWork &work) const { return work.context; }
  CUcontext operator()(const RecordWork &work) const {
    return event_of(work.event).context->handle;
  }
  CUcontext operator()(const HostWork &) const { return nullptr; }
  CUcontext operator()(const ChildWork &) const { return nullptr; }
  CUcontext operator()(const EmptyWork &) const { return nullptr; }
  CUcontext operator()(const WaitWork &) const { return nullptr; }
  CUcontext operator()(const AllocWork &) const { return nullptr; }
  CUcontext operator()(const FreeWork &) const { return nullptr; }
  CUcontext operator()(const ConditionalWork &) const { return nullptr; }
};

// What conditional nodes may run is decided on the device, which calls no host and no allocator.
bool may_be_in_body(const Work &work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
         std::holds_alternative<FillWork>(work) || std::holds_alternative<EmptyWork>(work) ||
         std::holds_alternative<ChildWork>(work) || std::holds_alternative<ConditionalWork>(work);
}

class Planner {
public:
  using Used = std::set<const Condition *>;

  Planner(const Graph &graph, Context &context, bool in_body, Used *used)
      : graph_(graph), context_(context), in_body_(in_body), used_(used) {}

  std::unique_ptr<Plan> make() {
    plan_ = std::make_unique<Plan>();
    copy_steps();
    sort();
    for (const size_t index : plan_->order)
      place(index);
    require_conditions_used();
    return std::move(plan_);
  }

private:
  void copy_steps() {
    std::map<const GraphNode *, size_t> index;
    for (const std::unique_ptr<GraphNode> &node : graph_.nodes) {
      if (in_body_ && !may_be_in_body(node->work))
        throw PlanFailure{CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node->handle,
                          CUDA_ERROR_NOT_SUPPORTED};
      index[node.get()] = plan_->steps.size();
      plan_->steps.push_back(step_from(*node));
    }
    for (size_t i = 0; i < plan_->steps.size(); ++i) {
      for (const GraphNode *const need : graph_.nodes[i]->needs)
        plan_->steps[i].needs.push_back(index[need]);
      if (graph_.nodes[i]->feeds.empty())
        plan_->ends.push_back(i);
    }
    feeds_.resize(plan_->steps.size());
    for (size_t i = 0; i < plan_->steps.size(); ++i)
      for (const size_t need : plan_->steps[i].needs)
        feeds_[need].push_back(i);
  }

  Step step_from(const GraphNode &node) {
    Step step;
    step.node = node.handle;
    step.work = node.work;
    if (auto *const child = std::get_if<ChildWork>(&step.work)) {
      step.inner.push_back(Planner(*child->graph, context_, in_body_, used_).make());
      child->graph.reset();
    } else if (auto *const conditional = std::get_if<ConditionalWork>(&step.work)) {
      for (const std::shared_ptr<Graph> &body : conditional->bodies)
        step.inner.push_back(Planner(*body, context_, true, used_).make());
      conditional->bodies.clear();
      used_->insert(conditional->condition.get());
    }
    return step;
  }

  // Of steps that could be next, the one made first.
  void sort() {
    std::vector<size_t> missing;
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < plan_->steps.size(); ++i) {
      missing.push_back(plan_->steps[i].needs.size());
      if (!missing.back())
        ready.push(i);
    }
    while (!ready.empty()) {
      const size_t index = ready.top();
      ready.pop();
      plan_->order.push_back(index);
      for (const size_t fed : feeds_[index])
        if (!--missing[fed])
          ready.push(fed);
    }
    if (plan_->order.size() == plan_->steps.size())
      return;
    const auto stuck = std::find_if(missing.begin(), missing.end(), [](size_t n) { return n; });
    throw PlanFailure{CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
                      plan_->steps[static_cast<size_t>(stuck - missing.begin())].node,
                      CUDA_ERROR_INVALID_VALUE};
  }

  void find_ancestors() {
    ancestors_.assign(plan_->steps.size(), std::vector<bool>(plan_->steps.size()));
    for (const size_t index : plan_->order)
      for (const size_t need : plan_->steps[index].needs) {
        ancestors_[index][need] = true;
        for (size_t i = 0; i < plan_->steps.size(); ++i)
          if (ancestors_[need][i])
            ancestors_[index][i] = true;
      }
  }

  // Go on in the lane of a step that is needed, or in one whose last step must be over anyway.
  void place(size_t index) {
    Step &step = plan_->steps[index];
    const CUcontext wanted = std::visit(ContextOf{}, step.work);
    Context &context = wanted ? context_of(wanted) : context_;
    step.lane = lane_for(index, context, wanted != nullptr);
    last_[step.lane] = index;
    for (const size_t need : step.needs)
      if (plan_->steps[need].lane != step.lane)
        plan_->steps[need].awaited = true;
    if (feeds_[index].empty())
      step.awaited = true;
  }

  Stream *lane_for(size_t index, const Context &context, bool strict) {
    const auto fits = [&](const Stream *lane) { return !strict || lane->context == &context; };
    for (const size_t need : plan_->steps[index].needs) {
      Stream *const lane = plan_->steps[need].lane;
      if (last_[lane] == need && fits(lane))
        return lane;
    }
    if (plan_->steps.size() <= kSortLanesUpTo && !last_.empty()) {
      if (ancestors_.empty())
        find_ancestors(); // chains do without
      for (const auto &[lane, last] : last_)
        if (ancestors_[index][last] && fits(lane))
          return lane;
    }
    constexpr unsigned kNonBlocking = 1;
    std::unique_ptr<Stream> lane =
        make_stream(const_cast<Context &>(context), kNonBlocking, 0);
    lane->track->graph = true;
    va_check_stream_made(); // branches that nothing orders race
    plan_->lanes.push_back(std::move(lane));
    return plan_->lanes.back().get();
  }

  void require_conditions_used() {
    plan_->conditions = graph_.conditions;
    for (const std::shared_ptr<Condition> &condition : graph_.conditions)
      if (!used_->count(condition.get()))
        throw PlanFailure{CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, nullptr,
                          CUDA_ERROR_INVALID_VALUE};
  }

  const Graph &graph_;
  Context &context_;
  const bool in_body_;
  std::unique_ptr<Plan> plan_;
  std::vector<std::vector<size_t>> feeds_;
  std::vector<std::vector<bool>> ancestors_;
  std::map<Stream *, size_t> last_;
  Used *const used_; // by this graph, and those within
};

uint32_t &word_of(const Condition &condition) {
  return *reinterpret_cast<uint32_t *>(condition.address);
}

// Device code decides between rounds; a fault ends them.
void run_conditional(const ConditionalWork &work, const Step &step, Stream &lane) {
  const auto value = [&] { return __atomic_load_n(&word_of(*work.condition), __ATOMIC_SEQ_CST); };
  switch (work.type) {
  case CU_GRAPH_COND_TYPE_IF:
    if (value())
      run_plan(*step.inner[0], lane);
    else if (step.inner.size() > 1)
      run_plan(*step.inner[1], lane);
    return;
  case CU_GRAPH_COND_TYPE_WHILE:
    while (value() && lane.context->fault.load() == CUDA_SUCCESS)
      run_plan(*step.inner[0], lane);
    return;
  default:
    if (value() < step.inner.size())
      run_plan(*step.inner[value()], lane);
  }
}

struct Runner {
  Step &step;
  Stream &lane;

  void operator()(KernelWork &work) const {
    run_kernel(lane, function_of(work.function), work.shape, work.parameters.data());
  }
  void operator()(CopyWork &work) const { run_copy(lane, work.copy); }
  void operator()(FillWork &work) const { run_fill(lane, work.fill); }
  void operator()(HostWork &work) const { run_host_call(lane, work.call, work.data); }
  void operator()(ChildWork &) const { run_plan(*step.inner[0], lane); }
  void operator()(EmptyWork &) const {}
  void operator()(WaitWork &work) const { run_wait(lane, work.event); }
  void operator()(RecordWork &work) const { run_record(lane, work.event); }
  void operator()(AllocWork &work) const { claim(*work.block); }
  void operator()(FreeWork &work) const {
    bool released = false;
    if (!release_graph_block(work.address, &released, true) || !released)
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  void operator()(MemoryOpsWork &work) const {
    for (const CUstreamBatchMemOpParams &operation : work.operations)
      run_memory_operation(lane, operation);
  }
  void operator()(ConditionalWork &work) const { run_conditional(work, step, lane); }
};

// Work of other libraries that waits for other threads holds its lane; only more of the kind may
// be told of meanwhile.
void settle_step(const Plan &plan, const Step &step) {
  const auto *const host = std::get_if<HostWork>(&step.work);
  if (host && is_trusted(host->call))
    return;
  settle(*step.lane);
  for (const size_t need : step.needs)
    settle(*plan.steps[need].lane);
}

std::shared_ptr<Moment> recorded(const Stream &stream) {
  auto moment = std::make_shared<Moment>();
  log_record(stream.track, moment);
  return moment;
}

} // namespace

std::unique_ptr<Plan> make_plan(const Graph &graph, Context &context) {
  Planner::Used used;
  return Planner(graph, context, graph.body, &used).make();
}

void run_plan(Plan &plan, Stream &outer) {
  for (const std::shared_ptr<Condition> &condition : plan.conditions)
    if (condition->assigned)
      word_of(*condition) = condition->initial;
  const std::shared_ptr<Moment> begun = recorded(outer);
  for (const std::unique_ptr<Stream> &lane : plan.lanes)
    log_wait(lane->track, begun);
  std::vector<std::shared_ptr<Moment>> done(plan.steps.size());
  for (const size_t index : plan.order) {
    Step &step = plan.steps[index];
    if (step.lane->context->destroyed.load())
      fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    if (step.lane->context->fault.load() != CUDA_SUCCESS)
      return; // the fault shows in the next call
    for (const size_t need : step.needs)
      if (plan.steps[need].lane != step.lane)
        log_wait(step.lane->track, done[need]);
    settle_step(plan, step);
    if (step.enabled)
      std::visit(Runner{step, *step.lane}, step.work);
    if (step.awaited)
      done[index] = recorded(*step.lane);
  }
  for (const size_t end : plan.ends)
    log_wait(outer.track, done[end]);
  pass_held(plan.lanes, outer);
}

Step *step_of(Plan &plan, CUgraphNode node) {
  Step *found = nullptr;
  for_each_step(plan, [&](Step &step) {
    if (node && step.node == node)
      found = &step;
  });
  return found;
}

} // namespace va
