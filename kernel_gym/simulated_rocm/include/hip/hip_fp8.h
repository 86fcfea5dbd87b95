// 8-bit floats for HIP before 6.2, which has no hip/hip_fp8.h. Names and meaning follow HIP 6: the
// `fnuz` formats of gfx942 (one NaN, no infinity, no negative zero) and the OCP formats.
#pragma once

#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#define __FP8_HOST_DEVICE__ __host__ __device__ inline

typedef unsigned char __hip_fp8_storage_t;
typedef unsigned short __hip_fp8x2_storage_t;
typedef unsigned __hip_fp8x4_storage_t;
enum __hip_saturation_t { __HIP_NOSAT = 0, __HIP_SATFINITE = 1 };
enum __hip_fp8_interpretation_t {
  __HIP_E4M3 = 0,
  __HIP_E5M2 = 1,
  __HIP_E4M3_FNUZ = 2,
  __HIP_E5M2_FNUZ = 3,
};

namespace kernel_gym_fp8 {

// `mantissa` bits and the bias of a format; `top`: the code of its largest finite number.
struct Format {
  int mantissa, bias;
  unsigned top, infinity, nan;
};
__FP8_HOST_DEVICE__ Format format(__hip_fp8_interpretation_t kind) {
  switch (kind) {
    case __HIP_E4M3: return {3, 7, 0x7e, 0x7f, 0x7f};
    case __HIP_E5M2: return {2, 15, 0x7b, 0x7c, 0x7f};
    case __HIP_E4M3_FNUZ: return {3, 8, 0x7f, 0x80, 0x80};
    default: return {2, 16, 0x7f, 0x80, 0x80};
  }
}
__FP8_HOST_DEVICE__ bool is_fnuz(__hip_fp8_interpretation_t kind) { return kind >= __HIP_E4M3_FNUZ; }

// Rounds to nearest even.
__FP8_HOST_DEVICE__ __hip_fp8_storage_t rounded(float value, __hip_saturation_t saturate,
                                                __hip_fp8_interpretation_t kind) {
  const Format f = format(kind);
  unsigned word;
  __builtin_memcpy(&word, &value, sizeof word);
  const unsigned sign = word >> 31 << 7;
  const unsigned magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<__hip_fp8_storage_t>(f.nan);
  unsigned code;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + f.bias;
  if (exponent >= 40) {
    code = 0x100;  // also infinity
  } else {
    const unsigned significand = (magnitude & 0x7fffff) | (magnitude >> 23 ? 0x800000 : 0);
    const int shift = 23 - f.mantissa + (exponent < 1 ? 1 - exponent : 0);
    if (shift > 25) {
      code = 0;
    } else {
      const unsigned kept = significand >> shift, rest = significand & ((1u << shift) - 1);
      const unsigned middle = 1u << (shift - 1);
      code = kept + (rest > middle || (rest == middle && (kept & 1)) ? 1 : 0);
      if (exponent > 1) code += static_cast<unsigned>(exponent - 1) << f.mantissa;
    }
  }
  if (code > f.top) {
    code = saturate == __HIP_SATFINITE ? f.top : f.infinity;
    if (code == 0x80) return 0x80;
  }
  if (!code && is_fnuz(kind)) return 0;
  return static_cast<__hip_fp8_storage_t>(sign | code);
}

__FP8_HOST_DEVICE__ float widened(__hip_fp8_storage_t code, __hip_fp8_interpretation_t kind) {
  const Format f = format(kind);
  const unsigned magnitude = code & 0x7f;
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (is_fnuz(kind) ? code == 0x80 : magnitude > f.top) {
    return kind == __HIP_E5M2 && magnitude == f.infinity ? sign * __builtin_inff()
                                                         : __builtin_nanf("");
  }
  const int exponent = static_cast<int>(magnitude >> f.mantissa);
  const int significand = static_cast<int>(magnitude & ((1u << f.mantissa) - 1));
  const int whole = exponent ? significand + (1 << f.mantissa) : significand;
  const int power = (exponent ? exponent : 1) - f.bias - f.mantissa;
  const unsigned scale_word = static_cast<unsigned>(power + 127) << 23;
  float scale;
  __builtin_memcpy(&scale, &scale_word, sizeof scale);
  return sign * static_cast<float>(whole) * scale;
}

template <__hip_fp8_interpretation_t kind>
struct Number {
  __hip_fp8_storage_t __x;

  Number() = default;
  __FP8_HOST_DEVICE__ Number(float value) : __x(rounded(value, __HIP_SATFINITE, kind)) {}
  __FP8_HOST_DEVICE__ Number(double value) : Number(static_cast<float>(value)) {}
  __FP8_HOST_DEVICE__ Number(int value) : Number(static_cast<float>(value)) {}
  __FP8_HOST_DEVICE__ Number(__half value) : Number(__half2float(value)) {}
  __FP8_HOST_DEVICE__ operator float() const { return widened(__x, kind); }
};
template <__hip_fp8_interpretation_t kind>
struct Pair {
  __hip_fp8x2_storage_t __x;

  Pair() = default;
  __FP8_HOST_DEVICE__ Pair(float2 value)
      : __x(static_cast<unsigned short>(rounded(value.x, __HIP_SATFINITE, kind) |
                                        rounded(value.y, __HIP_SATFINITE, kind) << 8)) {}
  __FP8_HOST_DEVICE__ operator float2() const {
    return {widened(__x & 0xff, kind), widened(static_cast<unsigned char>(__x >> 8), kind)};
  }
};
template <__hip_fp8_interpretation_t kind>
struct Four {
  __hip_fp8x4_storage_t __x;

  Four() = default;
  __FP8_HOST_DEVICE__ Four(float4 value)
      : __x(Pair<kind>(float2{value.x, value.y}).__x |
            static_cast<unsigned>(Pair<kind>(float2{value.z, value.w}).__x) << 16) {}
  __FP8_HOST_DEVICE__ operator float4() const {
    Pair<kind> low, high;
    low.__x = static_cast<unsigned short>(__x);
    high.__x = static_cast<unsigned short>(__x >> 16);
    const float2 a = low, b = high;
    return {a.x, a.y, b.x, b.y};
  }
};

}  // namespace kernel_gym_fp8

using __hip_fp8_e4m3 = kernel_gym_fp8::Number<__HIP_E4M3>;
using __hip_fp8_e5m2 = kernel_gym_fp8::Number<__HIP_E5M2>;
using __hip_fp8_e4m3_fnuz = kernel_gym_fp8::Number<__HIP_E4M3_FNUZ>;
using __hip_fp8_e5m2_fnuz = kernel_gym_fp8::Number<__HIP_E5M2_FNUZ>;
using __hip_fp8x2_e4m3 = kernel_gym_fp8::Pair<__HIP_E4M3>;
using __hip_fp8x2_e5m2 = kernel_gym_fp8::Pair<__HIP_E5M2>;
using __hip_fp8x2_e4m3_fnuz = kernel_gym_fp8::Pair<__HIP_E4M3_FNUZ>;
using __hip_fp8x2_e5m2_fnuz = kernel_gym_fp8::Pair<__HIP_E5M2_FNUZ>;
using __hip_fp8x4_e4m3 = kernel_gym_fp8::Four<__HIP_E4M3>;
using __hip_fp8x4_e5m2 = kernel_gym_fp8::Four<__HIP_E5M2>;
using __hip_fp8x4_e4m3_fnuz = kernel_gym_fp8::Four<__HIP_E4M3_FNUZ>;
using __hip_fp8x4_e5m2_fnuz = kernel_gym_fp8::Four<__HIP_E5M2_FNUZ>;

__FP8_HOST_DEVICE__ __hip_fp8_storage_t __hip_cvt_float_to_fp8(float value,
                                                               __hip_saturation_t saturate,
                                                               __hip_fp8_interpretation_t kind) {
  return kernel_gym_fp8::rounded(value, saturate, kind);
}
__FP8_HOST_DEVICE__ __hip_fp8_storage_t __hip_cvt_double_to_fp8(double value,
                                                                __hip_saturation_t saturate,
                                                                __hip_fp8_interpretation_t kind) {
  return kernel_gym_fp8::rounded(static_cast<float>(value), saturate, kind);
}
__FP8_HOST_DEVICE__ __hip_fp8x2_storage_t __hip_cvt_float2_to_fp8x2(
    float2 value, __hip_saturation_t saturate, __hip_fp8_interpretation_t kind) {
  const unsigned high = kernel_gym_fp8::rounded(value.y, saturate, kind);
  return static_cast<__hip_fp8x2_storage_t>(kernel_gym_fp8::rounded(value.x, saturate, kind) |
                                            high << 8);
}
__FP8_HOST_DEVICE__ __hip_fp8_storage_t __hip_cvt_halfraw_to_fp8(__half_raw value,
                                                                 __hip_saturation_t saturate,
                                                                 __hip_fp8_interpretation_t kind) {
  return kernel_gym_fp8::rounded(__half2float(__half(value)), saturate, kind);
}
__FP8_HOST_DEVICE__ __half_raw __hip_cvt_fp8_to_halfraw(__hip_fp8_storage_t code,
                                                        __hip_fp8_interpretation_t kind) {
  return __half_raw(__float2half(kernel_gym_fp8::widened(code, kind)));
}

#undef __FP8_HOST_DEVICE__
