// Shapes, operand layouts and unpacking, for all matrix instructions.
//
// Layouts: with M rows and kpl = K * M * blocks / 64 elements a lane, A's row is lane % M and its
// k is kpl * (lane / M) + element (B alike by columns); 32 elements of 8 bits are two halves, of
// which the first begins at k = 16 (lane / M) and the second K / 2 later. Results: 32x32: column lane % 32, row
// 8 (r / 4) + 4 (lane / 32) + r % 4; 16x16: column lane % 16, row 4 (lane / 16) + r.
#pragma once

#include "ops/operand.h"
#include "ops/small_float.h"

namespace matrix {

// Element types. They continue small::Format. Mirrored by kernel_gym/sim/layouts.py.
enum Type : u32 { kF16 = small::kFormats, kBf16, kI8, kF32, kXf32, kF64 };

constexpr int kMaxElements = 32;            // of a lane
constexpr int kMaxPanel = 32 * 128;         // rows times K

struct Shape {
  int m;       // rows of A and columns of B
  int k;
  int blocks;  // independent products
  u32 a_type, b_type;
  int per_lane() const { return k * m * blocks / kLanes; }
  int results() const { return m * m * blocks / kLanes; }
};

// imm: m | k << 8 | blocks << 16 | type of A << 24 | type of B << 28
SIM_INLINE Shape shape_of(const Inst* inst) {
  return {(int)(inst->imm & 255), (int)(inst->imm >> 8 & 255), (int)(inst->imm >> 16 & 255),
          inst->imm >> 24 & 15, inst->imm >> 28};
}

// aux: broadcasts of the multi-block forms: cbsz | abid << 4 | blgp << 8
struct Broadcast {
  u32 cbsz, abid, blgp;
};
SIM_INLINE Broadcast broadcast_of(const Inst* inst) {
  return {inst->aux & 15, inst->aux >> 4 & 15, inst->aux >> 8 & 15};
}

// flags of mfma_scaled: which byte of a lane's scales is used for A and for B, and whether the
// scales of B are in a constant row (kernel_gym/sim/compiler/matrix_ops.py).
struct Scales {
  u32 a_byte, b_byte;
  Space b_space;
};
SIM_INLINE Scales scales_of(const Inst* inst) {
  return {inst->flags & 3, inst->flags >> 2 & 3, inst->flags & 16 ? kConstant : kVector};
}

// aux of mfma_f64: which operands are negated.
enum Negation : u32 { kNegateA = 1, kNegateB = 2, kNegateC = 4 };

// flags of mfma_cdna2: number of products that are added to each other before the sum.
SIM_INLINE int group_of(const Inst* inst) { return (int)inst->flags; }

// The C matrix: rows, or one constant row for all.
struct Addend {
  const u32* rows;
  int step;
  const u32* row(int r) const { return rows + (size_t)step * r; }
};
SIM_INLINE Addend addend_of(const Wave& wave, const Operand& operand, int rows_per_result) {
  return {direct(wave, operand), operand.space == kConstant ? 0 : kLanes * rows_per_result};
}

// Where result (r, lane) lies in its block.
struct Place {
  int block, row, column;
};
SIM_INLINE Place place_of(int m, int r, int lane) {
  if (m == 32) {
    const int s = r % 16;
    return {r / 16, 8 * (s / 4) + 4 * (lane / 32) + s % 4, lane % 32};
  }
  if (m == 16) return {r / 4, 4 * (lane / 16) + r % 4, lane % 16};
  return {lane / 4, r, lane % 4};
}

// The block whose A a block uses under cbsz / abid.
SIM_INLINE int source_block(int block, const Broadcast& broadcast) {
  const int group = 1 << broadcast.cbsz;
  return broadcast.cbsz ? (block / group) * group + (int)broadcast.abid % group : block;
}
// The lane whose B value `lane` uses under blgp.
SIM_INLINE int source_lane(int lane, u32 blgp) {
  switch (blgp) {
    case 1:
      return lane & 31;
    case 2:
      return lane | 32;
    case 3:
      return (lane + 16) & 63;
    case 4:
    case 5:
    case 6:
    case 7:
      return (lane & 15) + 16 * (int)(blgp - 4);
    default:
      return lane;
  }
}

// Where element `k` of row (or column) `index` of a block lies: a lane and an element of it.
struct Cell {
  int lane, element;
};
SIM_INLINE Cell cell_of(const Shape& shape, int block, int index, int k) {
  const int per_lane = shape.per_lane();
  return {(block + shape.blocks * (k / per_lane)) * shape.m + index, k % per_lane};
}

// `count` elements of every lane as f32: out[64 * element + lane].
void unpack(float* out, const u32* rows, u32 type, int count);
// Unpacks A or B: element `e` of lane `l` becomes that of k = per_lane * (l / M) + e.
void unpack_operand(float* out, const u32* rows, u32 type, Shape shape);
void unpack_i8(i32* out, const u32* rows, int count);

// Multiplies the elements by the scales of their lanes: 2^(byte - 127), NaN for 255.
void apply_scale(float* elements, int count, const u32* scales, u32 byte);

}  // namespace matrix
