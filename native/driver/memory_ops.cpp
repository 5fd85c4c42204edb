// Reads and writes of single words of memory by a stream: write value, wait value, batches.
#include <ctime>
#include <type_traits>

#include "blocks.h"
#include "capture.h"
#include "driver_api.h"
#include "settings.h"
#include "va100/check.h"

namespace va {
namespace {

bool is_wide(int operation) { return operation >= CU_STREAM_MEM_OP_WAIT_VALUE_64; }

template <typename Word> void write_word(CUdeviceptr address, uint64_t value) {
  __atomic_store_n(reinterpret_cast<Word *>(address), static_cast<Word>(value), __ATOMIC_SEQ_CST);
}

template <typename Word> bool holds(CUdeviceptr address, uint64_t wanted, unsigned flags) {
  enum { kAtLeast = 0, kEqual = 1, kAnd = 2, kNor = 3 };
  const Word value = static_cast<Word>(wanted);
  const Word now = __atomic_load_n(reinterpret_cast<Word *>(address), __ATOMIC_SEQ_CST);
  switch (flags & 3) {
  case kAtLeast:
    return static_cast<std::make_signed_t<Word>>(now - value) >= 0;
  case kEqual:
    return now == value;
  case kAnd:
    return (now & value) != 0;
  default:
    return static_cast<Word>(~(now | value)) != 0;
  }
}

// A word that a stream writes and another waits for orders them, as an event does.
void tell_checker(const Stream &stream, const CUstreamBatchMemOpParams &operation, bool writes) {
  const unsigned tools = va_check_tools();
  if (writes && tools)
    va_check_word_written(operation.word.address, is_wide(operation.operation) ? 8 : 4);
  if (!(tools & VA_CHECK_RACE))
    return;
  const Track &track = *stream.track;
  const va_check_stream who{track.id, track.legacy, track.blocking, track.group.get()};
  const void *const word = reinterpret_cast<const void *>(operation.word.address);
  writes ? va_check_event_recorded(&who, word) : va_check_event_awaited(&who, word);
}

// Work is not deferred, so the thread waits in its stream's stead, for what others write.
template <typename Word> bool comes_true(const CUstreamBatchMemOpParams &operation) {
  constexpr int kTries = 20'000; // of 100 us
  for (int i = 0; i < kTries; ++i) {
    if (holds<Word>(operation.word.address, operation.word.value, operation.word.flags))
      return true;
    const timespec moment{0, 100'000};
    nanosleep(&moment, nullptr);
  }
  return false;
}

} // namespace

void require_memory_operation(const CUstreamBatchMemOpParams &operation) {
  switch (operation.operation) {
  case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
  case CU_STREAM_MEM_OP_BARRIER:
    return;
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
  case CU_STREAM_MEM_OP_WRITE_VALUE_32:
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
  case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
    const uint64_t bytes = is_wide(operation.operation) ? 8 : 4;
    if (operation.word.address % bytes)
      fail(CUDA_ERROR_INVALID_VALUE);
    require_device_range(operation.word.address, bytes);
    return;
  }
  default:
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void run_memory_operation(Stream &stream, const CUstreamBatchMemOpParams &operation) {
  require_memory_operation(operation);
  const CUdeviceptr address = operation.word.address;
  const uint64_t value = operation.word.value;
  const bool wide = is_wide(operation.operation);
  const std::lock_guard<std::recursive_mutex> lock(stream.order);
  switch (operation.operation) {
  case CU_STREAM_MEM_OP_WRITE_VALUE_32:
  case CU_STREAM_MEM_OP_WRITE_VALUE_64:
    wide ? write_word<uint64_t>(address, value) : write_word<uint32_t>(address, value);
    tell_checker(stream, operation, true);
    return;
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    if (wide ? comes_true<uint64_t>(operation) : comes_true<uint32_t>(operation)) {
      tell_checker(stream, operation, false);
      return;
    }
    note("a stream waits for a memory value that nobody writes; work is not deferred here, so it "
         "has to come from another thread or process");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  default:
    return; // work runs in order, which is all that barriers and flushes ask for
  }
}

namespace api {

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned int count,
                               CUstreamBatchMemOpParams *operations, unsigned int flags) {
  constexpr unsigned kMost = 256;
  healthy_context();
  Stream &stream = stream_of(handle);
  if (!count || count > kMost || flags)
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i)
    require_memory_operation(operations[i]);
  if (in_capture(stream)) {
    capture(stream, MemoryOpsWork{stream.context->handle, flags, {operations, operations + count}});
    return CUDA_SUCCESS;
  }
  for (unsigned i = 0; i < count; ++i)
    run_memory_operation(stream, operations[i]);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
