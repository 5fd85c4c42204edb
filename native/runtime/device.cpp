// Devices as the runtime tells of them.
#include <cstring>

#include "error_names.h"
#include "runtime_api.h"
#include "runtime_entry.h"
#include "va100/version.h"

namespace va::rt {
namespace {

constexpr int kRuntimeVersion = VA100_CUDART_MAJOR == 12 ? 12090 : kNewestCuda;

// An attribute of a device, for the fields that are nothing else.
struct Asker {
  CUdevice device;
  int operator()(int attribute) const {
    int value = 0;
    check(cuDeviceGetAttribute(&value, attribute, device));
    return value;
  }
};

void fill_limits(cudaDeviceProp *p, const Asker &ask) {
  p->sharedMemPerBlock = static_cast<size_t>(ask(8));
  p->regsPerBlock = ask(12);
  p->warpSize = ask(10);
  p->memPitch = static_cast<size_t>(ask(11));
  p->maxThreadsPerBlock = ask(1);
  for (int i = 0; i < 3; ++i) {
    p->maxThreadsDim[i] = ask(2 + i);
    p->maxGridSize[i] = ask(5 + i);
  }
  p->totalConstMem = static_cast<size_t>(ask(9));
  p->major = ask(75);
  p->minor = ask(76);
  p->textureAlignment = static_cast<size_t>(ask(14));
  p->texturePitchAlignment = static_cast<size_t>(ask(51));
  p->multiProcessorCount = ask(16);
  p->maxThreadsPerMultiProcessor = ask(39);
  p->sharedMemPerMultiprocessor = static_cast<size_t>(ask(81));
  p->regsPerMultiprocessor = ask(82);
  p->sharedMemPerBlockOptin = static_cast<size_t>(ask(97));
  p->maxBlocksPerMultiProcessor = ask(106);
  p->reservedSharedMemPerBlock = static_cast<size_t>(ask(111));
}

void fill_images(cudaDeviceProp *p, const Asker &ask) {
  p->maxTexture1D = ask(21);
  p->maxTexture1DMipmap = ask(77);
  p->maxTexture2D[0] = ask(22);
  p->maxTexture2D[1] = ask(23);
  p->maxTexture2DMipmap[0] = ask(73);
  p->maxTexture2DMipmap[1] = ask(74);
  for (int i = 0; i < 3; ++i) {
    p->maxTexture2DLinear[i] = ask(70 + i);
    p->maxTexture3D[i] = ask(24 + i);
    p->maxTexture3DAlt[i] = ask(47 + i);
    p->maxTexture2DLayered[i] = ask(27 + i);
    p->maxSurface3D[i] = ask(58 + i);
    p->maxSurface2DLayered[i] = ask(63 + i);
  }
  for (int i = 0; i < 2; ++i) {
    p->maxTexture2DGather[i] = ask(45 + i);
    p->maxTexture1DLayered[i] = ask(42 + i);
    p->maxTextureCubemapLayered[i] = ask(53 + i);
    p->maxSurface2D[i] = ask(56 + i);
    p->maxSurface1DLayered[i] = ask(61 + i);
    p->maxSurfaceCubemapLayered[i] = ask(67 + i);
  }
  p->maxTextureCubemap = ask(52);
  p->maxSurface1D = ask(55);
  p->maxSurfaceCubemap = ask(66);
  p->surfaceAlignment = static_cast<size_t>(ask(30));
}

void fill_features(cudaDeviceProp *p, const Asker &ask) {
  p->integrated = ask(18);
  p->canMapHostMemory = ask(19);
  p->concurrentKernels = ask(31);
  p->ECCEnabled = ask(32);
  p->pciBusID = ask(33);
  p->pciDeviceID = ask(34);
  p->pciDomainID = ask(50);
  p->tccDriver = ask(35);
  p->asyncEngineCount = ask(40);
  p->unifiedAddressing = ask(41);
  p->memoryBusWidth = ask(37);
  p->l2CacheSize = ask(38);
  p->persistingL2CacheMaxSize = ask(108);
  p->streamPrioritiesSupported = ask(78);
  p->globalL1CacheSupported = ask(79);
  p->localL1CacheSupported = ask(80);
  p->managedMemory = ask(83);
  p->isMultiGpuBoard = ask(84);
  p->multiGpuBoardGroupID = ask(85);
  p->hostNativeAtomicSupported = ask(86);
  p->pageableMemoryAccess = ask(88);
  p->concurrentManagedAccess = ask(89);
  p->computePreemptionSupported = ask(90);
  p->canUseHostPointerForRegisteredMem = ask(91);
  p->cooperativeLaunch = ask(95);
  p->pageableMemoryAccessUsesHostPageTables = ask(100);
  p->directManagedMemAccessFromHost = ask(101);
  p->accessPolicyMaxWindowSize = ask(109);
  p->hostRegisterSupported = ask(99);
  p->sparseCudaArraySupported = ask(112);
  p->hostRegisterReadOnlySupported = ask(113);
  p->timelineSemaphoreInteropSupported = ask(114);
  p->memoryPoolsSupported = ask(115);
  p->gpuDirectRDMASupported = ask(116);
  p->gpuDirectRDMAFlushWritesOptions = static_cast<unsigned>(ask(117));
  p->gpuDirectRDMAWritesOrdering = ask(118);
  p->memoryPoolSupportedHandleTypes = static_cast<unsigned>(ask(119));
  p->deferredMappingCudaArraySupported = ask(121);
  p->ipcEventSupported = ask(125);
  p->clusterLaunch = ask(120);
  p->unifiedFunctionPointers = ask(129);
}

void fill_of_major(cudaDeviceProp *p, const Asker &ask) {
#if VA100_CUDART_MAJOR < 13
  p->clockRate = ask(13);
  p->deviceOverlap = ask(15);
  p->kernelExecTimeoutEnabled = ask(17);
  p->computeMode = ask(20);
  p->maxTexture1DLinear = ask(69);
  p->memoryClockRate = ask(36);
  p->singleToDoublePrecisionPerfRatio = ask(87);
  p->cooperativeMultiDeviceLaunch = ask(96);
#else
  p->deviceNumaConfig = ask(130);
  p->deviceNumaId = ask(131);
  p->mpsEnabled = ask(133);
  p->hostNumaId = ask(134);
  p->gpuPciDeviceID = static_cast<unsigned>(ask(139));
  p->gpuPciSubsystemID = static_cast<unsigned>(ask(140));
  p->hostNumaMultinodeIpcSupported = ask(143);
#endif
}

CUdevice device(int ordinal) {
  int count = 0;
  check(cuInit(0));
  check(cuDeviceGetCount(&count));
  if (ordinal < 0 || ordinal >= count)
    fail(cudaErrorInvalidDevice);
  return ordinal;
}

cudaError_t properties_of(cudaDeviceProp *p, int ordinal) {
  const Asker ask{device(ordinal)};
  std::memset(p, 0, sizeof *p);
  check(cuDeviceGetName(p->name, sizeof p->name, ask.device));
  check(cuDeviceGetUuid_v2(&p->uuid, ask.device));
  check(cuDeviceTotalMem_v2(&p->totalGlobalMem, ask.device));
  fill_limits(p, ask);
  fill_images(p, ask);
  fill_features(p, ask);
  fill_of_major(p, ask);
  return cudaSuccess;
}

} // namespace

#if VA100_CUDART_MAJOR < 13
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp *p, int ordinal) {
  return properties_of(p, ordinal);
}

cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadGetLimit(size_t *value, cudaLimit limit) {
  return cudaDeviceGetLimit(value, limit);
}
cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return cudaDeviceSetLimit(limit, value);
}
cudaError_t cudaThreadGetCacheConfig(cudaFuncCache *config) {
  return cudaDeviceGetCacheConfig(config);
}
cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
  return cudaDeviceSetCacheConfig(config);
}
#else
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int ordinal) {
  return properties_of(p, ordinal);
}
#endif

cudaError_t cudaGetDeviceCount(int *count) {
  check(cuInit(0));
  check(cuDeviceGetCount(count));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int ordinal) {
  return from_driver(cuDeviceGetAttribute(value, attribute, device(ordinal)));
}

// The one whose compute capability and memory suffice; all are alike.
cudaError_t cudaChooseDevice(int *chosen, const cudaDeviceProp *) {
  *chosen = device(0);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  enter();
  return from_driver(cuCtxSynchronize());
}

cudaError_t cudaDeviceGetLimit(size_t *value, cudaLimit limit) {
  enter();
  return from_driver(cuCtxGetLimit(value, limit));
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  enter();
  return from_driver(cuCtxSetLimit(limit, value));
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache *config) {
  enter();
  return from_driver(cuCtxGetCacheConfig(config));
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  enter();
  return from_driver(cuCtxSetCacheConfig(config));
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig *config) {
  enter();
  return from_driver(cuCtxGetSharedMemConfig(config));
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  enter();
  return from_driver(cuCtxSetSharedMemConfig(config));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  enter();
  return from_driver(cuCtxGetStreamPriorityRange(least, greatest));
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer) {
  return from_driver(cuDeviceCanAccessPeer(can, device(ordinal), device(peer)));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  enter();
  CUcontext context;
  check(cuDevicePrimaryCtxRetain(&context, device(peer)));
  const CUresult result = cuCtxEnablePeerAccess(context, flags);
  if (result != CUDA_SUCCESS)
    cuDevicePrimaryCtxRelease_v2(peer);
  return from_driver(result); // the peer's context stays while access is enabled
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  enter();
  CUcontext context;
  check(cuDevicePrimaryCtxRetain(&context, device(peer)));
  const CUresult result = cuCtxDisablePeerAccess(context);
  cuDevicePrimaryCtxRelease_v2(peer);
  if (result == CUDA_SUCCESS)
    cuDevicePrimaryCtxRelease_v2(peer); // what enabling had retained
  return from_driver(result);
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int capacity, int ordinal) {
  return from_driver(cuDeviceGetPCIBusId(text, capacity, device(ordinal)));
}

cudaError_t cudaDeviceGetByPCIBusId(int *ordinal, const char *text) {
  check(cuInit(0));
  return from_driver(cuDeviceGetByPCIBusId(ordinal, text));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int from, int to) {
  return from_driver(cuDeviceGetP2PAttribute(value, attribute, device(from), device(to)));
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  check(cuInit(0));
  return from_driver(cuDevicePrimaryCtxSetFlags_v2(current_device(), flags));
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
  enter();
  return from_driver(cuCtxGetFlags(flags));
}

cudaError_t cudaInitDevice(int ordinal, unsigned int device_flags, unsigned int flags) {
  constexpr unsigned kFlagsAreValid = 1;
  if (flags & kFlagsAreValid)
    check(cuDevicePrimaryCtxSetFlags_v2(device(ordinal), device_flags));
  CUcontext context;
  check(cuDevicePrimaryCtxRetain(&context, device(ordinal))); // kept until the process ends
  return cudaSuccess;
}

cudaError_t cudaSetValidDevices(int *devices, int count) {
  for (int i = 0; devices && i < count; ++i)
    device(devices[i]);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) { return from_driver(cuDriverGetVersion(version)); }

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = kRuntimeVersion;
  return cudaSuccess;
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  enter();
  return from_driver(cuCtxResetPersistingL2Cache());
}

cudaError_t cudaProfilerStart() {
  enter();
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  enter();
  return cudaSuccess;
}

cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *) {
  *table = nullptr;
  return cudaErrorSymbolNotFound;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **address,
                                             unsigned int version, uint64_t flags,
                                             cudaDriverEntryPointQueryResult *status) {
  if (!flags && PerThreadStream::active())
    flags = 2;
  return from_driver(
      cuGetProcAddress_v2(symbol, address, static_cast<int>(version), flags, status));
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **address, uint64_t flags,
                                    cudaDriverEntryPointQueryResult *status) {
  return cudaGetDriverEntryPointByVersion(symbol, address, kRuntimeVersion, flags, status);
}

const char *cudaGetErrorName(cudaError_t error) {
  const ErrorName *const found = find_error(kErrorNames, kErrorNameCount, error);
  return found ? found->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  const ErrorName *const found = find_error(kErrorNames, kErrorNameCount, error);
  return found ? found->text : "unrecognized error code";
}

} // namespace va::rt
