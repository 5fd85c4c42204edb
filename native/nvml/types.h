// NVML's words as its callers lay them out: handles, result codes, structures.
#pragma once

#include <cstddef>
#include <cstdint>

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlGpuInstance_st *nvmlGpuInstance_t;
typedef struct nvmlComputeInstance_st *nvmlComputeInstance_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlUnit_st *nvmlUnit_t;

using nvmlReturn_t = int;
// Enumerations are ints in C; what they may hold is checked where they are used.
using nvmlEnableState_t = unsigned;
using nvmlClockType_t = unsigned;
using nvmlClockId_t = unsigned;
using nvmlPstates_t = unsigned;
using nvmlTemperatureSensors_t = unsigned;
using nvmlTemperatureThresholds_t = unsigned;
using nvmlComputeMode_t = unsigned;
using nvmlMemoryErrorType_t = unsigned;
using nvmlEccCounterType_t = unsigned;
using nvmlMemoryLocation_t = unsigned;
using nvmlBrandType_t = unsigned;
using nvmlDeviceArchitecture_t = unsigned;
using nvmlBusType_t = unsigned;
using nvmlPcieUtilCounter_t = unsigned;
using nvmlRestrictedAPI_t = unsigned;
using nvmlInforomObject_t = unsigned;
using nvmlGpuTopologyLevel_t = unsigned;
using nvmlGpuP2PCapsIndex_t = unsigned;
using nvmlGpuP2PStatus_t = unsigned;
using nvmlNvLinkCapability_t = unsigned;
using nvmlNvLinkErrorCounter_t = unsigned;
using nvmlIntNvLinkDeviceType_t = unsigned;
using nvmlAffinityScope_t = unsigned;
using nvmlPageRetirementCause_t = unsigned;
using nvmlPerfPolicyType_t = unsigned;
using nvmlSamplingType_t = unsigned;
using nvmlValueType_t = unsigned;
using nvmlGpuVirtualizationMode_t = unsigned;
using nvmlPowerSource_t = unsigned;
using nvmlEncoderType_t = unsigned;

enum : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_UNKNOWN = 999,
};

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

struct nvmlPciInfoExt_t {
  unsigned version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
  char busId[32];
};

struct nvmlMemory_t {
  unsigned long long total, free, used;
};

struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

struct nvmlBAR1Memory_t {
  unsigned long long bar1Total, bar1Free, bar1Used;
};

struct nvmlProcessInfo_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
};

struct nvmlProcessInfo_v2_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
using nvmlProcessInfo_t = nvmlProcessInfo_v2_t;

struct nvmlProcessDetail_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};

struct nvmlProcessDetailList_t {
  unsigned version, mode, numProcArrayEntries;
  nvmlProcessDetail_v1_t *procArray;
};

struct nvmlUtilization_t {
  unsigned gpu, memory;
};

struct nvmlEccErrorCounts_t {
  unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
};

struct nvmlEccSramErrorStatus_t {
  unsigned version;
  unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity,
      volatileUncSecDed, volatileCor, aggregateUncBucketL2, aggregateUncBucketSm,
      aggregateUncBucketPcie, aggregateUncBucketMcu, aggregateUncBucketOther;
  unsigned bThresholdExceeded;
};

struct nvmlDeviceAttributes_t {
  unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
      sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
  unsigned long long memorySizeMB;
};

struct nvmlGpuInstanceProfileInfo_t {
  unsigned id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
      decoderCount, encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
};

struct nvmlGpuInstanceProfileInfo_v2_t {
  unsigned version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount,
      copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
  char name[96];
};

struct nvmlGpuInstanceProfileInfo_v3_t {
  unsigned version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
      decoderCount, encoderCount, jpegCount, ofaCount;
  unsigned long long memorySizeMB;
  char name[96];
  unsigned capabilities;
};

struct nvmlGpuInstancePlacement_t {
  unsigned start, size;
};
using nvmlComputeInstancePlacement_t = nvmlGpuInstancePlacement_t;

struct nvmlGpuInstanceInfo_t {
  nvmlDevice_t device;
  unsigned id, profileId;
  nvmlGpuInstancePlacement_t placement;
};

struct nvmlComputeInstanceProfileInfo_t {
  unsigned id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
};

struct nvmlComputeInstanceProfileInfo_v2_t {
  unsigned version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[96];
};

struct nvmlComputeInstanceProfileInfo_v3_t {
  unsigned version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
      sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
  char name[96];
  unsigned capabilities;
};

struct nvmlComputeInstanceInfo_t {
  nvmlDevice_t device;
  nvmlGpuInstance_t gpuInstance;
  unsigned id, profileId;
  nvmlComputeInstancePlacement_t placement;
};

struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;
  unsigned gpuInstanceId, computeInstanceId;
};

union nvmlValue_t {
  double dVal;
  int siVal;
  unsigned uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  long long sllVal;
  unsigned short usVal;
};

struct nvmlFieldValue_t {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  nvmlValueType_t valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};

struct nvmlSample_t {
  unsigned long long timeStamp;
  nvmlValue_t sampleValue;
};

struct nvmlViolationTime_t {
  unsigned long long referenceTime, violationTime;
};

struct nvmlTemperature_t {
  unsigned version;
  nvmlTemperatureSensors_t sensorType;
  int temperature;
};

struct nvmlMarginTemperature_t {
  unsigned version;
  int marginTemperature;
};

struct nvmlProcessUtilizationSample_t {
  unsigned pid;
  unsigned long long timeStamp;
  unsigned smUtil, memUtil, encUtil, decUtil;
};

struct nvmlProcessUtilizationInfo_v1_t {
  unsigned long long timeStamp;
  unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
};

struct nvmlProcessesUtilizationInfo_t {
  unsigned version, processSamplesCount;
  unsigned long long lastSeenTimeStamp;
  nvmlProcessUtilizationInfo_v1_t *procUtilArray;
};

struct nvmlAccountingStats_t {
  unsigned gpuUtilization, memoryUtilization;
  unsigned long long maxMemoryUsage, time, startTime;
  unsigned isRunning, reserved[5];
};

struct nvmlRowRemapperHistogramValues_t {
  unsigned max, high, partial, low, none;
};

struct nvmlRemappedRowsInfo_v2_t {
  unsigned corrActiveRemaps, corrInactiveRemaps, uncActiveRemaps, uncInactiveRemaps, bPending,
      bFailureOccurred;
};

struct nvmlConfComputeMemSizeInfo_t {
  unsigned long long protectedMemSizeKib, unprotectedMemSizeKib;
};

struct nvmlSystemDriverBranchInfo_t {
  unsigned version;
  char branch[80];
};

struct nvmlDeviceAddressingMode_t {
  unsigned version, value;
};

struct nvmlDeviceCapabilities_t {
  unsigned version, capMask;
};

struct nvmlUUID_t {
  unsigned version, type;
  union {
    char str[41];
    unsigned char bytes[16];
  } value;
};

struct nvmlC2cModeInfo_v1_t {
  unsigned isC2cEnabled;
};

struct nvmlGpmSupport_t {
  unsigned version, isSupportedDevice;
};

struct nvmlGpuFabricInfo_t {
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId;
  unsigned char state;
};

struct nvmlGpuFabricInfoV_t {
  unsigned version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId;
  unsigned char state;
  unsigned healthMask;
  unsigned char healthSummary; // from version 3
};

struct nvmlPowerValue_v2_t {
  unsigned version;
  unsigned char powerScope;
  unsigned powerValueMw;
};

struct nvmlGpuThermalSettings_t {
  unsigned count;
  struct {
    int controller;
    int defaultMinTemp, defaultMaxTemp, currentTemp;
    int target;
  } sensor[3];
};

struct nvmlGpuDynamicPstatesInfo_t {
  unsigned flags;
  struct {
    unsigned bIsPresent, percentage, incThreshold, decThreshold;
  } utilization[8];
};
struct nvmlExcludedDeviceInfo_t {
  nvmlPciInfo_t pciInfo;
  char uuid[80];
};
struct nvmlFBCStats_t {
  unsigned sessionsCount, averageFPS, averageLatency;
};
struct nvmlHwbcEntry_t {
  unsigned hwbcId;
  char firmwareVersion[32];
};

typedef struct nvmlSystemEventSet_st *nvmlSystemEventSet_t;
struct nvmlSystemEventSetCreateRequest_t {
  unsigned version;
  nvmlSystemEventSet_t set;
};
typedef nvmlSystemEventSetCreateRequest_t nvmlSystemEventSetFreeRequest_t;
struct nvmlSystemRegisterEventRequest_t {
  unsigned version;
  unsigned long long eventTypes;
  nvmlSystemEventSet_t set;
};
struct nvmlSystemEventData_t {
  unsigned long long eventType;
  unsigned gpuId;
};
struct nvmlSystemEventSetWaitRequest_t {
  unsigned version, timeoutms;
  nvmlSystemEventSet_t set;
  nvmlSystemEventData_t *data;
  unsigned dataSize, numEvent;
};

// A structure's version word: its size and its number.
template <typename Struct> constexpr unsigned version_of(unsigned number) {
  return static_cast<unsigned>(sizeof(Struct)) | number << 24;
}
