// Matrix products with the accumulation that is published for the hardware (Xie et al., "MMA-Sim:
// Bit-Accurate Reference Model of Tensor Cores and Matrix Cores", arXiv 2511.10909).
//
// CDNA3: K is cut into groups. The exact products of a group are truncated towards zero to 24
// fraction bits of the largest product's exponent (of significands, not normalised) and added.
// Of the larger exponent of this sum and of C, the sum keeps 31 and C 24 fraction bits, both
// rounded down; their total is rounded once to nearest even. Groups of 8 (16-bit floats) or 4
// (xf32, whose inputs lose 13 bits). For 8-bit floats groups of 16, in which elements with even and
// with odd k are added apart and joined at 24 bits, rounded down; C below the last bit is lost.
//
// CDNA2: 16-bit inputs and C are flushed (denormals to +0), products and sums are f32, rounded and
// flushed: pairs of products, pairs of pairs (not for bf16 without _1k), then C.
#include <algorithm>

#include "ops/mfma.h"

namespace matrix {
namespace {

constexpr int kProductBits = 24, kSumBits = 31, kLeastExponent = -126;

// Value = significand * 2^(exponent - 23); the significand of a normal number has 24 bits.
struct Parts {
  i64 significand;
  int exponent;
};

// `least`: exponent of the type's denormals.
SIM_INLINE Parts parts_of(float x, int least) {
  if (x == 0) return {0, least};
  int exponent;
  std::frexp(x, &exponent);
  exponent = std::max(exponent - 1, least);
  return {(i64)std::ldexp((double)x, 23 - exponent), exponent};
}

SIM_INLINE int least_exponent(u32 type) {
  switch (type) {
    case kF16:
      return -14;
    case small::kFp8Fnuz:
      return -7;
    case small::kBf8Fnuz:
      return -15;
    default:
      return -126;
  }
}

// x * 2^power, truncated towards zero or rounded down.
SIM_INLINE i64 shift_truncate(i64 x, int power) {
  if (power >= 0) return x << power;
  if (power < -62) return 0;
  return x < 0 ? -(-x >> -power) : x >> -power;
}
SIM_INLINE i64 shift_down(i64 x, int power) {
  if (power >= 0) return x << power;
  return x >> std::min(-power, 63);
}

// A sum with `kProductBits` fraction bits at an exponent.
struct Sum {
  i64 value;
  int exponent;
};

// The products a[i] * b[i], i = first, first + step, ... below count.
Sum add_products(const Parts* a, const Parts* b, int first, int step, int count) {
  Sum sum = {0, -1 << 20};
  for (int i = first; i < count; i += step) {
    const bool zero = a[i].significand == 0 || b[i].significand == 0;
    sum.exponent = std::max(sum.exponent, zero ? kLeastExponent : a[i].exponent + b[i].exponent);
  }
  for (int i = first; i < count; i += step) {
    const i64 product = a[i].significand * b[i].significand;  // 46 fraction bits
    const int exponent = a[i].exponent + b[i].exponent;
    sum.value += shift_truncate(product, exponent - sum.exponent + kProductBits - 46);
  }
  return sum;
}

// A group without special values.
float fused_group(const Parts* a, const Parts* b, int count, float addend, bool split) {
  Sum sum = add_products(a, b, 0, split ? 2 : 1, count);
  if (split) {
    const Sum odd = add_products(a, b, 1, 2, count);
    const int joint = std::max(sum.exponent, odd.exponent);
    sum.value =
        shift_down(sum.value, sum.exponent - joint) + shift_down(odd.value, odd.exponent - joint);
    sum.exponent = joint;
  }
  const Parts c = parts_of(addend, kLeastExponent);
  const int top = std::max(sum.exponent, c.exponent);
  const i64 products = shift_down(sum.value, sum.exponent - top + kSumBits - kProductBits);
  i64 rest = shift_down(c.significand, c.exponent - top + kProductBits - 23);
  if (split && c.exponent < top - kProductBits - 1) rest = 0;
  const i64 total = products + (rest << (kSumBits - kProductBits));
  return (float)std::ldexp((double)total, top - kSumBits);
}

// The sum of products and addend if it is infinite or NaN; false if it is neither.
bool special_sum(const float* a, const float* b, int count, float addend, float& out) {
  double sum = addend;
  for (int i = 0; i < count; i++) {
    double product = (double)a[i] * b[i];
    if (std::fabs(product) >= 0x1p128) product = std::copysign((double)INFINITY, product);
    sum += product;
  }
  if (std::fabs(sum) < INFINITY) return false;
  out = sum != sum ? NAN : (float)sum;
  return true;
}

float cdna3_dot(const float* a, const float* b, int k, float sum, const Shape& shape) {
  const bool split = shape.a_type < small::kFormats;
  const int group = std::min(k, split ? 16 : shape.a_type == kXf32 ? 4 : 8);
  Parts x[16], y[16];
  for (int first = 0; first < k; first += group) {
    if (special_sum(a + first, b + first, group, sum, sum)) continue;
    for (int i = 0; i < group; i++) {
      x[i] = parts_of(a[first + i], least_exponent(shape.a_type));
      y[i] = parts_of(b[first + i], least_exponent(shape.b_type));
    }
    sum = fused_group(x, y, group, sum, split);
  }
  return sum;
}

SIM_INLINE float flush_result(float x) { return std::fabs(x) < 0x1p-126f ? x * 0.f : x; }
SIM_INLINE float flush_input(float x, u32 type) {
  return std::fabs(x) < (type == kF16 ? 0x1p-14f : 0x1p-126f) ? 0.f : x;
}

// `group`: products that are added before they meet the sum.
float cdna2_dot(const float* a, const float* b, int k, float sum, u32 type, int group) {
  sum = flush_input(sum, kF32);
  for (int first = 0; first < k; first += group) {
    float terms[4];
    for (int i = 0; i < group; i++) {
      const float x = flush_input(a[first + i], type), y = flush_input(b[first + i], type);
      terms[i] = flush_result(x * y);
    }
    float part = flush_result(terms[0] + terms[1]);
    if (group == 4) part = flush_result(part + flush_result(terms[2] + terms[3]));
    sum = flush_result(sum + part);
  }
  return sum;
}

template <bool is_cdna3>
const Inst* mfma_published(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  const Broadcast broadcast = broadcast_of(inst);
  alignas(64) float a[kMaxElements * kLanes], b[kMaxElements * kLanes];
  unpack_operand(a, direct(wave, inst->src[0]), shape.a_type, shape);
  unpack_operand(b, direct(wave, inst->src[1]), shape.b_type, shape);
  const Addend c = addend_of(wave, inst->src[2], 1);
  alignas(64) u32 out[32 * kLanes];
  for (int r = 0; r < shape.results(); r++) {
    for (int l = 0; l < kLanes; l++) {
      const Place place = place_of(shape.m, r, l);
      float row[128], column[128], sum = as_f32(c.row(r)[l]);
      for (int k = 0; k < shape.k; k++) {
        const Cell from = cell_of(shape, source_block(place.block, broadcast), place.row, k);
        const Cell with = cell_of(shape, place.block, place.column, k);
        row[k] = a[kLanes * from.element + from.lane];
        column[k] = b[kLanes * with.element + source_lane(with.lane, broadcast.blgp)];
      }
      if (shape.a_type == kF32) {
        for (int k = 0; k < shape.k; k++) sum = __builtin_fmaf(row[k], column[k], sum);
      } else if (is_cdna3) {
        sum = cdna3_dot(row, column, shape.k, sum, shape);
      } else {
        sum = cdna2_dot(row, column, shape.k, sum, shape.a_type, group_of(inst));
      }
      out[kLanes * r + l] = as_u32(sum);
    }
  }
  memcpy(wave.regs + inst->dst, out, sizeof(u32) * kLanes * shape.results());
  return inst + 1;
}
REGISTER(mfma_cdna3, mfma_published<true>);
REGISTER(mfma_cdna2, mfma_published<false>);

}  // namespace
}  // namespace matrix
