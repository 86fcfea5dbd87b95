// Programs, launches and the workers that run workgroups.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "audit/audit.h"
#include "launch/pool.h"
#include "timing/classes.h"
#include "timing/footprint.h"
#include "timing/recorder.h"
#include "timing/sharing.h"
#include "timing/timing.h"
#include "wave.h"

struct Program {
  std::vector<Inst> instructions;
  std::vector<Inst> fused;             // the same with fused operations; empty if there are none
  Row* constants = nullptr;            // splatted literal rows
  std::vector<u32> scalar_constants;   // copied behind the scalar registers of every wave
  u32 rows = 0;                        // vector rows a wave: registers and temporaries
  u32 blocks = 0;
  u32 source_instructions = 0;         // Inst::index is below this
  std::vector<TimedInst> timed;        // by source instruction; empty until set
  std::vector<BlockRange> block_ranges;
  std::vector<AuditInst> audited;      // by source instruction; empty until set
  ~Program();
};

// Mirrored by kernel_gym/sim/layouts.py.
struct LaunchRequest {
  u32 grid[3];
  u32 block[3];
  u32 lds_size;
  u32 scratch_size;
  u64 kernarg;
  u64 kernarg_size;
  u64 packet;
  u64 data;              // read-only data of the module
  u64 data_size;
  u32 kernarg_register;  // scalar register numbers; 0xffff: not wanted
  u32 packet_register;
  u32 preload_register;
  u32 preload_offset;    // in words
  u32 preload_count;
  u32 workgroup_register[3];
  u32 threads;
  u32 resident_limit;    // workgroups in flight
  u32 sample_count;      // workgroups to record
  u32 footprint;         // record touched lines
  double time_limit_s;
  u64 instruction_limit;
  u64 lds_map;           // map of the bytes of LDS that start with `fill`; 0: none
  u32 fill_row;          // vector row that starts with `fill`; kNotWanted: none
  u32 fill;              // a word
  u32 audit;             // check for faults that values need not show
  u32 reverse_waves;     // run the waves of a workgroup in reverse order
  u64 sample_seed;       // decides which workgroups are recorded
  u64 poison;            // a Poison: these loads get `fill` as result; 0: none
  u64 sharing;           // record data that workgroups hand to each other
  u64 margin;            // bytes around an allocation where accesses are noted and made; 0: none
  u64 l1_sets;           // of the L1 that a recorded workgroup has for itself
  u64 further;           // numbers of further workgroups to record
  u64 further_count;
  // results
  u64 instructions;
  u64 read_lines;        // distinct 128-byte lines
  u64 written_lines;
  u64 atomic_requests;   // see LineCounts
  u64 atomic_lines;
  u64 atomic_hottest;
  u64 most_instructions; // of a workgroup
  u64 most_own_lines;    // of a workgroup: read lines that no other one reads
  u32 sampled;
  u32 fault_kind;
  u32 fault_instruction;
  u32 fault_wave;
  u32 fault_lane;
  u32 fault_size;
  u32 fault_workgroup[3];
  u32 fault_other_instruction;
  u64 fault_address;
  u64 fault_other_workgroup;
  u32 fault_other_wave;
  u32 suspects;
  u32 outside_kind;      // of the first access in a margin; then fault_... say where it was
  // an input, where there was room
  u32 reverse_workgroups;  // begin the workgroups that are in flight together in reverse order
};
static_assert(sizeof(LaunchRequest) == 352, "shared with Python");

struct Slot;  // the state of one resident workgroup

struct Engine {
  std::vector<Region> allocations;
  Footprint footprint;
  void (*host_call)() = nullptr;  // see MemoryMap
  Pool pool;
  std::vector<std::vector<std::unique_ptr<Slot>>> free_slots;  // by worker
  // of the last launch, until the next one
  std::vector<u64> block_counts;
  std::vector<std::unique_ptr<Recorder>> recorders;
  std::vector<AccessCounts> accesses;  // by source instruction, exact, of all workgroups
  std::vector<AccessCounts> sampled;   // the same of the recorded ones, with cache and banks
  Classes classes;
  std::vector<u32> own_lines;          // by workgroup modulo the size: lines that only it read
  std::vector<u32> read_lines;         // by workgroup: lines that it read, estimated
  std::vector<double> spent;           // by source instruction, of the last model run
  std::unique_ptr<AuditLaunch> audit;  // of the last audited launch
  AuditPool audits;                    // of workgroups
  std::unique_ptr<Sharing> sharing;    // of the last launch; null if not recorded
  std::vector<std::vector<u8>> kept[2];  // contents of all allocations: before, after
  Engine();
  ~Engine();
};

void run_launch(Engine& engine, const Program& program, LaunchRequest& request);

// Models the time of the last launch, which must have been sampled.
void model_launch(Engine& engine, const Program& program, ModelRequest& request);
