// 64-bit integer vector operations, on the low and high rows of their operands.
#include "ops/sources.h"

namespace {

struct Wide {
  U low, high;
};

template <class Source>
SIM_INLINE Wide load_wide(const Source& source, int c) {
  return {source.at(c), source.high(c)};
}
SIM_INLINE void store_wide(u64 exec, u32* dst, int c, Wide value) {
  store(exec, dst, c, value.low);
  store(exec, dst + kLanes, c, value.high);
}

SIM_INLINE Wide shift_left(Wide x, U n) {
  const U m = n & 31u;
  const U low = x.low << m, high = (x.high << m) | (x.low >> 1 >> (31u - m));
  const I far = (n & 32u) != 0u;
  return {select(far, U{}, low), select(far, low, high)};
}
SIM_INLINE Wide shift_right(Wide x, U n) {
  const U m = n & 31u;
  const U low = (x.low >> m) | (x.high << 1 << (31u - m)), high = x.high >> m;
  const I far = (n & 32u) != 0u;
  return {select(far, high, low), select(far, U{}, high)};
}
SIM_INLINE Wide shift_right_signed(Wide x, U n) {
  const U m = n & 31u;
  const U low = (x.low >> m) | (x.high << 1 << (31u - m)), high = (U)((I)x.high >> (I)m);
  const I far = (n & 32u) != 0u;
  return {select(far, high, low), select(far, (U)((I)x.high >> 31), high)};
}

// The amount is a 32-bit first source.
template <Wide (*shift)(Wide, U)>
struct Shift {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 2;
  template <class A, class B>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A amount(wave, inst, 0);
    const B value(wave, inst, 1);
    u32* dst = settled(wave.regs + inst->dst);
    const u64 exec = wave.exec();
    for (int c = 0; c < kChunks; c++) {
      store_wide(exec, dst, c, shift(load_wide(value, c), amount.at(c)));
    }
    return next(wave, inst);
  }
};
REGISTER(v_lshlrev_b64, handlers2<Shift<shift_left>>(), 2);
REGISTER(v_lshrrev_b64, handlers2<Shift<shift_right>>(), 2);
REGISTER(v_ashrrev_i64, handlers2<Shift<shift_right_signed>>(), 2);

// The sum, and where it carries out of 64 bits.
SIM_INLINE Wide add_wide(Wide x, Wide y, I& carry) {
  const U low = x.low + y.low, high = x.high + y.high;
  const U total = high - (U)(low < x.low);  // a true lane is -1
  carry = (high < x.high) | (total < high);
  return {low, total};
}

struct ShiftAdd {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 5;
  template <class A, class B, class C>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A a(wave, inst, 0);
    const B shift(wave, inst, 1);
    const C b(wave, inst, 2);
    u32* dst = settled(wave.regs + inst->dst);
    const u64 exec = wave.exec();
    for (int c = 0; c < kChunks; c++) {
      const Wide x = load_wide(a, c);
      const U n = shift.at(c) & 7u;
      const Wide shifted = {x.low << n, (x.high << n) | (x.low >> 1 >> (31u - n))};
      I carry;
      store_wide(exec, dst, c, add_wide(shifted, load_wide(b, c), carry));
    }
    return next(wave, inst);
  }
};
REGISTER(v_lshl_add_u64, handlers3<ShiftAdd>(), 3);

// dst2: the carry, for signed values the sign of the sum with one bit more.
template <bool is_signed>
struct MultiplyAdd {
  static constexpr bool kSigns = false;
  static constexpr u32 kWide = 4;
  template <class A, class B, class C>
  static const Inst* run(Wave& wave, const Inst* inst) {
    const A a(wave, inst, 0);
    const B b(wave, inst, 1);
    const C addend(wave, inst, 2);
    u32* dst = settled(wave.regs + inst->dst);
    const u64 exec = wave.exec();
    u64 carries = 0;
    for (int c = 0; c < kChunks; c++) {
      const U x = a.at(c), y = b.at(c);
      const Wide z = load_wide(addend, c);
      Wide product = {x * y, mul_hi_lanes(x, y)};
      if (is_signed) product.high -= (y & (U)((I)x >> 31)) + (x & (U)((I)y >> 31));
      I carry;
      store_wide(exec, dst, c, add_wide(product, z, carry));
      if (is_signed) carry = (I)((U)carry ^ product.high ^ z.high) < 0;
      carries |= to_bits(carry, c);
    }
    write64(wave.scalars, inst->dst2, carries & exec);
    return next(wave, inst);
  }
};
REGISTER(v_mad_u64_u32, handlers3<MultiplyAdd<false>>(), 3);
REGISTER(v_mad_i64_i32, handlers3<MultiplyAdd<true>>(), 3);

}  // namespace
