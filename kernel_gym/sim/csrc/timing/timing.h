// The timing model. Recorded workgroups are replayed together on one compute unit, in order within
// each wave, with the units that waves share. That gives each basic block a cost; the exact
// counts of the blocks of every workgroup then give each workgroup its time. A block that no replay
// ran costs its full latencies, so that unsampled work is never cheap.
#pragma once

#include <vector>

#include "timing/classes.h"
#include "timing/footprint.h"
#include "timing/recorder.h"

// How an instruction occupies the compute unit (kernel_gym/sim/compiler/timing_tables.py).
enum class Unit : u8 {
  kScalar,
  kVector,
  kMatrix,
  kLds,
  kMemory,
  kScalarMemory,
  kWait,
  kBarrier,
  kBranch,
  kIdle,  // s_nop, s_sleep: `cycles` without using a unit
  kFree,  // no time of its own
};

constexpr u16 kNoRow = 0xffff;

// How an instruction shares memory with other waves, as bits of TimedInst::sharing.
enum SharingKind : u16 {
  kSharesReads = 1,
  kSharesWrites = 2,
  kSharesAtomic = 4,
  kPassesL1 = 8,  // a load that takes nothing from the L1
  kUsesScratch = 16,
};

// Mirrored by kernel_gym/sim/layouts.py.
struct TimedInst {
  Unit unit;
  u8 is_store;
  u16 cycles;
  u16 vector_memory_limit;  // of s_waitcnt; 0xffff: not waited for
  u16 local_limit;
  u16 dst_row, dst_rows;  // of a matrix instruction
  u16 src_rows[3];  // rows whose matrix results are needed
  u16 sharing;  // SharingKind: what it does that other workgroups may see
  u16 gap;  // of a vector instruction: cycles until the same wave issues its next one
  u16 lds_banks;  // that an LDS instruction sees
};
static_assert(sizeof(TimedInst) == 24, "shared with Python");

struct BlockRange {
  u32 first, last;  // instructions, exclusive end
};
static_assert(sizeof(BlockRange) == 8, "shared with Python");

// What a wave spends its cycles on. Mirrored by kernel_gym/sim/layouts.py.
enum class Stall : u8 {
  kIssue,  // executing, or taking its turn to issue
  kVectorBusy,  // another wave holds the vector unit
  kMatrixBusy,  // the matrix unit works
  kMatrixResult,  // a result of the matrix unit is not ready
  kLdsQueue,
  kMemoryQueue,
  kMemory,  // s_waitcnt for vector memory
  kLds,  // s_waitcnt for LDS
  kScalarMemory,  // s_waitcnt for scalar memory
  kBarrier,
};
constexpr int kStalls = 10;

// Mirrored by kernel_gym/sim/layouts.py. Times in cycles of the compute unit unless named.
struct ModelRequest {
  double lds_latency;
  double l1_latency;
  double l2_latency;    // of lines that another load has brought there; a full L2 misses some
  double mall_latency;  // of lines that another chiplet has fetched
  double hbm_latency;
  double scalar_latency;
  double store_latency;
  double workgroup_launch;
  double l2_bytes_per_cycle;  // of one compute unit
  double scratch_latency;  // of lines of scratch, which all resident waves share the L2 for
  double miss_lines;  // that one compute unit may wait for at the same time
  double unsampled_lds;  // cycles of an LDS instruction that no sample ran
  double chiplets;       // that have workgroups
  double handover;  // from a write to the end of a load that reads it elsewhere
  double atomic_handover;  // the same of two atomic operations on one address
  double start_interval;  // between two workgroups that start anywhere on the GPU
  u64 instruction_budget;  // replayed instructions
  u64 slots;  // workgroups that run at the same time on the GPU
  u64 workgroups;
  u32 copies;  // workgroups that share a compute unit
  u32 waves;  // of a workgroup
  // results
  double makespan;  // cycles until the last workgroup ends
  double replay_cycles;  // length of the replays, summed
  double explained;  // share of all executed instructions in blocks that were replayed
  double guessed;  // share of the time that comes from full latencies, see Costs
  double unrecorded;  // share of the cycles of all workgroups in classes without a recorded one
  double waiting;    // largest share of its workgroup's time that a wave waits for memory
  double busy[8];  // cycles a unit was busy in the replays, by Unit
  double stalls[kStalls];  // cycles of waves in the replays, by Stall
  u64 replayed;
};
static_assert(sizeof(ModelRequest) == 360, "shared with Python");

class Sharing;

// Rough number of cycles that a wave without latency hiding spends in an instruction.
u32 nominal_cycles(const TimedInst& inst);

struct ModelInput {
  const std::vector<TimedInst>& instructions;
  const std::vector<BlockRange>& blocks;
  const std::vector<const Recorder*>& samples;
  const Classes& classes;  // what every workgroup executed
  const std::vector<AccessCounts>& accesses;  // of every workgroup
  const Footprint& footprint;
  const std::vector<u32>& own_lines;  // by workgroup: read by no other; may be shorter than that
  const std::vector<u32>& read_lines;  // by workgroup, estimated; empty if there are too many
  const Sharing* sharing;  // null if workgroups cannot wait for each other
};

// `spent`: cycles by instruction, summed over the waves of all workgroups.
void run_model(const ModelInput& input, ModelRequest& request, std::vector<double>& spent);
