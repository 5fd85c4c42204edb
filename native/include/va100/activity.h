/* What launches do to a card while they run, as the compiler's side reckons from their counters. */
#ifndef VA100_ACTIVITY_H
#define VA100_ACTIVITY_H
#include <stdint.h>

#include "va100/exec.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { VA_ACTIVITY_UNITS = 5 }; /* memory, tensor cores, FP64, FP32 and FP16 pipes */

typedef struct va_activity {
  uint32_t power_mw; /* above that of an idle card, at the boost clock, no limit heeded */
  uint32_t permille[VA_ACTIVITY_UNITS]; /* of the launch's time that each unit is busy */
  uint64_t load_bytes, store_bytes; /* that pass the SMs' L1, to memory wherever it is */
} va_activity;

/* Launches of a variant in a grid of so many CTAs do this; the next ones are told of as such. */
VA_EXPORT void va_launch_activity(uint64_t variant_id, uint64_t ctas, const va_activity *activity);

#ifdef __cplusplus
}
#endif
#endif
