// Dense matrix instructions. D = A * B + C over 64 lanes, EXEC ignored; sums run in k order with
// one f32 fused multiply-add a term (mfma_exact.cpp has the order of the hardware).
#include "ops/mfma.h"

namespace matrix {

void unpack(float* out, const u32* rows, u32 type, int count) {
  if (type == kF16 || type == kBf16) {
    for (int r = 0; r < count / 2; r++) {
      for (int c = 0; c < kChunks; c++) {
        const U x = load(rows + kLanes * r, c);
        const U low = type == kF16 ? (U)half_lanes(x) : x << 16;
        const U high = type == kF16 ? (U)half_lanes(x >> 16) : x & 0xffff0000u;
        put((u32*)out + 2 * kLanes * r, c, low);
        put((u32*)out + 2 * kLanes * r + kLanes, c, high);
      }
    }
  } else if (type < small::kFormats) {
    const small::Format format = (small::Format)type;
    const u32 bits = small::kBits[format], mask = (1u << bits) - 1;
    for (int e = 0; e < count; e++) {
      const u32 word = e * bits / 32, shift = e * bits % 32;
      const u32* row = rows + kLanes * word;
      const u32* next = shift + bits > 32 ? row + kLanes : row;
      for (int l = 0; l < kLanes; l++) {
        const u64 both = (u64)row[l] | (u64)next[l] << 32;
        out[kLanes * e + l] = small::decode((u32)(both >> shift) & mask, format);
      }
    }
  } else {
    const u32 kept = type == kXf32 ? 0xffffe000u : 0xffffffffu;
    for (int e = 0; e < count; e++) {
      for (int c = 0; c < kChunks; c++) {
        put((u32*)out + kLanes * e, c, load(rows + kLanes * e, c) & kept);
      }
    }
  }
}

void unpack_operand(float* out, const u32* rows, u32 type, Shape shape) {
  constexpr int kHalf = 16;
  if (shape.per_lane() != 2 * kHalf || type >= small::kFormats || small::kBits[type] != 8) {
    return unpack(out, rows, type, shape.per_lane());
  }
  alignas(64) float elements[kMaxElements * kLanes];
  unpack(elements, rows, type, shape.per_lane());
  for (int e = 0; e < 2 * kHalf; e++) {
    for (int g = 0; g < kLanes / shape.m; g++) {
      const int k = (e < kHalf ? 0 : shape.k / 2 - kHalf) + kHalf * g + e;
      memcpy(out + kLanes * (k % (2 * kHalf)) + shape.m * (k / (2 * kHalf)),
             elements + kLanes * e + shape.m * g, shape.m * sizeof(float));
    }
  }
}

void unpack_i8(i32* out, const u32* rows, int count) {
  for (int e = 0; e < count; e++) {
    for (int l = 0; l < kLanes; l++) {
      out[kLanes * e + l] = (i8)(rows[kLanes * (e / 4) + l] >> (8 * (e % 4)));
    }
  }
}

void apply_scale(float* elements, int count, const u32* scales, u32 byte) {
  for (int l = 0; l < kLanes; l++) {
    const u32 exponent = scales[l] >> (8 * byte) & 255;
    const float scale = exponent == 255 ? NAN : std::ldexp(1.f, (int)exponent - 127);
    for (int e = 0; e < count; e++) elements[kLanes * e + l] *= scale;
  }
}

namespace {

// From [element][lane] to [k][row]: one block, lanes / M groups of consecutive k.
template <int M, class T>
SIM_INLINE void arrange(T* out, const T* elements, int per_lane) {
  for (int e = 0; e < per_lane; e++) {
    for (int g = 0; g < kLanes / M; g++) {
      memcpy(out + (g * per_lane + e) * M, elements + kLanes * e + M * g, M * sizeof(T));
    }
  }
}

// The first of the four consecutive rows that group `g` of lanes holds in results 4q..4q+3.
template <int M>
SIM_INLINE int first_row(int quad, int g) {
  return M == 32 ? 8 * quad + 4 * g : 4 * g;
}

// Four rows of the result for M columns. Element `e` of the lanes of group `g` belongs to
// k = g * per_lane + e.
template <int M>
SIM_INLINE void multiply_rows(const float* a, const float* b, int per_lane, Addend c, int quad,
                              int g, u32* out) {
  constexpr int kVectors = M / kWidth;
  F sums[4][kVectors];
  for (int r = 0; r < 4; r++) {
    for (int n = 0; n < kVectors; n++) {
      sums[r][n] = *(const F*)(c.row(4 * quad + r) + M * g + kWidth * n);
    }
  }
  const float* const end = b + kLanes * (size_t)per_lane;
  for (int from = 0; from < kLanes; from += M) {
    const float* x = a + from + first_row<M>(quad, g);
    for (const float* y = b + from; y < end; x += kLanes, y += kLanes) {
      F columns[kVectors];
      for (int n = 0; n < kVectors; n++) columns[n] = *(const F*)(y + kWidth * n);
      for (int r = 0; r < 4; r++) {
        const F value = splatf(x[r]);
        for (int n = 0; n < kVectors; n++) sums[r][n] = fma_lanes(value, columns[n], sums[r][n]);
      }
    }
  }
  for (int r = 0; r < 4; r++) {
    for (int n = 0; n < kVectors; n++) {
      *(F*)(out + kLanes * (4 * quad + r) + M * g + kWidth * n) = sums[r][n];
    }
  }
}

// Whether results may be written before all of C is read: C is the destination, or lies elsewhere.
SIM_INLINE bool in_place(const Addend& c, const u32* dst, int results) {
  const u32* end = c.row(results - 1) + kLanes;
  return c.rows == dst || end <= dst || dst + kLanes * results <= c.rows;
}

template <int M>
void multiply(const float* a, const float* b, Shape shape, Addend c, u32* dst) {
  alignas(64) u32 buffer[16 * kLanes];
  const bool direct = in_place(c, dst, shape.results());
  u32* out = direct ? dst : buffer;
  for (int quad = 0; quad < shape.results() / 4; quad++) {
    for (int g = 0; g < kLanes / M; g++) {
      multiply_rows<M>(a, b, shape.per_lane(), c, quad, g, out);
    }
  }
  if (!direct) memcpy(dst, buffer, sizeof(u32) * kLanes * shape.results());
}

// Any shape, one value at a time: the multi-block forms and broadcasts.
template <class T>
void multiply_blocks(const T* a, const T* b, Shape shape, Broadcast broadcast, Addend c, u32* dst) {
  alignas(64) u32 out[32 * kLanes];
  for (int r = 0; r < shape.results(); r++) {
    for (int l = 0; l < kLanes; l++) {
      const Place place = place_of(shape.m, r, l);
      T sum;
      memcpy(&sum, c.row(r) + l, 4);
      for (int k = 0; k < shape.k; k++) {
        const Cell from = cell_of(shape, source_block(place.block, broadcast), place.row, k);
        const Cell with = cell_of(shape, place.block, place.column, k);
        const T x = a[kLanes * from.element + from.lane];
        const T y = b[kLanes * with.element + source_lane(with.lane, broadcast.blgp)];
        if constexpr (std::is_same_v<T, float>) {
          sum = __builtin_fmaf(x, y, sum);
        } else {
          sum = (T)((u32)sum + (u32)(x * y));
        }
      }
      memcpy(&out[kLanes * r + l], &sum, 4);
    }
  }
  memcpy(dst, out, sizeof(u32) * kLanes * shape.results());
}

void multiply_float(const float* a, const float* b, const Inst* inst, Shape shape, Addend c,
                    u32* dst) {
  if (shape.blocks > 1 || inst->aux) {
    multiply_blocks<float>(a, b, shape, broadcast_of(inst), c, dst);
  } else if (shape.m == 32) {
    multiply<32>(a, b, shape, c, dst);
  } else {
    multiply<16>(a, b, shape, c, dst);
  }
}

const Inst* mfma_float(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  alignas(64) float a[kMaxElements * kLanes], b[kMaxElements * kLanes];
  unpack_operand(a, direct(wave, inst->src[0]), shape.a_type, shape);
  unpack_operand(b, direct(wave, inst->src[1]), shape.b_type, shape);
  multiply_float(a, b, inst, shape, addend_of(wave, inst->src[2], 1), wave.regs + inst->dst);
  return inst + 1;
}
REGISTER(mfma_float, mfma_float);

// v_mfma_scale_*: a scale byte a lane, for the 32 values of k that begin at 32 (lane / M). src[3]: scales of A; dst2: row of the
// scales of B.
const Inst* mfma_scaled(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  alignas(64) float a[kMaxElements * kLanes], b[kMaxElements * kLanes];
  unpack_operand(a, direct(wave, inst->src[0]), shape.a_type, shape);
  unpack_operand(b, direct(wave, inst->src[1]), shape.b_type, shape);
  const Scales scales = scales_of(inst);
  const u32* b_scales = wave.bases[scales.b_space] + inst->dst2;
  apply_scale(a, shape.per_lane(), direct(wave, inst->src[3]), scales.a_byte);
  apply_scale(b, shape.per_lane(), b_scales, scales.b_byte);
  multiply_float(a, b, inst, shape, addend_of(wave, inst->src[2], 1), wave.regs + inst->dst);
  return inst + 1;
}
REGISTER(mfma_scaled, mfma_scaled);

template <int M>
void multiply_i8(const i32* a_elements, const i32* b_elements, Shape shape, Addend c, u32* dst) {
  alignas(64) i32 a[kMaxPanel], b[kMaxPanel];
  alignas(64) u32 out[16 * kLanes];
  arrange<M>(a, a_elements, shape.per_lane());
  arrange<M>(b, b_elements, shape.per_lane());
  for (int r = 0; r < shape.results(); r++) {
    for (int g = 0; g < kLanes / M; g++) {
      const int row = first_row<M>(r / 4, g) + r % 4;
      for (int n = 0; n < M / kWidth; n++) {
        I sum = *(const I*)(c.row(r) + M * g + kWidth * n);
        for (int k = 0; k < shape.k; k++) {
          sum += *(const I*)(b + M * k + kWidth * n) * a[M * k + row];
        }
        *(I*)(out + kLanes * r + M * g + kWidth * n) = sum;
      }
    }
  }
  memcpy(dst, out, sizeof(u32) * kLanes * shape.results());
}

const Inst* mfma_i8(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  alignas(64) i32 a[kMaxElements * kLanes], b[kMaxElements * kLanes];
  unpack_i8(a, direct(wave, inst->src[0]), shape.per_lane());
  unpack_i8(b, direct(wave, inst->src[1]), shape.per_lane());
  const Addend c = addend_of(wave, inst->src[2], 1);
  u32* dst = wave.regs + inst->dst;
  if (shape.blocks > 1 || inst->aux) {
    multiply_blocks<i32>(a, b, shape, broadcast_of(inst), c, dst);
  } else if (shape.m == 32) {
    multiply_i8<32>(a, b, shape, c, dst);
  } else {
    multiply_i8<16>(a, b, shape, c, dst);
  }
  return inst + 1;
}
REGISTER(mfma_i8, mfma_i8);

// f64: 16x16x4, or 4 blocks of 4x4x4. aux: Negation.
const Inst* mfma_f64(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  const u32* a = direct(wave, inst->src[0]);
  const u32* b = direct(wave, inst->src[1]);
  const Addend c = addend_of(wave, inst->src[2], 2);
  const int m = shape.m, results = m == 16 ? 4 : 1;
  alignas(64) u32 out[8 * kLanes];
  for (int r = 0; r < results; r++) {
    for (int l = 0; l < kLanes; l++) {
      // 4x4x4: lane = 16 k-or-row + 4 block + column
      const int row = m == 16 ? 4 * r + l / 16 : l / 16;
      const int column = m == 16 ? l % 16 : l % 4;
      const int block = m == 16 ? 0 : l / 4 % 4;
      double sum = as_f64(pair(c.row(r), l));
      if (inst->aux & kNegateC) sum = -sum;
      for (int k = 0; k < shape.k; k++) {
        double x = as_f64(pair(a, 16 * k + m * block + row));
        double y = as_f64(pair(b, 16 * k + m * block + column));
        if (inst->aux & kNegateA) x = -x;
        if (inst->aux & kNegateB) y = -y;
        sum = std::fma(x, y, sum);
      }
      out[2 * kLanes * r + l] = (u32)as_u64(sum);
      out[2 * kLanes * r + kLanes + l] = (u32)(as_u64(sum) >> 32);
    }
  }
  memcpy(wave.regs + inst->dst, out, sizeof(u32) * 2 * kLanes * results);
  return inst + 1;
}
REGISTER(mfma_f64, mfma_f64);

// ---- sparse A (v_smfmac_*): two of four consecutive k are stored, and two index bits for each
// stored element name its k. The sum starts from the destination. src[2]: indices; aux: bit offset
// in them.
template <class T>
void multiply_sparse(const T* a, const T* b, const u32* indices, u32 offset, Shape shape,
                     u32* dst) {
  alignas(64) u32 out[16 * kLanes];
  Shape kept = shape;
  kept.k = shape.k / 2;
  for (int r = 0; r < shape.results(); r++) {
    for (int l = 0; l < kLanes; l++) {
      const Place place = place_of(shape.m, r, l);
      T sum;
      memcpy(&sum, dst + kLanes * r + l, 4);
      for (int k = 0; k < kept.k; k++) {
        const Cell from = cell_of(kept, 0, place.row, k);
        const u32 index = indices[from.lane] >> (offset + 2 * from.element) & 3;
        const Cell with = cell_of(shape, 0, place.column, k / 2 * 4 + (int)index);
        const T x = a[kLanes * from.element + from.lane];
        const T y = b[kLanes * with.element + with.lane];
        if constexpr (std::is_same_v<T, float>) {
          sum = __builtin_fmaf(x, y, sum);
        } else {
          sum = (T)((u32)sum + (u32)(x * y));
        }
      }
      memcpy(&out[kLanes * r + l], &sum, 4);
    }
  }
  memcpy(dst, out, sizeof(u32) * kLanes * shape.results());
}

const Inst* smfmac(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  const u32* rows[2] = {direct(wave, inst->src[0]), direct(wave, inst->src[1])};
  const u32* indices = direct(wave, inst->src[2]);
  const int count = shape.per_lane();
  u32* dst = wave.regs + inst->dst;
  if (shape.a_type == kI8) {
    alignas(64) i32 a[kMaxElements * kLanes], b[kMaxElements * kLanes];
    unpack_i8(a, rows[0], count / 2);
    unpack_i8(b, rows[1], count);
    multiply_sparse(a, b, indices, inst->aux, shape, dst);
  } else {
    alignas(64) float a[kMaxElements * kLanes], b[kMaxElements * kLanes];
    unpack(a, rows[0], shape.a_type, count / 2);
    unpack(b, rows[1], shape.b_type, count);
    multiply_sparse(a, b, indices, inst->aux, shape, dst);
  }
  return inst + 1;
}
REGISTER(smfmac, smfmac);

}  // namespace
}  // namespace matrix
