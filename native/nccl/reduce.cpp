#include "reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "nccl_entry.h"

namespace va::nccl {
namespace {

template <typename To, typename From> To bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "same width");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// Half precision in 16 bits; arithmetic goes through float, which is wide enough that rounding
// twice is rounding once.
struct Half {
  uint16_t raw;
  float value() const {
    const uint32_t sign = static_cast<uint32_t>(raw & 0x8000) << 16;
    uint32_t exponent = raw >> 10 & 31, fraction = raw & 0x3FF;
    if (exponent == 31)
      return bits<float>(sign | 0x7F800000 | fraction << 13);
    if (!exponent) // a subnormal, exact in float
      return std::copysign(static_cast<float>(fraction) * 0x1p-24f, bits<float>(sign | 1));
    return bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
  }
  static Half of(float value) {
    const uint32_t all = bits<uint32_t>(value), sign = all >> 16 & 0x8000, rest = all & 0x7FFFFFFF;
    if (rest > 0x7F800000)
      return {0x7FFF}; // the one NaN that the card makes
    if (rest >= 0x477FF000)
      return {static_cast<uint16_t>(sign | 0x7C00)};
    if (rest < 0x38800000) { // below the least normal number: count units of 2^-24
      const float units = std::nearbyint(bits<float>(rest) * 0x1p24f);
      return {static_cast<uint16_t>(sign | static_cast<uint32_t>(units))};
    }
    const uint32_t rounded = rest + 0xFFF + (rest >> 13 & 1);
    return {static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13)};
  }
};

struct Brain {
  uint16_t raw;
  float value() const { return bits<float>(static_cast<uint32_t>(raw) << 16); }
  static Brain of(float value) {
    const uint32_t all = bits<uint32_t>(value);
    if ((all & 0x7FFFFFFF) > 0x7F800000)
      return {0x7FFF};
    return {static_cast<uint16_t>((all + 0x7FFF + (all >> 16 & 1)) >> 16)};
  }
};

template <typename T> struct Number { // as arithmetic takes it
  using Wide = T;
  static Wide widen(T value) { return value; }
  static T narrow(Wide value) { return value; }
};
template <> struct Number<Half> {
  using Wide = float;
  static float widen(Half value) { return value.value(); }
  static Half narrow(float value) { return Half::of(value); }
};
template <> struct Number<Brain> {
  using Wide = float;
  static float widen(Brain value) { return value.value(); }
  static Brain narrow(float value) { return Brain::of(value); }
};

// Integers wrap, whatever their sign.
template <typename W, typename Apply> W wrapped(W a, W b, Apply apply) {
  if constexpr (std::is_integral_v<W>) {
    using U = std::common_type_t<std::make_unsigned_t<W>, unsigned>; // narrow types widen to int
    return static_cast<W>(apply(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return apply(a, b);
  }
}

struct Add {
  template <typename W> W operator()(W a, W b) const {
    return wrapped(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Multiply {
  template <typename W> W operator()(W a, W b) const {
    return wrapped(a, b, [](auto x, auto y) { return x * y; });
  }
};
// A NaN loses against a number, as the card's min and max have it.
struct Larger {
  template <typename W> W operator()(W a, W b) const {
    if constexpr (std::is_floating_point_v<W>)
      return std::fmax(a, b);
    else
      return a < b ? b : a;
  }
};
struct Smaller {
  template <typename W> W operator()(W a, W b) const {
    if constexpr (std::is_floating_point_v<W>)
      return std::fmin(a, b);
    else
      return b < a ? b : a;
  }
};

constexpr size_t kBlock = 512;

template <typename T, typename Op>
void reduce_as(const void *const *inputs, size_t input_count, void *to, size_t count,
               uint64_t divide_by) {
  using N = Number<T>;
  using W = typename N::Wide;
  W sums[kBlock];
  const Op op;
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t here = std::min(kBlock, count - first);
    for (size_t k = 0; k < input_count; ++k) {
      const T *const from = static_cast<const T *>(inputs[k]) + first;
      if (!k)
        for (size_t i = 0; i < here; ++i)
          sums[i] = N::widen(from[i]);
      else
        for (size_t i = 0; i < here; ++i)
          sums[i] = N::widen(N::narrow(op(sums[i], N::widen(from[i]))));
    }
    if constexpr (std::is_integral_v<W>)
      if (divide_by)
        for (size_t i = 0; i < here; ++i)
          sums[i] = static_cast<W>(sums[i] / static_cast<W>(divide_by));
    T *const out = static_cast<T *>(to) + first;
    for (size_t i = 0; i < here; ++i)
      out[i] = N::narrow(sums[i]);
  }
}

template <typename T>
void reduce_type(ReduceOp op, const void *const *inputs, size_t input_count, void *to, size_t count,
                 uint64_t divide_by) {
  switch (op) {
  case kProd:
    return reduce_as<T, Multiply>(inputs, input_count, to, count, divide_by);
  case kMax:
    return reduce_as<T, Larger>(inputs, input_count, to, count, divide_by);
  case kMin:
    return reduce_as<T, Smaller>(inputs, input_count, to, count, divide_by);
  default:
    return reduce_as<T, Add>(inputs, input_count, to, count, divide_by);
  }
}

// Calls `visit` with a value of the type; narrow floats of eight bits have no arithmetic here.
template <typename Visit> void with_type(int type, Visit visit) {
  switch (type) {
  case kInt8:
    return visit(int8_t{});
  case kUint8:
    return visit(uint8_t{});
  case kInt32:
    return visit(int32_t{});
  case kUint32:
    return visit(uint32_t{});
  case kInt64:
    return visit(int64_t{});
  case kUint64:
    return visit(uint64_t{});
  case kFloat16:
    return visit(Half{});
  case kFloat32:
    return visit(float{});
  case kFloat64:
    return visit(double{});
  case kBfloat16:
    return visit(Brain{});
  default:
    fail(ncclInvalidArgument, "no arithmetic on data type %d", type);
  }
}

} // namespace

void reduce(int type, ReduceOp op, const void *const *inputs, size_t input_count, void *to,
            size_t count, uint64_t divide_by) {
  with_type(type, [&](auto zero) {
    reduce_type<decltype(zero)>(op, inputs, input_count, to, count, divide_by);
  });
}

void scale(int type, const void *from, void *to, size_t count, uint64_t factor_bits) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using N = Number<T>;
    T factor;
    std::memcpy(&factor, &factor_bits, sizeof factor);
    const auto wide = N::widen(factor);
    for (size_t i = 0; i < count; ++i)
      static_cast<T *>(to)[i] =
          N::narrow(Multiply{}(N::widen(static_cast<const T *>(from)[i]), wide));
  });
}

uint64_t reciprocal(int type, int ranks) {
  uint64_t result = 0;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using W = typename Number<T>::Wide;
    if constexpr (std::is_floating_point_v<W>) {
      const T value = Number<T>::narrow(static_cast<W>(1.0 / ranks));
      std::memcpy(&result, &value, sizeof value);
    }
  });
  return result;
}

} // namespace va::nccl
