// Streams.  Work runs in the calling thread, so a stream is always idle when a call returns;
// what remains is order between threads, and virtual time.
#include <cstring>

#include "blocks.h"
#include "driver_api.h"
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
  va_check_stream_made();
  const std::lock_guard<std::mutex> lock(context.mutex);
  context.streams.insert(stream.get());
  *handle = stream.release()->handle;
  return CUDA_SUCCESS;
}

template <typename Word> CUresult write_word(CUstream handle, CUdeviceptr address, Word value) {
  healthy_context();
  Stream &stream = stream_of(handle);
  if (address % sizeof(Word))
    return CUDA_ERROR_INVALID_VALUE;
  require_device_range(address, sizeof(Word));
  const std::lock_guard<std::recursive_mutex> lock(stream.order);
  __atomic_store_n(reinterpret_cast<Word *>(address), value, __ATOMIC_SEQ_CST);
  return CUDA_SUCCESS;
}

template <typename Word>
CUresult wait_word(CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
  enum { kAtLeast = 0, kEqual = 1, kAnd = 2, kNor = 3 };
  healthy_context();
  stream_of(handle);
  if (address % sizeof(Word))
    return CUDA_ERROR_INVALID_VALUE;
  require_device_range(address, sizeof(Word));
  const Word now = __atomic_load_n(reinterpret_cast<Word *>(address), __ATOMIC_SEQ_CST);
  bool holds = false;
  switch (flags & 3) {
  case kAtLeast:
    holds = static_cast<std::make_signed_t<Word>>(now - value) >= 0;
    break;
  case kEqual:
    holds = now == value;
    break;
  case kAnd:
    holds = (now & value) != 0;
    break;
  case kNor:
    holds = static_cast<Word>(~(now | value)) != 0;
    break;
  }
  if (holds)
    return CUDA_SUCCESS;
  note("a stream waits for a memory value that is not there yet; work is not deferred here");
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult run_callback(CUstream handle, CUhostFn call, void *data) {
  healthy_context();
  Stream &stream = stream_of(handle);
  if (!call)
    return CUDA_ERROR_INVALID_VALUE;
  flush_device_output();
  const std::lock_guard<std::recursive_mutex> lock(stream.order);
  call(data);
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

namespace api {

CUresult cuStreamCreate(CUstream *stream, unsigned int flags) { return create(stream, flags, 0); }

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority) {
  return create(stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  Stream *const stream = started().streams.find(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
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
  log_seen(stream_of(handle).track);
  require_healthy(*stream_of(handle).context);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
  Stream &stream = stream_of(handle);
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
  std::shared_ptr<Moment> moment;
  {
    const std::lock_guard<std::mutex> lock(event.mutex);
    moment = event.moment;
  }
  if (moment)
    log_wait(stream.track, moment);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  *context = stream_of(handle).context->handle;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green) {
  *context = stream_of(handle).context->handle;
  if (green)
    *green = nullptr;
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

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned int) {
  stream_of(handle);
  Block block;
  return find_block(address, &block) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  stream_of(to);
  stream_of(from);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value) {
  constexpr int kPriority = 8;
  const Stream &stream = stream_of(handle);
  std::memset(value, 0, sizeof *value);
  if (attribute == kPriority)
    std::memcpy(value, &stream.priority, sizeof stream.priority);
  return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID, const CUstreamAttrValue *) {
  stream_of(handle); // hints to a scheduler that has no use for them
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  stream_of(handle);
  *status = 0;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status, uint64_t *) {
  return cuStreamIsCapturing(handle, status);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, uint64_t *,
                                   CUgraph *, const CUgraphNode **, size_t *) {
  return cuStreamIsCapturing(handle, status);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, uint64_t *,
                                   CUgraph *, const CUgraphNode **, const CUgraphEdgeData **,
                                   size_t *) {
  return cuStreamIsCapturing(handle, status);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  static thread_local int current = 0;
  if (*mode < 0 || *mode > 2)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                 unsigned int) {
  return write_word(stream, address, value);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                 unsigned int) {
  return write_word(stream, address, value);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, uint32_t value,
                                unsigned int flags) {
  return wait_word(stream, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                unsigned int flags) {
  return wait_word(stream, address, value, flags);
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
  const int status = stream.context->fault.load();
  flush_device_output();
  const std::lock_guard<std::recursive_mutex> lock(stream.order);
  call(handle, static_cast<CUresult>(status), data);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
