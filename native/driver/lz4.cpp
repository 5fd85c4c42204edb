// LZ4 block format, decompression only.
#include <cstring>

#include "va100/driver.h"

namespace {

// A length that may go on in further bytes of 255; -1 when the input ends first.
int64_t extended(unsigned nibble, const uint8_t *&in, const uint8_t *end) {
  int64_t length = nibble;
  if (nibble != 15)
    return length;
  for (;;) {
    if (in == end)
      return -1;
    const uint8_t byte = *in++;
    length += byte;
    if (byte != 255)
      return length;
  }
}

} // namespace

extern "C" int64_t va_expand_lz4(const void *from, size_t bytes, void *to, size_t capacity) {
  const uint8_t *in = static_cast<const uint8_t *>(from);
  const uint8_t *const end = in + bytes;
  uint8_t *const first = static_cast<uint8_t *>(to);
  uint8_t *out = first;
  uint8_t *const limit = first + capacity;
  while (in < end) {
    const uint8_t token = *in++;
    const int64_t literals = extended(token >> 4, in, end);
    if (literals < 0 || literals > end - in || literals > limit - out)
      return -1;
    std::memcpy(out, in, static_cast<size_t>(literals));
    in += literals;
    out += literals;
    if (in == end)
      break; // the last sequence has no match
    if (end - in < 2)
      return -1;
    const int64_t offset = in[0] | in[1] << 8;
    in += 2;
    const int64_t match = extended(token & 15, in, end);
    if (match < 0 || !offset || offset > out - first || match + 4 > limit - out)
      return -1;
    for (int64_t i = 0; i < match + 4; ++i, ++out)
      *out = *(out - offset); // may overlap on purpose
  }
  return out - first;
}
