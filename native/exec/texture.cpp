// The sampler: texture fetches and gathers of a warp, and what queries answer.
//
// CUDA's programming guide states how coordinates choose texels, the address modes, and that the
// weights of a linear filter are fixed point with 8 bits of fraction.  Chosen here, where nothing
// is stated: coordinates are computed in double; a weight is rounded to the nearest 1/256, halves
// up; the weighted sum is taken in double and rounded once; wrap and mirror act on texel numbers;
// a coordinate that is NaN counts as 0; channels that are not there read 0, 0, 1.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "check_state.h"
#include "math_half_format.h"
#include "texture_table.h"
#include "worker.h"

namespace va {
namespace {

enum Geometry : uint32_t { k1D, k2D, k3D, kA1D, kA2D, kCube, kACube };

constexpr double kHalfTexel = 0.5;
constexpr double kWeightSteps = 256;
constexpr uint32_t kFaces = 6;
constexpr uint32_t kNan32 = 0x7fffffffu;
constexpr uint32_t kOne32 = 0x3f800000u;
constexpr int64_t kOutside = -1;
constexpr uint32_t kGlobal = 1;

// What is constant at an instruction, as the compiler packs it.
struct Fetch {
  uint32_t site, geometry, channel;
  bool integer, half, gathers;

  explicit Fetch(uint64_t info)
      : site(static_cast<uint32_t>(info)), geometry(info >> 32 & 7), channel(info >> 37 & 3),
        integer(info >> 35 & 1), half(info >> 36 & 1), gathers(info >> 39 & 1) {}
};

struct Texel {
  uint32_t bits[4];
};

// One lane's fetch: where it is for messages, and the texture.
struct Lane {
  va_warp *w;
  uint32_t site, lane;
  const va_texture *t;
  bool counts = true;  // what is read has a weight, and the checker is told of it
};

bool owned(uint64_t address) {
  uint64_t t = address - VA_ARENA_BASE;
  if (__builtin_expect(t >> VA_ARENA_SHIFT, 0)) return false;
  return *reinterpret_cast<const uint8_t *>(VA_SHADOW_BASE + (t >> VA_GRANULE_SHIFT)) != 0;
}

bool is_float(const va_texture &t) {
  if (t.format == VA_TEXEL_F16 || t.format == VA_TEXEL_F32) return true;
  return !t.as_integer && channel_bytes(t.format) < 4;
}

uint32_t scaled(int32_t value, int32_t most) {
  return bits_as<uint32_t>(static_cast<float>(std::fmax(static_cast<double>(value) / most, -1.0)));
}

// One channel as the 32 bits an instruction gives.
uint32_t channel_of(const va_texture &t, const uint8_t *p) {
  uint16_t wide;
  uint32_t word;
  switch (t.format) {
    case VA_TEXEL_U8:
      return t.as_integer ? *p : scaled(*p, 255);
    case VA_TEXEL_S8: {
      int32_t value = static_cast<int8_t>(*p);
      return t.as_integer ? static_cast<uint32_t>(value) : scaled(value, 127);
    }
    case VA_TEXEL_U16:
      std::memcpy(&wide, p, 2);
      return t.as_integer ? wide : scaled(wide, 65535);
    case VA_TEXEL_S16: {
      std::memcpy(&wide, p, 2);
      int32_t value = static_cast<int16_t>(wide);
      return t.as_integer ? static_cast<uint32_t>(value) : scaled(value, 32767);
    }
    case VA_TEXEL_F16:
      std::memcpy(&wide, p, 2);
      return is_nan16<F16>(wide) ? kNan32 : bits_as<uint32_t>(widen<F16>(wide));
    default:
      std::memcpy(&word, p, 4);
      return word;
  }
}

VA_INLINE Texel read_texel(const Lane &l, int64_t i, int64_t j, int64_t k) {
  const va_texture &t = *l.t;
  Texel texel{};
  if ((i | j | k) < 0) {
    if (t.layout != VA_LAYOUT_LINEAR) std::memcpy(texel.bits, t.border, sizeof texel.bits);
    return texel;
  }
  uint32_t size = channel_bytes(t.format);
  uint64_t at = t.base + static_cast<uint64_t>(k) * t.slice + static_cast<uint64_t>(j) * t.pitch +
                static_cast<uint64_t>(i) * size * t.channels;
  if (__builtin_expect(!owned(at) && !va_arena_accessible(at, 1), 0))
    fault(l.w, VA_FAULT_ILLEGAL_ADDRESS, l.site, l.lane, at, size * t.channels, kGlobal, false,
          nullptr);
  if (l.counts) check_texel(l.w, l.site, l.lane, at, size * t.channels, TexelAccess::kFetch);
  texel.bits[3] = is_float(t) ? kOne32 : 1;
  for (uint32_t c = 0; c < t.channels; c++)
    texel.bits[c] = channel_of(t, reinterpret_cast<const uint8_t *>(at) + c * size);
  return texel;
}

// Rounded down; the plain function is a call where the processor is not known to round.
double floor_of(double x) {
  if (std::fabs(x) >= 0x1p52 || std::isnan(x)) return x;
  const double cut = static_cast<double>(static_cast<int64_t>(x));
  return cut > x ? cut - 1 : cut;
}

double wrapped(double i, double period) {
  double rest = std::fmod(i, period);
  if (std::isnan(rest)) return 0;
  return rest < 0 ? rest + period : rest;
}

// The number of a texel that exists, or kOutside.
int64_t placed(const va_texture &t, double i, uint32_t extent, uint32_t mode) {
  double n = extent;
  bool inside = i >= 0 && i < n;
  if (t.layout == VA_LAYOUT_LINEAR) mode = VA_ADDRESS_BORDER;
  if (mode == VA_ADDRESS_BORDER) return inside ? static_cast<int64_t>(i) : kOutside;
  if (inside) return static_cast<int64_t>(i);
  if (t.normalized && mode == VA_ADDRESS_WRAP) return static_cast<int64_t>(wrapped(i, n));
  if (t.normalized && mode == VA_ADDRESS_MIRROR) {
    double r = wrapped(i, 2 * n);
    return static_cast<int64_t>(r < n ? r : 2 * n - 1 - r);
  }
  return i >= n ? static_cast<int64_t>(extent) - 1 : 0;
}

// The one or two texels of a dimension, and the weight of the second in 256ths.
struct Axis {
  int64_t first = 0, second = 0;
  double weight = 0;
};

Axis axis_of(const va_texture &t, double c, uint32_t extent, uint32_t mode, double offset,
             bool pair) {
  Axis axis;
  if (std::isnan(c)) c = 0;
  double shifted = pair ? c - kHalfTexel : c;
  double floor = floor_of(shifted);
  axis.first = placed(t, floor + offset, extent, mode);
  if (!pair) return axis;
  axis.second = placed(t, floor + offset + 1, extent, mode);
  double rest = shifted - floor;
  axis.weight = std::isnan(rest) ? 0 : floor_of(rest * kWeightSteps + kHalfTexel);
  return axis;
}

// Where in a texture a lane looks: coordinates in texels, and the slice, layer or face.
struct Spot {
  double at[3] = {0, 0, 0};
  uint32_t extent[3] = {1, 1, 1};
  uint32_t mode[3];
  uint32_t dimensions = 1;
  int64_t slice = 0;
};

// The face a direction meets, and where on it, as the programming guide tabulates; among equal
// components z counts before y before x, which it leaves open.
uint32_t face_of(const double d[3], double on_face[2]) {
  double x = std::fabs(d[0]), y = std::fabs(d[1]), z = std::fabs(d[2]);
  uint32_t face;
  double s, t, m;
  if (z >= x && z >= y) {
    face = d[2] < 0 ? 5 : 4;
    s = d[2] < 0 ? -d[0] : d[0], t = -d[1], m = z;
  } else if (y >= x) {
    face = d[1] < 0 ? 3 : 2;
    s = d[0], t = d[1] < 0 ? -d[2] : d[2], m = y;
  } else {
    face = d[0] < 0 ? 1 : 0;
    s = d[0] < 0 ? d[2] : -d[2], t = -d[1], m = x;
  }
  on_face[0] = (s / m + 1) / 2;
  on_face[1] = (t / m + 1) / 2;
  return face;
}

uint32_t slices_of(const va_texture &t) {
  uint32_t layers = t.layers > 1 ? t.layers : 1;
  return t.is_cube ? kFaces * layers : layers;
}

Spot spot_of(const va_texture &t, const Fetch &f, const uint32_t *coords, uint32_t lane) {
  Spot s;
  double given[3];
  for (uint32_t d = 0; d < 3; d++) {
    uint32_t bits = coords[(d + 1) * VA_LANES + lane];
    given[d] = f.integer ? static_cast<double>(static_cast<int32_t>(bits))
                         : static_cast<double>(bits_as<float>(bits));
    s.mode[d] = t.address[d];
  }
  uint32_t layer = coords[lane];
  bool cube = f.geometry == kCube || f.geometry == kACube;
  bool layered = f.geometry == kA1D || f.geometry == kA2D || f.geometry == kACube;
  s.dimensions = f.geometry == k3D ? 3 : f.geometry == k1D || f.geometry == kA1D ? 1 : 2;
  if (cube) {
    double on_face[2];
    uint32_t face = face_of(given, on_face);
    given[0] = on_face[0], given[1] = on_face[1];
    s.mode[0] = s.mode[1] = VA_ADDRESS_CLAMP;
    uint32_t cubes = t.layers > 1 ? t.layers : 1;
    uint32_t cube_number = layered ? std::min(layer, cubes - 1) : 0;
    s.slice = std::min(face + kFaces * cube_number, slices_of(t) - 1);
  } else if (layered) {
    s.slice = std::min(layer, slices_of(t) - 1);
  }
  uint32_t extents[3] = {t.width, t.height, t.depth};
  bool normalized = cube || (t.normalized && !f.integer);
  for (uint32_t d = 0; d < s.dimensions; d++) {
    s.extent[d] = extents[d] ? extents[d] : 1;
    s.at[d] = normalized ? given[d] * s.extent[d] : given[d];
  }
  return s;
}

uint32_t rounded(double sum) {
  return std::isnan(sum) ? kNan32 : bits_as<uint32_t>(static_cast<float>(sum));
}

// The weighted sum over two texels a dimension; the order of summation is x, then y, then z.
// Weights add up to 1 exactly, so channels that are not there stay what they are.
Texel filtered(const Lane &l, const Spot &s, const Axis axes[3]) {
  bool border = false;
  double weights[3][2];
  for (uint32_t d = 0; d < s.dimensions; d++) {
    border = border || (axes[d].first | axes[d].second) < 0;
    weights[d][0] = (kWeightSteps - axes[d].weight) / kWeightSteps;
    weights[d][1] = axes[d].weight / kWeightSteps;
  }
  const uint32_t channels = border ? 4 : l.t->channels, corners = 1u << s.dimensions;
  double sums[4] = {0, 0, 0, 0};
  Texel result;
  for (uint32_t corner = 0; corner < corners; corner++) {
    int64_t at[3] = {0, 0, 0};
    double weight = 1;
    for (uint32_t d = 0; d < s.dimensions; d++) {
      uint32_t second = corner >> d & 1;
      at[d] = second ? axes[d].second : axes[d].first;
      weight *= weights[d][second];
    }
    Lane here = l;
    here.counts = weight > 0;
    result = read_texel(here, at[0], at[1], s.dimensions == 3 ? at[2] : s.slice);
    for (uint32_t c = 0; c < channels; c++)
      sums[c] += weight * static_cast<double>(bits_as<float>(result.bits[c]));
  }
  for (uint32_t c = 0; c < channels; c++) result.bits[c] = rounded(sums[c]);
  return result;
}

// The four texels a linear filter would take, counter-clockwise from the lower left one.
Texel gathered(const Lane &l, const Fetch &f, const Spot &s, const Axis axes[3]) {
  const Axis &x = axes[0], &y = axes[1];
  const int64_t at[4][2] = {{x.first, y.second}, {x.second, y.second}, {x.second, y.first},
                            {x.first, y.first}};
  Texel result;
  for (uint32_t n = 0; n < 4; n++)
    result.bits[n] = read_texel(l, at[n][0], at[n][1], s.slice).bits[f.channel];
  return result;
}

Texel sampled(const Lane &l, const Fetch &f, const uint32_t *coords, const int32_t *offsets) {
  const va_texture &t = *l.t;
  Spot s = spot_of(t, f, coords, l.lane);
  bool linear = t.linear && !f.integer && is_float(t) && t.layout != VA_LAYOUT_LINEAR;
  Axis axes[3];
  for (uint32_t d = 0; d < s.dimensions; d++)
    axes[d] = axis_of(t, s.at[d], s.extent[d], s.mode[d],
                      offsets ? offsets[d * VA_LANES + l.lane] : 0, linear || f.gathers);
  if (f.gathers) return gathered(l, f, s, axes);
  if (linear) return filtered(l, s, axes);
  return read_texel(l, axes[0].first, axes[1].first, s.dimensions == 3 ? axes[2].first : s.slice);
}

uint32_t halved(const va_texture &t, uint32_t bits) {
  return is_float(t) ? nearest_f16(bits_as<float>(bits)) : bits & 0xffff;
}

void give(const va_texture &t, const Fetch &f, const Texel &texel, uint32_t lane, uint32_t *out) {
  if (f.half) {
    for (uint32_t n = 0; n < 2; n++)
      out[n * VA_LANES + lane] =
          halved(t, texel.bits[2 * n]) | halved(t, texel.bits[2 * n + 1]) << 16;
    return;
  }
  for (uint32_t n = 0; n < 4; n++) out[n * VA_LANES + lane] = texel.bits[n];
}

enum Query : uint32_t {
  kWidth, kHeight, kDepth, kDataType, kOrder, kNormalized, kArraySize, kLevels, kSamples,
  kUnnormalized, kFilter, kMode0, kMode1, kMode2, kMemoryLayout
};

// Address modes as PTX numbers them: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border.
uint32_t mode_number(uint32_t mode) {
  constexpr uint32_t numbers[] = {0, 3, 1, 4};
  return numbers[mode & 3];
}

uint32_t answer(const va_texture &t, uint32_t query) {
  switch (query) {
    case kWidth: return t.width;
    case kHeight: return t.height;
    case kDepth: return t.depth;
    case kDataType: return t.format;
    case kOrder: return t.channels;
    case kNormalized: return t.normalized;
    case kArraySize: return t.layers;
    case kLevels: return t.kind == VA_TEXTURE;
    case kSamples: return 0;
    case kUnnormalized: return 0;
    case kFilter: return t.linear;
    case kMemoryLayout: return t.layout != VA_LAYOUT_ARRAY;
    default: return mode_number(t.address[query - kMode0]);
  }
}

}  // namespace

const va_texture *texture_of(va_warp *w, uint32_t site, uint32_t lane, uint64_t number,
                             uint32_t kind) {
  const va_texture *found = find_texture(number);
  if (__builtin_expect(found && (found->kind & kind), 1)) return found;
  const char *wanted = kind == VA_SURFACE ? "surface" : "texture";
  const char *other = found ? found->kind == VA_SURFACE ? "; it is a surface object"
                                                        : "; it is a texture object"
                            : "";
  char text[96];
  snprintf(text, sizeof text, "0x%llx is no %s object%s", static_cast<unsigned long long>(number),
           wanted, other);
  fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site, lane, number, 0, 0, false, text);
}

}  // namespace va

extern "C" {

// coords: layer, x, y and z, 32 lanes each; offsets: x, y and z, or null; out: 32 lanes a register.
void va_h_texture_fetch(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *numbers,
                        const uint32_t *coords, const int32_t *offsets, uint32_t *out) {
  const va::Fetch f(info);
  va::Lane l{w, f.site, 0, nullptr, true};
  uint64_t last = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    l.lane = static_cast<uint32_t>(__builtin_ctz(m));
    if (!l.t || numbers[l.lane] != last) {
      last = numbers[l.lane];
      l.t = va::texture_of(w, f.site, l.lane, last, VA_TEXTURE);
    }
    va::give(*l.t, f, va::sampled(l, f, coords, offsets), l.lane, out);
  }
}

// info: the site, the query above it, and the kind of object above that.
void va_h_texture_query(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *numbers,
                        uint32_t *out) {
  uint32_t site = static_cast<uint32_t>(info), query = info >> 32 & 31, kind = info >> 37 & 3;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    out[lane] = va::answer(*va::texture_of(w, site, lane, numbers[lane], kind), query);
  }
}

// Lanes whose number stands for an object of a kind; none of kind 0.
uint32_t va_h_texture_is(uint32_t kind, uint32_t mask, const uint64_t *numbers) {
  uint32_t result = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    const va_texture *found = va::find_texture(numbers[lane]);
    result |= static_cast<uint32_t>(found && found->kind == kind) << lane;
  }
  return result;
}

}  // extern "C"

namespace va {

#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)

extern const HelperEntry kTextureHelpers[] = {
    {"va_h_texture_fetch", VA_ADDRESS(va_h_texture_fetch)},
    {"va_h_texture_query", VA_ADDRESS(va_h_texture_query)},
    {"va_h_texture_is", VA_ADDRESS(va_h_texture_is)},
    {nullptr, nullptr}};

}  // namespace va
