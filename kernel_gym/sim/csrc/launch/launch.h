// One launch while it runs: its resident workgroups and the workers that share it.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>

#include "launch/dispatch.h"

constexpr u32 kNotWanted = 0xffff;  // a register number in a request

// A resident workgroup.
struct Slot {
  const Program* program = nullptr;
  size_t capacity = 0;  // bytes of registers
  u32* registers = nullptr;
  std::vector<u32> scalars;
  std::vector<Wave> waves;
  u8* lds = nullptr;
  u32 lds_capacity = 0;
  std::vector<u8> scratch;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<Audit> audit;
  ReadLines read_lines;
  std::vector<u64> block_counts;  // by wave and block
  u64 workgroup = 0;
  u64 executed = 0;
  u64 accounted = 0;  // the part of `executed` that is in the launch's total
  u32 slices = 0;
  u32 poisoned = 0;   // waves in which suspected loads get another value

  ~Slot() {
    free(registers);
    free(lds);
  }
};

// Why a workgroup's turn ended.
enum class SliceEnd { kFinished, kYielded, kFaulted };

// The private state of one worker. Each worker allocates its own, so that no two share a cache
// line.
struct Worker {
  u64 next = 0, end = 0;  // workgroups it has taken but not started
  std::deque<std::unique_ptr<Slot>> resident;  // round robin
  std::vector<std::unique_ptr<Slot>> free_slots;
  u64 executed = 0;  // instructions
  u64 most_instructions = 0;  // of a workgroup
  std::vector<u64> block_counts;
  std::vector<u64> places;  // where its waves accessed memory last
  std::unique_ptr<Accounts> accounts;  // null without a model

  bool may_start() const { return next < end; }
};

// One launch, shared by its workers.
class Launch {
 public:
  Launch(Engine& engine, const Program& program, LaunchRequest& request)
      : engine_(engine), program_(program), request_(request) {
    const u32* grid = request.grid;
    workgroups_ = (u64)grid[0] * grid[1] * grid[2];
    threads_of_workgroup_ = request.block[0] * request.block[1] * request.block[2];
    waves_ = (threads_of_workgroup_ + kLanes - 1) / kLanes;
    row_stride_ = program.rows + kSpareRows;
    scalar_stride_ = kScalarConstants + (u32)program.scalar_constants.size() + 16;
    memory_.allocations = engine.allocations.data();
    memory_.count = engine.allocations.size();
    memory_.arena = engine.footprint.arena();
    memory_.margin = request.margin;
    memory_.outside = &outside_;
    memory_.host_call = engine.host_call;
    add_internal(request.kernarg, request.kernarg_size);
    add_internal(request.packet, 64);
    add_internal(request.data, request.data_size);
    use_footprint_ = request.footprint && engine.footprint.ready();
    if (use_footprint_) {
      engine.footprint.watch(engine.allocations);
      epoch_ = engine.footprint.begin();
    }
    const auto limit = std::chrono::duration<double>(request.time_limit_s);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    engine.sharing.reset();
    if (request.sharing) engine.sharing = std::make_unique<Sharing>(program.timed, workgroups_);
    if (request.audit) {
      const std::unique_ptr<AuditLaunch> last = std::move(engine.audit);
      engine.audit =
          std::make_unique<AuditLaunch>(program.audited, workgroups_, program.rows, last.get());
    }
    choose_samples();
    number_threads();
    fill_lds();
  }

  void run();

 private:
  using Clock = std::chrono::steady_clock;

  void add_internal(u64 start, u64 size) {
    if (start && size) memory_.internal[memory_.internal_count++] = {start, start + size};
  }
  void choose_samples();
  void number_threads();
  void fill_lds();
  void run_worker(u32 number);
  void run_workgroups(Worker& worker);
  bool start_next(Worker& worker);
  bool take_workgroups(Worker& worker);
  u64 workgroup_at(u64 turn) const;
  std::unique_ptr<Slot> take_slot(Worker& worker);
  void prepare(Slot& slot, Worker& worker, u64 workgroup);
  void prepare_wave(Slot& slot, Worker& worker, u32 number);
  SliceEnd run_slice(Worker& worker, Slot& slot);
  void finish(Worker& worker, std::unique_ptr<Slot> slot);
  FaultKind exceeded(Worker& worker, Slot& slot);
  void stop_at_limit(Slot& slot, FaultKind kind);
  void fail(Slot& slot, Wave& wave);
  void release_grid(Worker& worker);
  void share_grid_barrier(Worker& worker);
  bool stuck(const Worker& worker, bool more);
  void stop_at_deadlock(const Worker& worker);
  void merge();
  void report(const Fault& fault, u64 workgroup);

  Engine& engine_;
  const Program& program_;
  LaunchRequest& request_;
  u64 workgroups_;
  u32 threads_of_workgroup_, waves_, row_stride_, scalar_stride_;
  MemoryMap memory_ = {};
  Outside outside_;
  bool use_footprint_ = false;
  u8 epoch_ = 0;
  Clock::time_point deadline_;
  // the last kept state of all waves, to detect that it repeats
  u64 kept_state_ = 0, kept_memory_ = 0, turns_ = 0, next_keep_ = 1;
  std::vector<u64> samples_;  // workgroup numbers, ascending
  std::vector<Row> thread_ids_;  // by wave: initial v0
  std::vector<u8> first_lds_;  // initial LDS; empty if all bytes are the same
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::vector<std::unique_ptr<Worker>> workers_;
  // Each in its own cache line, because workers read stop_before_ all the time.
  alignas(64) std::atomic<u64> next_{0};  // first workgroup that no worker has taken
  alignas(64) std::atomic<u64> executed_{0};  // by all workers, counted if there is a limit
  alignas(64) std::atomic<u64> stop_before_{~0ull};  // workgroups from here on need not run
  alignas(64) std::mutex fault_mutex_;
  Fault fault_;
  u64 fault_workgroup_ = ~0ull;
};
