// The types of NCCL's C interface, as programs know them.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

extern "C" {

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
typedef struct CUstream_st *cudaStream_t;

typedef struct {
  char internal[128];
} ncclUniqueId;

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
} ncclResult_t;

typedef int ncclRedOp_t;
typedef int ncclDataType_t;
typedef int ncclScalarResidence_t;

// Later versions add to the end; only what is read here is named.
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
} ncclConfig_t;

typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimatedTime;
} ncclSimInfo_t;
}

namespace va::nccl {

enum Type {
  kInt8 = 0,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
  kTypes
};

enum ReduceOp { kSum = 0, kProd, kMax, kMin, kAvg, kBuiltInOps };

constexpr int kMostReduceOp = 0x7fffffff;
constexpr unsigned kConfigMagic = 0xcafebeef;
constexpr unsigned kSimInfoMagic = 0x74685283;
constexpr int kUndefined = INT_MIN;
constexpr int kVersion = 22803; // 2.28.3

constexpr size_t width_of(int type) {
  constexpr size_t kWidths[kTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kWidths[type];
}

} // namespace va::nccl
