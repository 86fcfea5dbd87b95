#include "ops/small_float.h"

#include <algorithm>
#include <array>

namespace small {
namespace {

struct Layout {
  int mantissa, exponent, bias;
  double largest;
  bool fnuz, infinity, nan;
};
constexpr Layout kLayouts[kFormats] = {
    {3, 4, 8, 240, true, false, true},   {2, 5, 16, 57344, true, false, true},
    {3, 4, 7, 448, false, false, true},  {2, 5, 15, 57344, false, true, true},
    {3, 2, 1, 7.5, false, false, false}, {2, 3, 3, 28, false, false, false},
    {1, 2, 1, 6, false, false, false},
};

u32 nan_of(const Layout& layout, u32 sign) { return layout.fnuz ? 0x80 : sign | 0x7f; }

float decode_bits(u32 bits, const Layout& layout) {
  const int width = layout.mantissa + layout.exponent;
  const u32 magnitude = bits & ((1u << width) - 1), top = (1u << width) - 1;
  const bool negative = bits >> width & 1;
  if (layout.fnuz && bits == 0x80) return NAN;
  if (layout.infinity && magnitude >> layout.mantissa == (1u << layout.exponent) - 1) {
    if (magnitude & ((1u << layout.mantissa) - 1)) return NAN;
    return negative ? -INFINITY : INFINITY;
  }
  if (layout.nan && !layout.fnuz && !layout.infinity && magnitude == top) return NAN;
  const int exponent = magnitude >> layout.mantissa;
  const int fraction = magnitude & ((1 << layout.mantissa) - 1);
  const int whole = exponent ? (1 << layout.mantissa) + fraction : fraction;
  const int power = (exponent ? exponent : 1) - layout.bias - layout.mantissa;
  const float value = std::ldexp((float)whole, power);
  return negative ? -value : value;
}

struct Tables {
  std::array<float, 256> values[kFormats];
  Tables() {
    for (u32 f = 0; f < kFormats; f++) {
      for (u32 i = 0; i < 1u << kBits[f]; i++) values[f][i] = decode_bits(i, kLayouts[f]);
    }
  }
};
const Tables tables;

// `round` turns a magnitude in units of the last place into an integer.
template <class Round>
u32 encode_by(double x, Format format, bool saturate, Round round) {
  const Layout& layout = kLayouts[format];
  const int width = layout.mantissa + layout.exponent;
  const u32 sign = std::signbit(x) ? 1u << width : 0;
  const double magnitude = std::fabs(x);
  const bool bounded = !layout.nan;
  if (x != x) return bounded ? sign | ((1u << width) - 1) : nan_of(layout, sign);
  int exponent = 0;
  double whole = 0;
  const bool infinite = std::isinf(x);
  if (!infinite) {
    std::frexp(magnitude, &exponent);
    exponent = std::max(exponent - 1, 1 - layout.bias);
    whole = round(std::ldexp(magnitude, layout.mantissa - exponent));
    if (whole >= (double)(2 << layout.mantissa)) {
      whole /= 2;
      exponent += 1;
    }
  }
  if (infinite || std::ldexp(whole, exponent - layout.mantissa) > layout.largest) {
    if ((infinite || !saturate) && !bounded) {
      if (!layout.infinity) return nan_of(layout, sign);
      return sign | ((1u << layout.exponent) - 1) << layout.mantissa;
    }
    whole = std::frexp(layout.largest, &exponent);
    exponent -= 1;
    whole = std::ldexp(whole, layout.mantissa + 1);
  }
  if (whole == 0) return layout.fnuz ? 0 : sign;
  const u32 bits = (u32)whole;
  if (bits < 1u << layout.mantissa) return sign | bits;
  return sign | ((u32)(exponent + layout.bias) << layout.mantissa) |
         (bits - (1u << layout.mantissa));
}

}  // namespace

const float* const kDecoded[kFormats] = {tables.values[0].data(), tables.values[1].data(),
                                         tables.values[2].data(), tables.values[3].data(),
                                         tables.values[4].data(), tables.values[5].data(),
                                         tables.values[6].data()};

u32 encode(double x, Format format, bool saturate) {
  return encode_by(x, format, saturate, [](double whole) { return std::nearbyint(whole); });
}

u32 encode_stochastic(float x, u32 random, Format format, bool saturate) {
  const int dropped = 23 - kLayouts[format].mantissa;  // of an f32 whose result is normal
  const double noise = std::ldexp((double)(random >> (32 - dropped)), -dropped);
  return encode_by(x, format, saturate, [=](double whole) { return std::floor(whole + noise); });
}

}  // namespace small
