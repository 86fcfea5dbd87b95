// Scalar operations and control flow.
#include "wave.h"

namespace {

SIM_INLINE u32 bitfield_u32(u32 a, u32 spec) {
  const u32 offset = spec & 31, width = (spec >> 16) & 127;
  return (u32)((a >> offset) & ((width >= 32 ? 0 : 1ull << width) - 1));
}
SIM_INLINE u32 bitfield_i32(u32 a, u32 spec) {
  const u32 offset = spec & 31, width = (spec >> 16) & 127;
  if (width == 0) return 0;
  if (offset + width >= 32) return (u32)((i32)a >> offset);
  return (u32)((i32)(a << (32 - offset - width)) >> (32 - width));
}
SIM_INLINE u64 bitfield_u64(u64 a, u32 spec) {
  const u32 width = (spec >> 16) & 127;
  return (a >> (spec & 63)) & (width >= 64 ? ~0ull : (1ull << width) - 1);
}
SIM_INLINE u64 bitfield_i64(u64 a, u32 spec) {
  const u32 offset = spec & 63, width = (spec >> 16) & 127;
  if (width == 0) return 0;
  if (offset + width >= 64) return (u64)((i64)a >> offset);
  return (u64)((i64)(a << (64 - offset - width)) >> (64 - width));
}
SIM_INLINE u32 reverse_bits(u32 x) {
  u32 result = 0;
  for (int i = 0; i < 32; i++) result |= (x >> i & 1) << (31 - i);
  return result;
}
SIM_INLINE u64 reverse_bits64(u64 x) {
  return ((u64)reverse_bits((u32)x) << 32) | reverse_bits((u32)(x >> 32));
}

// Reading and writing scalars of both widths.
template <class T>
SIM_INLINE T get(Wave& wave, u32 index) {
  if (sizeof(T) == 8) return (T)read64(wave.scalars, index);
  return (T)wave.scalars[index];
}
template <class T>
SIM_INLINE void set(Wave& wave, u32 index, T value) {
  if (sizeof(T) == 8) {
    write64(wave.scalars, index, (u64)value);
  } else {
    wave.scalars[index] = (u32)value;
  }
}

// SCALAR1/2(name, result type, types of the sources, value, SCC); `scc` is its value before,
// `r` the result, `a` and `b` the sources.
#define SCALAR1(name, R, A, value, condition)      \
  const Inst* name(Wave& wave, const Inst* inst) { \
    const A a = get<A>(wave, inst->src[0].index);  \
    const u32 scc = wave.scc();                    \
    (void)scc;                                     \
    const R r = (R)(value);                        \
    set<R>(wave, inst->dst, r);                    \
    wave.scc() = (u32)(condition);                 \
    return next(wave, inst);                       \
  }                                                \
  REGISTER(name, name, 1)

#define SCALAR2(name, R, A, B, value, condition)   \
  const Inst* name(Wave& wave, const Inst* inst) { \
    const A a = get<A>(wave, inst->src[0].index);  \
    const B b = get<B>(wave, inst->src[1].index);  \
    const u32 scc = wave.scc();                    \
    (void)scc;                                     \
    const R r = (R)(value);                        \
    set<R>(wave, inst->dst, r);                    \
    wave.scc() = (u32)(condition);                 \
    return next(wave, inst);                       \
  }                                                \
  REGISTER(name, name, 2)

#define COMPARE(name, A, condition)                \
  const Inst* name(Wave& wave, const Inst* inst) { \
    const A a = get<A>(wave, inst->src[0].index);  \
    const A b = get<A>(wave, inst->src[1].index);  \
    wave.scc() = (condition);                      \
    return next(wave, inst);                       \
  }                                                \
  REGISTER(name, name, 2)

// ---- moves
SCALAR1(s_mov_b32, u32, u32, a, scc);
SCALAR1(s_mov_b64, u64, u64, a, scc);
const Inst* s_cmov_b32(Wave& wave, const Inst* inst) {
  if (wave.scc()) wave.scalars[inst->dst] = wave.scalars[inst->src[0].index];
  return next(wave, inst);
}
const Inst* s_cmov_b64(Wave& wave, const Inst* inst) {
  if (wave.scc()) write64(wave.scalars, inst->dst, read64(wave.scalars, inst->src[0].index));
  return next(wave, inst);
}
REGISTER(s_cmov_b32, s_cmov_b32, 1);
REGISTER(s_cmov_b64, s_cmov_b64, 1);
SCALAR2(s_cselect_b32, u32, u32, u32, scc ? a : b, scc);
SCALAR2(s_cselect_b64, u64, u64, u64, scc ? a : b, scc);

// ---- arithmetic
SCALAR2(s_add_u32, u32, u32, u32, a + b, r < a);
SCALAR2(s_sub_u32, u32, u32, u32, a - b, b > a);
SCALAR2(s_add_i32, u32, u32, u32, a + b, (~(a ^ b) & (a ^ r)) >> 31);
SCALAR2(s_sub_i32, u32, u32, u32, a - b, ((a ^ b) & (a ^ r)) >> 31);
SCALAR2(s_addc_u32, u32, u32, u32, a + b + scc, ((u64)a + b + scc) >> 32);
SCALAR2(s_subb_u32, u32, u32, u32, a - b - scc, (u64)b + scc > (u64)a);
SCALAR2(s_mul_i32, u32, u32, u32, a* b, scc);
SCALAR2(s_mul_hi_u32, u32, u32, u32, ((u64)a * b) >> 32, scc);
SCALAR2(s_mul_hi_i32, u32, u32, u32, ((i64)(i32)a * (i32)b) >> 32, scc);
SCALAR2(s_min_i32, i32, i32, i32, a < b ? a : b, a < b);
SCALAR2(s_max_i32, i32, i32, i32, a > b ? a : b, a > b);
SCALAR2(s_min_u32, u32, u32, u32, a < b ? a : b, a < b);
SCALAR2(s_max_u32, u32, u32, u32, a > b ? a : b, a > b);
SCALAR2(s_absdiff_i32, u32, u32, u32, (i32)(a - b) < 0 ? b - a : a - b, r != 0);
SCALAR1(s_abs_i32, u32, u32, (i32)a < 0 ? 0u - a : a, r != 0);
SCALAR2(s_lshl1_add_u32, u32, u32, u32, (a << 1) + b, (((u64)a << 1) + b) >> 32 != 0);
SCALAR2(s_lshl2_add_u32, u32, u32, u32, (a << 2) + b, (((u64)a << 2) + b) >> 32 != 0);
SCALAR2(s_lshl3_add_u32, u32, u32, u32, (a << 3) + b, (((u64)a << 3) + b) >> 32 != 0);
SCALAR2(s_lshl4_add_u32, u32, u32, u32, (a << 4) + b, (((u64)a << 4) + b) >> 32 != 0);

// ---- bits
#define LOGIC(name, value)                               \
  SCALAR2(s_##name##_b32, u32, u32, u32, value, r != 0); \
  SCALAR2(s_##name##_b64, u64, u64, u64, value, r != 0)
LOGIC(and, a& b);
LOGIC(or, a | b);
LOGIC(xor, a ^ b);
LOGIC(andn2, a & ~b);
LOGIC(orn2, a | ~b);
LOGIC(nand, ~(a& b));
LOGIC(nor, ~(a | b));
LOGIC(xnor, ~(a ^ b));
SCALAR1(s_not_b32, u32, u32, ~a, r != 0);
SCALAR1(s_not_b64, u64, u64, ~a, r != 0);
SCALAR2(s_lshl_b32, u32, u32, u32, a << (b & 31), r != 0);
SCALAR2(s_lshr_b32, u32, u32, u32, a >> (b & 31), r != 0);
SCALAR2(s_ashr_i32, i32, i32, u32, a >> (b & 31), r != 0);
SCALAR2(s_lshl_b64, u64, u64, u32, a << (b & 63), r != 0);
SCALAR2(s_lshr_b64, u64, u64, u32, a >> (b & 63), r != 0);
SCALAR2(s_ashr_i64, i64, i64, u32, a >> (b & 63), r != 0);
SCALAR2(s_bfm_b32, u32, u32, u32, ((1u << (a & 31)) - 1) << (b & 31), scc);
SCALAR2(s_bfm_b64, u64, u32, u32, ((1ull << (a & 63)) - 1) << (b & 63), scc);
SCALAR2(s_bfe_u32, u32, u32, u32, bitfield_u32(a, b), r != 0);
SCALAR2(s_bfe_i32, u32, u32, u32, bitfield_i32(a, b), r != 0);
SCALAR2(s_bfe_u64, u64, u64, u32, bitfield_u64(a, b), r != 0);
SCALAR2(s_bfe_i64, u64, u64, u32, bitfield_i64(a, b), r != 0);
SCALAR2(s_pack_ll_b32_b16, u32, u32, u32, (a & 0xffff) | (b << 16), scc);
SCALAR2(s_pack_lh_b32_b16, u32, u32, u32, (a & 0xffff) | (b & 0xffff0000u), scc);
SCALAR2(s_pack_hh_b32_b16, u32, u32, u32, (a >> 16) | (b & 0xffff0000u), scc);
SCALAR1(s_brev_b32, u32, u32, reverse_bits(a), scc);
SCALAR1(s_brev_b64, u64, u64, reverse_bits64(a), scc);
SCALAR1(s_sext_i32_i8, i32, u32, (i8)a, scc);
SCALAR1(s_sext_i32_i16, i32, u32, (i16)a, scc);
SCALAR1(s_bcnt1_i32_b32, u32, u32, __builtin_popcount(a), r != 0);
SCALAR1(s_bcnt0_i32_b32, u32, u32, __builtin_popcount(~a), r != 0);
SCALAR1(s_bcnt1_i32_b64, u32, u64, __builtin_popcountll(a), r != 0);
SCALAR1(s_bcnt0_i32_b64, u32, u64, __builtin_popcountll(~a), r != 0);
SCALAR1(s_ff1_i32_b32, u32, u32, a ? __builtin_ctz(a) : -1, scc);
SCALAR1(s_ff0_i32_b32, u32, u32, ~a ? __builtin_ctz(~a) : -1, scc);
SCALAR1(s_ff1_i32_b64, u32, u64, a ? __builtin_ctzll(a) : -1, scc);
SCALAR1(s_ff0_i32_b64, u32, u64, ~a ? __builtin_ctzll(~a) : -1, scc);
SCALAR1(s_flbit_i32_b32, u32, u32, a ? __builtin_clz(a) : -1, scc);
SCALAR1(s_flbit_i32_b64, u32, u64, a ? __builtin_clzll(a) : -1, scc);
SCALAR1(s_flbit_i32, u32, u32, a == 0 || a == ~0u ? -1 : __builtin_clz((i32)a < 0 ? ~a : a), scc);
SCALAR1(s_flbit_i32_i64, u32, u64, a == 0 || a == ~0ull ? -1 : __builtin_clzll((i64)a < 0 ? ~a : a),
        scc);

// Groups of four bits: all bits of a group with a one become ones, or one bit represents the group.
template <class T>
SIM_INLINE T whole_quads(T x) {
  T any = x | x >> 1;
  any = (any | any >> 2) & (T)0x1111111111111111ull;
  return any * 15;
}
template <class T>
SIM_INLINE T quad_bits(T x) {
  T result = 0;
  for (u32 i = 0; i < 2 * sizeof(T); i++) result |= (T)((x >> (4 * i) & 15) != 0) << i;
  return result;
}
SCALAR1(s_wqm_b32, u32, u32, whole_quads(a), r != 0);
SCALAR1(s_wqm_b64, u64, u64, whole_quads(a), r != 0);
SCALAR1(s_quadmask_b32, u32, u32, quad_bits(a), r != 0);
SCALAR1(s_quadmask_b64, u64, u64, quad_bits(a), r != 0);

SIM_INLINE u64 replicate_bits(u32 x) {
  u64 result = 0;
  for (int i = 0; i < 32; i++) result |= (u64)(x >> i & 1) * 3 << (2 * i);
  return result;
}
SCALAR1(s_bitreplicate_b64_b32, u64, u32, replicate_bits(a), scc);

// ---- scalar registers chosen by M0
constexpr u32 kScalarRegisters = 102;
template <class T, bool to>
const Inst* move_relative(Wave& wave, const Inst* inst) {
  const u32 moved = (to ? inst->dst : inst->src[0].index) + wave.scalars[kM0];
  if (moved + sizeof(T) / 4 > kScalarRegisters) {
    return raise_fault(wave, inst, FaultKind::kTrap, 0, moved, 0);
  }
  const T value = get<T>(wave, to ? inst->src[0].index : moved);
  set<T>(wave, to ? moved : inst->dst, value);
  return next(wave, inst);
}
#define MOVE_RELATIVE(name, T, to)                                                            \
  const Inst* name(Wave& wave, const Inst* inst) { return move_relative<T, to>(wave, inst); } \
  REGISTER(name, name, 1)
MOVE_RELATIVE(s_movrels_b32, u32, false);
MOVE_RELATIVE(s_movrels_b64, u64, false);
MOVE_RELATIVE(s_movreld_b32, u32, true);
MOVE_RELATIVE(s_movreld_b64, u64, true);

// The destination is also a source.
#define BITSET(name, T, value)                                                      \
  const Inst* name(Wave& wave, const Inst* inst) {                                  \
    const T old = get<T>(wave, inst->dst);                                          \
    const T bit = (T)1 << (wave.scalars[inst->src[0].index] & (8 * sizeof(T) - 1)); \
    set<T>(wave, inst->dst, value);                                                 \
    return next(wave, inst);                                                        \
  }                                                                                 \
  REGISTER(name, name, 1)
BITSET(s_bitset1_b32, u32, old | bit);
BITSET(s_bitset0_b32, u32, old & ~bit);
BITSET(s_bitset1_b64, u64, old | bit);
BITSET(s_bitset0_b64, u64, old & ~bit);

// ---- comparisons
#define COMPARE_BOTH(relation, operation)              \
  COMPARE(s_cmp_##relation##_u32, u32, a operation b); \
  COMPARE(s_cmp_##relation##_i32, i32, a operation b)
COMPARE_BOTH(eq, ==);
COMPARE_BOTH(lg, !=);
COMPARE_BOTH(gt, >);
COMPARE_BOTH(ge, >=);
COMPARE_BOTH(lt, <);
COMPARE_BOTH(le, <=);
COMPARE(s_cmp_eq_u64, u64, a == b);
COMPARE(s_cmp_lg_u64, u64, a != b);
COMPARE(s_bitcmp0_b32, u32, (a >> (b & 31) & 1) == 0);
COMPARE(s_bitcmp1_b32, u32, (a >> (b & 31) & 1) == 1);
const Inst* s_bitcmp0_b64(Wave& wave, const Inst* inst) {
  const u64 a = read64(wave.scalars, inst->src[0].index);
  wave.scc() = !(a >> (wave.scalars[inst->src[1].index] & 63) & 1);
  return next(wave, inst);
}
const Inst* s_bitcmp1_b64(Wave& wave, const Inst* inst) {
  const u64 a = read64(wave.scalars, inst->src[0].index);
  wave.scc() = a >> (wave.scalars[inst->src[1].index] & 63) & 1;
  return next(wave, inst);
}
REGISTER(s_bitcmp0_b64, s_bitcmp0_b64, 2);
REGISTER(s_bitcmp1_b64, s_bitcmp1_b64, 2);

// ---- EXEC. The source is read before the destination is written: they may overlap.
#define SAVEEXEC(name, value)                               \
  const Inst* name(Wave& wave, const Inst* inst) {          \
    const u64 a = read64(wave.scalars, inst->src[0].index); \
    const u64 exec = wave.exec();                           \
    wave.exec() = (value);                                  \
    wave.scc() = wave.exec() != 0;                          \
    write64(wave.scalars, inst->dst, exec);                 \
    return next(wave, inst);                                \
  }                                                         \
  REGISTER(name, name, 1)
SAVEEXEC(s_and_saveexec_b64, a& exec);
SAVEEXEC(s_or_saveexec_b64, a | exec);
SAVEEXEC(s_xor_saveexec_b64, a ^ exec);
SAVEEXEC(s_andn2_saveexec_b64, a & ~exec);
SAVEEXEC(s_orn2_saveexec_b64, a | ~exec);
SAVEEXEC(s_nand_saveexec_b64, ~(a& exec));
SAVEEXEC(s_nor_saveexec_b64, ~(a | exec));
SAVEEXEC(s_xnor_saveexec_b64, ~(a ^ exec));
SAVEEXEC(s_andn1_saveexec_b64, ~a& exec);
SAVEEXEC(s_orn1_saveexec_b64, ~a | exec);

#define WREXEC(name, value)                                 \
  const Inst* name(Wave& wave, const Inst* inst) {          \
    const u64 a = read64(wave.scalars, inst->src[0].index); \
    const u64 exec = wave.exec();                           \
    wave.exec() = (value);                                  \
    wave.scc() = wave.exec() != 0;                          \
    write64(wave.scalars, inst->dst, wave.exec());          \
    return next(wave, inst);                                \
  }                                                         \
  REGISTER(name, name, 1)
WREXEC(s_andn1_wrexec_b64, ~a& exec);
WREXEC(s_andn2_wrexec_b64, a & ~exec);

// ---- control flow; imm: position of the target
const Inst* s_branch(Wave& wave, const Inst* inst) { return wave.program + inst->imm; }
REGISTER(s_branch, s_branch);

#define BRANCH(name, condition)                               \
  const Inst* name(Wave& wave, const Inst* inst) {            \
    return (condition) ? wave.program + inst->imm : inst + 1; \
  }                                                           \
  REGISTER(name, name)
BRANCH(s_cbranch_execz, wave.exec() == 0);
BRANCH(s_cbranch_execnz, wave.exec() != 0);
BRANCH(s_cbranch_scc0, wave.scc() == 0);
BRANCH(s_cbranch_scc1, wave.scc() != 0);
BRANCH(s_cbranch_vccz, read64(wave.scalars, kVcc) == 0);
BRANCH(s_cbranch_vccnz, read64(wave.scalars, kVcc) != 0);

const Inst* stop(Wave& wave, const Inst* resume, Status status) {
  wave.resume = resume;
  wave.status = status;
  return nullptr;
}

const Inst* s_endpgm(Wave& wave, const Inst* inst) { return stop(wave, inst, Status::kEnded); }
const Inst* s_barrier(Wave& wave, const Inst* inst) {
  return stop(wave, inst + 1, Status::kBarrier);
}
const Inst* s_trap(Wave& wave, const Inst* inst) {
  return raise_fault(wave, inst, FaultKind::kTrap, 0, 0, 0);
}
// An interrupt for the host. The host is done when the next instruction runs, so no wave ever waits.
const Inst* s_host_call(Wave& wave, const Inst* inst) {
  if (wave.memory->host_call) wave.memory->host_call();
  return next(wave, inst);
}
REGISTER(s_host_call, s_host_call);
REGISTER(s_endpgm, s_endpgm);
REGISTER(s_barrier, s_barrier);
REGISTER(s_trap, s_trap);

// ---- calls. Code addresses are invented: kCodeBase + 64 * position in the program.
constexpr u64 kCodeBase = 0x7c0000000000ull;

// Goes to a block head. Work behind a head that was not passed would not be counted.
const Inst* jump(Wave& wave, const Inst* inst, u64 address) {
  const u64 position = (address - kCodeBase) / sizeof(Inst);
  if (address < kCodeBase || position >= wave.program_size || address % sizeof(Inst) ||
      wave.program[position].handler != block_head) {
    return raise_fault(wave, inst, FaultKind::kJump, 0, address, 0);
  }
  return wave.program + position;
}

SIM_INLINE u64 address_after(const Wave& wave, const Inst* inst) {
  return kCodeBase + (u64)(inst + 1 - wave.program) * sizeof(Inst);
}

const Inst* s_getpc_b64(Wave& wave, const Inst* inst) {
  write64(wave.scalars, inst->dst, address_after(wave, inst));
  return next(wave, inst);
}
const Inst* s_setpc_b64(Wave& wave, const Inst* inst) {
  return jump(wave, inst, read64(wave.scalars, inst->src[0].index));
}
const Inst* s_swappc_b64(Wave& wave, const Inst* inst) {
  const u64 target = read64(wave.scalars, inst->src[0].index);
  write64(wave.scalars, inst->dst, address_after(wave, inst));
  return jump(wave, inst, target);
}
const Inst* s_call_b64(Wave& wave, const Inst* inst) {
  write64(wave.scalars, inst->dst, address_after(wave, inst));
  return wave.program + inst->imm;
}
REGISTER(s_call_b64, s_call_b64);
REGISTER(s_getpc_b64, s_getpc_b64);
REGISTER(s_setpc_b64, s_setpc_b64, 1);
REGISTER(s_swappc_b64, s_swappc_b64, 1);

// ---- clocks: the count of executed instructions replaces cycles, so that runs repeat exactly
const Inst* s_memtime(Wave& wave, const Inst* inst) {
  write64(wave.scalars, inst->dst, (u64)(wave.clock - wave.budget) * 4);
  return next(wave, inst);
}
REGISTER(s_memtime, s_memtime);

}  // namespace
