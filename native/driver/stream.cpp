// Streams.  Work runs in the calling thread, so a stream is always idle when a call returns;
// what remains is order between threads, and virtual time.
#include <cstring>

#include "blocks.h"
#include "capture.h"
#include "driver_api.h"
#include "green.h"
#include "held.h"
#include "objects.h"
#include "settings.h"
#include "va100/check.h"

namespace va {
namespace {

constexpr unsigned kNonBlocking = 1;
constexpr int kGreatestPriority = -5;
const CUstream kLegacy = reinterpret_cast<CUstream>(1);
const CUstream kPerThread = reinterpret_cast<CUstream>(2);

Stream &own_stream(Context &context) {
  // A thread mostly stays with one context.
  static thread_local CUcontext cached_for = nullptr;
  static thread_local Stream *cached = nullptr;
  if (cached_for == context.handle)
    return *cached;
  const std::lock_guard<std::mutex> lock(context.mutex);
  std::unique_ptr<Stream> &stream = context.per_thread[std::this_thread::get_id()];
  if (!stream) {
    stream = make_stream(context, 0, 0);
    va_check_stream_made();
  }
  cached_for = context.handle;
  cached = stream.get();
  return *cached;
}

CUresult create(CUstream *handle, unsigned flags, int priority) {
  Context &context = healthy_context();
  if (flags & ~kNonBlocking)
    return CUDA_ERROR_INVALID_VALUE;
  const int clamped = priority > 0 ? 0 : priority < kGreatestPriority ? kGreatestPriority : priority;
  std::unique_ptr<Stream> stream = make_stream(context, flags, clamped);
  stream->handle = driver().streams.add(stream.get());
  join_green(*stream, current_handle());
  va_check_stream_made();
  const std::lock_guard<std::mutex> lock(context.mutex);
  context.streams.insert(stream.get());
  *handle = stream.release()->handle;
  return CUDA_SUCCESS;
}

// An operation on a word of memory is captured as a node of one.
CUresult word_operation(CUstream handle, int operation, CUdeviceptr address, uint64_t value,
                        unsigned flags) {
  CUstreamBatchMemOpParams one{};
  one.word.operation = operation;
  one.word.address = address;
  one.word.value = value;
  one.word.flags = flags;
  return api::cuStreamBatchMemOp_v2(handle, 1, &one, 0);
}

CUresult run_callback(CUstream handle, CUhostFn call, void *data) {
  healthy_context();
  Stream &stream = stream_of(handle);
  if (!call)
    return CUDA_ERROR_INVALID_VALUE;
  if (in_capture(stream))
    capture(stream, HostWork{call, data});
  else
    run_host_call(stream, call, data);
  return CUDA_SUCCESS;
}

} // namespace

std::unique_ptr<Stream> make_stream(Context &context, unsigned flags, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->flags = flags;
  stream->priority = priority;
  stream->id = driver().next_id++;
  stream->track = std::make_shared<Track>();
  stream->track->id = static_cast<uint32_t>(stream->id);
  stream->track->blocking = !(flags & kNonBlocking);
  stream->track->group = context.tracks;
  return stream;
}

Stream &stream_of(CUstream handle) {
  Stream &stream = stream_unsettled(handle);
  settle(stream);
  return stream;
}

Stream &stream_unsettled(CUstream handle) {
  if (!handle)
    handle = PerThreadStream::active() ? kPerThread : kLegacy;
  if (handle == kLegacy)
    return *current_context().legacy;
  if (handle == kPerThread)
    return own_stream(current_context());
  Stream *const stream = started().streams.find(handle);
  if (!stream)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *stream;
}

void run_host_call(Stream &stream, CUhostFn call, void *data) {
  flush_device_output();
  log_seen(stream.track); // the host's side may tell others that it was called
  if (!is_trusted(call))
    settle(stream);
  const RunningHost running(stream);
  const std::lock_guard<std::recursive_mutex> lock(stream.order);
  call(data);
}

namespace api {

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { return create(stream, flags, 0); }

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
  return create(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  Stream *const stream = started().streams.find(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  settle(*stream);
  {
    const std::lock_guard<std::mutex> lock(stream->context->mutex);
    stream->context->streams.erase(stream);
  }
  driver().streams.remove(handle);
  delete stream;
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle) { return cuStreamDestroy_v2(handle); }

CUresult cuStreamQuery(CUstream handle) {
  Stream &stream = stream_of(handle);
  require_wait_allowed(stream);
  log_seen(stream.track);
  require_healthy(*stream.context);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  Stream &stream = stream_of(handle);
  require_wait_allowed(stream);
  { const std::lock_guard<std::recursive_mutex> lock(stream.order); }
  log_join(stream.track);
  flush_device_output();
  require_healthy(*stream.context);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  if (flags > 1)
    return CUDA_ERROR_INVALID_VALUE;
  Stream &stream = stream_of(handle);
  Event &event = event_of(event_handle);
  require_healthy(*stream.context);
  if (flags && !in_capture(stream))
    return CUDA_ERROR_INVALID_VALUE; // external to what
  if (flags) {
    capture(stream, WaitWork{event_handle});
    return CUDA_SUCCESS;
  }
  if (!capturing_anywhere() || !capture_wait(stream, event))
    run_wait(stream, event_handle);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  return cuStreamGetCtx_v2(handle, context, nullptr);
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green) {
  const Stream &stream = stream_of(handle);
  const bool special = !stream.handle; // the current context's, by whatever name
  *context = special ? current_handle() : stream.alias ? stream.alias : stream.context->handle;
  if (green)
    *green = stream.green;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
  *device = stream_of(handle).context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags) {
  *flags = stream_of(handle).flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, uint64_t *id) {
  *id = stream_of(handle).id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
  *priority = stream_of(handle).priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes,
                                unsigned int flags) {
  enum { kGlobal = 1, kHost = 2, kSingle = 4 };
  Stream &stream = stream_of(handle);
  if (in_capture(stream))
    break_unsupported(stream);
  Block block;
  if (!find_block(address, &block) || block.origin != Origin::kManaged || block.base != address ||
      (bytes && bytes != block.bytes) || (flags != kGlobal && flags != kHost && flags != kSingle))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                 unsigned int flags) {
  return word_operation(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                 unsigned int flags) {
  return word_operation(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                unsigned int flags) {
  return word_operation(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                unsigned int flags) {
  return word_operation(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *data) {
  return run_callback(stream, call, data);
}

CUresult cuLaunchHostFunc_v2(CUstream stream, CUhostFn call, void *data, unsigned int) {
  return run_callback(stream, call, data);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback call, void *data,
                             unsigned int flags) {
  Stream &stream = stream_of(handle);
  if (!call || flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (in_capture(stream))
    break_unsupported(stream); // cuLaunchHostFunc is what captures take
  const int status = stream.context->fault.load();
  flush_device_output();
  const std::lock_guard<std::recursive_mutex> lock(stream.order);
  call(handle, static_cast<CUresult>(status), data);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
