// The 8-bit floats of gfx942: e4m3fnuz and e5m2fnuz (one NaN 0x80, no infinity, no negative zero).
#pragma once

#include "lanes.h"

namespace fp8 {

enum Format { kE4M3 = 0, kE5M2 = 1 };

extern const float* const kDecoded[2];  // 256 values each

SIM_INLINE float decode(u32 byte, Format format) { return kDecoded[format][byte]; }

// Round to nearest even; too large values saturate; infinity and NaN become NaN.
u32 encode(float x, Format format);

// Round by adding the top bits of `random` below the last kept bit.
u32 encode_stochastic(float x, u32 random, Format format);

}  // namespace fp8
