// Floats of 4 to 8 bits: the fnuz formats of gfx942 (one NaN 0x80, no infinity, no negative zero),
// those of the Open Compute Project of gfx950 (OCP 8-bit and Microscaling specifications).
#pragma once

#include "lanes.h"

namespace small {

// Mirrored by kernel_gym/sim/layouts.py.
enum Format : u32 { kFp8Fnuz, kBf8Fnuz, kFp8, kBf8, kFp6, kBf6, kFp4, kFormats };

constexpr int kBits[kFormats] = {8, 8, 8, 8, 6, 6, 4};

extern const float* const kDecoded[kFormats];  // by the bits

SIM_INLINE float decode(u32 bits, Format format) { return kDecoded[format][bits]; }

// Rounds to nearest even. Numbers that are too large saturate if `saturate` is set. Otherwise they
// become infinity, or NaN in formats without infinity; so does infinity itself. Formats with
// neither always saturate (assumed for NaN).
u32 encode(double x, Format format, bool saturate);

// Rounds by adding the top bits of `random` below the last kept bit and dropping the rest; results
// that are denormal keep fewer bits (so does cast_to_f8 of ROCm's libraries).
u32 encode_stochastic(float x, u32 random, Format format, bool saturate);

}  // namespace small
