#include "fp8.h"

#include <array>

namespace fp8 {
namespace {

constexpr int mantissa_bits(Format format) { return format == kE5M2 ? 2 : 3; }
constexpr int bias(Format format) { return format == kE5M2 ? 16 : 8; }
constexpr float largest(Format format) { return format == kE5M2 ? 57344.f : 240.f; }

std::array<float, 256> make_table(Format format) {
  std::array<float, 256> table;
  const int bits = mantissa_bits(format);
  for (int i = 0; i < 256; i++) {
    const int exponent = (i & 0x7f) >> bits;
    const int mantissa = i & ((1 << bits) - 1);
    const int whole = exponent ? (1 << bits) + mantissa : mantissa;
    const float value = std::ldexp((float)whole, (exponent ? exponent : 1) - bias(format) - bits);
    table[i] = i & 0x80 ? -value : value;
  }
  table[0x80] = NAN;
  return table;
}

const std::array<float, 256> e4m3 = make_table(kE4M3);
const std::array<float, 256> e5m2 = make_table(kE5M2);

}  // namespace

const float* const kDecoded[2] = {e4m3.data(), e5m2.data()};

u32 encode(float x, Format format) {
  if (!(std::fabs(x) < INFINITY)) return 0x80;
  if (x == 0) return 0;
  const int bits = mantissa_bits(format);
  const u32 sign = std::signbit(x) ? 0x80 : 0;
  const float magnitude = std::fabs(x);
  int exponent;
  std::frexp(magnitude, &exponent);
  exponent -= 1;
  if (exponent < 1 - bias(format)) exponent = 1 - bias(format);
  float whole = std::nearbyint(std::ldexp(magnitude, bits - exponent));
  if (whole >= (float)(2 << bits)) {
    whole /= 2;
    exponent += 1;
  }
  if (std::ldexp(whole, exponent - bits) > largest(format)) return sign | 0x7f;
  if (whole == 0) return 0;
  if (whole < (float)(1 << bits)) return sign | (u32)whole;
  return sign | ((u32)(exponent + bias(format)) << bits) | ((u32)whole - (1u << bits));
}

u32 encode_stochastic(float x, u32 random, Format format) {
  if (!(std::fabs(x) < INFINITY)) return 0x80;
  const int dropped = 23 - mantissa_bits(format);
  const u32 noisy = as_u32(x) + (random >> (32 - dropped));
  const u32 truncated = noisy & ~((1u << dropped) - 1);
  return encode(as_f32(truncated), format);
}

}  // namespace fp8
