/* A program as nccl-tests are written: the CUDA runtime, a stream a GPU, events, a check on the host.
 *
 *   nccl_perf group N      one thread drives N GPUs, calls in groups
 *   nccl_perf threads N    a thread a GPU
 *   nccl_perf processes N  a process a GPU, which meet by the unique id
 *   nccl_perf graph N      one thread, each GPU's calls captured and launched as a graph
 *
 * Prints a line a size, "size time_us algbw busbw wrong", and ends with 1 if an element was wrong. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void *stream_t, *event_t, *comm_t, *graph_t, *exec_t;
typedef struct {
  char internal[128];
} id_t_;

int cudaSetDevice(int);
int cudaGetDeviceCount(int *);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaStreamCreateWithFlags(stream_t *, unsigned);
int cudaStreamSynchronize(stream_t);
int cudaStreamBeginCapture(stream_t, int);
int cudaStreamEndCapture(stream_t, graph_t *);
int cudaGraphInstantiateWithFlags(exec_t *, graph_t, unsigned long long);
int cudaGraphLaunch(exec_t, stream_t);
int cudaEventCreate(event_t *);
int cudaEventRecord(event_t, stream_t);
int cudaEventElapsedTime(float *, event_t, event_t);
const char *cudaGetErrorString(int);

int ncclGetUniqueId(id_t_ *);
int ncclCommInitRank(comm_t *, int, id_t_, int);
int ncclCommDestroy(comm_t);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *, void *, size_t, int, int, comm_t, stream_t);
int ncclCommCount(comm_t, int *);
const char *ncclGetLastError(comm_t);

#define CUDA(call)                                                                                 \
  do {                                                                                             \
    const int code = (call);                                                                       \
    if (code) {                                                                                    \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(code));                                \
      exit(2);                                                                                     \
    }                                                                                              \
  } while (0)
#define NCCL(call)                                                                                 \
  do {                                                                                             \
    const int code = (call);                                                                       \
    if (code) {                                                                                    \
      fprintf(stderr, "%s: %d %s\n", #call, code, ncclGetLastError(NULL));                         \
      exit(2);                                                                                     \
    }                                                                                              \
  } while (0)

enum { kMost = 1 << 18, kRepeats = 3, kFloat = 7, kSum = 0, kMostRanks = 16 };
static const size_t kCounts[] = {2, 1000, 1 << 13, kMost};

struct rank {
  int rank, ranks;
  comm_t comm;
  stream_t stream;
  event_t begin, end;
  float *send, *receive, *host;
  long wrong;
};

static void prepare(struct rank *r) {
  CUDA(cudaSetDevice(r->rank));
  CUDA(cudaStreamCreateWithFlags(&r->stream, 1));
  CUDA(cudaEventCreate(&r->begin));
  CUDA(cudaEventCreate(&r->end));
  CUDA(cudaMalloc((void **)&r->send, kMost * sizeof(float)));
  CUDA(cudaMalloc((void **)&r->receive, kMost * sizeof(float)));
  r->host = malloc(kMost * sizeof(float));
}

static void fill(struct rank *r, size_t count) {
  for (size_t i = 0; i < count; ++i)
    r->host[i] = (float)((i + (size_t)r->rank) % 17);
  CUDA(cudaSetDevice(r->rank));
  CUDA(cudaMemcpy(r->send, r->host, count * sizeof(float), 1));
  memset(r->host, 0, count * sizeof(float));
  CUDA(cudaMemcpy(r->receive, r->host, count * sizeof(float), 1));
}

static void check(struct rank *r, size_t count) {
  CUDA(cudaSetDevice(r->rank));
  CUDA(cudaStreamSynchronize(r->stream));
  CUDA(cudaMemcpy(r->host, r->receive, count * sizeof(float), 2));
  for (size_t i = 0; i < count; ++i) {
    float wanted = 0;
    for (int other = 0; other < r->ranks; ++other)
      wanted += (float)((i + (size_t)other) % 17);
    r->wrong += r->host[i] != wanted;
  }
}

static void report(const struct rank *r, size_t count) {
  float ms = 0;
  CUDA(cudaEventElapsedTime(&ms, r->begin, r->end));
  const double us = ms * 1e3 / kRepeats, bytes = (double)count * sizeof(float);
  const double algbw = bytes / us / 1e3;
  printf("%zu %.2f %.3f %.3f %ld\n", count * sizeof(float), us, algbw,
         algbw * 2 * (r->ranks - 1) / r->ranks, r->wrong);
}

static void call(struct rank *r, size_t count) {
  NCCL(ncclAllReduce(r->send, r->receive, count, kFloat, kSum, r->comm, r->stream));
}

/* One rank by itself: a thread's or a process's. */
static void run_alone(struct rank *r) {
  for (size_t k = 0; k < sizeof kCounts / sizeof *kCounts; ++k) {
    fill(r, kCounts[k]);
    call(r, kCounts[k]);
    CUDA(cudaEventRecord(r->begin, r->stream));
    for (int i = 0; i < kRepeats; ++i)
      call(r, kCounts[k]);
    CUDA(cudaEventRecord(r->end, r->stream));
    check(r, kCounts[k]);
    if (!r->rank)
      report(r, kCounts[k]);
  }
}

static void group_call(struct rank *all, int n, size_t count) {
  NCCL(ncclGroupStart());
  for (int i = 0; i < n; ++i)
    call(&all[i], count);
  NCCL(ncclGroupEnd());
}

static void init_in_group(struct rank *all, int n) {
  id_t_ id;
  NCCL(ncclGetUniqueId(&id));
  NCCL(ncclGroupStart());
  for (int i = 0; i < n; ++i) {
    CUDA(cudaSetDevice(i));
    NCCL(ncclCommInitRank(&all[i].comm, n, id, i));
  }
  NCCL(ncclGroupEnd());
}

static long run_group(struct rank *all, int n, int captured) {
  long wrong = 0;
  init_in_group(all, n);
  for (int i = 0; i < n; ++i)
    prepare(&all[i]);
  for (size_t k = 0; k < sizeof kCounts / sizeof *kCounts; ++k) {
    const size_t count = kCounts[k];
    for (int i = 0; i < n; ++i)
      fill(&all[i], count);
    if (captured) {
      exec_t execs[kMostRanks];
      for (int i = 0; i < n; ++i)
        CUDA(cudaStreamBeginCapture(all[i].stream, 2));
      for (int i = 0; i < kRepeats; ++i)
        group_call(all, n, count);
      for (int i = 0; i < n; ++i) {
        graph_t graph;
        CUDA(cudaStreamEndCapture(all[i].stream, &graph));
        CUDA(cudaGraphInstantiateWithFlags(&execs[i], graph, 0));
      }
      CUDA(cudaSetDevice(0));
      CUDA(cudaEventRecord(all[0].begin, all[0].stream));
      for (int i = 0; i < n; ++i)
        CUDA(cudaGraphLaunch(execs[i], all[i].stream));
    } else {
      CUDA(cudaSetDevice(0));
      CUDA(cudaEventRecord(all[0].begin, all[0].stream));
      for (int i = 0; i < kRepeats; ++i)
        group_call(all, n, count);
    }
    CUDA(cudaSetDevice(0));
    CUDA(cudaEventRecord(all[0].end, all[0].stream));
    for (int i = 0; i < n; ++i)
      check(&all[i], count);
    report(&all[0], count);
  }
  for (int i = 0; i < n; ++i) {
    wrong += all[i].wrong;
    NCCL(ncclCommDestroy(all[i].comm));
  }
  return wrong;
}

static id_t_ shared_id;

static void *thread_main(void *data) {
  struct rank *const r = data;
  prepare(r);
  NCCL(ncclCommInitRank(&r->comm, r->ranks, shared_id, r->rank));
  run_alone(r);
  NCCL(ncclCommDestroy(r->comm));
  return NULL;
}

static long run_threads(struct rank *all, int n) {
  long wrong = 0;
  pthread_t threads[kMostRanks];
  NCCL(ncclGetUniqueId(&shared_id));
  for (int i = 0; i < n; ++i)
    pthread_create(&threads[i], NULL, thread_main, &all[i]);
  for (int i = 0; i < n; ++i) {
    pthread_join(threads[i], NULL);
    wrong += all[i].wrong;
  }
  return wrong;
}

/* Children first: a process that has started the driver cannot be forked. */
static long run_processes(struct rank *all, int n) {
  int pipes[kMostRanks][2];
  pid_t children[kMostRanks];
  for (int i = 1; i < n; ++i)
    if (pipe(pipes[i]))
      exit(2);
  for (int i = 1; i < n; ++i)
    if (!(children[i] = fork())) {
      if (read(pipes[i][0], &shared_id, sizeof shared_id) != sizeof shared_id)
        exit(2);
      thread_main(&all[i]);
      exit(all[i].wrong ? 1 : 0);
    }
  NCCL(ncclGetUniqueId(&shared_id));
  for (int i = 1; i < n; ++i)
    if (write(pipes[i][1], &shared_id, sizeof shared_id) != sizeof shared_id)
      exit(2);
  thread_main(&all[0]);
  long wrong = all[0].wrong;
  for (int i = 1; i < n; ++i) {
    int status = 0;
    waitpid(children[i], &status, 0);
    wrong += status != 0;
  }
  return wrong;
}

int main(int count, char **words) {
  if (count != 3) {
    fprintf(stderr, "usage: %s group|threads|processes|graph N\n", words[0]);
    return 2;
  }
  const int n = atoi(words[2]);
  static struct rank all[kMostRanks];
  for (int i = 0; i < n; ++i) {
    all[i].rank = i;
    all[i].ranks = n;
  }
  long wrong;
  if (!strcmp(words[1], "threads"))
    wrong = run_threads(all, n);
  else if (!strcmp(words[1], "processes"))
    wrong = run_processes(all, n);
  else
    wrong = run_group(all, n, !strcmp(words[1], "graph"));
  printf("wrong %ld\n", wrong);
  return wrong ? 1 : 0;
}
