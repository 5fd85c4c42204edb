/* The checker of running kernels: which tools are on, what the driver tells it, what it found.
 *
 * Kernels compiled for checking call va_h_check_* before each access and each synchronisation;
 * the driver tells of allocations, copies and fills.  Nothing here changes a result.  Findings
 * wait until they are taken; equal ones of a launch are one finding with a count. */
#ifndef VA100_CHECK_H
#define VA100_CHECK_H
#include "va100/exec.h"
#ifdef __cplusplus
extern "C" {
#endif

enum va_check_tool {
  VA_CHECK_MEMORY = 1,
  VA_CHECK_INIT = 2,
  VA_CHECK_SYNC = 4,
  VA_CHECK_RACE = 8,
  VA_CHECK_STRICT_WARP = 16, /* votes and shuffles order no memory, as the memory model has it */
  VA_CHECK_CELLS = 32,       /* judge every lane by itself: slow, the same findings; for tests */
  VA_CHECK_KEEP_CONTEXT = 64 /* a fault ends its kernel, not its context */
};

enum va_check_kind {
  VA_FOUND_OUT_OF_BOUNDS = 1,
  VA_FOUND_MISALIGNED = 2,
  VA_FOUND_FREED = 3,      /* the address was in an allocation that was freed */
  VA_FOUND_FOREIGN = 4,    /* shared or local memory of another thread or CTA */
  VA_FOUND_INVALID_FREE = 5,
  VA_FOUND_DOUBLE_FREE = 6,
  VA_FOUND_LEAK = 7,
  VA_FOUND_FAULT = 8,      /* the launch ended in a fault: size holds its va_fault_kind */
  VA_FOUND_BAD_RANGE = 9,  /* a copy or fill from the host leaves its allocation */
  VA_FOUND_UNINITIALISED = 16,
  VA_FOUND_UNDEFINED_COPY = 17, /* to the host; harmless: only some bytes are undefined */
  VA_FOUND_DIVERGED_WARP = 32,  /* second.site: where a missing lane was last seen */
  VA_FOUND_DIVERGED_BLOCK = 33,
  VA_FOUND_SKIPPED = 34,        /* lanes whose guard is false pass a barrier others wait at */
  VA_FOUND_BARRIER_COUNTS = 35, /* address: the first count; size: the other */
  VA_FOUND_MASK_WITHOUT_CALLER = 36,
  VA_FOUND_MASKS_DIFFER = 37,
  VA_FOUND_MISSING_LANE = 38,   /* a named lane never came; second.site as above */
  VA_FOUND_PARTED_WARP = 39,    /* lanes of a warp come to one barrier in different places */
  VA_FOUND_RACE = 64,
  VA_FOUND_STALE_TEXEL = 65 /* a fetch of a texel that the same launch wrote before */
};

enum va_check_access_kind {
  VA_ACCESS_READ = 0,
  VA_ACCESS_WRITE = 1,
  VA_ACCESS_ATOMIC = 2,
  VA_ACCESS_COPY = 3, /* cp.async */
  VA_ACCESS_HOST_READ = 4, /* a copy from there that the host asked for */
  VA_ACCESS_HOST_WRITE = 5,
  VA_ACCESS_HOST_FILL = 6
};

enum va_race_kind {
  VA_RACE_PLAIN = 0,
  VA_RACE_LOCKSTEP = 1,  /* volatile accesses of one warp */
  VA_RACE_NO_ACQUIRE = 2, /* a fence after a relaxed read would have ordered it */
  VA_RACE_STREAMS = 3     /* of work in two streams; kernel 0: a copy or fill */
};

typedef struct va_check_access {
  uint32_t site; /* 0xffffffff: not in a kernel */
  uint32_t kind;
  uint32_t ctaid[3];
  uint32_t tid[3];
} va_check_access;

typedef struct va_check_finding {
  uint32_t kind;
  uint32_t kernel; /* va_variant.check_id; 0: the host */
  uint64_t launch;
  uint64_t count;
  uint64_t address;
  uint32_t size;
  uint32_t space; /* 0 generic 1 global 2 shared 3 local; the host's: 1 */
  va_check_access first;
  va_check_access second; /* the earlier access of a race */
  uint32_t harmless;      /* a race of equal values */
  uint32_t relaxed;       /* va_race_kind */
  uint32_t has_near;
  va_allocation near;     /* the allocation an address is told relative to */
  uint32_t second_kernel; /* VA_RACE_STREAMS: of the second access, as kernel */
  uint32_t streams[2];    /* VA_RACE_STREAMS: of the first and the second access */
  char text[256];
} va_check_finding;

/* Choose the tools; 0 turns the checker off and forgets what it knows. */
VA_EXPORT void va_check_enable(uint32_t tools);
VA_EXPORT uint32_t va_check_tools(void);
/* Findings since the last call, oldest first; returns how many were copied. */
VA_EXPORT size_t va_check_take(va_check_finding *out, size_t capacity);
/* Called after a launch that found something, on its thread; NULL for nobody. */
VA_EXPORT void va_check_set_sink(void (*sink)(void));
/* Add a finding for every allocation the client still holds. */
VA_EXPORT void va_check_leaks(void);

/* The driver tells: memory given to the client and taken back, bytes that became defined. */
VA_EXPORT void va_check_allocated(uint64_t base, uint64_t bytes, int defined);
VA_EXPORT void va_check_released(uint64_t base);
VA_EXPORT void va_check_leaked(uint64_t base); /* its context went away */
VA_EXPORT void va_check_bad_free(uint64_t address);
VA_EXPORT void va_check_bad_range(uint64_t address, uint64_t bytes);
VA_EXPORT void va_check_filled(uint64_t to, uint64_t bytes);
VA_EXPORT void va_check_copied(uint64_t to, uint64_t from, uint64_t bytes);
/* Written as one word that others may wait for: it orders, and races with nobody. */
VA_EXPORT void va_check_word_written(uint64_t to, uint64_t bytes);

/* The order of streams.  Work that a thread did belongs to the stream it names next. */
typedef struct va_check_stream {
  uint32_t id;
  uint32_t legacy;   /* the legacy default stream */
  uint32_t blocking; /* orders itself with that */
  const void *group; /* its context */
} va_check_stream;

VA_EXPORT void va_check_stream_made(void); /* other than the legacy stream: order matters now */
VA_EXPORT void va_check_work(const va_check_stream *stream);
VA_EXPORT void va_check_event_recorded(const va_check_stream *stream, const void *event);
VA_EXPORT void va_check_event_awaited(const va_check_stream *stream, const void *event);
/* The host waited for a stream, or an event, or else for a context's streams (NULL: all). */
VA_EXPORT void va_check_host_waited(const va_check_stream *stream, const void *group,
                                    const void *event);

#ifdef __cplusplus
}
#endif
#endif
