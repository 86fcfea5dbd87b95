// The timing model: replays recorded workgroups on one compute unit, in order within each wave,
// with the units that waves share.
#pragma once

#include <vector>

#include "recorder.h"

// How an instruction occupies the compute unit (kernel_gym/sim/timed.py).
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

// Mirrored by kernel_gym/sim/timed.py.
struct TimedInst {
  Unit unit;
  u8 is_store;
  u16 cycles;
  u16 vector_memory_limit;  // of s_waitcnt; 0xffff: not waited for
  u16 local_limit;
  u16 dst_row, dst_rows;    // of a matrix instruction
  u16 src_rows[3];          // rows whose matrix results are needed
  u16 unused;
};
static_assert(sizeof(TimedInst) == 20, "shared with Python");

struct BlockRange {
  u32 first, last;  // instructions, exclusive end
};

// Mirrored by kernel_gym/sim/native.py. Times in cycles of the compute unit unless named.
struct ModelRequest {
  double lds_latency;
  double l1_latency;
  double l2_latency;
  double hbm_latency;
  double scalar_latency;
  double store_latency;
  double workgroup_launch;
  double l2_bytes_per_cycle;   // of one compute unit
  double far_fraction;         // of L1 misses that also miss L2
  u64 instruction_budget;      // replayed instructions, all copies together
  u64 slots;                   // workgroups that run at the same time on the GPU
  u32 copies;                  // workgroups that share a compute unit
  u32 unused;
  // results
  double makespan;             // cycles until the last workgroup ends
  double workgroup_cycles;     // mean of the sampled ones
  double sampled_instructions;
  double busy[8];              // cycles a unit was busy, by Unit, per compute unit and sample
  u64 replayed;
};

struct ModelInput {
  const std::vector<TimedInst>& instructions;
  const std::vector<BlockRange>& blocks;
  const std::vector<const Recorder*>& samples;
  const std::vector<u32>& workgroup_instructions;  // of every workgroup
  const std::vector<AccessCounts>& accesses;       // summed over the samples
};

// `spent`: cycles by instruction, summed over the replayed waves.
void run_model(const ModelInput& input, ModelRequest& request, std::vector<double>& spent);
