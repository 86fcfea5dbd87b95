// The sources of vector operations. Their places are known when a program is loaded. So each
// operation has handlers for the usual places, without tests at run time, and one for all places.
// An operation is a struct with a method
//   run<A, B, ...>(wave, inst)
// that reads its sources in chunks of kWidth lanes from objects of the classes below. Operands are
// built in registers or in the wave's spare rows: aligned rows on the stack would cost every call
// an aligned frame.
#pragma once

#include "ops/operand.h"

// Continues after the records that a fused operation replaces. imm: their number. They stay in the
// program, so that no record moves (kernel_gym/sim/compiler/fusion.py).
SIM_INLINE const Inst* next_after_fused(Wave& wave, const Inst* inst) {
  return next(wave, inst + inst->imm - 1);
}

#define SIM_METHOD inline __attribute__((always_inline))

// Forces an address into one register. As a base and an index it would take two, and a handler that
// saves registers of its caller spends as much time on that as on a row.
SIM_INLINE const u32* settled(const u32* words) {
  __asm__("" : "+r"(words));
  return words;
}
SIM_INLINE u32* settled(u32* words) {
  __asm__("" : "+r"(words));
  return words;
}

// ---- where a source lies. high(): the upper words of 64-bit values
// In a vector row, or in that of a constant.
struct InRow {
  const u32* words;
  SIM_METHOD InRow(const Wave& wave, const Inst* inst, int i)
      : words(settled(wave.bases[inst->src[i].space & kConstant] + inst->src[i].index)) {}
  SIM_METHOD U at(int c) const { return load(words, c); }
  SIM_METHOD U high(int c) const { return load(words + kLanes, c); }
};

// In a scalar register, or a pair of them.
struct InScalar {
  U low, upper;
  SIM_METHOD InScalar(const Wave& wave, const Inst* inst, int i)
      : low(splat(wave.scalars[inst->src[i].index])),
        upper(splat(wave.scalars[inst->src[i].index + 1])) {}
  SIM_METHOD U at(int) const { return low; }
  SIM_METHOD U high(int) const { return upper; }
};

// In any place: a row, or one chunk for all lanes in the source's two spare rows.
struct Anywhere {
  const u32* words;
  size_t step;  // words from chunk to chunk
  SIM_METHOD Anywhere(const Wave& wave, const Inst* inst, int i) : step(kWidth) {
    const Operand& operand = inst->src[i];
    const u32 space = operand.space & ~kModified;
    if (LIKELY(space <= kConstant)) {
      words = wave.bases[space] + operand.index;
      return;
    }
    Row* spare = wave.spare + 2 * i;
    put(spare[0].words, 0, splat(wave.scalars[operand.index]));
    put(spare[1].words, 0, splat(wave.scalars[operand.index + 1]));
    words = spare[0].words;
    step = 0;
  }
  SIM_METHOD U at(int c) const { return *(const U*)(words + c * step); }
  SIM_METHOD U high(int c) const { return *(const U*)(words + kLanes + c * step); }
};

// An f32 source with changes of the sign only, which two masks apply while reading.
template <class Place>
struct WithSigns : Place {
  U keep, flip;
  SIM_METHOD WithSigns(const Wave& wave, const Inst* inst, int i)
      : Place(wave, inst, i),
        keep(splat(inst->src[i].flags & kAbs32 ? 0x7fffffffu : ~0u)),
        flip(splat(inst->src[i].flags & kNeg32 ? 0x80000000u : 0u)) {}
  SIM_METHOD U at(int c) const { return (Place::at(c) & keep) ^ flip; }
};
SIM_INLINE bool only_signs(const Inst* inst, int sources) {
  u32 flags = 0;
  for (int i = 0; i < sources; i++) flags |= inst->src[i].flags;
  return !(flags & ~(kAbs32 | kNeg32));
}

// ---- the handlers of an operation, by the number of its sources. kSigns: f32 sources; kWide: a
// bit for each source of 64 bits
template <class Op>
const Inst* any1(Wave& wave, const Inst* inst) {
  if (has_modifiers(inst, 1)) return run_modified(wave, inst, any1<Op>, 1, Op::kWide);
  return Op::template run<Anywhere>(wave, inst);
}

template <class Op>
const Inst* any2(Wave& wave, const Inst* inst) {
  using Signed = WithSigns<Anywhere>;
  if (has_modifiers(inst, 2)) {
    if constexpr (Op::kSigns) {
      if (only_signs(inst, 2)) return Op::template run<Signed, Signed>(wave, inst);
    }
    return run_modified(wave, inst, any2<Op>, 2, Op::kWide);
  }
  return Op::template run<Anywhere, Anywhere>(wave, inst);
}

template <class Op>
const Inst* any3(Wave& wave, const Inst* inst) {
  using Signed = WithSigns<Anywhere>;
  if (has_modifiers(inst, 3)) {
    if constexpr (Op::kSigns) {
      if (only_signs(inst, 3)) return Op::template run<Signed, Signed, Signed>(wave, inst);
    }
    return run_modified(wave, inst, any3<Op>, 3, Op::kWide);
  }
  return Op::template run<Anywhere, Anywhere, Anywhere>(wave, inst);
}

template <class Op>
Handlers handlers1() {
  Handlers all(any1<Op>);
  all.rows = Op::template run<InRow>;
  all.scalar[0] = Op::template run<InScalar>;
  return all;
}

template <class Op>
Handlers handlers2() {
  Handlers all(any2<Op>);
  all.rows = Op::template run<InRow, InRow>;
  all.scalar[0] = Op::template run<InScalar, InRow>;
  all.scalar[1] = Op::template run<InRow, InScalar>;
  using Signed = WithSigns<InRow>;
  if constexpr (Op::kSigns) all.signs = Op::template run<Signed, Signed>;
  return all;
}

// Two sources, and the bits of a scalar register pair as third.
template <class Op>
Handlers handlers_by_bits() {
  Handlers all(any2<Op>);
  all.scalar[2] = Op::template run<InRow, InRow>;
  return all;
}

template <class Op>
Handlers handlers3() {
  Handlers all(any3<Op>);
  all.rows = Op::template run<InRow, InRow, InRow>;
  all.scalar[0] = Op::template run<InScalar, InRow, InRow>;
  all.scalar[1] = Op::template run<InRow, InScalar, InRow>;
  all.scalar[2] = Op::template run<InRow, InRow, InScalar>;
  using Signed = WithSigns<InRow>;
  if constexpr (Op::kSigns) all.signs = Op::template run<Signed, Signed, Signed>;
  return all;
}

// ---- operations on each lane alone
template <class Value, class... Sources>
SIM_INLINE const Inst* each_lane(Wave& wave, const Inst* inst, const Sources&... sources) {
  u32* dst = settled(wave.regs + inst->dst);
  const u64 exec = wave.exec();
  for (int c = 0; c < kChunks; c++) store(exec, dst, c, Value::apply(sources.at(c)...));
  return next(wave, inst);
}

template <class Value>
struct EachLane {
  static constexpr bool kSigns = Value::kFloat;
  static constexpr u32 kWide = 0;
  template <class A>
  static const Inst* run(Wave& wave, const Inst* inst) {
    return each_lane<Value>(wave, inst, A(wave, inst, 0));
  }
  template <class A, class B>
  static const Inst* run(Wave& wave, const Inst* inst) {
    return each_lane<Value>(wave, inst, A(wave, inst, 0), B(wave, inst, 1));
  }
  template <class A, class B, class C>
  static const Inst* run(Wave& wave, const Inst* inst) {
    return each_lane<Value>(wave, inst, A(wave, inst, 0), B(wave, inst, 1), C(wave, inst, 2));
  }
};

// Modifiers can change the signs of f32 sources.
#define IS_FLOAT(T) std::is_same_v<decltype(T{}[0] * T{}[0]), float>
// UNARY(name, T, expression of `a`), and so on: T is U, I or F.
#define UNARY(name, T, expression)              \
  struct name {                                 \
    static constexpr bool kFloat = IS_FLOAT(T); \
    static U apply(U a_) {                      \
      const T a = (T)a_;                        \
      return (U)(expression);                   \
    }                                           \
  };                                            \
  REGISTER(name, handlers1<EachLane<name>>(), 1)

#define BINARY(name, T, expression)             \
  struct name {                                 \
    static constexpr bool kFloat = IS_FLOAT(T); \
    static U apply(U a_, U b_) {                \
      const T a = (T)a_;                        \
      const T b = (T)b_;                        \
      return (U)(expression);                   \
    }                                           \
  };                                            \
  REGISTER(name, handlers2<EachLane<name>>(), 2)

#define TERNARY(name, T, expression)            \
  struct name {                                 \
    static constexpr bool kFloat = IS_FLOAT(T); \
    static U apply(U a_, U b_, U c_) {          \
      const T a = (T)a_;                        \
      const T b = (T)b_;                        \
      const T c = (T)c_;                        \
      return (U)(expression);                   \
    }                                           \
  };                                            \
  REGISTER(name, handlers3<EachLane<name>>(), 3)
