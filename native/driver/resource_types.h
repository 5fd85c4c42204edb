// The C types of calls on parts of a device, logs and dumps, as their ABI fixes them.  Own
// declarations, no behaviour; cuda_types.h includes it.
#pragma once

extern "C" {

typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUasyncCallbackEntry_st *CUasyncCallbackHandle;
typedef struct CUlogsCallbackEntry_st *CUlogsCallbackHandle;
typedef int CUdevResourceType;
typedef int CUcoredumpSettings;
typedef int CUatomicOperation;
typedef int CUarray_format;
typedef int CUflushGPUDirectRDMAWritesTarget;
typedef int CUflushGPUDirectRDMAWritesScope;
typedef unsigned int CUlogIterator;
typedef void (*CUlogsCallback)(void *data, int level, char *message, size_t length);
typedef void (*CUasyncCallback)(void *information, void *data, CUasyncCallbackHandle callback);

enum { CU_DEV_RESOURCE_TYPE_SM = 1, CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG = 1000 };

typedef struct CUdevResource {
  int type;
  unsigned char padding[4];
  uint64_t origin[11]; // the driver's: who made it, and of which SMs it is
  union {
    struct {
      unsigned int count, least, alignment, flags, locality_domain;
    } sm;
    struct {
      int device;
      unsigned int concurrency;
      int scope;
    } workqueues;
    unsigned char room[40];
  };
  struct CUdevResource *next;
} CUdevResource;

typedef struct CU_DEV_SM_RESOURCE_GROUP_PARAMS {
  unsigned int count, coscheduled, preferred_coscheduled, flags, locality_domain;
  unsigned int reserved[11];
} CU_DEV_SM_RESOURCE_GROUP_PARAMS;

struct CUexecAffinityParam_st {
  int type;
  unsigned int sm_count;
};
}

static_assert(sizeof(CUdevResource) == 144, "as CUDA lays it out");
