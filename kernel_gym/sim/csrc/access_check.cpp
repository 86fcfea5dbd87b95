// Whether the memory that an instruction touches was given to the kernel.
#include "memory.h"

#include <algorithm>

#include "dispatch.h"
#include "recorder.h"

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

bool check_each_lane(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                     bool write) {
  for (; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    const u64 address = addresses[l];
    if (inside(recent_region(wave, inst), address, address + size)) continue;
    const Region* region = find_region(*wave.memory, address, address + size, write);
    if (!region) {
      raise_fault(wave, inst,
                  write ? FaultKind::kWriteOutOfBounds : FaultKind::kReadOutOfBounds, l, address,
                  size);
      return false;
    }
  }
  return true;
}

// Notes the touched lines for the timing model. Dense accesses are one range.
void mark_footprint(Wave& wave, const u64* addresses, u64 lanes, u64 low, u64 high, u32 size,
                    bool write) {
  const u64 active = __builtin_popcountll(lanes);
  if (high - low <= 2 * active * size) {
    wave.footprint->mark(low, high, write, wave.epoch);
    return;
  }
  for (u64 rest = lanes; rest; rest &= rest - 1) {
    const u64 address = addresses[__builtin_ctzll(rest)];
    wave.footprint->mark(address, address + size, write, wave.epoch);
  }
}

}  // namespace

bool check_global(Wave& wave, const Inst* inst, const u64* addresses, u64 lanes, u32 size,
                  bool write) {
  if (!lanes) return true;
  u64 low = ~0ull, high = 0;
  if (lanes == kAllLanes) {
    for (int l = 0; l < kLanes; l++) {
      low = std::min(low, addresses[l]);
      high = std::max(high, addresses[l]);
    }
  } else {
    for (u64 rest = lanes; rest; rest &= rest - 1) {
      const u64 address = addresses[__builtin_ctzll(rest)];
      low = std::min(low, address);
      high = std::max(high, address);
    }
  }
  if (wave.footprint) mark_footprint(wave, addresses, lanes, low, high + size, size, write);
  if (wave.accesses) {
    count_access(wave.accesses[inst->index], addresses, lanes, low, high + size, size, write);
  }
  return LIKELY(inside(recent_region(wave, inst), low, high + size)) ||
         enter_range(wave, inst, low, high + size, write) ||
         check_each_lane(wave, inst, addresses, lanes, size, write);
}

bool enter_range(Wave& wave, const Inst* inst, u64 low, u64 high, bool write) {
  const Region* region = find_region(*wave.memory, low, high, write);
  if (!region) return false;
  const bool writable = region >= wave.memory->allocations &&
                        region < wave.memory->allocations + wave.memory->count;
  if (writable) recent_region(wave, inst) = *region;
  return true;
}

bool check_scalar(Wave& wave, const Inst* inst, u64 address, u32 size) {
  if (inside(wave.recent_scalar, address, address + size)) return true;
  if (const Region* region = find_region(*wave.memory, address, address + size, false)) {
    wave.recent_scalar = *region;
    return true;
  }
  raise_fault(wave, inst, FaultKind::kReadOutOfBounds, 0, address, size);
  return false;
}
