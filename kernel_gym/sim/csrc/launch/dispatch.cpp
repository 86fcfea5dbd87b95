// Distributes workgroups over threads and merges their results.
#include <algorithm>
#include <cstdlib>

#include "launch/launch.h"

namespace {

constexpr u64 kMostOwners = 1 << 22;  // workgroups whose own lines are counted one by one

}  // namespace

Program::~Program() { free(constants); }

Engine::Engine() = default;
Engine::~Engine() = default;

void Launch::finish(Worker& worker, std::unique_ptr<Slot> slot) {
  const u64* counts = slot->block_counts.data();
  for (u32 w = 0; w < waves_; w++, counts += program_.blocks) {
    for (u32 i = 0; i < program_.blocks; i++) worker.block_counts[i] += counts[i];
  }
  u32 work_class = 0;
  if (worker.accounts) {
    work_class = engine_.classes.add(slot->workgroup, slot->block_counts, program_.blocks);
    worker.most_instructions = std::max(worker.most_instructions, slot->executed);
    auto& lines = engine_.read_lines;
    if (slot->workgroup < lines.size()) lines[slot->workgroup] = slot->read_lines.estimate();
  }
  if (slot->recorder) {
    slot->recorder->work_class = work_class;
    slot->recorder->executed = slot->executed;
    slot->recorder->workgroup = slot->workgroup;
    const auto place = std::lower_bound(samples_.begin(), samples_.end(), slot->workgroup);
    recorders_[place - samples_.begin()] = std::move(slot->recorder);
  }
  if (engine_.sharing) {
    u64 progress = 0;
    for (const Wave& wave : slot->waves) progress = std::max(progress, wave.progress);
    engine_.sharing->end((u32)slot->workgroup, progress);
  }
  if (slot->audit) engine_.audits.end(std::move(slot->audit));
  worker.free_slots.push_back(std::move(slot));
}

// Takes a part of the remaining workgroups. Neighbours touch the same cache lines and so run on one
// thread, and all threads end together (guided self-scheduling, Polychronopoulos and Kuck 1987).
bool Launch::take_workgroups(Worker& worker) {
  u64 first = next_.load();
  do {
    if (first == workgroups_) return false;
    worker.next = first;
    worker.end = first + 1 + (workgroups_ - first - 1) / (2 * workers_.size());
  } while (!next_.compare_exchange_weak(first, worker.end));
  return true;
}

// The workgroup that is the `turn`-th to begin. Hardware begins them in order, and what follows is
// free for those that are in flight together. So only these change places: a workgroup may wait for
// an earlier one that has ended or is in flight, and for no later one that has no place yet.
u64 Launch::workgroup_at(u64 turn) const {
  if (LIKELY(!request_.reverse_workgroups)) return turn;
  const u64 together = std::max(1u, request_.resident_limit);
  const u64 first = turn / together * together;
  const u64 end = std::min(first + together, workgroups_);
  return end - 1 - (turn - first);
}

bool Launch::start_next(Worker& worker) {
  if (!worker.may_start() && !take_workgroups(worker)) return false;
  if (worker.next >= stop_before_.load()) return false;
  std::unique_ptr<Slot> slot = take_slot(worker);
  prepare(*slot, worker, workgroup_at(worker.next++));
  worker.resident.push_front(std::move(slot));
  return true;
}

void Launch::run_workgroups(Worker& worker) {
  auto& resident = worker.resident;
  const u32 limit = std::max(1u, request_.resident_limit / (u32)workers_.size());
  bool more = true;
  for (;;) {
    if (more && resident.empty()) more = start_next(worker);
    if (resident.empty()) return;
    std::unique_ptr<Slot> slot = std::move(resident.front());
    resident.pop_front();
    if (slot->workgroup >= stop_before_.load()) continue;
    const SliceEnd end = run_slice(worker, *slot);
    if (end == SliceEnd::kFinished) {
      const FaultKind limit = exceeded(worker, *slot);
      const bool unfinished = worker.may_start() || !resident.empty() || next_.load() < workgroups_;
      if (limit != FaultKind::kNone && unfinished) stop_at_limit(*slot, limit);
      finish(worker, std::move(slot));
    } else if (end == SliceEnd::kYielded) {
      resident.push_back(std::move(slot));
      if (more && resident.size() < limit) more = start_next(worker);
      const bool startable = more && resident.size() < limit;
      if (!more) release_grid(worker);
      if (stuck(worker, startable)) stop_at_deadlock(worker);
    }
  }
}

void Launch::run_worker(u32 number) {
  workers_[number] = std::make_unique<Worker>();
  Worker& worker = *workers_[number];
  worker.free_slots = std::move(engine_.free_slots[number]);
  worker.block_counts.resize(program_.blocks);
  worker.places.resize(waves_ * kPlaces);
  if (request_.sample_count) {
    worker.accounts =
        std::make_unique<Accounts>(program_.source_instructions, engine_.footprint.base());
  }
  run_workgroups(worker);
  engine_.free_slots[number] = std::move(worker.free_slots);
}

void Launch::merge() {
  request_.instructions = 0;
  engine_.block_counts.assign(program_.blocks, 0);
  for (const auto& worker : workers_) {
    request_.instructions += worker->executed;
    for (u32 i = 0; i < program_.blocks; i++) engine_.block_counts[i] += worker->block_counts[i];
  }
  engine_.recorders.clear();
  for (auto& recorder : recorders_) {
    if (recorder) engine_.recorders.push_back(std::move(recorder));
  }
  request_.sampled = (u32)engine_.recorders.size();
  request_.most_instructions = 0;
  for (const auto& worker : workers_) {
    request_.most_instructions = std::max(request_.most_instructions, worker->most_instructions);
  }
  if (request_.sample_count) engine_.classes.finish();
  for (auto& recorder : engine_.recorders) {
    recorder->work_class = engine_.classes.number(recorder->work_class);
  }
  engine_.accesses.assign(program_.source_instructions, AccessCounts());
  engine_.sampled = engine_.accesses;
  for (const auto& worker : workers_) {
    if (!worker->accounts) continue;
    for (u32 i = 0; i < program_.source_instructions; i++) {
      engine_.accesses[i].add(worker->accounts->all[i]);
      engine_.sampled[i].add(worker->accounts->sampled[i]);
    }
  }
  LineCounts atomics;
  for (const auto& worker : workers_) {
    if (worker->accounts) atomics.add(worker->accounts->atomics);
  }
  request_.atomic_requests = atomics.requests();
  request_.atomic_lines = atomics.lines();
  request_.atomic_hottest = atomics.hottest();
  if (use_footprint_) {
    request_.read_lines =
        engine_.footprint.count(memory_.allocations, memory_.count, false);
    request_.written_lines =
        engine_.footprint.count(memory_.allocations, memory_.count, true);
    engine_.own_lines.assign(std::min<u64>(workgroups_, kMostOwners), 0);
    engine_.footprint.count_own(memory_.allocations, memory_.count, engine_.own_lines);
    const auto& own = engine_.own_lines;
    request_.most_own_lines = own.empty() ? 0 : *std::max_element(own.begin(), own.end());
  }
  request_.suspects = request_.audit ? (u32)engine_.audit->suspects.size() : 0;
  request_.fault_kind = (u32)fault_.kind;
  request_.outside_kind = (u32)outside_.fault.kind;
  if (fault_.kind != FaultKind::kNone) {
    report(fault_, fault_workgroup_);
  } else if (outside_.taken) {
    report(outside_.fault, outside_.workgroup);
  }
}

void Launch::report(const Fault& fault, u64 workgroup) {
  const u32* grid = request_.grid;
  request_.fault_instruction = fault.instruction;
  request_.fault_wave = fault.wave;
  request_.fault_lane = fault.lane;
  request_.fault_size = fault.size;
  request_.fault_address = fault.address;
  request_.fault_other_instruction = fault.other_instruction;
  request_.fault_other_wave = fault.other_wave;
  request_.fault_other_workgroup = fault.other_workgroup;
  request_.fault_workgroup[0] = (u32)(workgroup % grid[0]);
  request_.fault_workgroup[1] = (u32)(workgroup / grid[0] % grid[1]);
  request_.fault_workgroup[2] = (u32)(workgroup / grid[0] / grid[1]);
}

void Launch::run() {
  const u32 workers = (u32)std::max<u64>(1, std::min<u64>(request_.threads, workgroups_));
  if (request_.sample_count) engine_.classes.begin(workgroups_);
  engine_.read_lines.assign(use_footprint_ && workgroups_ <= kMostOwners ? workgroups_ : 0, 0);
  if (engine_.free_slots.size() < workers) engine_.free_slots.resize(workers);
  workers_.resize(workers);
  engine_.pool.run(workers, [this](u32 number) { run_worker(number); });
  merge();
}

void run_launch(Engine& engine, const Program& program, LaunchRequest& request) {
  Launch(engine, program, request).run();
}

void model_launch(Engine& engine, const Program& program, ModelRequest& request) {
  std::vector<const Recorder*> samples;
  for (const auto& recorder : engine.recorders) samples.push_back(recorder.get());
  const ModelInput input = {program.timed,       program.block_ranges, samples,
                            engine.classes,      engine.accesses,      engine.footprint,
                            engine.own_lines,    engine.read_lines,    engine.sharing.get()};
  run_model(input, request, engine.spent);
}
