// The state of a wave, the decoded instruction and the operand access that every handler uses.
#pragma once

#include <atomic>
#include <type_traits>

#include "lanes.h"

struct Wave;
struct Inst;
// Executes one decoded instruction; returns the next one, or null when the wave stops
// (end, barrier, pre-emption, fault: see Wave::status).
using Handler = const Inst* (*)(Wave&, const Inst*);

// Numbers of scalar registers. Those with an encoding in hardware have that number.
enum ScalarIndex : u32 {
  kFlatScratch = 102,
  kVcc = 106,
  kM0 = 124,
  kExec = 126,
  kScc = 128,
  kNull = 130,           // written and never read
  kScalarConstants = 132  // literals of the kernel follow
};

// Where an operand is. kModified is a flag on top of kVector or kConstant.
enum Space : u8 { kVector = 0, kConstant = 1, kScalar = 2, kModified = 4, kNone = 255 };

// Modifiers of a vector source, applied in this order.
enum OperandFlag : u16 {
  kSelectMask = 0x7,    // 1..4: byte 0..3, 5: low word, 6: high word
  kSignExtend = 0x8,    // of the selected byte or word
  kSwizzle = 0x10,      // rearrange 16-bit halves by the two bits below
  kLowFromHigh = 0x20,
  kHighFromHigh = 0x40,
  kFromHalf = 0x80,     // f16 in the low half to f32
  kAbs16 = 0x100,
  kAbs32 = 0x200,
  kNeg16 = 0x400,
  kNeg32 = 0x800,
};

struct Operand {
  u32 index;  // word offset of the row (vector, constant) or scalar register number
  u8 space;
  u8 unused;
  u16 flags;
};
static_assert(sizeof(Operand) == 8, "shared with Python");

// One operation. The Python side writes this layout (kernel_gym/sim/compiler/program.py).
struct Inst {
  Handler handler;
  u32 dst;  // word offset of the destination row, or scalar register number
  u32 dst2;  // second destination (carry-out, scalar register number)
  Operand src[4];
  u32 imm;  // meaning depends on the handler: offset, branch target, packed fields
  u32 aux;
  u32 index;  // number of the assembler instruction
  u32 flags;
};
static_assert(sizeof(Inst) == 64, "Inst is shared with Python");

enum class Status : u32 { kRunning, kEnded, kBarrier, kPreempted, kFaulted, kGridBarrier };

enum class FaultKind : u32 {
  kNone = 0,
  kOutOfBoundsRead,
  kOutOfBoundsWrite,
  kMisaligned,
  kLdsOutOfBounds,
  kTimeLimit,
  kInstructionLimit,
  kDeadlock,
  kTrap,
  kUnsupported,
  kJump,  // to an address where no block of the program begins
  // reported by audits only (audit/audit.h)
  kLdsRace,
  kGlobalRace,
  kLostWrite,
  kMissingWaitcnt,
  kUninitialisedLds,  // decided by the Python side (kernel_gym/sim/engine/suspects.py)
  kUninitialisedRegister,  // likewise
  kUnwaitedWrite,
  kUnwaitedRead,
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  u32 instruction = 0;
  u32 workgroup[3] = {0, 0, 0};
  u32 wave = 0;
  u32 lane = 0;
  u32 size = 0;
  u64 address = 0;
  // the other access of a race, or the load that has not arrived
  u32 other_instruction = ~0u;
  u32 other_wave = 0;
  u64 other_workgroup = 0;
};

// Memory a kernel may touch.
struct Region {
  u64 start;
  u64 end;
};

// The first access just outside an allocation that a launch was allowed to make.
struct Outside {
  std::atomic<bool> taken{false};
  Fault fault;
  u64 workgroup = 0;
};

struct MemoryMap {
  const Region* allocations;  // sorted, disjoint, readable and writable
  u64 count;
  Region arena;  // device memory; what lies around an allocation there belongs to nobody
  u64 margin;  // bytes around an allocation where accesses are only noted; 0: none
  Outside* outside;
  Region internal[4];  // read only: kernel arguments, dispatch packet, constants of the module
  u32 internal_count;
  void (*host_call)();  // serves calls of the host; null: there is nobody to serve them
};

class Recorder;  // records sampled workgroups for the timing model
class Footprint;  // the lines of memory a launch touched
class ReadLines;  // how many of them a workgroup reads
class Audit;  // checks a workgroup for faults that values do not show
struct Accounts;
class Sharing;  // data that workgroups hand to each other

struct alignas(64) Row {
  u32 words[kLanes];
};
struct alignas(64) RowPair {
  u32 words[2 * kLanes];
};
constexpr u32 kSpareRows = 6;
constexpr u32 kRecentRegions = 4;
constexpr u32 kPlaces = 64;  // length of Wave::places

// The MODE register: rounding of f32 (bits 0-1) and of f64 and f16 (2-3), which denormals are kept
// (4-7). The default rounds to nearest even and keeps all denormals.
constexpr u32 kDefaultMode = 0x2f0;

struct Wave {
  u32* regs;  // vector rows: VGPRs, AGPRs, temporaries
  Row* spare;  // kSpareRows rows for operands that must be built
  const u32* bases[2];  // by Space: regs, and the splatted literal rows of the kernel
  u32* scalars;
  u64* block_counts;
  const Inst* program;
  const Inst* resume;  // where to continue
  u8* lds;
  u8* scratch;  // lane l owns scratch_size bytes at l * scratch_size
  const MemoryMap* memory;
  Recorder* recorder;  // null unless this workgroup is sampled
  Footprint* footprint;  // null unless touched lines are recorded
  ReadLines* read_lines;  // of the workgroup
  Audit* audit;  // null unless the launch is audited
  Accounts* accounts;  // of this worker; null without a model
  Sharing* sharing;  // null unless the program can wait for other workgroups
  u64 progress;  // nominal cycles of the blocks that it has entered
  u32 workgroup;
  Region recent_scalar;  // the region of the last scalar load
  Region recent[kRecentRegions];  // allocations of the last accesses, by instruction
  u64* places;  // addresses of the last scattered accesses by waves of this number
  i64 budget;  // instructions left in this time slice
  i64 clock;  // clock - budget: instructions executed so far
  u64 saved_exec;  // around instructions with DPP
  u32 program_size;
  u32 lds_size;
  u32 scratch_size;
  u32 sync_operations;  // polling loads and returning atomics in this time slice
  u32 number;  // within the workgroup
  u32 mode = kDefaultMode;  // the MODE register
  u8 epoch;  // number of this launch in the footprint
  bool single_step;  // handlers return after one instruction
  Status status;
  Fault fault;

  u64& exec() { return *(u64*)(scalars + kExec); }
  u32& scc() { return scalars[kScc]; }
};

typedef u64 unaligned_u64 __attribute__((aligned(4), may_alias));
SIM_INLINE u64 read64(const u32* scalars, u32 index) {
  return *(const unaligned_u64*)(scalars + index);
}
SIM_INLINE void write64(u32* scalars, u32 index, u64 value) {
  *(unaligned_u64*)(scalars + index) = value;
}

// ---- handler registration: name -> function, looked up once when a kernel is loaded
// The handlers of one operation, by the places of its sources. `any` handles every case and is
// required.
struct Handlers {
  Handler any;
  Handler rows = nullptr;  // all in rows
  Handler scalar[3] = {};  // source i in a scalar register, the others in rows
  Handler signs = nullptr;  // all in rows, with changes of the sign of f32
  Handlers(Handler handler) : any(handler) {}
};

// `sources`: the least number of sources. The decoder refuses instructions with fewer.
void register_handler(const char* name, const Handlers& handlers, u32 sources);
struct Registration {
  Registration(const char* name, const Handlers& handlers, u32 sources = 0) {
    register_handler(name, handlers, sources);
  }
};
// REGISTER(name, handler) or REGISTER(name, handler, sources)
#define REGISTER(name, ...) static const Registration register_##name(#name, __VA_ARGS__)

const Inst* raise_fault(Wave& wave, const Inst* inst, FaultKind kind, u32 lane, u64 address,
                        u32 size);

// The head of every basic block: counts it, and pre-empts the wave when its time slice is over. All
// places that control can enter are heads: the decoder puts one at each label and behind each
// instruction that ends a block, and a jump to a computed address goes to no other place.
const Inst* block_head(Wave& wave, const Inst* inst);

// Runs the next instruction by a jump from handler to handler, which takes a third of the time of a
// return to a loop. With single_step it returns the next instruction. Block heads always return, so
// that a block bounds the depth of the stack even without optimisation.
SIM_INLINE const Inst* next(Wave& wave, const Inst* inst) {
  return UNLIKELY(wave.single_step) ? inst + 1 : inst[1].handler(wave, inst + 1);
}

SIM_INLINE void splat_row(u32* out, u32 value) {
  const U x = splat(value);
  for (int c = 0; c < kChunks; c++) put(out, c, x);
}
