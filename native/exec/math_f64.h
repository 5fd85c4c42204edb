// 2**x, log2, tanh, sine and cosine in f64, within two units in the last place, for arguments that
// come from f32: what the approximate functions round to f32 or f16.
// No branches, no calls, no fused operations: loops vectorise, and every machine gets the same.
#pragma once

#include "math_lanes.h"

namespace va {

constexpr uint64_t kOne64 = 0x3ff0000000000000ull;
constexpr double kShifter = 0x1.8p52;  // added and taken away again, rounds to an integer

VA_INLINE double clamped(double x, double low, double high) {
  double floor = x < low ? low : x;
  return floor > high ? high : floor;  // a NaN stays
}

// Powers of ln 2 over factorials: 2**f - 1 over f, for |f| <= 1/2.  Two chains, of even and of odd
// powers, are ready sooner than one.
VA_INLINE double ex2_slope(double f) {
  double z = f * f;
  double even = 1.3691488853904128e-12, odd = 2.5678435993488205e-11;
  even = even * z + 4.4455382718708116e-10;
  odd = odd * z + 7.0549116208011235e-09;
  even = even * z + 1.0178086009239699e-07;
  odd = odd * z + 1.3215486790144309e-06;
  even = even * z + 1.5252733804059841e-05;
  odd = odd * z + 0.00015403530393381609;
  even = even * z + 0.0013333558146428443;
  odd = odd * z + 0.009618129107628477;
  even = even * z + 0.05550410866482158;
  odd = odd * z + 0.24022650695910072;
  return (even * z + f * odd) + 0.6931471805599453;
}

struct Power {
  double scale, fraction;  // 2**x is scale * 2**fraction
};

// |x| < 1022
VA_INLINE Power split_power(double x) {
  double shifted = x + kShifter;
  uint64_t exponent = bits_as<uint64_t>(shifted) << 52;
  return {bits_as<double>(exponent + kOne64), x - (shifted - kShifter)};
}

VA_INLINE double ex2_f64(double x) {
  Power power = split_power(clamped(x, -1020.0, 1020.0));
  return power.scale * (1.0 + power.fraction * ex2_slope(power.fraction));
}

// By t = e**2|x| - 1: tanh is t / (t + 2); past 20 it is 1 to more than f64's precision.
VA_INLINE double tanh_f64(double x) {
  double size = clamped(__builtin_fabs(x), 0.0, 20.0);
  Power power = split_power(size * 2.8853900817779268);
  double less = power.fraction * ex2_slope(power.fraction);
  double t = power.scale * less + (power.scale - 1.0);
  return __builtin_copysign(t / (t + 2.0), x);
}

// By the series of atanh in s = (m - 1) / (m + 1), m between the roots of 1/2 and 2.
VA_INLINE double lg2_f64(double x) {
  constexpr uint64_t kRootHalf = 0x3fe6a09e00000000ull;
  uint64_t bits = bits_as<uint64_t>(x);
  uint64_t field = (bits - kRootHalf + kOne64) >> 52;  // the exponent, biased
  double m = bits_as<double>(bits - (field << 52) + kOne64);
  double exponent = bits_as<double>(field | 0x4330000000000000ull) - (0x1p52 + 1023.0);
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double y = z * z;
  double even = 0.16972882833987804, odd = 0.15186263588304878;
  even = even * y + 0.22195308321368667;
  odd = odd * y + 0.1923593387851951;
  even = even * y + 0.32059889797532517;
  odd = odd * y + 0.2623081892525388;
  even = even * y + 0.5770780163555854;
  odd = odd * y + 0.41219858311113244;
  odd = odd * y + 0.9617966939259756;
  double p = (even * y + z * odd) + 2.8853900817779268;
  double finite = exponent + s * p;
  double infinity = __builtin_inf();
  double large = x == infinity ? infinity : finite;
  double small = x == 0.0 ? -infinity : __builtin_nan("");
  return x > 0.0 ? large : x != x ? x : small;
}

struct Angle {
  double sine, cosine;  // of what is left past the nearest quarter turn
  uint64_t quadrant;    // its two lowest bits count
};

// t is in turns; from 2**24 on an f32 is whole ones.
VA_INLINE Angle split_turn(double t) {
  double part = __builtin_fabs(t) < 0x1p24 ? t : t - t;
  double shifted = 4.0 * part + kShifter;
  double x = 6.283185307179586 * (part - 0.25 * (shifted - kShifter));
  double z = x * x;
  double s = -7.647163731819816e-13;
  s = s * z + 1.6059043836821613e-10;
  s = s * z + -2.505210838544172e-08;
  s = s * z + 2.7557319223985893e-06;
  s = s * z + -0.0001984126984126984;
  s = s * z + 0.008333333333333333;
  s = s * z + -0.16666666666666666;
  double c = 4.779477332387385e-14;
  c = c * z + -1.1470745597729725e-11;
  c = c * z + 2.08767569878681e-09;
  c = c * z + -2.755731922398589e-07;
  c = c * z + 2.48015873015873e-05;
  c = c * z + -0.001388888888888889;
  c = c * z + 0.041666666666666664;
  return {x + x * (z * s), 1.0 - (0.5 * z - z * z * c), bits_as<uint64_t>(shifted)};
}

// A zero is +0.
VA_INLINE double with_sign(double value, uint64_t quadrant) {
  double given = bits_as<double>(bits_as<uint64_t>(value) ^ (quadrant & 2) << 62);
  return given == 0.0 ? 0.0 : given;
}

// Of an angle in turns; a zero keeps its sign.
VA_INLINE double sin_f64(double t) {
  Angle angle = split_turn(t);
  double size = angle.quadrant & 1 ? angle.cosine : angle.sine;
  return t == 0.0 ? t : with_sign(size, angle.quadrant);
}
VA_INLINE double cos_f64(double t) {
  Angle angle = split_turn(t);
  return with_sign(angle.quadrant & 1 ? angle.sine : angle.cosine, angle.quadrant + 1);
}

}  // namespace va
