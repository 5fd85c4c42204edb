// A cuDNN without its operations.  XLA makes a handle before anything else and goes no further where
// it cannot; what it then needs of cuDNN, convolutions for one, is machine code only and is refused.
#include <cstddef>
#include <cstdio>

#define VA_STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kBadParameter = 2000;
// XLA wants no older one than it was built with, of the same major version.
constexpr size_t kVersion = 99900, kCudaVersion = 13000;
constexpr char kReason[] = "cuDNN is machine code only, which va100 cannot run";
char g_handle; // its address is the one handle

} // namespace

VA_STAND_IN size_t cudnnGetVersion() { return kVersion; }

VA_STAND_IN size_t cudnnGetCudartVersion() { return kCudaVersion; }

VA_STAND_IN int cudnnGetProperty(int which, int *value) {
  const int parts[] = {kVersion / 10000, kVersion / 100 % 100, kVersion % 100};
  if (which < 0 || which > 2 || !value)
    return kBadParameter;
  *value = parts[which];
  return kSuccess;
}

VA_STAND_IN int cudnnCreate(void **handle) {
  if (!handle)
    return kBadParameter;
  *handle = &g_handle;
  return kSuccess;
}

VA_STAND_IN int cudnnDestroy(void *) { return kSuccess; }

VA_STAND_IN int cudnnSetStream(void *, void *) { return kSuccess; }

VA_STAND_IN int cudnnGetStream(void *, void **stream) {
  if (stream)
    *stream = nullptr;
  return kSuccess;
}

VA_STAND_IN const char *cudnnGetErrorString(int) { return kReason; }

VA_STAND_IN void cudnnGetLastErrorString(char *text, size_t room) {
  if (text && room)
    std::snprintf(text, room, "%s", kReason);
}
