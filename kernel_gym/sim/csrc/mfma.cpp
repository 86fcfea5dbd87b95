// Matrix instructions. D = A * B + C over 64 lanes, EXEC ignored; sums run in k order with one
// f32 fused multiply-add a term.
//
// Layouts: with M rows and kpl = K * M * blocks / 64 elements a lane, A's row is lane % M and its
// k is kpl * (lane / M) + element (B alike by columns). Results: 32x32: column lane % 32, row
// 8 (r / 4) + 4 (lane / 32) + r % 4; 16x16: column lane % 16, row 4 (lane / 16) + r.
#include "fp8.h"
#include "wave.h"

namespace {

enum Type : u32 { kF16, kBf16, kI8, kFp8Fp8, kFp8Bf8, kBf8Fp8, kBf8Bf8, kF32, kXf32, kF64 };

struct Shape {
  int m;       // rows of A and columns of B
  int k;
  int blocks;  // independent products
  Type type;
  int per_lane() const { return k * m * blocks / kLanes; }
  int results() const { return m * m * blocks / kLanes; }
};

// imm: m | k << 8 | blocks << 16 | type << 24
SIM_INLINE Shape shape_of(const Inst* inst) {
  return {(int)(inst->imm & 255), (int)(inst->imm >> 8 & 255), (int)(inst->imm >> 16 & 255),
          (Type)(inst->imm >> 24)};
}

// aux: broadcasts of the multi-block forms: cbsz | abid << 4 | blgp << 8
struct Broadcast {
  u32 cbsz, abid, blgp;
};
SIM_INLINE Broadcast broadcast_of(const Inst* inst) {
  return {inst->aux & 15, inst->aux >> 4 & 15, inst->aux >> 8 & 15};
}

// The C matrix: rows, or one constant row for all.
struct Addend {
  const u32* rows;
  int step;
  const u32* row(int r) const { return rows + (size_t)step * r; }
};
SIM_INLINE Addend addend_of(const Wave& wave, const Operand& operand, int rows_per_result) {
  return {direct(wave, operand), operand.space == kConstant ? 0 : kLanes * rows_per_result};
}

// Elements as f32: out[64 * element + lane].
void unpack(float* out, const u32* rows, Type type, bool second, int per_lane) {
  const bool bf8 = type == kBf8Bf8 || type == (second ? kFp8Bf8 : kBf8Fp8);
  if (type == kF16 || type == kBf16) {
    for (int r = 0; r < per_lane / 2; r++) {
      for (int c = 0; c < kChunks; c++) {
        const U x = load(rows + kLanes * r, c);
        const U low = type == kF16 ? (U)half_lanes(x) : x << 16;
        const U high = type == kF16 ? (U)half_lanes(x >> 16) : x & 0xffff0000u;
        put((u32*)out + 2 * kLanes * r, c, low);
        put((u32*)out + 2 * kLanes * r + kLanes, c, high);
      }
    }
  } else if (type >= kFp8Fp8 && type <= kBf8Bf8) {
    const fp8::Format format = bf8 ? fp8::kE5M2 : fp8::kE4M3;
    for (int e = 0; e < per_lane; e++) {
      const u32* row = rows + kLanes * (e / 4);
      for (int l = 0; l < kLanes; l++) {
        out[kLanes * e + l] = fp8::decode(row[l] >> (8 * (e % 4)) & 255, format);
      }
    }
  } else {
    const u32 kept = type == kXf32 ? 0xffffe000u : 0xffffffffu;
    for (int e = 0; e < per_lane; e++) {
      for (int c = 0; c < kChunks; c++) {
        put((u32*)out + kLanes * e, c, load(rows + kLanes * e, c) & kept);
      }
    }
  }
}

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

// Four rows of the result for M columns.
template <int M>
SIM_INLINE void multiply_rows(const float* a, const float* b, int k, Addend c, int quad, int g,
                              u32* out) {
  constexpr int kVectors = M / kWidth;
  F sums[4][kVectors];
  for (int r = 0; r < 4; r++) {
    for (int n = 0; n < kVectors; n++) {
      sums[r][n] = *(const F*)(c.row(4 * quad + r) + M * g + kWidth * n);
    }
  }
  const int row = first_row<M>(quad, g);
  for (int i = 0; i < k; i++) {
    F columns[kVectors];
    for (int n = 0; n < kVectors; n++) columns[n] = *(const F*)(b + M * i + kWidth * n);
    for (int r = 0; r < 4; r++) {
      const F value = splatf(a[M * i + row + r]);
      for (int n = 0; n < kVectors; n++) sums[r][n] = fma_lanes(value, columns[n], sums[r][n]);
    }
  }
  for (int r = 0; r < 4; r++) {
    for (int n = 0; n < kVectors; n++) {
      *(F*)(out + kLanes * (4 * quad + r) + M * g + kWidth * n) = sums[r][n];
    }
  }
}

template <int M>
void multiply(const float* a_elements, const float* b_elements, Shape shape, Addend c, u32* dst) {
  alignas(64) float a[32 * 32], b[32 * 32];
  alignas(64) u32 out[16 * kLanes];
  arrange<M>(a, a_elements, shape.per_lane());
  arrange<M>(b, b_elements, shape.per_lane());
  for (int quad = 0; quad < shape.results() / 4; quad++) {
    for (int g = 0; g < kLanes / M; g++) multiply_rows<M>(a, b, shape.k, c, quad, g, out);
  }
  memcpy(dst, out, sizeof(u32) * kLanes * shape.results());
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

// The lane that supplies A to a block under cbsz / abid.
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

// Any shape, one value at a time: the multi-block forms and broadcasts.
template <class T>
void multiply_blocks(const T* a, const T* b, Shape shape, Broadcast broadcast, Addend c, u32* dst) {
  alignas(64) u32 out[32 * kLanes];
  const int per_lane = shape.per_lane(), m = shape.m;
  for (int r = 0; r < shape.results(); r++) {
    for (int l = 0; l < kLanes; l++) {
      const Place place = place_of(m, r, l);
      T sum;
      memcpy(&sum, c.row(r) + l, 4);
      for (int k = 0; k < shape.k; k++) {
        // blocks come first in the lane order, then groups of k
        const int group = shape.blocks * m * (k / per_lane), element = kLanes * (k % per_lane);
        const int a_lane = source_block(place.block, broadcast) * m + place.row + group;
        const int b_lane = source_lane(place.block * m + place.column + group, broadcast.blgp);
        const T x = a[element + a_lane], y = b[element + b_lane];
        if constexpr (std::is_same_v<T, float>) {
          sum = __builtin_fmaf(x, y, sum);
        } else {
          sum += x * y;
        }
      }
      memcpy(&out[kLanes * r + l], &sum, 4);
    }
  }
  memcpy(dst, out, sizeof(u32) * kLanes * shape.results());
}

const Inst* mfma_float(Wave& wave, const Inst* inst) {
  const Shape shape = shape_of(inst);
  const Broadcast broadcast = broadcast_of(inst);
  alignas(64) float a[16 * kLanes], b[16 * kLanes];
  unpack(a, direct(wave, inst->src[0]), shape.type, false, shape.per_lane());
  unpack(b, direct(wave, inst->src[1]), shape.type, true, shape.per_lane());
  const Addend c = addend_of(wave, inst->src[2], 1);
  u32* dst = wave.regs + inst->dst;
  if (shape.blocks > 1 || inst->aux) {
    multiply_blocks<float>(a, b, shape, broadcast, c, dst);
  } else if (shape.m == 32) {
    multiply<32>(a, b, shape, c, dst);
  } else {
    multiply<16>(a, b, shape, c, dst);
  }
  return inst + 1;
}
REGISTER(mfma_float, mfma_float);

template <int M>
void multiply_i8(const i32* a_elements, const i32* b_elements, Shape shape, Addend c, u32* dst) {
  alignas(64) i32 a[32 * 32], b[32 * 32];
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
  const Broadcast broadcast = broadcast_of(inst);
  const u32* rows[2] = {direct(wave, inst->src[0]), direct(wave, inst->src[1])};
  alignas(64) i32 elements[2][16 * kLanes];
  for (int i = 0; i < 2; i++) {
    for (int e = 0; e < shape.per_lane(); e++) {
      for (int l = 0; l < kLanes; l++) {
        elements[i][kLanes * e + l] = (i8)(rows[i][kLanes * (e / 4) + l] >> (8 * (e % 4)));
      }
    }
  }
  const Addend c = addend_of(wave, inst->src[2], 1);
  u32* dst = wave.regs + inst->dst;
  if (shape.blocks > 1 || inst->aux) {
    multiply_blocks<i32>(elements[0], elements[1], shape, broadcast, c, dst);
  } else if (shape.m == 32) {
    multiply_i8<32>(elements[0], elements[1], shape, c, dst);
  } else {
    multiply_i8<16>(elements[0], elements[1], shape, c, dst);
  }
  return inst + 1;
}
REGISTER(mfma_i8, mfma_i8);

// f64: 16x16x4, or 4 blocks of 4x4x4. aux bits 0..2: negate A, B, C.
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
      if (inst->aux & 4) sum = -sum;
      for (int k = 0; k < shape.k; k++) {
        double x = as_f64(pair(a, 16 * k + m * block + row));
        double y = as_f64(pair(b, 16 * k + m * block + column));
        if (inst->aux & 1) x = -x;
        if (inst->aux & 2) y = -y;
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

}  // namespace
