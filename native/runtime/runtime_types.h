// The C types of the implemented runtime calls, as their ABI fixes them.  Own declarations; the
// driver's handles are the runtime's.
#pragma once

#include "cuda_types.h"

#ifndef VA100_CUDART_MAJOR
#error "VA100_CUDART_MAJOR says which runtime this is: 12 or 13"
#endif

typedef enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidChannelDescriptor = 20,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorMissingConfiguration = 52,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidKernelImage = 200,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999
} cudaError_t;

typedef CUstream cudaStream_t;
typedef CUevent cudaEvent_t;
typedef CUfunction cudaFunction_t;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUmemoryPool cudaMemPool_t;
typedef CUuuid cudaUUID_t;
typedef CUarray cudaArray_t;
typedef CUarray cudaArray_const_t;
typedef CUtexObject cudaTextureObject_t;
typedef CUsurfObject cudaSurfaceObject_t;
typedef CUDA_RESOURCE_VIEW_DESC cudaResourceViewDesc;
typedef CUhostFn cudaHostFn_t;
typedef CUmemLocation cudaMemLocation;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUgraph cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphExec cudaGraphExec_t;
typedef CUuserObject cudaUserObject_t;
typedef CUgraphConditionalHandle cudaGraphConditionalHandle;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
// Kernels are named by host functions here, and copies are spelled the runtime's way.
typedef CUDA_KERNEL_NODE_PARAMS_v1 cudaKernelNodeParams;
typedef CUgraphNodeParams cudaGraphNodeParams;
typedef CUDA_MEMSET_NODE_PARAMS cudaMemsetParams;
typedef CUDA_HOST_NODE_PARAMS cudaHostNodeParams;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUkernelNodeAttrValue cudaLaunchAttributeValue;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void *user_data);

typedef int cudaChannelFormatKind;
typedef int cudaDeviceAttr;
typedef int cudaDeviceP2PAttr;
typedef int cudaDriverEntryPointQueryResult;
typedef int cudaFuncAttribute;
typedef int cudaFuncCache;
typedef int cudaGraphMemAttributeType;
typedef int cudaGraphNodeType;
typedef int cudaJitOption;
typedef int cudaLaunchAttributeID;
typedef int cudaLibraryOption;
typedef int cudaLimit;
typedef int cudaMemAccessFlags;
typedef int cudaMemPoolAttr;
typedef int cudaMemcpyKind;
typedef int cudaMemoryAdvise;
typedef int cudaSharedMemConfig;
typedef int cudaStreamCaptureMode;
typedef int cudaStreamCaptureStatus;

enum { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kDefault = 4 };

typedef struct dim3 {
  unsigned int x, y, z;
} dim3;

typedef struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
} cudaPitchedPtr;

typedef struct cudaExtent {
  size_t width, height, depth;
} cudaExtent;

typedef struct cudaPos {
  size_t x, y, z;
} cudaPos;

#include "sharing_types.h"

enum { kChannelSigned = 0, kChannelUnsigned = 1, kChannelFloat = 2 };

typedef struct cudaChannelFormatDesc {
  int bits[4];
  int kind;
} cudaChannelFormatDesc;

typedef struct cudaResourceDesc {
  unsigned int type; // as the driver numbers them
  union {
    CUarray array;
    struct {
      void *pointer;
      cudaChannelFormatDesc channels;
      size_t bytes;
    } linear;
    struct {
      void *pointer;
      cudaChannelFormatDesc channels;
      size_t width, height, pitch;
    } pitched;
#if VA100_CUDART_MAJOR >= 13
    int reserved[32];
#endif
  };
#if VA100_CUDART_MAJOR >= 13
  unsigned int flags;
#endif
} cudaResourceDesc;

typedef struct cudaTextureDesc {
  unsigned int address[3];
  unsigned int filter;
  unsigned int read_normalized;
  int srgb;
  float border[4];
  int normalized;
  unsigned int max_anisotropy;
  unsigned int mipmap_filter;
  float mipmap_bias, mipmap_least, mipmap_most;
  int no_trilinear_optimization;
  int seamless_cubemap;
} cudaTextureDesc;

typedef struct cudaMemcpy3DParms {
  CUarray src_array;
  cudaPos src_pos;
  cudaPitchedPtr src;
  CUarray dst_array;
  cudaPos dst_pos;
  cudaPitchedPtr dst;
  cudaExtent extent;
  cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct cudaPointerAttributes {
  int type;
  int device;
  void *device_pointer;
  void *host_pointer;
#if VA100_CUDART_MAJOR >= 13
  long reserved[8];
#endif
} cudaPointerAttributes;

typedef struct cudaFuncAttributes {
  size_t shared_bytes, const_bytes, local_bytes;
  int max_threads, registers, ptx_version, binary_version, cache_mode_ca;
  int max_dynamic_shared, carveout;
  int cluster[6];
  int reserved[16];
} cudaFuncAttributes;

typedef struct cudaLaunchConfig_t {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
  CUlaunchAttribute *attributes;
  unsigned int attribute_count;
} cudaLaunchConfig_t;

// Field for field what the headers of each major declare; names are theirs, since each is an
// attribute's name.
typedef struct cudaDeviceProp {
  char name[256];
  CUuuid uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  size_t memPitch;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
#if VA100_CUDART_MAJOR < 13
  int clockRate;
#endif
  size_t totalConstMem;
  int major;
  int minor;
  size_t textureAlignment;
  size_t texturePitchAlignment;
#if VA100_CUDART_MAJOR < 13
  int deviceOverlap;
#endif
  int multiProcessorCount;
#if VA100_CUDART_MAJOR < 13
  int kernelExecTimeoutEnabled;
#endif
  int integrated;
  int canMapHostMemory;
#if VA100_CUDART_MAJOR < 13
  int computeMode;
#endif
  int maxTexture1D;
  int maxTexture1DMipmap;
#if VA100_CUDART_MAJOR < 13
  int maxTexture1DLinear;
#endif
  int maxTexture2D[2];
  int maxTexture2DMipmap[2];
  int maxTexture2DLinear[3];
  int maxTexture2DGather[2];
  int maxTexture3D[3];
  int maxTexture3DAlt[3];
  int maxTextureCubemap;
  int maxTexture1DLayered[2];
  int maxTexture2DLayered[3];
  int maxTextureCubemapLayered[2];
  int maxSurface1D;
  int maxSurface2D[2];
  int maxSurface3D[3];
  int maxSurface1DLayered[2];
  int maxSurface2DLayered[3];
  int maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int tccDriver;
  int asyncEngineCount;
  int unifiedAddressing;
#if VA100_CUDART_MAJOR < 13
  int memoryClockRate;
#endif
  int memoryBusWidth;
  int l2CacheSize;
  int persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  int managedMemory;
  int isMultiGpuBoard;
  int multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
#if VA100_CUDART_MAJOR < 13
  int singleToDoublePrecisionPerfRatio;
#endif
  int pageableMemoryAccess;
  int concurrentManagedAccess;
  int computePreemptionSupported;
  int canUseHostPointerForRegisteredMem;
  int cooperativeLaunch;
#if VA100_CUDART_MAJOR < 13
  int cooperativeMultiDeviceLaunch;
#endif
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables;
  int directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  int hostRegisterSupported;
  int sparseCudaArraySupported;
  int hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported;
  int memoryPoolsSupported;
  int gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
#if VA100_CUDART_MAJOR < 13
  int reserved[63];
#else
  int deviceNumaConfig;
  int deviceNumaId;
  int mpsEnabled;
  int hostNumaId;
  unsigned int gpuPciDeviceID;
  unsigned int gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
#endif
} cudaDeviceProp;
