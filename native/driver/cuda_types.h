// The C types of the implemented driver calls, as their ABI fixes them.  Own declarations: only
// what those calls read or write; handles are opaque.  No behaviour.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUlib_st *CUlibrary;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef uint64_t CUtexObject;
typedef uint64_t CUsurfObject;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;

typedef int CUdevice_attribute;
typedef int CUdevice_P2PAttribute;
typedef int CUexecAffinityType;
typedef int CUfunc_cache;
typedef int CUfunction_attribute;
typedef int CUfunctionLoadingState;
typedef int CUjitInputType;
typedef int CUjit_option;
typedef int CUlibraryOption;
typedef int CUlimit;
typedef int CUmemAccess_flags;
typedef int CUmemAllocationType;
typedef int CUmemPool_attribute;
typedef int CUmem_advise;
typedef int CUmoduleLoadingMode;
typedef int CUoutput_mode;
typedef int CUpointer_attribute;
typedef int CUsharedconfig;
typedef int CUstreamAttrID;
typedef int CUstreamCaptureMode;
typedef int CUstreamCaptureStatus;
typedef int CUdriverProcAddressQueryResult;

typedef enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910,
  CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
  CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef struct CUuuid {
  char bytes[16];
} CUuuid;

typedef struct CUdevprop {
  int max_threads_per_block;
  int max_threads_dim[3];
  int max_grid_size[3];
  int shared_mem_per_block;
  int total_constant_memory;
  int simd_width;
  int mem_pitch;
  int regs_per_block;
  int clock_rate;
  int texture_align;
} CUdevprop;

enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_ARRAY = 3,
       CU_MEMORYTYPE_UNIFIED = 4 };

typedef struct CUDA_MEMCPY2D {
  size_t src_x, src_y;
  unsigned int src_type;
  const void *src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  unsigned int dst_type;
  void *dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  size_t dst_pitch;
  size_t width, height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D {
  size_t src_x, src_y, src_z, src_lod;
  unsigned int src_type;
  const void *src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  void *src_reserved; // the context, in the peer form
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  unsigned int dst_type;
  void *dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  void *dst_reserved;
  size_t dst_pitch, dst_height;
  size_t width, height, depth;
} CUDA_MEMCPY3D;
typedef CUDA_MEMCPY3D CUDA_MEMCPY3D_PEER;

enum {
  CUDA_ARRAY3D_LAYERED = 0x01,
  CUDA_ARRAY3D_SURFACE_LDST = 0x02,
  CUDA_ARRAY3D_CUBEMAP = 0x04,
  CUDA_ARRAY3D_TEXTURE_GATHER = 0x08
};

typedef struct CUDA_ARRAY_DESCRIPTOR {
  size_t width, height;
  unsigned int format, channels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct CUDA_ARRAY3D_DESCRIPTOR {
  size_t width, height, depth;
  unsigned int format, channels, flags;
} CUDA_ARRAY3D_DESCRIPTOR;

enum {
  CU_RESOURCE_TYPE_ARRAY = 0,
  CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
  CU_RESOURCE_TYPE_LINEAR = 2,
  CU_RESOURCE_TYPE_PITCH2D = 3
};

typedef struct CUDA_RESOURCE_DESC {
  unsigned int type;
  union {
    CUarray array;
    struct {
      CUdeviceptr address;
      unsigned int format, channels;
      size_t bytes;
    } linear;
    struct {
      CUdeviceptr address;
      unsigned int format, channels;
      size_t width, height, pitch;
    } pitched;
    int reserved[32];
  };
  unsigned int flags;
} CUDA_RESOURCE_DESC;

enum {
  CU_TRSF_READ_AS_INTEGER = 0x01,
  CU_TRSF_NORMALIZED_COORDINATES = 0x02,
  CU_TRSF_SRGB = 0x10,
  CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION = 0x20,
  CU_TRSF_SEAMLESS_CUBEMAP = 0x40
};

typedef struct CUDA_TEXTURE_DESC {
  unsigned int address[3];
  unsigned int filter;
  unsigned int flags;
  unsigned int max_anisotropy;
  unsigned int mipmap_filter;
  float mipmap_bias, mipmap_least, mipmap_most;
  float border[4];
  int reserved[12];
} CUDA_TEXTURE_DESC;

typedef struct CUDA_RESOURCE_VIEW_DESC {
  unsigned int format; // 0: the resource's own
  size_t width, height, depth;
  unsigned int first_level, last_level, first_layer, last_layer;
  unsigned int reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

enum { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_LOCATION_TYPE_HOST = 2 };

typedef struct CUmemLocation {
  int type;
  int id;
} CUmemLocation;

typedef struct CUmemAccessDesc {
  CUmemLocation location;
  CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps {
  int alloc_type;
  int handle_types;
  CUmemLocation location;
  void *security_attributes;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

enum {
  CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
  CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12
};

typedef struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char pad[64];
    int cooperative;
    unsigned int cluster[3];
    CUevent event;
  } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared_bytes;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned int attribute_count;
} CUlaunchConfig;

typedef union CUstreamAttrValue {
  char pad[64];
} CUstreamAttrValue;

typedef size_t (*CUoccupancyB2DSize)(int block_size);
typedef void (*CUhostFn)(void *user_data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user_data);
}

#include "memory_types.h"
#include "resource_types.h"

#include "graph_types.h"
