// The C types of calls on physical memory, address ranges and copies in batches, as their ABI fixes
// them.  Own declarations, no behaviour; cuda_types.h includes it.
#pragma once

extern "C" {

typedef uint64_t CUmemGenericAllocationHandle;
typedef int CUmemAllocationHandleType;
typedef int CUmemAllocationGranularity_flags;
typedef int CUmem_range_attribute;
typedef int CUmemRangeHandleType;

enum { CU_MEM_LOCATION_TYPE_HOST_NUMA = 3, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4 };
enum { CU_MEM_HANDLE_TYPE_NONE = 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
       CU_MEM_HANDLE_TYPE_FABRIC = 8 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_ALLOCATION_TYPE_MANAGED = 2 };
enum { CU_MEM_ACCESS_NONE = 0, CU_MEM_ACCESS_READ = 1, CU_MEM_ACCESS_READWRITE = 3 };

typedef struct CUmemAllocationProp {
  int type;
  int requested_handle_types;
  CUmemLocation location;
  void *security_attributes;
  unsigned char compression_type;
  unsigned char rdma_capable;
  unsigned short usage;
  unsigned char reserved[4];
} CUmemAllocationProp;

typedef struct CUmemPoolPtrExportData {
  unsigned char bytes[64];
} CUmemPoolPtrExportData;

typedef struct CUipcMemHandle {
  char bytes[64];
} CUipcMemHandle;

typedef struct CUipcEventHandle {
  char bytes[64];
} CUipcEventHandle;

typedef struct CUmemcpyAttributes {
  int source_order;
  CUmemLocation source_hint, target_hint;
  unsigned int flags;
} CUmemcpyAttributes;

typedef struct CUmemcpy3DOperand {
  int type; // 1: pointer, 2: array
  union {
    struct {
      CUdeviceptr address;
      size_t row_length, layer_height; // in elements
      CUmemLocation hint;
    } pointer;
    struct {
      CUarray array;
      size_t x, y, z; // in elements
    } array;
  };
} CUmemcpy3DOperand;

typedef struct CUDA_MEMCPY3D_BATCH_OP {
  CUmemcpy3DOperand source, target;
  size_t width, height, depth; // in elements
  int source_order;
  unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;
}
