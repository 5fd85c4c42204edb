/* A C program without Python that uses the driver as any C program would: own declarations, no
 * CUDA headers.  Prints what fails; its status is the number of failures. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct context_object *context;
typedef struct stream_object *stream;
typedef struct event_object *event;

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int capacity, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(context *out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxCreate_v2(context *out, unsigned flags, int device);
int cuCtxDestroy_v2(context c);
int cuCtxSetCurrent(context c);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, stream s);
int cuMemsetD32_v2(uint64_t to, unsigned value, size_t count);
int cuModuleLoadData(void **module, const void *image);
int cuStreamCreate(stream *out, unsigned flags);
int cuStreamDestroy_v2(stream s);
int cuStreamSynchronize(stream s);
int cuEventCreate(event *out, unsigned flags);
int cuEventRecord(event e, stream s);
int cuEventElapsedTime(float *milliseconds, event a, event b);
int cuEventDestroy_v2(event e);

static int failures;

#define EXPECT(call, wanted)                                                                       \
  do {                                                                                             \
    int got_ = (call);                                                                             \
    if (got_ != (wanted)) {                                                                        \
      printf("%s: %d instead of %d\n", #call, got_, wanted);                                       \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

enum { kThreads = 4, kRounds = 500, kWords = 3000 };

/* Allocate, fill, copy on a stream of its own, check, free. */
static void *churn(void *argument) {
  context shared = argument;
  static _Thread_local unsigned back[kWords];
  EXPECT(cuCtxSetCurrent(shared), 0);
  stream s;
  EXPECT(cuStreamCreate(&s, 1), 0);
  for (unsigned i = 0; i < kRounds; ++i) {
    uint64_t a, b;
    EXPECT(cuMemAlloc_v2(&a, sizeof back), 0);
    EXPECT(cuMemAlloc_v2(&b, sizeof back), 0);
    EXPECT(cuMemsetD32_v2(a, i, kWords), 0);
    EXPECT(cuMemcpyDtoDAsync_v2(b, a, sizeof back, s), 0);
    EXPECT(cuStreamSynchronize(s), 0);
    EXPECT(cuMemcpyDtoH_v2(back, b, sizeof back), 0);
    for (unsigned w = 0; w < kWords; ++w)
      if (back[w] != i) {
        printf("word %u of round %u is %u\n", w, i, back[w]);
        ++failures;
        break;
      }
    EXPECT(cuMemFree_v2(a), 0);
    EXPECT(cuMemFree_v2(b), 0);
  }
  EXPECT(cuStreamDestroy_v2(s), 0);
  EXPECT(cuStreamDestroy_v2(s), 400);
  return NULL;
}

/* Handles nobody ever gave out. */
static void nonsense(void) {
  for (int i = 0; i < 64; ++i) {
    void *wild = (void *)((uint64_t)0x0110000010000000 + ((uint64_t)i << 20 | (uint64_t)i << 52));
    EXPECT(cuStreamDestroy_v2(wild) == 0, 0);
    EXPECT(cuEventDestroy_v2(wild) == 0, 0);
    EXPECT(cuCtxDestroy_v2(wild) == 0, 0);
  }
  EXPECT(cuStreamSynchronize((void *)~(uint64_t)0), 400);
  EXPECT(cuMemFree_v2(~(uint64_t)0), 1);
}

/* Runs after main, as destructors of static objects do. */
static uint64_t left_over;
static void late(void) { EXPECT(cuMemFree_v2(left_over), 0); }

int main(void) {
  int count = 0, sms = 0;
  char name[64];
  context primary, own;
  EXPECT(cuDeviceGetCount(&count), 3);
  EXPECT(cuInit(0), 0);
  EXPECT(cuDeviceGetCount(&count), 0);
  EXPECT(cuDeviceGetName(name, sizeof name, 0), 0);
  EXPECT(cuDeviceGetAttribute(&sms, 16, 0), 0);
  printf("%d x %s, %d SMs\n", count, name, sms);
  EXPECT(cuDevicePrimaryCtxRetain(&primary, 0), 0);
  EXPECT(cuCtxSetCurrent(primary), 0);

  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i)
    pthread_create(&threads[i], NULL, churn, primary);
  for (int i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  nonsense();

  event a, b;
  float milliseconds = -1;
  EXPECT(cuEventCreate(&a, 0), 0);
  EXPECT(cuEventCreate(&b, 0), 0);
  EXPECT(cuEventElapsedTime(&milliseconds, a, b), 400);
  EXPECT(cuEventRecord(a, NULL), 0);
  EXPECT(cuEventRecord(b, NULL), 0);
  EXPECT(cuEventElapsedTime(&milliseconds, a, b), 0);
  EXPECT(milliseconds == 0.0f, 1);

  void *module = NULL;
  EXPECT(cuModuleLoadData(&module, ".version 8.0\n.target sm_80\n.address_size 64\n"), 221);

  EXPECT(cuCtxCreate_v2(&own, 0, 0), 0);
  uint64_t address;
  EXPECT(cuMemAlloc_v2(&address, 100), 0);
  EXPECT(cuCtxDestroy_v2(own), 0);
  EXPECT(cuMemFree_v2(address), 1);
  EXPECT(cuCtxSynchronize(), 0);
  EXPECT(cuMemAlloc_v2(&left_over, 1 << 20), 0);
  atexit(late);
  return failures;
}
