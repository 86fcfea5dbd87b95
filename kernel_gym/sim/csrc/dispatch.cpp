// Workgroups over threads, and what a launch leaves behind.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "launch.h"

Program::~Program() { free(constants); }

Engine::Engine() = default;
Engine::~Engine() = default;

void Launch::finish(u32 worker, std::unique_ptr<Slot> slot) {
  std::vector<u64>& total = block_counts_[worker];
  for (u32 i = 0; i < program_.blocks; i++) total[i] += slot->block_counts[i];
  if (!accounts_.empty()) engine_.bins.add(slot->workgroup, slot->block_counts);
  if (slot->recorder) {
    const auto place = std::lower_bound(samples_.begin(), samples_.end(), slot->workgroup);
    recorders_[place - samples_.begin()] = std::move(slot->recorder);
  }
  if (slot->audit) engine_.audit->end(std::move(slot->audit));
  engine_.free_slots[worker].push_back(std::move(slot));
}

bool Launch::start_next(u32 worker, std::deque<std::unique_ptr<Slot>>& resident) {
  const u64 workgroup = next_.fetch_add(1);
  if (workgroup >= workgroups_ || workgroup >= stop_before_.load()) return false;
  std::unique_ptr<Slot> slot = take_slot(worker);
  prepare(*slot, worker, workgroup);
  resident.push_front(std::move(slot));
  return true;
}

void Launch::work(u32 worker) {
  std::deque<std::unique_ptr<Slot>> resident;  // round robin
  const u32 limit = std::max(1u, request_.resident_limit / (u32)block_counts_.size());
  bool more = true;
  for (;;) {
    if (more && resident.empty()) more = start_next(worker, resident);
    if (resident.empty()) return;
    std::unique_ptr<Slot> slot = std::move(resident.front());
    resident.pop_front();
    if (slot->workgroup >= stop_before_.load()) continue;
    const Outcome outcome = run_slice(*slot);
    if (outcome == Outcome::kFinished) {
      const FaultKind limit = exceeded(*slot);
      const auto unfinished = [&] { return next_.load() < workgroups_ || !resident.empty(); };
      if (limit != FaultKind::kNone && unfinished()) stop_at_limit(*slot, limit);
      finish(worker, std::move(slot));
    } else if (outcome == Outcome::kYielded) {
      resident.push_back(std::move(slot));
      if (more && resident.size() < limit) more = start_next(worker, resident);
      const bool startable = more && resident.size() < limit;
      if (!more) release_grid(resident);
      if (stuck(resident, startable)) stop_at_deadlock(resident);
    }
  }
}

void Launch::merge() {
  engine_.block_counts.assign(program_.blocks, 0);
  for (const auto& counts : block_counts_) {
    for (u32 i = 0; i < program_.blocks; i++) engine_.block_counts[i] += counts[i];
  }
  engine_.recorders.clear();
  for (auto& recorder : recorders_) {
    if (recorder) engine_.recorders.push_back(std::move(recorder));
  }
  request_.sampled = (u32)engine_.recorders.size();
  engine_.accesses.assign(program_.source_instructions, AccessCounts());
  engine_.sampled = engine_.accesses;
  for (u32 i = 0; i < program_.source_instructions; i++) {
    for (const Accounts& accounts : accounts_) {
      engine_.accesses[i].add(accounts.all[i]);
      engine_.sampled[i].add(accounts.sampled[i]);
    }
  }
  request_.instructions = executed_.load();
  if (use_footprint_) {
    request_.read_lines =
        engine_.footprint.count(memory_.allocations, memory_.count, false, epoch_);
    request_.written_lines =
        engine_.footprint.count(memory_.allocations, memory_.count, true, epoch_);
  }
  request_.suspects = request_.audit ? (u32)engine_.audit->suspects.size() : 0;
  request_.fault_kind = (u32)fault_.kind;
  if (fault_.kind == FaultKind::kNone) return;
  const u32* grid = request_.grid;
  request_.fault_instruction = fault_.instruction;
  request_.fault_wave = fault_.wave;
  request_.fault_lane = fault_.lane;
  request_.fault_size = fault_.size;
  request_.fault_address = fault_.address;
  request_.fault_other_instruction = fault_.other_instruction;
  request_.fault_other_wave = fault_.other_wave;
  request_.fault_other_workgroup = fault_.other_workgroup;
  request_.fault_workgroup[0] = (u32)(fault_workgroup_ % grid[0]);
  request_.fault_workgroup[1] = (u32)(fault_workgroup_ / grid[0] % grid[1]);
  request_.fault_workgroup[2] = (u32)(fault_workgroup_ / grid[0] / grid[1]);
}

void Launch::run() {
  const u32 workers = (u32)std::max<u64>(1, std::min<u64>(request_.threads, workgroups_));
  block_counts_.assign(workers, std::vector<u64>(program_.blocks, 0));
  if (request_.sample_count) {
    for (u32 i = 0; i < workers; i++) {
      accounts_.emplace_back(program_.source_instructions, engine_.footprint.base());
    }
    engine_.bins.begin(workgroups_, program_.blocks);
  }
  places_.assign(workers, std::vector<u64>(waves_ * kPlaces, 0));
  if (engine_.free_slots.size() < workers) engine_.free_slots.resize(workers);
  std::vector<std::thread> threads;
  for (u32 i = 1; i < workers; i++) threads.emplace_back(&Launch::work, this, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
  merge();
}

void run_launch(Engine& engine, const Program& program, LaunchRequest& request) {
  Launch(engine, program, request).run();
}

void model_launch(Engine& engine, const Program& program, ModelRequest& request) {
  std::vector<const Recorder*> samples;
  for (const auto& recorder : engine.recorders) samples.push_back(recorder.get());
  const ModelInput input = {program.timed,   program.block_ranges, samples,
                            engine.bins,     engine.accesses,      engine.sampled};
  run_model(input, request, engine.spent);
}
