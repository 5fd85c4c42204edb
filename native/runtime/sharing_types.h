// The C types of calls that pass straight on to the driver, whose layout is the driver's.
// runtime_types.h includes it; no behaviour.
#pragma once

typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUmemcpyAttributes cudaMemcpyAttributes;
typedef CUDA_MEMCPY3D_BATCH_OP cudaMemcpy3DBatchOp;
typedef CUdevResource cudaDevResource;
typedef CUdevResourceDesc cudaDevResourceDesc_t;
typedef CU_DEV_SM_RESOURCE_GROUP_PARAMS cudaDevSmResourceGroupParams;
typedef CUasyncCallback cudaAsyncCallback;
typedef CUasyncCallbackHandle cudaAsyncCallbackHandle_t;
typedef CUlogsCallback cudaLogsCallback_t;
typedef CUlogsCallbackHandle cudaLogsCallbackHandle;
typedef CUlogIterator cudaLogIterator;

typedef int cudaAtomicOperation;
typedef int cudaDevResourceType;
typedef int cudaFlushGPUDirectRDMAWritesScope;
typedef int cudaFlushGPUDirectRDMAWritesTarget;
typedef int cudaMemAllocationHandleType;
typedef int cudaMemAllocationType;
typedef int cudaMemRangeAttribute;

typedef struct cudaMemcpy3DPeerParms {
  CUarray src_array;
  cudaPos src_pos;
  cudaPitchedPtr src;
  int src_device;
  CUarray dst_array;
  cudaPos dst_pos;
  cudaPitchedPtr dst;
  int dst_device;
  cudaExtent extent;
} cudaMemcpy3DPeerParms;
