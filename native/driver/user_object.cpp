// User objects: what the client wants destroyed when no graph needs it any more.  And the lock of
// all graphs, since their destructors must run outside it.
#include <algorithm>
#include <climits>

#include "driver_api.h"
#include "graph.h"

namespace va {
namespace {

using ObjectTable = HandleTable<UserObject, CUuserObject, Kind::kUserObject>;

struct Objects {
  std::recursive_mutex mutex;
  unsigned depth = 0; // of the locking thread
  ObjectTable table;
  std::vector<std::unique_ptr<UserObject>> dead; // to be destroyed once nothing is locked
};

Objects &objects() {
  static Objects *const instance = new Objects;
  return *instance;
}

UserObject &object_of(CUuserObject handle) {
  started();
  UserObject *const object = objects().table.find(handle);
  if (!object)
    fail(CUDA_ERROR_INVALID_VALUE);
  return *object;
}

void require_count(unsigned count) {
  if (!count || count > INT_MAX)
    fail(CUDA_ERROR_INVALID_VALUE);
}

// A client that releases more than is its own leaves graphs less than they hold, and no crash.
void drop(UserObject &object, uint64_t count) {
  object.references -= std::min(count, object.references);
  if (!object.references)
    objects().dead.emplace_back(objects().table.remove(object.handle));
}

} // namespace

GraphLock::GraphLock() {
  objects().mutex.lock();
  ++objects().depth;
}

GraphLock::~GraphLock() {
  std::vector<std::unique_ptr<UserObject>> dead;
  if (--objects().depth == 0)
    dead.swap(objects().dead);
  objects().mutex.unlock();
  for (const std::unique_ptr<UserObject> &object : dead)
    object->destroy(object->data);
}

void add_reference(const Holdings &holdings) {
  for (const auto &[handle, count] : holdings)
    if (UserObject *const object = objects().table.find(handle))
      object->references += count;
}

void drop_reference(const Holdings &holdings) {
  for (const auto &[handle, count] : holdings)
    if (UserObject *const object = objects().table.find(handle))
      drop(*object, count);
}

namespace api {

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
  constexpr unsigned kNoDestructorSync = 1;
  started();
  require_count(references);
  if (!destroy || flags != kNoDestructorSync)
    return CUDA_ERROR_INVALID_VALUE;
  const GraphLock lock;
  auto object = std::make_unique<UserObject>();
  object->data = data;
  object->destroy = destroy;
  object->references = references;
  object->handle = objects().table.add(object.get());
  *out = object.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count) {
  const GraphLock lock;
  require_count(count);
  object_of(object).references += count;
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  const GraphLock lock;
  require_count(count);
  UserObject &object = object_of(handle);
  if (count > object.references)
    return CUDA_ERROR_INVALID_VALUE;
  drop(object, count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned int count,
                                 unsigned int flags) {
  constexpr unsigned kMove = 1;
  const GraphLock lock;
  require_count(count);
  if (flags & ~kMove)
    return CUDA_ERROR_INVALID_VALUE;
  Graph &owner = graph_of(graph);
  UserObject &object = object_of(handle);
  if (!(flags & kMove))
    object.references += count;
  owner.objects[handle] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned int count) {
  const GraphLock lock;
  require_count(count);
  Graph &owner = graph_of(graph);
  const auto held = owner.objects.find(handle);
  if (held == owner.objects.end() || count > held->second)
    return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (!held->second)
    owner.objects.erase(held);
  drop(object_of(handle), count);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
