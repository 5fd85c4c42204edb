// Events: points in virtual time.
#include "capture.h"
#include "driver_api.h"

namespace va {
namespace {

constexpr unsigned kDisableTiming = 2;
constexpr unsigned kInterprocess = 4;

CUresult record(CUevent handle, Stream &stream, bool external = false) {
  Event &event = event_of(handle);
  require_healthy(*stream.context);
  if (event.context->device != stream.context->device)
    return CUDA_ERROR_INVALID_HANDLE;
  const bool captures = in_capture(stream);
  if (external && !captures)
    return CUDA_ERROR_INVALID_VALUE;
  if (!captures)
    run_record(stream, handle);
  else if (external)
    capture(stream, RecordWork{handle});
  else
    capture_record(stream, event);
  return CUDA_SUCCESS;
}

// Null until recorded.
std::shared_ptr<Moment> moment_of(Event &event) {
  const std::lock_guard<std::mutex> lock(event.mutex);
  return event.moment;
}

std::shared_ptr<Moment> timed_moment(CUevent handle) {
  Event &event = event_of(handle);
  const std::lock_guard<std::mutex> lock(event.mutex);
  if (event.captured)
    fail(CUDA_ERROR_CAPTURED_EVENT);
  if (event.flags & kDisableTiming || !event.moment)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return event.moment;
}

} // namespace

void run_record(Stream &stream, CUevent handle) {
  Event &event = event_of(handle);
  auto moment = std::make_shared<Moment>();
  log_record(stream.track, moment);
  const std::lock_guard<std::mutex> lock(event.mutex);
  event.moment = std::move(moment);
  event.captured.reset();
}

void run_wait(Stream &stream, CUevent handle) {
  Event &event = event_of(handle);
  std::shared_ptr<Moment> moment;
  {
    const std::lock_guard<std::mutex> lock(event.mutex);
    if (event.captured)
      fail(CUDA_ERROR_CAPTURED_EVENT);
    moment = event.moment;
  }
  if (moment)
    log_wait(stream.track, moment);
}

namespace api {

CUresult cuEventCreate(CUevent *handle, unsigned int flags) {
  Context &context = healthy_context();
  if (flags > 7 || (flags & kInterprocess && !(flags & kDisableTiming)))
    return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->context = &context;
  event->flags = flags;
  event->handle = driver().events.add(event.get());
  *handle = event.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  Event *const event = started().events.remove(handle);
  if (!event)
    return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent handle) { return cuEventDestroy_v2(handle); }

CUresult cuEventQuery(CUevent handle) {
  Event &event = event_of(handle);
  require_wait_allowed(event);
  if (const std::shared_ptr<Moment> moment = moment_of(event))
    log_seen(moment);
  require_healthy(*event.context);
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle) {
  Event &event = event_of(handle);
  require_wait_allowed(event);
  if (const std::shared_ptr<Moment> moment = moment_of(event))
    log_join(event.context->tracks, moment);
  flush_device_output();
  require_healthy(*event.context);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) { return record(handle, stream_of(stream)); }

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags) {
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : record(handle, stream_of(stream), flags == 1);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  const std::shared_ptr<Moment> first = timed_moment(start), last = timed_moment(end);
  require_healthy(*event_of(start).context);
  resolve_timeline();
  *milliseconds = static_cast<float>((time_of(*last) - time_of(*first)) * 1e3);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

CUresult cuCtxRecordEvent(CUcontext handle, CUevent event) {
  Context &context = context_of(handle);
  require_wait_allowed(context);
  return record(event, *context.legacy);
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent handle) {
  Stream &legacy = *context_of(context).legacy;
  require_wait_allowed(*legacy.context);
  run_wait(legacy, handle);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
