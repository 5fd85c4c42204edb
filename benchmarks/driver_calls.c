/* Calls into the driver in a loop, as a program in C++ makes them; times are a clock's seconds. */
#include <stddef.h>
#include <time.h>

typedef int (*query_call)(void *);
typedef int (*launch_call)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, void *, void **, void **);

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds a call: of this thread's CPU time, and by the wall. */
int time_queries(query_call call, int count, double *cpu_s, double *wall_s) {
  void *out[16];
  const double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
  int failed = 0;
  for (int i = 0; i < count; i++) failed |= call(out);
  *cpu_s = (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / count;
  *wall_s = (now(CLOCK_MONOTONIC) - wall) / count;
  return failed;
}

int time_launches(launch_call call, void *function, void **arguments, int count, double *cpu_s,
                  double *wall_s) {
  const double cpu = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
  int failed = 0;
  for (int i = 0; i < count; i++)
    failed |= call(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
  *cpu_s = (now(CLOCK_THREAD_CPUTIME_ID) - cpu) / count;
  *wall_s = (now(CLOCK_MONOTONIC) - wall) / count;
  return failed;
}
