// Executable graphs: a copy of what a graph's nodes do, put in order.
#pragma once

#include "graph.h"

namespace va {

struct Plan;

struct Step {
  CUgraphNode node = nullptr; // of the graph this was made from
  Work work;
  bool enabled = true;
  std::vector<size_t> needs;
  Stream *lane = nullptr;
  bool awaited = false; // by a step of another lane, or by the end of the graph
  std::vector<std::unique_ptr<Plan>> inner; // a child graph, or a conditional's bodies
};

// Steps as the graph's nodes were made; lanes are streams of the graph's own, so that branches
// overlap in virtual time.
struct Plan {
  std::vector<Step> steps;
  std::vector<size_t> order;
  std::vector<std::unique_ptr<Stream>> lanes;
  std::vector<size_t> ends;
  std::vector<std::shared_ptr<Condition>> conditions;
};

struct GraphExec : std::enable_shared_from_this<GraphExec> {
  CUgraphExec handle = nullptr;
  unsigned id = 0;
  uint64_t flags = 0;
  std::unique_ptr<Plan> plan;
  std::recursive_mutex running;
  std::weak_ptr<Graph> graph;
  Holdings objects;
  ~GraphExec();
};

// Why a graph cannot be made executable.
struct PlanFailure {
  CUgraphInstantiateResult result;
  CUgraphNode node;
  CUresult code;
};

// Under the lock.  Throws PlanFailure.
std::unique_ptr<Plan> make_plan(const Graph &graph, Context &context);
void run_plan(Plan &plan, Stream &outer);

// Unknown handles fail with INVALID_VALUE.
std::shared_ptr<GraphExec> exec_of(CUgraphExec handle);
// The step made from a node, in child graphs and bodies too; null when there is none.
Step *step_of(Plan &plan, CUgraphNode node);

template <typename Visit> void for_each_step(Plan &plan, Visit visit) {
  for (Step &step : plan.steps) {
    visit(step);
    for (const std::unique_ptr<Plan> &inner : step.inner)
      for_each_step(*inner, visit);
  }
}

} // namespace va
