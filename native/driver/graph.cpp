// Graphs as wholes: making, cloning and destroying them, their nodes and edges.
// What nodes do is in graph_node.cpp, memory in graph_memory.cpp.
#include "graph.h"

#include <algorithm>
#include <set>

#include "driver_api.h"

namespace va {
namespace {

using GraphTable = HandleTable<Graph, CUgraph, Kind::kGraph>;
using NodeTable = HandleTable<GraphNode, CUgraphNode, Kind::kGraphNode>;

struct Graphs {
  GraphTable graphs;
  NodeTable nodes;
  std::map<CUgraph, std::shared_ptr<Graph>> owned; // those that the client destroys
  unsigned next_id = 1;
};

Graphs &all() {
  static Graphs *const instance = new Graphs;
  return *instance;
}

void erase_edge(GraphNode &from, GraphNode &to) {
  from.feeds.erase(std::find(from.feeds.begin(), from.feeds.end(), &to));
  to.needs.erase(std::find(to.needs.begin(), to.needs.end(), &from));
}

bool has_edge(const GraphNode &from, const GraphNode &to) {
  return std::find(to.needs.begin(), to.needs.end(), &from) != to.needs.end();
}

std::vector<CUgraphNode> handles_of(const std::vector<GraphNode *> &nodes) {
  std::vector<CUgraphNode> handles(nodes.size());
  std::transform(nodes.begin(), nodes.end(), handles.begin(),
                 [](const GraphNode *node) { return node->handle; });
  return handles;
}

struct Edge {
  GraphNode *from, *to;
};

// The client's list of edges: nodes of this graph, no edge twice, none from a node to itself.
std::vector<Edge> edges_of(Graph &graph, const CUgraphNode *from, const CUgraphNode *to,
                           size_t count) {
  if (count && (!from || !to))
    fail(CUDA_ERROR_INVALID_VALUE);
  std::vector<Edge> edges;
  std::set<std::pair<CUgraphNode, CUgraphNode>> seen;
  for (size_t i = 0; i < count; ++i) {
    Edge edge{&node_of(from[i]), &node_of(to[i])};
    if (edge.from->graph != &graph || edge.to->graph != &graph || edge.from == edge.to ||
        !seen.emplace(from[i], to[i]).second)
      fail(CUDA_ERROR_INVALID_VALUE);
    edges.push_back(edge);
  }
  return edges;
}

CUresult add_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                   const CUgraphEdgeData *data, size_t count) {
  const GraphLock lock;
  Graph &graph = graph_of(handle);
  require_plain_edges(data, count);
  const std::vector<Edge> edges = edges_of(graph, from, to, count);
  for (const Edge &edge : edges)
    if (has_edge(*edge.from, *edge.to))
      return CUDA_ERROR_INVALID_VALUE;
  for (const Edge &edge : edges) {
    edge.from->feeds.push_back(edge.to);
    edge.to->needs.push_back(edge.from);
  }
  return CUDA_SUCCESS;
}

CUresult remove_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                      const CUgraphEdgeData *data, size_t count) {
  const GraphLock lock;
  Graph &graph = graph_of(handle);
  require_plain_edges(data, count);
  const std::vector<Edge> edges = edges_of(graph, from, to, count);
  if (count && graph.has_memory_nodes())
    return CUDA_ERROR_NOT_SUPPORTED; // the lives of allocations were read from the edges
  for (const Edge &edge : edges)
    if (!has_edge(*edge.from, *edge.to))
      return CUDA_ERROR_INVALID_VALUE;
  for (const Edge &edge : edges)
    erase_edge(*edge.from, *edge.to);
  return CUDA_SUCCESS;
}

void clear_edges(CUgraphEdgeData *edges, size_t count) {
  if (edges)
    std::fill_n(edges, count, CUgraphEdgeData{});
}

Work cloned(const Work &work) {
  Work copy = work;
  if (auto *const child = std::get_if<ChildWork>(&copy)) {
    child->graph = clone_graph(*child->graph);
    child->graph->embedded = true;
  } else if (auto *const conditional = std::get_if<ConditionalWork>(&copy)) {
    for (std::shared_ptr<Graph> &body : conditional->bodies) {
      body = clone_graph(*body);
      body->embedded = body->body = true;
    }
  }
  return copy;
}

} // namespace

CUgraphNodeType type_of(const Work &work) {
  static constexpr CUgraphNodeType kTypes[] = {
      CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
      CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,
      CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
      CU_GRAPH_NODE_TYPE_WAIT_EVENT,   CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      CU_GRAPH_NODE_TYPE_MEM_ALLOC,    CU_GRAPH_NODE_TYPE_MEM_FREE,
      CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_CONDITIONAL};
  static_assert(std::size(kTypes) == std::variant_size_v<Work>, "a type for each work");
  return kTypes[work.index()];
}

GraphNode::~GraphNode() { all().nodes.remove(handle); }

Graph::~Graph() {
  all().graphs.remove(handle);
  drop_reference(objects);
}

bool Graph::has_memory_nodes() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const std::unique_ptr<GraphNode> &node) {
    return std::holds_alternative<AllocWork>(node->work) ||
           std::holds_alternative<FreeWork>(node->work);
  });
}

bool Graph::has_conditional_nodes() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const std::unique_ptr<GraphNode> &node) {
    return std::holds_alternative<ConditionalWork>(node->work);
  });
}

Graph &graph_of(CUgraph handle) {
  started();
  Graph *const graph = all().graphs.find(handle);
  if (!graph)
    fail(CUDA_ERROR_INVALID_VALUE);
  return *graph;
}

GraphNode &node_of(CUgraphNode handle) {
  started();
  GraphNode *const node = all().nodes.find(handle);
  if (!node)
    fail(CUDA_ERROR_INVALID_VALUE);
  return *node;
}

std::shared_ptr<Graph> make_graph() {
  auto graph = std::make_shared<Graph>();
  graph->id = all().next_id++;
  graph->handle = all().graphs.add(graph.get());
  all().owned[graph->handle] = graph;
  return graph;
}

void forget_graph(CUgraph handle) { all().owned.erase(handle); }

std::shared_ptr<Graph> clone_graph(const Graph &graph) {
  if (graph.has_memory_nodes())
    fail(CUDA_ERROR_NOT_SUPPORTED); // an address belongs to one graph
  auto copy = std::make_shared<Graph>();
  copy->id = all().next_id++;
  copy->handle = all().graphs.add(copy.get());
  copy->next_local_id = graph.next_local_id;
  copy->conditions = graph.conditions;
  add_reference(graph.objects);
  copy->objects = graph.objects;
  std::map<const GraphNode *, GraphNode *> twins;
  for (const std::unique_ptr<GraphNode> &node : graph.nodes) {
    GraphNode &twin = add_node(*copy, {}, cloned(node->work));
    twin.local_id = node->local_id;
    twin.original = node->handle;
    twins[node.get()] = &twin;
  }
  for (const std::unique_ptr<GraphNode> &node : graph.nodes) {
    for (const GraphNode *const need : node->needs)
      twins[node.get()]->needs.push_back(twins[need]);
    for (const GraphNode *const fed : node->feeds)
      twins[node.get()]->feeds.push_back(twins[fed]);
  }
  return copy;
}

std::vector<GraphNode *> nodes_of(Graph &graph, const CUgraphNode *handles, size_t count) {
  if (count && !handles)
    fail(CUDA_ERROR_INVALID_VALUE);
  std::vector<GraphNode *> nodes;
  std::set<CUgraphNode> seen;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(&node_of(handles[i]));
    if (nodes.back()->graph != &graph || !seen.insert(handles[i]).second)
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  return nodes;
}

void require_plain_edges(const CUgraphEdgeData *edges, size_t count) {
  for (size_t i = 0; edges && i < count; ++i) {
    for (const unsigned char byte : edges[i].reserved)
      if (byte)
        fail(CUDA_ERROR_INVALID_VALUE);
    if (edges[i].type > 1 || edges[i].from_port > 2 || edges[i].to_port)
      fail(CUDA_ERROR_INVALID_VALUE);
    if (edges[i].type || edges[i].from_port)
      fail(CUDA_ERROR_NOT_SUPPORTED); // programmatic launches come with compute capability 9.0
  }
}

GraphNode &add_node(Graph &graph, const std::vector<GraphNode *> &needs, Work work) {
  auto node = std::make_unique<GraphNode>();
  node->graph = &graph;
  node->local_id = graph.next_local_id++;
  node->work = std::move(work);
  node->needs = needs;
  node->handle = all().nodes.add(node.get());
  for (GraphNode *const need : needs)
    need->feeds.push_back(node.get());
  if (const auto *const child = std::get_if<ChildWork>(&node->work))
    child->graph->parent = &graph;
  if (const auto *const conditional = std::get_if<ConditionalWork>(&node->work))
    for (const std::shared_ptr<Graph> &body : conditional->bodies)
      body->parent = &graph;
  graph.nodes.push_back(std::move(node));
  return *graph.nodes.back();
}

std::vector<const GraphNode *> ancestors_of(const std::vector<GraphNode *> &nodes) {
  std::set<const GraphNode *> seen;
  std::vector<const GraphNode *> found, waiting(nodes.begin(), nodes.end());
  while (!waiting.empty()) {
    const GraphNode *const node = waiting.back();
    waiting.pop_back();
    for (const GraphNode *const need : node->needs)
      if (seen.insert(need).second) {
        found.push_back(need);
        waiting.push_back(need);
      }
  }
  return found;
}

namespace api {

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
  started();
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  *graph = make_graph()->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  const GraphLock lock;
  const Graph &graph = graph_of(handle);
  if (graph.embedded)
    return CUDA_ERROR_INVALID_VALUE; // its node's, and destroyed with it
  forget_graph(handle);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph *out, CUgraph original) {
  const GraphLock lock;
  const std::shared_ptr<Graph> copy = clone_graph(graph_of(original));
  all().owned[copy->handle] = copy;
  *out = copy->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph clone) {
  const GraphLock lock;
  for (const std::unique_ptr<GraphNode> &node : graph_of(clone).nodes)
    if (original && node->original == original) {
      *out = node->handle;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  const GraphLock lock;
  GraphNode &node = node_of(handle);
  Graph &graph = *node.graph;
  if (graph.has_memory_nodes())
    return CUDA_ERROR_NOT_SUPPORTED;
  while (!node.needs.empty())
    erase_edge(*node.needs.back(), node);
  while (!node.feeds.empty())
    erase_edge(node, *node.feeds.back());
  graph.nodes.erase(std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [&](const auto &other) { return other.get() == &node; }));
  return CUDA_SUCCESS;
}

CUresult cuGraphGetId(CUgraph graph, unsigned int *id) {
  const GraphLock lock;
  *id = graph_of(graph).id;
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *out, size_t *count) {
  const GraphLock lock;
  std::vector<CUgraphNode> found;
  for (const std::unique_ptr<GraphNode> &node : graph_of(handle).nodes)
    found.push_back(node->handle);
  hand_out(found, out, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode *out, size_t *count) {
  const GraphLock lock;
  std::vector<CUgraphNode> found;
  for (const std::unique_ptr<GraphNode> &node : graph_of(handle).nodes)
    if (node->needs.empty())
      found.push_back(node->handle);
  hand_out(found, out, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                            CUgraphEdgeData *edges, size_t *count) {
  const GraphLock lock;
  std::vector<CUgraphNode> sources, targets;
  for (const std::unique_ptr<GraphNode> &node : graph_of(handle).nodes)
    for (const GraphNode *const fed : node->feeds) {
      sources.push_back(node->handle);
      targets.push_back(fed->handle);
    }
  if (!from != !to || (edges && !from))
    return CUDA_ERROR_INVALID_VALUE;
  if (from)
    clear_edges(edges, *count);
  size_t again = *count;
  hand_out(sources, from, count);
  hand_out(targets, to, &again);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges,
                                       size_t *count) {
  const GraphLock lock;
  if (edges && !out)
    return CUDA_ERROR_INVALID_VALUE;
  clear_edges(edges, *count);
  hand_out(handles_of(node_of(node).needs), out, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count) {
  return cuGraphNodeGetDependencies_v2(node, out, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out,
                                         CUgraphEdgeData *edges, size_t *count) {
  const GraphLock lock;
  if (edges && !out)
    return CUDA_ERROR_INVALID_VALUE;
  clear_edges(edges, *count);
  hand_out(handles_of(node_of(node).feeds), out, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count) {
  return cuGraphNodeGetDependentNodes_v2(node, out, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *data, size_t count) {
  return add_edges(graph, from, to, data, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                size_t count) {
  return add_edges(graph, from, to, nullptr, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                      const CUgraphNode *to, const CUgraphEdgeData *data,
                                      size_t count) {
  return remove_edges(graph, from, to, data, count);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t count) {
  return remove_edges(graph, from, to, nullptr, count);
}

} // namespace api
} // namespace va
