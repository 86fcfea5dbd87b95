// bfloat16 for HIP before 5.7, which has no hip/hip_bf16.h. Names and meaning follow HIP 6.
// Conversions round to nearest even; arithmetic is that of float, rounded once.
#pragma once

#include <hip/hip_runtime.h>

#define __HOST_DEVICE__ __host__ __device__ inline

struct __hip_bfloat16_raw {
  unsigned short x;
};
struct __hip_bfloat162_raw {
  unsigned short x, y;
};

namespace kernel_gym_bf16 {

__HOST_DEVICE__ unsigned bits(float value) {
  unsigned word;
  __builtin_memcpy(&word, &value, sizeof word);
  return word;
}
__HOST_DEVICE__ float widened(unsigned short value) {
  const unsigned word = static_cast<unsigned>(value) << 16;
  float result;
  __builtin_memcpy(&result, &word, sizeof result);
  return result;
}
__HOST_DEVICE__ unsigned short rounded(float value) {
  const unsigned word = bits(value);
  if ((word & 0x7fffffff) > 0x7f800000) return static_cast<unsigned short>(word >> 16 | 0x40);
  return static_cast<unsigned short>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

}  // namespace kernel_gym_bf16

struct __hip_bfloat16 {
  unsigned short __x;

  __hip_bfloat16() = default;
  __HOST_DEVICE__ __hip_bfloat16(const __hip_bfloat16_raw& raw) : __x(raw.x) {}
  __HOST_DEVICE__ __hip_bfloat16(float value) : __x(kernel_gym_bf16::rounded(value)) {}
  __HOST_DEVICE__ __hip_bfloat16(double value) : __hip_bfloat16(static_cast<float>(value)) {}
  __HOST_DEVICE__ __hip_bfloat16(int value) : __hip_bfloat16(static_cast<float>(value)) {}
  __HOST_DEVICE__ __hip_bfloat16(unsigned value) : __hip_bfloat16(static_cast<float>(value)) {}
  __HOST_DEVICE__ __hip_bfloat16(long long value) : __hip_bfloat16(static_cast<float>(value)) {}
  __HOST_DEVICE__ operator float() const { return kernel_gym_bf16::widened(__x); }
  __HOST_DEVICE__ operator __hip_bfloat16_raw() const { return {__x}; }
  __HOST_DEVICE__ __hip_bfloat16& operator+=(__hip_bfloat16 b) { return *this = sum(float(b)); }
  __HOST_DEVICE__ __hip_bfloat16& operator-=(__hip_bfloat16 b) { return *this = sum(-float(b)); }
  __HOST_DEVICE__ __hip_bfloat16& operator*=(__hip_bfloat16 b) {
    return *this = __hip_bfloat16(float(*this) * float(b));
  }
  __HOST_DEVICE__ __hip_bfloat16& operator/=(__hip_bfloat16 b) {
    return *this = __hip_bfloat16(float(*this) / float(b));
  }

 private:
  __HOST_DEVICE__ __hip_bfloat16 sum(float b) const { return __hip_bfloat16(float(*this) + b); }
};

struct __hip_bfloat162 {
  __hip_bfloat16 x, y;

  __hip_bfloat162() = default;
  __HOST_DEVICE__ __hip_bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) : x(a), y(b) {}
  __HOST_DEVICE__ __hip_bfloat162(const __hip_bfloat162_raw& raw)
      : x(__hip_bfloat16_raw{raw.x}), y(__hip_bfloat16_raw{raw.y}) {}
  __HOST_DEVICE__ __hip_bfloat162(const float2& value) : x(value.x), y(value.y) {}
  __HOST_DEVICE__ operator float2() const { return {float(x), float(y)}; }
};

// -- conversions -------------------------------------------------------------------------------------

__HOST_DEVICE__ __hip_bfloat16 __float2bfloat16(float a) { return a; }
__HOST_DEVICE__ __hip_bfloat16 __float2bfloat16_rn(float a) { return a; }
__HOST_DEVICE__ __hip_bfloat16 __double2bfloat16(double a) { return a; }
__HOST_DEVICE__ __hip_bfloat16 __int2bfloat16_rn(int a) { return a; }
__HOST_DEVICE__ float __bfloat162float(__hip_bfloat16 a) { return a; }
__HOST_DEVICE__ int __bfloat162int_rz(__hip_bfloat16 a) { return static_cast<int>(float(a)); }
__HOST_DEVICE__ __hip_bfloat162 __float2bfloat162_rn(float a) { return {a, a}; }
__HOST_DEVICE__ __hip_bfloat162 __floats2bfloat162_rn(float a, float b) { return {a, b}; }
__HOST_DEVICE__ __hip_bfloat162 __float22bfloat162_rn(float2 a) { return {a.x, a.y}; }
__HOST_DEVICE__ float2 __bfloat1622float2(__hip_bfloat162 a) { return a; }
__HOST_DEVICE__ __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 a) { return {a, a}; }
__HOST_DEVICE__ __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) {
  return {a, b};
}
__HOST_DEVICE__ __hip_bfloat16 __low2bfloat16(__hip_bfloat162 a) { return a.x; }
__HOST_DEVICE__ __hip_bfloat16 __high2bfloat16(__hip_bfloat162 a) { return a.y; }
__HOST_DEVICE__ float __low2float(__hip_bfloat162 a) { return a.x; }
__HOST_DEVICE__ float __high2float(__hip_bfloat162 a) { return a.y; }
__HOST_DEVICE__ __hip_bfloat162 __low2bfloat162(__hip_bfloat162 a) { return {a.x, a.x}; }
__HOST_DEVICE__ __hip_bfloat162 __high2bfloat162(__hip_bfloat162 a) { return {a.y, a.y}; }
__HOST_DEVICE__ __hip_bfloat162 __lowhigh2highlow(__hip_bfloat162 a) { return {a.y, a.x}; }
__HOST_DEVICE__ short __bfloat16_as_short(__hip_bfloat16 a) { return static_cast<short>(a.__x); }
__HOST_DEVICE__ unsigned short __bfloat16_as_ushort(__hip_bfloat16 a) { return a.__x; }
__HOST_DEVICE__ __hip_bfloat16 __ushort_as_bfloat16(unsigned short a) {
  return __hip_bfloat16_raw{a};
}
__HOST_DEVICE__ __hip_bfloat16 __short_as_bfloat16(short a) {
  return __hip_bfloat16_raw{static_cast<unsigned short>(a)};
}

// -- arithmetic ----------------------------------------------------------------------------------------

#define KERNEL_GYM_BINARY(op, name)                                                               \
  __HOST_DEVICE__ __hip_bfloat16 operator op(__hip_bfloat16 a, __hip_bfloat16 b) {                \
    return __hip_bfloat16(float(a) op float(b));                                                  \
  }                                                                                               \
  __HOST_DEVICE__ __hip_bfloat16 name(__hip_bfloat16 a, __hip_bfloat16 b) { return a op b; }      \
  __HOST_DEVICE__ __hip_bfloat162 operator op(__hip_bfloat162 a, __hip_bfloat162 b) {             \
    return {a.x op b.x, a.y op b.y};                                                              \
  }                                                                                               \
  __HOST_DEVICE__ __hip_bfloat162 name##2(__hip_bfloat162 a, __hip_bfloat162 b) { return a op b; }
KERNEL_GYM_BINARY(+, __hadd)
KERNEL_GYM_BINARY(-, __hsub)
KERNEL_GYM_BINARY(*, __hmul)
#undef KERNEL_GYM_BINARY
__HOST_DEVICE__ __hip_bfloat16 operator/(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(float(a) / float(b));
}
__HOST_DEVICE__ __hip_bfloat16 __hdiv(__hip_bfloat16 a, __hip_bfloat16 b) { return a / b; }
__HOST_DEVICE__ __hip_bfloat162 __h2div(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {a.x / b.x, a.y / b.y};
}
__HOST_DEVICE__ __hip_bfloat16 __hfma(__hip_bfloat16 a, __hip_bfloat16 b, __hip_bfloat16 c) {
  return __hip_bfloat16(__builtin_fmaf(a, b, c));
}
__HOST_DEVICE__ __hip_bfloat162 __hfma2(__hip_bfloat162 a, __hip_bfloat162 b, __hip_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
__HOST_DEVICE__ __hip_bfloat16 operator-(__hip_bfloat16 a) {
  return __hip_bfloat16_raw{static_cast<unsigned short>(a.__x ^ 0x8000)};
}
__HOST_DEVICE__ __hip_bfloat16 __hneg(__hip_bfloat16 a) { return -a; }
__HOST_DEVICE__ __hip_bfloat162 __hneg2(__hip_bfloat162 a) { return {-a.x, -a.y}; }
__HOST_DEVICE__ __hip_bfloat16 __habs(__hip_bfloat16 a) {
  return __hip_bfloat16_raw{static_cast<unsigned short>(a.__x & 0x7fff)};
}
__HOST_DEVICE__ __hip_bfloat162 __habs2(__hip_bfloat162 a) { return {__habs(a.x), __habs(a.y)}; }

// -- comparisons ---------------------------------------------------------------------------------------

#define KERNEL_GYM_COMPARE(op, name)                                                              \
  __HOST_DEVICE__ bool operator op(__hip_bfloat16 a, __hip_bfloat16 b) {                          \
    return float(a) op float(b);                                                                  \
  }                                                                                               \
  __HOST_DEVICE__ bool name(__hip_bfloat16 a, __hip_bfloat16 b) { return a op b; }
KERNEL_GYM_COMPARE(==, __heq)
KERNEL_GYM_COMPARE(!=, __hne)
KERNEL_GYM_COMPARE(<, __hlt)
KERNEL_GYM_COMPARE(<=, __hle)
KERNEL_GYM_COMPARE(>, __hgt)
KERNEL_GYM_COMPARE(>=, __hge)
#undef KERNEL_GYM_COMPARE
__HOST_DEVICE__ bool __hisnan(__hip_bfloat16 a) { return (a.__x & 0x7fff) > 0x7f80; }
__HOST_DEVICE__ int __hisinf(__hip_bfloat16 a) {
  return (a.__x & 0x7fff) != 0x7f80 ? 0 : a.__x >> 15 ? -1 : 1;
}
__HOST_DEVICE__ __hip_bfloat16 __hmax(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(__builtin_fmaxf(a, b));
}
__HOST_DEVICE__ __hip_bfloat16 __hmin(__hip_bfloat16 a, __hip_bfloat16 b) {
  return __hip_bfloat16(__builtin_fminf(a, b));
}
__HOST_DEVICE__ __hip_bfloat162 __hmax2(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
__HOST_DEVICE__ __hip_bfloat162 __hmin2(__hip_bfloat162 a, __hip_bfloat162 b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}

// -- functions -----------------------------------------------------------------------------------------

#define KERNEL_GYM_FUNCTION(name, function)                                                       \
  __device__ inline __hip_bfloat16 name(__hip_bfloat16 a) { return __hip_bfloat16(function(a)); }  \
  __device__ inline __hip_bfloat162 h2##name(__hip_bfloat162 a) {                                 \
    return {__hip_bfloat16(function(a.x)), __hip_bfloat16(function(a.y))};                        \
  }
namespace kernel_gym_bf16 {
KERNEL_GYM_FUNCTION(exp, ::expf)
KERNEL_GYM_FUNCTION(exp2, ::exp2f)
KERNEL_GYM_FUNCTION(log, ::logf)
KERNEL_GYM_FUNCTION(log2, ::log2f)
KERNEL_GYM_FUNCTION(sqrt, ::sqrtf)
KERNEL_GYM_FUNCTION(rsqrt, ::rsqrtf)
KERNEL_GYM_FUNCTION(sin, ::sinf)
KERNEL_GYM_FUNCTION(cos, ::cosf)
KERNEL_GYM_FUNCTION(ceil, ::ceilf)
KERNEL_GYM_FUNCTION(floor, ::floorf)
KERNEL_GYM_FUNCTION(rint, ::rintf)
KERNEL_GYM_FUNCTION(trunc, ::truncf)
}  // namespace kernel_gym_bf16
#undef KERNEL_GYM_FUNCTION
__device__ inline __hip_bfloat16 hexp(__hip_bfloat16 a) { return kernel_gym_bf16::exp(a); }
__device__ inline __hip_bfloat16 hexp2(__hip_bfloat16 a) { return kernel_gym_bf16::exp2(a); }
__device__ inline __hip_bfloat16 hlog(__hip_bfloat16 a) { return kernel_gym_bf16::log(a); }
__device__ inline __hip_bfloat16 hlog2(__hip_bfloat16 a) { return kernel_gym_bf16::log2(a); }
__device__ inline __hip_bfloat16 hsqrt(__hip_bfloat16 a) { return kernel_gym_bf16::sqrt(a); }
__device__ inline __hip_bfloat16 hrsqrt(__hip_bfloat16 a) { return kernel_gym_bf16::rsqrt(a); }
__device__ inline __hip_bfloat16 hsin(__hip_bfloat16 a) { return kernel_gym_bf16::sin(a); }
__device__ inline __hip_bfloat16 hcos(__hip_bfloat16 a) { return kernel_gym_bf16::cos(a); }
__device__ inline __hip_bfloat16 hceil(__hip_bfloat16 a) { return kernel_gym_bf16::ceil(a); }
__device__ inline __hip_bfloat16 hfloor(__hip_bfloat16 a) { return kernel_gym_bf16::floor(a); }
__device__ inline __hip_bfloat16 hrint(__hip_bfloat16 a) { return kernel_gym_bf16::rint(a); }
__device__ inline __hip_bfloat16 htrunc(__hip_bfloat16 a) { return kernel_gym_bf16::trunc(a); }
__device__ inline __hip_bfloat162 h2exp(__hip_bfloat162 a) { return kernel_gym_bf16::h2exp(a); }
__device__ inline __hip_bfloat162 h2sqrt(__hip_bfloat162 a) { return kernel_gym_bf16::h2sqrt(a); }
__device__ inline __hip_bfloat162 h2rsqrt(__hip_bfloat162 a) { return kernel_gym_bf16::h2rsqrt(a); }
__device__ inline __hip_bfloat162 h2log(__hip_bfloat162 a) { return kernel_gym_bf16::h2log(a); }

#undef __HOST_DEVICE__
