// Stream capture: begin and end, forks and joins through events, and what breaks a capture.
#include "capture.h"

#include <algorithm>
#include <set>

#include "driver_api.h"
#include "graph_params.h"
#include "held.h"

namespace va {

struct Capture {
  uint64_t id = 0;
  std::shared_ptr<Graph> graph;
  bool whole = true; // the graph is made by this capture, and handed out at its end
  int mode = 0;
  std::thread::id thread;
  Stream *origin = nullptr;
  bool broken = false;
  std::set<Stream *> streams;
  std::vector<CUgraphNode> loose; // the last work of streams that are gone
};

// A stream's part in a capture; its next node comes after these.
struct StreamCapture {
  std::shared_ptr<Capture> capture;
  std::vector<CUgraphNode> needs;
  std::vector<CUgraphNode> shown; // as a query handed them out
  std::vector<CUgraphEdgeData> shown_edges;
};

namespace {

std::set<Capture *> &captures() {
  static auto *const all = new std::set<Capture *>;
  return *all;
}

int &thread_mode() {
  static thread_local int mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

Capture *capture_of(const Stream &stream) {
  return stream.capture ? stream.capture->capture.get() : nullptr;
}

bool waits_for_legacy(const Capture &capture, const Context &context) {
  return std::any_of(capture.streams.begin(), capture.streams.end(), [&](const Stream *s) {
    return s->context == &context && s->track->blocking && !s->track->legacy;
  });
}

// Captures that a call on the legacy stream would have to wait for.
void require_no_implicit(const Stream &stream, bool breaks) {
  if (!stream.track->legacy)
    return;
  bool found = false;
  for (Capture *const capture : captures())
    if (waits_for_legacy(*capture, *stream.context)) {
      found = true;
      capture->broken |= breaks;
    }
  if (found)
    fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

void require_intact(const Capture &capture) {
  if (capture.broken)
    fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

[[noreturn]] void break_with(Capture &capture, CUresult code) {
  const bool broken = capture.broken;
  capture.broken = true;
  fail(broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : code);
}

// A stream's part in a capture that is whole; another thread may have ended it meanwhile.
StreamCapture &part_of(Stream &stream) {
  if (!stream.capture)
    fail(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  require_intact(*stream.capture->capture);
  return *stream.capture;
}

void join(Stream &stream, const std::shared_ptr<Capture> &capture) {
  if (!stream.capture)
    stream.capture = std::make_unique<StreamCapture>();
  stream.capture->capture = capture;
  capture->streams.insert(&stream);
}

// Take a capture out of the world; its streams are as ever again.
void dissolve(const std::shared_ptr<Capture> &capture) {
  for (Stream *const stream : capture->streams)
    stream->capture.reset();
  capture->streams.clear();
  if (captures().erase(capture.get()))
    --active_captures();
}

void add_needs(std::vector<CUgraphNode> &to, const std::vector<CUgraphNode> &more) {
  for (const CUgraphNode node : more)
    if (std::find(to.begin(), to.end(), node) == to.end())
      to.push_back(node);
}

// Every stream's last work comes before the first stream's.
bool all_joined(const Capture &capture) {
  const std::vector<CUgraphNode> &ends = capture.origin->capture->needs;
  std::set<CUgraphNode> before(ends.begin(), ends.end());
  for (const GraphNode *const node : ancestors_of(nodes_of(*capture.graph, ends.data(), ends.size())))
    before.insert(node->handle);
  std::vector<CUgraphNode> lasts = capture.loose;
  for (const Stream *const stream : capture.streams)
    add_needs(lasts, stream->capture->needs);
  return std::all_of(lasts.begin(), lasts.end(),
                     [&](const CUgraphNode node) { return before.count(node) != 0; });
}

CUresult begin(CUstream handle, int mode, std::shared_ptr<Graph> graph, bool whole,
               std::vector<CUgraphNode> needs) {
  Stream &stream = stream_of(handle);
  require_healthy(*stream.context);
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  if (stream.track->legacy)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = driver().next_id++;
  capture->graph = graph ? std::move(graph) : make_graph();
  capture->whole = whole;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  join(stream, capture);
  stream.capture->needs = std::move(needs);
  captures().insert(capture.get());
  ++active_captures();
  return CUDA_SUCCESS;
}

CUresult end(CUstream handle, CUgraph *out) {
  *out = nullptr;
  Stream &stream = stream_of(handle);
  if (!stream.capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  const std::shared_ptr<Capture> capture = stream.capture->capture;
  if (capture->origin != &stream)
    break_with(*capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = CUDA_SUCCESS;
  if (capture->broken)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!all_joined(*capture))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  dissolve(capture);
  if (result == CUDA_SUCCESS)
    *out = capture->graph->handle;
  else if (capture->whole)
    forget_graph(capture->graph->handle);
  return result;
}

// What queries of a capture have in common; null where the stream takes no part in any.
StreamCapture *queried(CUstream handle, CUstreamCaptureStatus *status) {
  Stream &stream = stream_of(handle);
  require_no_implicit(stream, false);
  *status = !stream.capture                    ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream.capture->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                               : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return *status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? stream.capture.get() : nullptr;
}

CUresult update(CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,
                unsigned flags) {
  Stream &stream = stream_of(handle);
  if (!stream.capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  require_intact(*capture_of(stream));
  require_plain_edges(edges, count);
  if (flags > 1)
    return CUDA_ERROR_INVALID_VALUE;
  nodes_of(*capture_of(stream)->graph, nodes, count);
  if (flags)
    stream.capture->needs.clear();
  add_needs(stream.capture->needs, {nodes, nodes + count});
  return CUDA_SUCCESS;
}

} // namespace

std::atomic<int> &active_captures() {
  static std::atomic<int> count{0};
  return count;
}

Stream::Stream() = default;

// A capture outlives its streams, but the first one; their work still has to be joined.
Stream::~Stream() {
  forget_held(*this);
  if (!capturing_anywhere())
    return;
  const GraphLock lock;
  if (!capture)
    return;
  const std::shared_ptr<Capture> mine = capture->capture;
  add_needs(mine->loose, capture->needs);
  mine->streams.erase(this);
  if (mine->origin == this) {
    dissolve(mine);
    if (mine->whole)
      forget_graph(mine->graph->handle);
  }
}

bool takes_part(Stream &stream) {
  const GraphLock lock;
  if (!stream.capture) {
    require_no_implicit(stream, true);
    return false;
  }
  require_intact(*capture_of(stream));
  return true;
}

GraphNode &capture(Stream &stream, Work work) {
  const GraphLock lock;
  StreamCapture &mine = part_of(stream);
  Graph &graph = *mine.capture->graph;
  GraphNode &node =
      add_node(graph, nodes_of(graph, mine.needs.data(), mine.needs.size()), std::move(work));
  mine.needs = {node.handle};
  return node;
}

KernelWork kernel_work(Function &f, const Shape &shape, const uint8_t *parameters,
                       Attributes attributes) {
  return {f.handle, f.module->context->handle, shape,
          {parameters, parameters + f.parameter_bytes}, std::move(attributes)};
}

CUdeviceptr capture_alloc(Stream &stream, uint64_t bytes, int alloc_type,
                          const CUmemLocation &location) {
  const GraphLock lock;
  const StreamCapture &mine = part_of(stream);
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool.alloc_type = alloc_type;
  params.pool.location = location;
  params.bytes = bytes;
  AllocWork work = alloc_from(
      params, nodes_of(*mine.capture->graph, mine.needs.data(), mine.needs.size()));
  const CUdeviceptr address = work.params.address;
  capture(stream, std::move(work));
  return address;
}

void capture_free(Stream &stream, CUdeviceptr address) {
  const GraphLock lock;
  capture(stream, free_from(*part_of(stream).capture->graph, address));
}

void capture_record(Stream &stream, Event &event) {
  const GraphLock lock;
  auto point = std::make_shared<CapturedPoint>();
  const StreamCapture &mine = part_of(stream);
  point->capture = mine.capture;
  point->needs = mine.needs;
  const std::lock_guard<std::mutex> event_lock(event.mutex);
  event.captured = std::move(point);
}

bool capture_wait(Stream &stream, Event &event) {
  const GraphLock lock;
  std::shared_ptr<CapturedPoint> point;
  bool recorded;
  {
    const std::lock_guard<std::mutex> event_lock(event.mutex);
    point = event.captured;
    recorded = event.moment != nullptr;
  }
  Capture *const mine = capture_of(stream);
  if (mine)
    require_intact(*mine);
  if (!point) {
    if (mine && recorded)
      break_with(*mine, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    return mine != nullptr;
  }
  const std::shared_ptr<Capture> theirs = point->capture.lock();
  if (!theirs || !captures().count(theirs.get())) {
    if (mine)
      break_with(*mine, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    fail(CUDA_ERROR_CAPTURED_EVENT);
  }
  require_intact(*theirs);
  if (mine && mine != theirs.get()) {
    theirs->broken = true;
    break_with(*mine, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (stream.track->legacy)
    break_with(*theirs, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  join(stream, theirs);
  add_needs(stream.capture->needs, point->needs);
  return true;
}

void break_waited(Stream &stream) {
  const GraphLock lock;
  if (Capture *const mine = capture_of(stream))
    break_with(*mine, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require_no_implicit(stream, true);
}

void break_waited(Context &context) {
  const GraphLock lock;
  bool found = false;
  for (Capture *const capture : captures())
    for (const Stream *const stream : capture->streams)
      if (stream->context == &context)
        found = capture->broken = true;
  if (found)
    fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void require_wait_allowed(Event &event) {
  std::shared_ptr<CapturedPoint> point;
  {
    const std::lock_guard<std::mutex> event_lock(event.mutex);
    point = event.captured;
  }
  if (point) {
    const GraphLock lock;
    if (const std::shared_ptr<Capture> capture = point->capture.lock())
      capture->broken = true;
    fail(CUDA_ERROR_CAPTURED_EVENT);
  }
  require_unsafe_allowed();
}

void break_by_unsafe_call() {
  const GraphLock lock;
  if (thread_mode() == CU_STREAM_CAPTURE_MODE_RELAXED)
    return;
  bool found = false;
  for (Capture *const capture : captures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbids =
        own ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
            : capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                  thread_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (forbids)
      found = capture->broken = true;
  }
  if (found)
    fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

void break_unsupported(Stream &stream) {
  const GraphLock lock;
  if (Capture *const mine = capture_of(stream))
    break_with(*mine, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

namespace api {

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const GraphLock lock;
  return begin(stream, mode, nullptr, true, {});
}

CUresult cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle,
                                     const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *edges, size_t count,
                                     CUstreamCaptureMode mode) {
  const GraphLock lock;
  Graph &graph = graph_of(handle);
  nodes_of(graph, dependencies, count);
  require_plain_edges(edges, count);
  return begin(stream, mode, graph.shared_from_this(), false, {dependencies, dependencies + count});
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  const GraphLock lock;
  return end(stream, graph);
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  const GraphLock lock;
  queried(stream, status);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   const CUgraphEdgeData **edges, size_t *count) {
  const GraphLock lock;
  StreamCapture *const found = queried(stream, status);
  if (!found)
    return CUDA_SUCCESS;
  found->shown = found->needs;
  found->shown_edges.assign(found->needs.size(), CUgraphEdgeData{});
  if (id)
    *id = found->capture->id;
  if (graph)
    *graph = found->capture->graph->handle;
  if (dependencies)
    *dependencies = found->shown.data();
  if (edges)
    *edges = found->shown_edges.data();
  if (count)
    *count = found->shown.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   size_t *count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
                                              const CUgraphEdgeData *edges, size_t count,
                                              unsigned int flags) {
  const GraphLock lock;
  return update(stream, dependencies, edges, count, flags);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies,
                                           size_t count, unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_mode());
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
