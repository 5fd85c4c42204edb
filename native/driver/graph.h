// Graphs: nodes, what each does, what depends on what.  Executable graphs are in graph_exec.h,
// capture is in capture.h.
//
// One lock guards all graphs: CUDA leaves races on a graph to its users, but none may crash.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "stream_work.h"

namespace va {

struct Graph;
struct GraphNode;

// Memory that an allocation node hands out: its address is fixed when the node is made, and is the
// client's between the launch that allocates it and whatever frees it.
struct GraphBlock {
  uint64_t base = 0, bytes = 0;
  uint64_t block_id = 0;
  int device = 0;
  bool managed = false;
  bool live = false;
  bool freed_inside = false, freed_outside = false; // by a node of its own graph, of another
  ~GraphBlock();
};

// The word behind a conditional handle, which is its address: device code stores there.
struct Condition {
  uint64_t address = 0;
  uint32_t initial = 0;
  bool assigned = false; // the initial value is stored at every launch
  ~Condition();
};

// Something of the client's that lives as long as graphs need it.
struct UserObject {
  CUuserObject handle = nullptr;
  void *data = nullptr;
  CUhostFn destroy = nullptr;
  uint64_t references = 0;
};

using Attributes = std::map<int, CUkernelNodeAttrValue>;
using Holdings = std::map<CUuserObject, uint64_t>;

struct KernelWork {
  CUfunction function;
  CUcontext context;
  Shape shape;
  std::vector<uint8_t> parameters;
  Attributes attributes;
};
struct CopyWork {
  CUDA_MEMCPY3D copy;
  CUcontext context;
};
struct FillWork {
  CUDA_MEMSET_NODE_PARAMS fill;
  CUcontext context;
};
struct HostWork {
  CUhostFn call;
  void *data;
};
struct ChildWork {
  std::shared_ptr<Graph> graph;
};
struct EmptyWork {};
struct WaitWork {
  CUevent event;
};
struct RecordWork {
  CUevent event;
};
struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS params;
  std::vector<CUmemAccessDesc> access;
  std::shared_ptr<GraphBlock> block;
};
struct FreeWork {
  CUdeviceptr address;
};
struct MemoryOpsWork {
  CUcontext context;
  unsigned flags;
  std::vector<CUstreamBatchMemOpParams> operations;
};
struct ConditionalWork {
  std::shared_ptr<Condition> condition;
  int type;
  CUcontext context;
  std::vector<std::shared_ptr<Graph>> bodies;
};

using Work = std::variant<KernelWork, CopyWork, FillWork, HostWork, ChildWork, EmptyWork, WaitWork,
                          RecordWork, AllocWork, FreeWork, MemoryOpsWork, ConditionalWork>;

CUgraphNodeType type_of(const Work &work);

struct GraphNode {
  CUgraphNode handle = nullptr;
  CUgraphNode original = nullptr; // what this is a clone of
  Graph *graph = nullptr;
  unsigned local_id = 0;
  Work work;
  std::vector<GraphNode *> needs, feeds;
  std::vector<void *> shown;         // addresses of parameters, as the client was told
  std::vector<CUgraph> shown_bodies; // a conditional's, likewise
  ~GraphNode();
};

struct Graph : std::enable_shared_from_this<Graph> {
  CUgraph handle = nullptr;
  unsigned id = 0;
  std::vector<std::unique_ptr<GraphNode>> nodes; // as they were made
  unsigned next_local_id = 0;
  bool embedded = false; // a child graph or a body: its node owns it
  Graph *parent = nullptr; // that node's
  bool body = false;     // of a conditional
  int executables = 0;
  Holdings objects;
  std::vector<std::shared_ptr<Condition>> conditions;
  ~Graph();

  bool has_memory_nodes() const;
  bool has_conditional_nodes() const;
};

// Guards graphs, executable graphs, user objects and captures.  Destructors of user objects run
// when the outermost lock of a thread is gone.
class GraphLock {
public:
  GraphLock();
  ~GraphLock();
  GraphLock(const GraphLock &) = delete;
  GraphLock &operator=(const GraphLock &) = delete;
};

// Under the lock; unknown handles fail with INVALID_VALUE.
Graph &graph_of(CUgraph handle);
GraphNode &node_of(CUgraphNode handle);
std::shared_ptr<Graph> make_graph();
void forget_graph(CUgraph handle);
std::shared_ptr<Graph> clone_graph(const Graph &graph);
// The client's list of nodes: known, of this graph, each once.
std::vector<GraphNode *> nodes_of(Graph &graph, const CUgraphNode *handles, size_t count);
// Fails for edges other than full ones, which compute capability 8.0 alone has.
void require_plain_edges(const CUgraphEdgeData *edges, size_t count);
GraphNode &add_node(Graph &graph, const std::vector<GraphNode *> &needs, Work work);
// Every node that must have run before these.
std::vector<const GraphNode *> ancestors_of(const std::vector<GraphNode *> &nodes);

// Answer of a query for a list: as many as there is room for, the rest null, and the count.
template <typename Handle>
void hand_out(const std::vector<Handle> &found, Handle *out, size_t *count) {
  if (out)
    for (size_t i = 0; i < *count; ++i)
      out[i] = i < found.size() ? found[i] : nullptr;
  if (!out || *count > found.size())
    *count = found.size();
}

void add_reference(const Holdings &objects);
void drop_reference(const Holdings &objects);

// ------------------------------------------------ memory nodes (graph_memory.cpp)

std::shared_ptr<GraphBlock> make_graph_block(const CUDA_MEM_ALLOC_NODE_PARAMS &params,
                                             const std::vector<GraphNode *> &needs);
// The client may use it from now on.
void claim(GraphBlock &block);
bool is_live(const GraphBlock &block);
// Whether an address is a graph's memory; if so, it is the graph's again, or it was already.
bool release_graph_block(uint64_t base, bool *released, bool by_graph = false);
// Whether a node may free it, of the graph that allocates it or of another; not of both.
bool may_be_freed(uint64_t base, bool by_owner);

} // namespace va
