// Scalar functions with the same result on every machine (no libm, no contraction).
#pragma once

#include "lanes.h"

// f32 denormals flushed to a zero of the same sign.
SIM_INLINE float flush(float x) {
  const u32 bits = as_u32(x);
  return as_f32(bits & 0x7f800000u ? bits : bits & 0x80000000u);
}

SIM_INLINE u32 to_i32(float x) {
  if (x != x) return 0;
  if (x >= 2147483648.f) return 0x7fffffffu;
  if (x <= -2147483648.f) return 0x80000000u;
  return (u32)(i32)x;
}

SIM_INLINE u32 to_u32(float x) {
  if (!(x > 0)) return 0;
  if (x >= 4294967296.f) return 0xffffffffu;
  return (u32)x;
}

namespace math {

// x * 2^n through double: exact product, one rounding.
SIM_INLINE float scale_by_power(float x, i32 power) {
  const i64 exponent = 1023 + (power < -400 ? -400 : power > 400 ? 400 : power);
  return (float)((double)x * as_f64((u64)exponent << 52));
}

SIM_INLINE float mantissa(float x) {
  if (!(std::fabs(x) < INFINITY)) return x;
  int e;
  return std::frexp(x, &e);
}
SIM_INLINE int exponent(float x) {
  if (!(std::fabs(x) < INFINITY) || x == 0) return 0;
  int e;
  std::frexp(x, &e);
  return e;
}

// log2 by the series of atanh((m - 1) / (m + 1)) in double, m in [sqrt(1/2), sqrt(2)).
SIM_INLINE float log2(float x) {
  if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
  if (x == INFINITY) return x;
  int e;
  double m = std::frexp((double)x, &e);
  if (m < 0.70710678118654752440) {
    m *= 2;
    e -= 1;
  }
  const double t = (m - 1) / (m + 1);
  const double t2 = t * t;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * t2 + 1.0 / k;
  return (float)(e + 2.8853900817779268147 * t * series);
}

SIM_INLINE float exp2(float x) {
  if (x != x) return x;
  if (x >= 128.f) return INFINITY;
  if (x < -150.f) return 0.f;
  const double whole = std::nearbyint((double)x);
  const double y = ((double)x - whole) * 0.69314718055994530942;
  double series = 1;
  for (int k = 13; k >= 1; k--) series = 1 + series * y / k;
  return (float)std::ldexp(series, (int)whole);
}

// sin(2 pi r) for r in [-1/4, 1/4].
SIM_INLINE double sin_quarter(double r) {
  const double y = 6.28318530717958647693 * r;
  const double y2 = y * y;
  double series = 1;
  for (int k = 21; k >= 3; k -= 2) series = 1 - series * y2 / (k * (k - 1));
  return y * series;
}

// sin and cos of an angle in turns, as v_sin_f32 and v_cos_f32 take it.
SIM_INLINE float sin_turns(float x) {
  if (!(std::fabs(x) < INFINITY)) return NAN;
  double r = (double)x - std::nearbyint((double)x);
  if (r > 0.25) r = 0.5 - r;
  if (r < -0.25) r = -0.5 - r;
  return (float)sin_quarter(r);
}
SIM_INLINE float cos_turns(float x) {
  if (!(std::fabs(x) < INFINITY)) return NAN;
  const double r = std::fabs((double)x - std::nearbyint((double)x));
  return (float)sin_quarter(0.25 - r);
}

}  // namespace math
