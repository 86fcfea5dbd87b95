// The arithmetic of atomic operations, shared by global memory and LDS.
#include "ops/atomics.h"

#include <type_traits>

namespace {

template <class T>
T apply_integer(Atomic op, T old, T value, T compare) {
  using Signed = std::make_signed_t<T>;
  const bool less = (Signed)old < (Signed)value;
  switch (op) {
    case Atomic::kAdd:
      return old + value;
    case Atomic::kSub:
      return old - value;
    case Atomic::kMinSigned:
      return less ? old : value;
    case Atomic::kMinUnsigned:
      return old < value ? old : value;
    case Atomic::kMaxSigned:
      return less ? value : old;
    case Atomic::kMaxUnsigned:
      return old > value ? old : value;
    case Atomic::kAnd:
      return old & value;
    case Atomic::kOr:
      return old | value;
    case Atomic::kXor:
      return old ^ value;
    case Atomic::kIncrement:
      return old >= value ? 0 : old + 1;
    case Atomic::kDecrement:
      return old == 0 || old > value ? value : old - 1;
    case Atomic::kSwap:
      return value;
    case Atomic::kCompareSwap:
      return old == compare ? value : old;
    default:
      return old;
  }
}

template <class F>
F apply_float(Atomic op, F old, F value) {
  if (op == Atomic::kAddFloat) return old + value;
  return op == Atomic::kMinFloat ? std::fmin(old, value) : std::fmax(old, value);
}

u32 add_bf16(u32 a, u32 b) {
  const u32 sum = as_u32(as_f32(a << 16) + as_f32(b << 16));
  if ((sum & 0x7fffffffu) > 0x7f800000u) return (sum >> 16) | 0x40;
  return (sum + 0x7fff + ((sum >> 16) & 1)) >> 16;
}

u32 add_f16(u32 a, u32 b) { return float_to_half(half_to_float(a) + half_to_float(b)); }

}  // namespace

u32 apply_atomic(Atomic op, u32 old, u32 value, u32 compare) {
  switch (op) {
    case Atomic::kAddFloat:
    case Atomic::kMinFloat:
    case Atomic::kMaxFloat:
      return as_u32(apply_float(op, as_f32(old), as_f32(value)));
    case Atomic::kAddPackedF16:
      return add_f16(old & 0xffff, value & 0xffff) | (add_f16(old >> 16, value >> 16) << 16);
    case Atomic::kAddPackedBf16:
      return add_bf16(old & 0xffff, value & 0xffff) | (add_bf16(old >> 16, value >> 16) << 16);
    default:
      return apply_integer<u32>(op, old, value, compare);
  }
}

u64 apply_atomic(Atomic op, u64 old, u64 value, u64 compare) {
  if (op >= Atomic::kAddFloat) return as_u64(apply_float(op, as_f64(old), as_f64(value)));
  return apply_integer<u64>(op, old, value, compare);
}
