/* Many threads at once in every kind of memory, stream and event: usage driver_stress THREADS CALLS.
 * Prints how many calls were made, and what was left over: bytes of the device, open descriptors. */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t CUdeviceptr;
typedef void *Handle;
typedef struct { int type, id; } Location;
typedef struct {
  int type, handles;
  Location location;
  void *security;
  unsigned char flags[8];
} Properties;
typedef struct {
  int type, handles;
  Location location;
  void *security;
  size_t most;
  unsigned char rest[56];
} PoolProperties;
typedef struct { Location location; int flags; } Access;

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(Handle *, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuCtxSetCurrent(Handle);
int cuCtxSynchronize(void);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuMemAlloc_v2(CUdeviceptr *, size_t);
int cuMemFree_v2(CUdeviceptr);
int cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
int cuMemAllocHost_v2(void **, size_t);
int cuMemFreeHost(void *);
int cuMemAllocAsync(CUdeviceptr *, size_t, Handle);
int cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, Handle, Handle);
int cuMemFreeAsync(CUdeviceptr, Handle);
int cuMemPoolCreate(Handle *, const PoolProperties *);
int cuMemPoolDestroy(Handle);
int cuMemPoolTrimTo(Handle, size_t);
int cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t);
int cuMemAddressFree(CUdeviceptr, size_t);
int cuMemCreate(uint64_t *, size_t, const Properties *, uint64_t);
int cuMemRelease(uint64_t);
int cuMemMap(CUdeviceptr, size_t, size_t, uint64_t, uint64_t);
int cuMemUnmap(CUdeviceptr, size_t);
int cuMemSetAccess(CUdeviceptr, size_t, const Access *, size_t);
int cuMemAdvise(CUdeviceptr, size_t, int, int);
int cuMemsetD32Async(CUdeviceptr, unsigned, size_t, Handle);
int cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, Handle);
int cuStreamCreate(Handle *, unsigned);
int cuStreamSynchronize(Handle);
int cuStreamWaitEvent(Handle, Handle, unsigned);
int cuStreamDestroy_v2(Handle);
int cuEventCreate(Handle *, unsigned);
int cuEventRecord(Handle, Handle);
int cuEventSynchronize(Handle);
int cuEventDestroy_v2(Handle);
int cuPointerGetAttribute(void *, int, CUdeviceptr);
int cuIpcGetMemHandle(void *, CUdeviceptr);

enum { UNIT = 2 << 20, SIZE = 4096 };

static Handle context;
static int calls_a_thread;
static long made;
static int failed;

static void check(int code, const char *what) {
  __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
  if (code && !__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
    fprintf(stderr, "%s: %d\n", what, code);
}
#define CHECK(call) check(call, #call)

/* Write to memory and read it back, in a stream. */
static void use(CUdeviceptr address, Handle stream, unsigned value) {
  unsigned found[SIZE / 4];
  CHECK(cuMemsetD32Async(address, value, SIZE / 4, stream));
  CHECK(cuMemcpyDtoHAsync_v2(found, address, SIZE, stream));
  CHECK(cuStreamSynchronize(stream));
  if (found[0] != value || found[SIZE / 4 - 1] != value)
    check(-1, "bytes that were written");
}

static void plain(Handle stream, unsigned value) {
  CUdeviceptr address, same = 0;
  CHECK(cuMemAlloc_v2(&address, SIZE));
  use(address, stream, value);
  CHECK(cuPointerGetAttribute(&same, 11, address));
  if (same != address)
    check(-1, "where an allocation begins");
  CHECK(cuMemFree_v2(address));
}

static void pooled(Handle stream, unsigned value) {
  PoolProperties p = {1, (int)(value & 1), {1, 0}, 0, 0, {0}};
  CUdeviceptr address;
  Handle pool;
  CHECK(cuMemAllocAsync(&address, SIZE, stream));
  use(address, stream, value);
  CHECK(cuMemFreeAsync(address, stream));
  CHECK(cuMemPoolCreate(&pool, &p));
  CHECK(cuMemAllocFromPoolAsync(&address, SIZE, pool, stream));
  use(address, stream, value + 1);
  if (value & 2)
    CHECK(cuMemPoolTrimTo(pool, 0));
  CHECK(cuMemFreeAsync(address, stream));
  CHECK(cuMemPoolDestroy(pool));
}

static void mapped(Handle stream, unsigned value) {
  Properties p = {1, (int)(value & 1), {1, 0}, 0, {0}};
  Access access = {{1, 0}, 3};
  CUdeviceptr address;
  uint64_t handle;
  CHECK(cuMemAddressReserve(&address, UNIT, 0, 0, 0));
  CHECK(cuMemCreate(&handle, UNIT, &p, 0));
  CHECK(cuMemMap(address, UNIT, 0, handle, 0));
  CHECK(cuMemRelease(handle));
  CHECK(cuMemSetAccess(address, UNIT, &access, 1));
  use(address + UNIT - SIZE, stream, value);
  CHECK(cuMemUnmap(address, UNIT));
  CHECK(cuMemAddressFree(address, UNIT));
}

static void of_the_host(Handle stream, unsigned value) {
  CUdeviceptr managed;
  void *pinned;
  CHECK(cuMemAllocManaged(&managed, SIZE, 1));
  CHECK(cuMemAdvise(managed, SIZE / 2, 1, 0));
  use(managed, stream, value);
  CHECK(cuMemFree_v2(managed));
  CHECK(cuMemAllocHost_v2(&pinned, SIZE));
  use((CUdeviceptr)pinned, stream, value);
  CHECK(cuMemFreeHost(pinned));
}

static void exported(Handle stream, unsigned value) {
  CUdeviceptr address;
  char handle[64];
  CHECK(cuMemAlloc_v2(&address, SIZE));
  CHECK(cuIpcGetMemHandle(handle, address));
  use(address, stream, value);
  CHECK(cuMemFree_v2(address));
}

static void ordered(Handle stream, unsigned value) {
  Handle other, event;
  CHECK(cuStreamCreate(&other, value & 1));
  CHECK(cuEventCreate(&event, value & 2));
  CHECK(cuEventRecord(event, stream));
  CHECK(cuStreamWaitEvent(other, event, 0));
  CHECK(cuEventSynchronize(event));
  CHECK(cuEventDestroy_v2(event));
  CHECK(cuStreamDestroy_v2(other));
}

static void *work(void *seed) {
  void (*const kinds[])(Handle, unsigned) = {plain, pooled, mapped, of_the_host, exported, ordered};
  unsigned state = (unsigned)(uintptr_t)seed * 2654435761u + 1;
  Handle stream;
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, 1));
  for (int i = 0; i < calls_a_thread; i += 8) { /* a round is eight calls or more */
    state = state * 1664525u + 1013904223u;
    kinds[(state >> 16) % 6](stream, state);
  }
  CHECK(cuStreamDestroy_v2(stream));
  return NULL;
}

static int open_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder))
    ++count;
  closedir(folder);
  return count;
}

int main(int argc, char **argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 16;
  pthread_t ids[64];
  size_t before, after, total;
  calls_a_thread = argc > 2 ? atoi(argv[2]) : 10000;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
    return 2;
  plain(NULL, 1), pooled(NULL, 1), pooled(NULL, 2), mapped(NULL, 1), mapped(NULL, 2);
  exported(NULL, 1);
  cuCtxSynchronize();
  cuMemGetInfo_v2(&before, &total);
  const int descriptors = open_descriptors();
  for (int i = 0; i < threads; ++i)
    pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)(i + 1));
  for (int i = 0; i < threads; ++i)
    pthread_join(ids[i], NULL);
  cuCtxSynchronize();
  cuMemGetInfo_v2(&after, &total);
  printf("calls %ld bytes %lld descriptors %d\n", made, (long long)(before - after),
         open_descriptors() - descriptors);
  cuDevicePrimaryCtxRelease_v2(0);
  return failed;
}
