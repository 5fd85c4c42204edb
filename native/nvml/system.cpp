// The library and the system: coming up, versions, names of errors.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "nvml_api.h"
#include "release.h"
#include "session.h"

namespace va::nvml {
namespace {

struct ErrorText {
  nvmlReturn_t code;
  const char *text;
};

constexpr ErrorText kErrorTexts[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires restart"},
    {17, "The operating system has blocked the request."},
    {18, "RM has detected an NVML/RM version mismatch."},
    {19, "In use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {22, "The requested vgpu operation is not available on target device, because ECC is enabled"},
    {23, "Insufficient Resources"},
    {24, "The requested frequency is not supported"},
    {25, "Argument version mismatch"},
    {26, "The requested functionality has been deprecated"},
    {27, "The system is not ready for the request"},
    {28, "No GPUs were found"},
    {29, "Resource not in correct state to perform requested operation"},
    {30, "Reset type not supported"},
};

int cuda_version() {
  const char *const text = std::getenv("VA100_DRIVER_VERSION");
  const long number = text ? std::strtol(text, nullptr, 10) : 0;
  return number >= 11000 && number <= 99990 ? static_cast<int>(number) : kCudaVersion;
}

} // namespace

namespace api {

nvmlReturn_t nvmlInit() { return start(); }
nvmlReturn_t nvmlInit_v2() { return start(); }

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
  constexpr unsigned kNoGpus = 1, kNoAttach = 2;
  return flags & ~(kNoGpus | kNoAttach) ? NVML_ERROR_INVALID_ARGUMENT : start();
}

nvmlReturn_t nvmlShutdown() { return stop(); }

const char *nvmlErrorString(nvmlReturn_t result) {
  for (const ErrorText &known : kErrorTexts)
    if (known.code == result)
      return known.text;
  return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
  put(kDriverVersion, version, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
  put(kNvmlVersion, version, length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion) {
  *cudaDriverVersion = cuda_version();
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion) {
  return nvmlSystemGetCudaDriverVersion(cudaDriverVersion);
}

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *branchInfo,
                                       unsigned int length) {
  if (branchInfo->version != version_of<nvmlSystemDriverBranchInfo_t>(1))
    return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  put(kDriverBranch, branchInfo->branch,
      length < sizeof branchInfo->branch ? length : sizeof branchInfo->branch);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *hwbcCount, nvmlHwbcEntry_t *) {
  *hwbcCount = 0; // host interface cards went with S-class systems
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlUnitGetCount(unsigned int *unitCount) {
  *unitCount = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int, nvmlUnit_t *) {
  return NVML_ERROR_INVALID_ARGUMENT; // there is none
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *deviceCount) {
  *deviceCount = 0;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int, nvmlExcludedDeviceInfo_t *) {
  return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length) {
  if (!length)
    return NVML_ERROR_INVALID_ARGUMENT;
  const std::string path = "/proc/" + std::to_string(pid) + "/cmdline";
  std::FILE *const file = std::fopen(path.c_str(), "re");
  if (!file)
    return NVML_ERROR_NOT_FOUND;
  char text[1024];
  const size_t got = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[got] = 0; // of the words, each with its zero, the first
  const size_t bytes = std::min<size_t>(std::strlen(text), length - 1);
  std::memcpy(name, text, bytes);
  name[bytes] = 0;
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml
