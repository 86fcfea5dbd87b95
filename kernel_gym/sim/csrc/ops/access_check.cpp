#include "ops/access_check.h"

#include <algorithm>

#include "timing/footprint.h"
#include "timing/recorder.h"
#include "timing/sharing.h"

const Inst* raise_fault(Wave& wave, const Inst* inst, FaultKind kind, u32 lane, u64 address,
                        u32 size) {
  wave.fault.kind = kind;
  wave.fault.instruction = inst->index;
  wave.fault.wave = wave.number;
  wave.fault.lane = lane;
  wave.fault.address = address;
  wave.fault.size = size;
  wave.resume = inst;
  wave.status = Status::kFaulted;
  return nullptr;
}

void note_outside(Wave& wave, const Inst* inst, FaultKind kind, u32 lane, u64 address, u32 size) {
  Outside& outside = *wave.memory->outside;
  if (outside.taken.exchange(true)) return;
  outside.fault.kind = kind;
  outside.fault.instruction = inst->index;
  outside.fault.wave = wave.number;
  outside.fault.lane = lane;
  outside.fault.address = address;
  outside.fault.size = size;
  outside.workgroup = wave.workgroup;
}

// ---- checks
namespace {

// The allocation (or read-only region) that holds [low, high).
const Region* find_region(const MemoryMap& memory, u64 low, u64 high, bool write) {
  const Region* end = memory.allocations + memory.count;
  const Region* next = std::upper_bound(memory.allocations, end, low,
                                        [](u64 x, const Region& r) { return x < r.start; });
  if (next != memory.allocations && inside(next[-1], low, high)) return next - 1;
  if (write) return nullptr;
  for (u32 i = 0; i < memory.internal_count; i++) {
    if (inside(memory.internal[i], low, high)) return &memory.internal[i];
  }
  return nullptr;
}

// Whether an access within the margin of an allocation may be made. The first one is noted.
bool tolerated(Wave& wave, const Inst* inst, FaultKind kind, u32 lane, u64 address, u32 size) {
  const MemoryMap& memory = *wave.memory;
  if (!memory.margin || !inside(memory.arena, address, address + size)) return false;
  const Region* end = memory.allocations + memory.count;
  const Region* next = std::upper_bound(memory.allocations, end, address,
                                        [](u64 x, const Region& r) { return x < r.start; });
  const bool before = next != end && address + memory.margin >= next->start;
  const bool after = next != memory.allocations && address + size <= next[-1].end + memory.margin;
  if (!before && !after) return false;
  note_outside(wave, inst, kind, lane, address, size);
  return true;
}

bool check_each_lane(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                     bool write) {
  for (; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    const u64 address = addresses[l];
    if (inside(recent_region(wave, inst), address, address + size)) continue;
    const Region* region = find_region(*wave.memory, address, address + size, write);
    if (region) continue;
    const FaultKind kind = write ? FaultKind::kOutOfBoundsWrite : FaultKind::kOutOfBoundsRead;
    if (tolerated(wave, inst, kind, l, address, size)) continue;
    raise_fault(wave, inst, kind, l, address, size);
    return false;
  }
  return true;
}

typedef u64 Wide __attribute__((vector_size(4 * kWidth), may_alias));

// The lowest and the highest address of active lanes.
SIM_INLINE std::pair<u64, u64> bounds_of(const u64* addresses, u64 lanes) {
  constexpr int kHalf = kWidth / 2;
  const u64 any = addresses[__builtin_ctzll(lanes)];
  Wide low = Wide{} + any, high = low;
  Wide bits;
  for (int i = 0; i < kHalf; i++) bits[i] = 1ull << i;
  for (int c = 0; c < 2 * kChunks; c++) {
    Wide x = *(const Wide*)(addresses + c * kHalf);
    if (UNLIKELY(lanes != kAllLanes)) x = (lanes >> c * kHalf & bits) != 0 ? x : Wide{} + any;
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  u64 first = any, last = any;
  for (int i = 0; i < kHalf; i++) {
    first = std::min<u64>(first, low[i]);
    last = std::max<u64>(last, high[i]);
  }
  return {first, last};
}

// Records an access for the timing model.
void account(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u64 low, u64 high,
             u32 size, bool write) {
  Accounts& accounts = *wave.accounts;
  const u64 place = low - accounts.base, line = place >> 7;
  const Shape& shape =
      accounts.shapes.global(inst->index, addresses, lanes, low, high, place & 127, size);
  count_lanes(accounts.all[inst->index], shape, write);
  if (wave.footprint) wave.footprint->mark(wave, line, shape, write);
  if (UNLIKELY(wave.recorder != nullptr)) {
    wave.recorder->global(wave.number, inst->index, shape, line, write);
  }
}

}  // namespace

bool check_global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                  bool write) {
  if (!lanes) return true;
  const auto [low, high] = bounds_of(addresses, lanes);
  const bool good = LIKELY(inside(recent_region(wave, inst), low, high + size)) ||
                    enter_range(wave, inst, low, high + size, write) ||
                    check_each_lane(wave, inst, addresses, lanes, size, write);
  if (good && wave.accounts) account(wave, inst, addresses, lanes, low, high + size, size, write);
  if (UNLIKELY(wave.sharing != nullptr) && good) {
    wave.sharing->access(wave, inst, addresses, lanes, size);
  }
  return good;
}

bool enter_range(Wave& wave, const Inst* inst, u64 low, u64 high, bool write) {
  const Region* region = find_region(*wave.memory, low, high, write);
  if (!region) return false;
  const bool writable =
      region >= wave.memory->allocations && region < wave.memory->allocations + wave.memory->count;
  if (writable) recent_region(wave, inst) = *region;
  return true;
}

bool check_scalar(Wave& wave, const Inst* inst, u64 address, u32 size) {
  if (inside(wave.recent_scalar, address, address + size)) return true;
  if (const Region* region = find_region(*wave.memory, address, address + size, false)) {
    wave.recent_scalar = *region;
    return true;
  }
  if (tolerated(wave, inst, FaultKind::kOutOfBoundsRead, 0, address, size)) return true;
  raise_fault(wave, inst, FaultKind::kOutOfBoundsRead, 0, address, size);
  return false;
}
