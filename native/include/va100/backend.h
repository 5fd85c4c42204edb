/* The crossings from the native driver into the compiler, and how the compiler answers.
 *
 * The driver calls these; Python fills them in (src/va100/driver/compile.py).  A process without
 * Python starts one lazily at the first call.  Nothing here is on the launch path: a launch whose
 * (kernel, block shape) was compiled before never crosses, unless somebody watches the kernel. */
#ifndef VA100_BACKEND_H
#define VA100_BACKEND_H
#include "va100/exec.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct va_module va_module; /* the driver's; opaque to the compiler */

typedef struct va_param {
  uint32_t offset_bytes;
  uint32_t size_bytes;
} va_param;

typedef struct va_kernel_info {
  const char *name;
  const char *title;    /* the name as people write it */
  uint64_t compiler_id; /* the compiler's own handle, passed back to compile */
  uint32_t param_count;
  const va_param *params;
  uint32_t param_bytes;
  uint32_t static_shared_bytes;
  uint32_t local_bytes;
  uint32_t const_bytes;
  uint32_t registers;
  uint32_t max_threads; /* from .maxntid/.reqntid, else 1024 */
  uint32_t required_block[3]; /* from .reqntid, else 0 */
  uint32_t ptx_arch; /* virtual architecture the PTX is for: 80 for compute_80 */
  const char *refusal; /* what keeps the kernel from running; null when nothing does */
  uint32_t registers_estimated; /* set: they limit residency but refuse no launch */
} va_kernel_info;

/* The compiler reports what an image holds through these, while load runs. */
VA_EXPORT int va_module_add_kernel(va_module *module, const va_kernel_info *kernel);
/* The address device code launches a kernel by. */
VA_EXPORT int va_module_add_address(va_module *module, const char *kernel, uint64_t address);
VA_EXPORT int va_module_add_global(va_module *module, const char *name, uint64_t address,
                                   uint64_t bytes, int managed);

/* A finished launch whose time is not known yet, as the driver hands it to price. */
typedef struct va_launch_record {
  uint64_t compiler_id;
  uint64_t variant_id;
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t stream; /* 0: the legacy default stream */
  uint32_t device;
  uint32_t counter_count;
  const uint64_t *counters;
  uint64_t footprint_bytes; /* of the allocations that arguments point into; 0: none known */
  double duration_s; /* out, of price */
} va_launch_record;

/* One PTX text to link, and what messages call it. */
typedef struct va_link_input {
  const char *name;
  const char *text;
  size_t bytes;
} va_link_input;

/* What came of a link; the compiler hands it over once, while link runs. */
VA_EXPORT void va_link_result(void *sink, const char *text, size_t bytes);

typedef struct va_backend {
  uint32_t size; /* sizeof(va_backend) */
  uint32_t reserved;
  /* Parse, verify, place globals.  image: PTX text.  Returns a CUresult; text explains. */
  int (*load)(va_module *module, const char *image, size_t bytes, int device, char *text,
              size_t text_bytes);
  void (*unload)(va_module *module);
  /* Machine code for a block shape. variant_id: the compiler's handle for price. */
  int (*compile)(uint64_t compiler_id, const uint32_t block[3], va_variant *out,
                 uint64_t *variant_id, char *text, size_t text_bytes);
  /* Fill duration_s of each record with the time an A100 would take. */
  int (*price)(va_launch_record *records, size_t count);
  /* A kernel faulted: describe it for the log and the error string. */
  void (*explain)(uint64_t compiler_id, uint64_t variant_id, const va_fault *fault, char *text,
                  size_t text_bytes);
  /* Run a launch of a VA_INTERPRETED variant to its end; fill its counters and its fault. */
  void (*launch)(uint64_t compiler_id, uint64_t variant_id, va_launch *launch);
  /* Join PTX texts into one, for va_link_result.  Returns a CUresult; text explains. */
  int (*link)(void *sink, const va_link_input *inputs, size_t count, char *text,
              size_t text_bytes);
} va_backend;

/* Hand the driver its compiler; NULL takes it away (interpreter exit). */
VA_EXPORT void va_set_backend(const va_backend *backend);
/* The one registered now, or NULL; what is handed back to va_set_backend takes its place again. */
VA_EXPORT const va_backend *va_get_backend(void);

#ifdef __cplusplus
}
#endif
#endif
