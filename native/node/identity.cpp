#include "identity.h"

#include <cstdio>
#include <cstring>

namespace va::node {
namespace {

class Stream {
public:
  explicit Stream(uint64_t state) : state_(state) {}
  void add(const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      state_ = (state_ ^ static_cast<const unsigned char *>(data)[i]) * 0x100000001B3ULL;
  }
  Uuid take(unsigned version) {
    Uuid uuid{};
    for (uint8_t &byte : uuid.bytes) {
      state_ ^= state_ >> 27;
      state_ *= 0x94D049BB133111EBULL;
      byte = static_cast<uint8_t>(state_ >> 56);
    }
    uuid.bytes[6] = static_cast<uint8_t>((uuid.bytes[6] & 0x0F) | version << 4);
    uuid.bytes[8] = static_cast<uint8_t>((uuid.bytes[8] & 0x3F) | 0x80);
    return uuid;
  }

private:
  uint64_t state_;
};

} // namespace

Uuid gpu_uuid(const std::string &seed, const std::string &model, int seat) {
  Stream stream(0x9E3779B97F4A7C15ULL * static_cast<uint64_t>(seat + 1));
  stream.add(model.data(), model.size());
  stream.add(seed.data(), seed.size());
  return stream.take(4);
}

Uuid mig_uuid(const Uuid &gpu, uint32_t gpu_instance, uint32_t compute_instance) {
  Stream stream(0xD1B54A32D192ED03ULL);
  stream.add(gpu.bytes, sizeof gpu.bytes);
  stream.add(&gpu_instance, sizeof gpu_instance);
  stream.add(&compute_instance, sizeof compute_instance);
  return stream.take(5);
}

void write_serial(char *to, size_t room, const Uuid &gpu) {
  uint64_t number = 0;
  std::memcpy(&number, gpu.bytes, sizeof number);
  // Thirteen digits that begin as those of data-centre cards do.
  snprintf(to, room, "156%010llu", static_cast<unsigned long long>(number % 10'000'000'000ULL));
}

std::string uuid_text(const char *before, const Uuid &uuid) {
  static const char digits[] = "0123456789abcdef";
  std::string text = before;
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    text += digits[uuid.bytes[i] >> 4];
    text += digits[uuid.bytes[i] & 15];
  }
  return text;
}

} // namespace va::node
