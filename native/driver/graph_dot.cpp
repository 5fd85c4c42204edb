// A graph as text for Graphviz.
#include <cstdio>

#include "driver_api.h"
#include "graph.h"

namespace va {
namespace {

enum DotFlags : unsigned {
  kVerbose = 1 << 0,
  kKernels = 1 << 2,
  kCopies = 1 << 3,
  kFills = 1 << 4,
  kHostCalls = 1 << 5,
  kEvents = 1 << 6,
  kHandles = 1 << 10,
  kAllocs = 1 << 11,
  kFrees = 1 << 12,
  kConditionals = 1 << 15
};

const char *name_of(CUgraphNodeType type) {
  static const char *const kNames[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY",
                                       "WAIT_EVENT", "EVENT_RECORD", "", "", "MEM_ALLOC",
                                       "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL"};
  return kNames[type];
}

template <typename... Values> std::string text_of(const char *format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

unsigned long long number(const void *pointer) {
  return static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(pointer));
}

// What a label says of a node's parameters, when they were asked for.
struct Detail {
  unsigned flags;

  bool wants(unsigned flag) const { return flags & (kVerbose | flag); }

  std::string operator()(const KernelWork &work) const {
    const Function *const f = driver().functions.find(work.function);
    std::string text = "\\n" + (f ? f->title : std::string("unloaded"));
    const Shape &s = work.shape;
    if (wants(kKernels))
      text += text_of("\\n<<<(%u, %u, %u), (%u, %u, %u), %u>>>", s.grid[0], s.grid[1], s.grid[2],
                      s.block[0], s.block[1], s.block[2], s.shared_bytes);
    return text;
  }
  std::string operator()(const CopyWork &work) const {
    return wants(kCopies) ? text_of("\\n%zu x %zu x %zu bytes", work.copy.width, work.copy.height,
                                    work.copy.depth)
                          : "";
  }
  std::string operator()(const FillWork &work) const {
    const CUDA_MEMSET_NODE_PARAMS &f = work.fill;
    return wants(kFills) ? text_of("\\n0x%llx: %zu x %zu of %u bytes, 0x%x",
                                   static_cast<unsigned long long>(f.address), f.width, f.height,
                                   f.element_bytes, f.value)
                         : "";
  }
  std::string operator()(const HostWork &work) const {
    return wants(kHostCalls)
               ? text_of("\\n0x%llx(0x%llx)", number(reinterpret_cast<void *>(work.call)),
                         number(work.data))
               : "";
  }
  std::string operator()(const WaitWork &work) const { return event(work.event); }
  std::string operator()(const RecordWork &work) const { return event(work.event); }
  std::string operator()(const AllocWork &work) const {
    return wants(kAllocs) ? text_of("\\n0x%llx, %zu bytes",
                                    static_cast<unsigned long long>(work.params.address),
                                    work.params.bytes)
                          : "";
  }
  std::string operator()(const FreeWork &work) const {
    return wants(kFrees) ? text_of("\\n0x%llx", static_cast<unsigned long long>(work.address)) : "";
  }
  std::string operator()(const ConditionalWork &work) const {
    static const char *const kTypes[] = {"IF", "WHILE", "SWITCH"};
    return wants(kConditionals) ? text_of("\\n%s, %zu bodies", kTypes[work.type],
                                          work.bodies.size())
                                : "";
  }
  template <typename Other> std::string operator()(const Other &) const { return ""; }

  std::string event(CUevent handle) const {
    return wants(kEvents) ? text_of("\\nevent 0x%llx", number(handle)) : "";
  }
};

std::string dot_name(const GraphNode &node) {
  return text_of("graph_%u_node_%u", node.graph->id, node.local_id);
}

std::string quoted(const std::string &text) {
  std::string out;
  for (const char c : text) {
    if (c == '"')
      out += '\\';
    out += c;
  }
  return out;
}

void append_graph(std::string *out, const Graph &graph, unsigned flags);

void append_inner(std::string *out, const GraphNode &node, unsigned flags) {
  if (const auto *const child = std::get_if<ChildWork>(&node.work))
    append_graph(out, *child->graph, flags);
  if (const auto *const conditional = std::get_if<ConditionalWork>(&node.work))
    for (const std::shared_ptr<Graph> &body : conditional->bodies)
      append_graph(out, *body, flags);
}

void append_graph(std::string *out, const Graph &graph, unsigned flags) {
  *out += text_of("subgraph cluster_%u {\nlabel=\"graph_%u\"\n", graph.id, graph.id);
  for (const std::unique_ptr<GraphNode> &node : graph.nodes) {
    std::string label = text_of("%u\\n%s", node->local_id, name_of(type_of(node->work)));
    if (flags & (kVerbose | kHandles))
      label += text_of("\\n0x%llx", number(node->handle));
    label += std::visit(Detail{flags}, node->work);
    *out += '"' + dot_name(*node) + "\" [shape=\"box\" label=\"" + quoted(label) + "\"]\n";
    append_inner(out, *node, flags);
  }
  for (const std::unique_ptr<GraphNode> &node : graph.nodes)
    for (const GraphNode *const fed : node->feeds)
      *out += '"' + dot_name(*node) + "\" -> \"" + dot_name(*fed) + "\"\n";
  *out += "}\n";
}

} // namespace

namespace api {

CUresult cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags) {
  std::string text = "digraph dot {\n";
  {
    const GraphLock lock;
    append_graph(&text, graph_of(handle), flags);
  }
  text += "}\n";
  std::FILE *const file = std::fopen(path, "w");
  if (!file)
    return CUDA_ERROR_OPERATING_SYSTEM;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) || !written ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

} // namespace api
} // namespace va
