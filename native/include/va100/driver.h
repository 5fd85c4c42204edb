/* What the native driver tells reports, beyond the CUDA calls: the log of launches. */
#ifndef VA100_DRIVER_H
#define VA100_DRIVER_H
#include "va100/backend.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct va_driver_launch {
  va_launch_record record;
  double start_s; /* in the device's virtual time */
} va_driver_launch;

/* Launches of this process, oldest first, priced: copies at most capacity of them, from the
 * first-th on, and returns how many there are.  Counters stay valid until the process ends, or
 * until half a million more launches were made. */
VA_EXPORT size_t va_driver_launches(size_t first, va_driver_launch *out, size_t capacity);
// Launches that were made before the oldest one still kept.
VA_EXPORT uint64_t va_driver_launches_dropped(void);

enum va_transfer_kind {
  VA_TRANSFER_HOST_TO_DEVICE = 0,
  VA_TRANSFER_DEVICE_TO_HOST = 1,
  VA_TRANSFER_WITHIN_DEVICE = 2,
  VA_TRANSFER_BETWEEN_DEVICES = 3,
  VA_TRANSFER_SET = 4
};

typedef struct va_driver_transfer {
  uint32_t kind;
  uint32_t device;
  uint32_t stream;
  uint32_t reserved;
  uint64_t bytes;
  double start_s;
  double duration_s;
} va_driver_transfer;

/* The same for copies and fills; host-to-host copies take no part. */
VA_EXPORT size_t va_driver_transfers(size_t first, va_driver_transfer *out, size_t capacity);

/* What the last kernel that faulted did, as it was written to stderr; empty when none did. */
VA_EXPORT const char *va_driver_last_fault(void);

/* Decompress a fatbin payload: LZ4 block or zstd frame.  Returns bytes written, or -1. */
VA_EXPORT int64_t va_expand_lz4(const void *from, size_t bytes, void *to, size_t capacity);
VA_EXPORT int64_t va_expand_zstd(const void *from, size_t bytes, void *to, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
