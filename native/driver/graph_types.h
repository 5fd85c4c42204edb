// The C types of graphs and stream capture, as their ABI fixes them.  Own declarations; no
// behaviour.  Structures of several versions are declared once, at their longest.
#pragma once

#include "cuda_types.h"

extern "C" {

typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;
typedef uint64_t CUgraphConditionalHandle;

typedef int CUgraphExecUpdateResult;
typedef int CUgraphInstantiateResult;
typedef int CUgraphMem_attribute;
typedef int CUgraphNodeType;
typedef int CUkernelNodeAttrID;

enum {
  CU_GRAPH_NODE_TYPE_KERNEL = 0,
  CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  CU_GRAPH_NODE_TYPE_MEMSET = 2,
  CU_GRAPH_NODE_TYPE_HOST = 3,
  CU_GRAPH_NODE_TYPE_GRAPH = 4,
  CU_GRAPH_NODE_TYPE_EMPTY = 5,
  CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
  CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
  CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
  CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
  CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
  CU_GRAPH_NODE_TYPE_CONDITIONAL = 13
};

enum {
  CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
  CU_GRAPH_EXEC_UPDATE_ERROR = 1,
  CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
  CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
  CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
  CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
  CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
  CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8
};

enum {
  CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
  CUDA_GRAPH_INSTANTIATE_ERROR = 1,
  CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
  CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
  CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5
};

enum {
  CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
  CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
  CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8
};

enum { CU_GRAPH_COND_TYPE_IF = 0, CU_GRAPH_COND_TYPE_WHILE = 1, CU_GRAPH_COND_TYPE_SWITCH = 2 };

enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
       CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2 };

enum { CU_STREAM_CAPTURE_MODE_GLOBAL = 0, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
       CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

enum {
  CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
  CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
  CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
  CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
  CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
  CU_STREAM_MEM_OP_BARRIER = 6
};

struct CUgraphEdgeData_st {
  unsigned char from_port, to_port, type;
  unsigned char reserved[5];
};

typedef struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction function;
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared_bytes;
  void **parameters;
  void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct CUDA_KERNEL_NODE_PARAMS {
  CUDA_KERNEL_NODE_PARAMS_v1 launch;
  CUkernel kernel; // when there is no function
  CUcontext context;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMCPY_NODE_PARAMS {
  int flags, reserved;
  CUcontext context;
  CUDA_MEMCPY3D copy;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr address;
  size_t pitch;
  unsigned int value, element_bytes;
  size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct CUDA_HOST_NODE_PARAMS {
  CUhostFn call;
  void *data;
} CUDA_HOST_NODE_PARAMS;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps pool;
  const CUmemAccessDesc *access;
  size_t access_count;
  size_t bytes;
  CUdeviceptr address; // out
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef union CUstreamBatchMemOpParams {
  int operation;
  struct {
    int operation;
    CUdeviceptr address;
    uint64_t value; // the low half, of operations on 32 bits
    unsigned int flags;
    CUdeviceptr alias;
  } word;
  uint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
  CUcontext context;
  unsigned int count;
  CUstreamBatchMemOpParams *operations;
  unsigned int flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;

typedef struct CUDA_CONDITIONAL_NODE_PARAMS {
  CUgraphConditionalHandle handle;
  int type;
  unsigned int size;
  CUgraph *bodies; // out; the driver's array
  CUcontext context;
} CUDA_CONDITIONAL_NODE_PARAMS;

typedef struct CUgraphNodeParams {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    char bytes[232];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY_NODE_PARAMS copy;
    struct {
      CUDA_MEMSET_NODE_PARAMS fill;
      CUcontext context;
    } fill;
    CUDA_HOST_NODE_PARAMS host;
    struct {
      CUgraph graph;
      int ownership; // 0: the node gets a clone, 1: the graph itself
    } child;
    CUevent event;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUdeviceptr freed;
    CUDA_BATCH_MEM_OP_NODE_PARAMS memory_ops;
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
  };
  long long reserved2;
} CUgraphNodeParams;

typedef union CUkernelNodeAttrValue {
  char pad[64];
  int cooperative;
  int priority;
  unsigned int cluster[3];
} CUkernelNodeAttrValue;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  uint64_t flags;
  CUstream upload_stream;
  CUgraphNode error_node; // out
  CUgraphInstantiateResult result; // out
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct CUgraphExecUpdateResultInfo {
  CUgraphExecUpdateResult result;
  CUgraphNode error_node, error_from_node;
} CUgraphExecUpdateResultInfo;
}

static_assert(sizeof(CUgraphNodeParams) == 256, "as CUDA lays it out");
static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "as CUDA lays it out");
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "as CUDA lays it out");
