#include "dispatch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

namespace {

constexpr i64 kWaveSlice = 32768;      // instructions until a wave is pre-empted
constexpr u32 kPollsOfSpin = 64;       // polling operations in a slice that look like waiting
constexpr u32 kSlicesOfWorkgroup = 64; // slices until another workgroup gets its turn anyway
constexpr u32 kLdsPadding = 256;       // 32-bit gathers may read past the end
constexpr u8 kLdsFill = 0xff;          // uninitialised LDS reads as NaN
constexpr u32 kNotWanted = 0xffff;

u8* allocate_rows(size_t bytes) {
  return (u8*)aligned_alloc(256, (bytes + 511) / 256 * 256);
}

}  // namespace

Program::~Program() { free(constants); }

// ---- block heads. imm: block number, aux: instructions in it
static const Inst* block_head(Wave& wave, const Inst* inst) {
  wave.block_counts[inst->imm]++;
  wave.budget -= inst->aux;
  if (UNLIKELY(wave.recorder != nullptr)) wave.recorder->block(wave.number, inst->imm);
  if (LIKELY(wave.budget >= 0)) return inst + 1;
  wave.resume = inst + 1;
  wave.status = Status::kPreempted;
  return nullptr;
}
REGISTER(block_head, block_head);

// The barrier of a cooperative launch.
static const Inst* ds_gws_barrier(Wave& wave, const Inst* inst) {
  wave.resume = inst + 1;
  wave.status = Status::kGridBarrier;
  return nullptr;
}
REGISTER(ds_gws_barrier, ds_gws_barrier);

// ---- footprint
Footprint::~Footprint() {
  for (u8* map : maps_) free(map);
}

bool Footprint::resize(u64 base, u64 size) {
  for (u8*& map : maps_) {
    free(map);
    map = (u8*)calloc((size >> 7) + 2, 1);  // pages come into being when touched
  }
  base_ = base;
  lines_ = maps_[0] && maps_[1] ? (size >> 7) + 2 : 0;
  epoch_ = 0;
  return lines_ != 0;
}

u8 Footprint::begin() {
  if (++epoch_ == 0) {
    resize(base_, (lines_ - 2) << 7);  // fresh pages: clearing would touch all of a sparse map
    epoch_ = 1;
  }
  return epoch_;
}

u64 Footprint::count(const Region* regions, u64 region_count, bool write, u8 epoch) const {
  const u8* map = maps_[write];
  u64 total = 0;
  u64 next = 0;  // lines shared by neighbouring regions count once
  for (u64 i = 0; i < region_count; i++) {
    // A module's variables lie outside the arena that this is an account of.
    if (regions[i].start < base_ || (regions[i].start - base_) >> 7 >= lines_) continue;
    const u64 first = std::max(next, (regions[i].start - base_) >> 7);
    const u64 last = std::min(lines_, ((regions[i].end - 1 - base_) >> 7) + 1);
    for (u64 line = first; line < last; line++) total += map[line] == epoch;
    next = std::max(next, last);
  }
  return total;
}

// ---- a resident workgroup
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
  std::vector<u64> block_counts;
  u64 workgroup = 0;
  u64 executed = 0;
  u64 accounted = 0;  // part of it that the launch's total contains
  u32 slices = 0;
  u32 poisoned = 0;   // waves whose suspected loads give another value

  ~Slot() {
    free(registers);
    free(lds);
  }
};

Engine::Engine() = default;
Engine::~Engine() = default;

namespace {

enum class Outcome { kFinished, kYielded, kFaulted };

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
    add_internal(request.kernarg, request.kernarg_size);
    add_internal(request.packet, 64);
    add_internal(request.data, request.data_size);
    use_footprint_ = request.footprint && engine.footprint.ready();
    if (use_footprint_) epoch_ = engine.footprint.begin();
    const auto limit = std::chrono::duration<double>(request.time_limit_s);
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
    if (request.audit) {
      engine.audit = std::make_unique<AuditLaunch>(program.audited, workgroups_, program.rows);
    }
    choose_samples();
    number_threads();
  }

  void run();

 private:
  using Clock = std::chrono::steady_clock;

  void add_internal(u64 start, u64 size) {
    if (start && size) memory_.internal[memory_.internal_count++] = {start, start + size};
  }
  void choose_samples();
  void number_threads();
  void work(u32 worker);
  bool start_next(u32 worker, std::deque<std::unique_ptr<Slot>>& resident);
  std::unique_ptr<Slot> take_slot(u32 worker);
  void prepare(Slot& slot, u32 worker, u64 workgroup);
  void prepare_wave(Slot& slot, u32 worker, u32 number);
  Outcome run_slice(Slot& slot);
  void finish(u32 worker, std::unique_ptr<Slot> slot);
  FaultKind exceeded(Slot& slot);
  void stop_at_limit(Slot& slot, FaultKind kind);
  void fail(Slot& slot, Wave& wave);
  void release_grid(std::deque<std::unique_ptr<Slot>>& resident);
  bool stuck(const std::deque<std::unique_ptr<Slot>>& resident, bool more);
  void stop_at_deadlock(const std::deque<std::unique_ptr<Slot>>& resident);
  void merge();

  Engine& engine_;
  const Program& program_;
  LaunchRequest& request_;
  u64 workgroups_;
  u32 threads_of_workgroup_, waves_, row_stride_, scalar_stride_;
  MemoryMap memory_ = {};
  bool use_footprint_ = false;
  u8 epoch_ = 0;
  Clock::time_point deadline_;
  // the state of all waves when it was last kept, to see whether it comes back
  u64 kept_state_ = 0, kept_memory_ = 0, turns_ = 0, next_keep_ = 1;
  std::vector<u64> samples_;  // workgroup numbers, ascending
  std::vector<Row> thread_ids_;  // by wave: what its v0 begins with
  std::vector<std::unique_ptr<Recorder>> recorders_;
  std::vector<std::vector<u64>> block_counts_;  // by worker
  std::vector<std::vector<AccessCounts>> accesses_;  // by worker; empty without a model
  std::atomic<u64> next_{0};
  std::atomic<u64> executed_{0};
  std::atomic<u64> stop_before_{~0ull};  // workgroups from here on need not run
  std::mutex fault_mutex_;
  Fault fault_;
  u64 fault_workgroup_ = ~0ull;
};

// A well-mixed number (Steele et al., "Fast splittable pseudorandom number generators", 2014).
u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// One workgroup out of each of as many equal parts of the grid. The seed is the judge's: a kernel
// that knew the places could do less there.
void Launch::choose_samples() {
  const u64 count = std::min<u64>(request_.sample_count, workgroups_);
  for (u64 i = 0; i < count; i++) {
    const u64 first = i * workgroups_ / count, end = (i + 1) * workgroups_ / count;
    samples_.push_back(first + mix(request_.sample_seed + i) % (end - first));
  }
  recorders_.resize(samples_.size());
}

// x | y << 10 | z << 20 of every thread.
void Launch::number_threads() {
  thread_ids_.resize(waves_);
  const u32* block = request_.block;
  for (u32 t = 0; t < waves_ * kLanes; t++) {
    const u32 x = t % block[0], y = t / block[0] % block[1], z = t / block[0] / block[1];
    thread_ids_[t / kLanes].words[t % kLanes] = x | y << 10 | z << 20;
  }
}

std::unique_ptr<Slot> Launch::take_slot(u32 worker) {
  auto& free_slots = engine_.free_slots[worker];
  std::unique_ptr<Slot> slot;
  if (free_slots.empty()) {
    slot = std::make_unique<Slot>();
  } else {
    slot = std::move(free_slots.back());
    free_slots.pop_back();
  }
  const size_t needed = (size_t)waves_ * row_stride_ * sizeof(Row);
  if (slot->capacity < needed) {
    free(slot->registers);
    slot->registers = (u32*)allocate_rows(needed);
    slot->capacity = needed;
  }
  if (slot->lds_capacity < request_.lds_size || !slot->lds) {
    free(slot->lds);
    slot->lds_capacity = std::max(65536u, request_.lds_size);
    slot->lds = allocate_rows(slot->lds_capacity + kLdsPadding);
  }
  slot->scratch.resize((size_t)waves_ * kLanes * request_.scratch_size);
  slot->scalars.resize((size_t)waves_ * scalar_stride_);
  slot->waves.resize(waves_);
  return slot;
}

void Launch::prepare(Slot& slot, u32 worker, u64 workgroup) {
  slot.program = &program_;
  slot.workgroup = workgroup;
  slot.executed = slot.accounted = 0;
  slot.slices = 0;
  slot.block_counts.assign(program_.blocks, 0);
  if (std::binary_search(samples_.begin(), samples_.end(), workgroup)) {
    slot.recorder = std::make_unique<Recorder>(program_.source_instructions, waves_,
                                               engine_.footprint.base());
  }
  memset(slot.registers, 0, (size_t)waves_ * row_stride_ * sizeof(Row));
  memset(slot.lds, kLdsFill, request_.lds_size);
  if (UNLIKELY(request_.lds_map != 0)) {
    const u8* map = (const u8*)request_.lds_map;
    for (u32 b = 0; b < request_.lds_size; b++) {
      if (map[b]) slot.lds[b] = (u8)(request_.fill >> 8 * (b % 4));
    }
  }
  slot.poisoned = 0;
  if (UNLIKELY(request_.poison != 0)) {
    const auto& waves = ((const Poison*)request_.poison)->waves;
    const auto found = waves.find(workgroup);
    if (found != waves.end()) slot.poisoned = found->second;
  }
  if (request_.audit) {
    slot.audit = std::make_unique<Audit>(*engine_.audit, workgroup, waves_, request_.lds_size);
  }
  for (u32 i = 0; i < waves_; i++) prepare_wave(slot, worker, i);
}

void Launch::prepare_wave(Slot& slot, u32 worker, u32 number) {
  Wave& wave = slot.waves[number];
  wave = Wave();
  wave.regs = slot.registers + (size_t)number * row_stride_ * kLanes;
  wave.spare = (Row*)wave.regs + program_.rows;
  wave.bases[kVector] = wave.regs;
  wave.bases[kConstant] = program_.constants->words;
  wave.scalars = slot.scalars.data() + (size_t)number * scalar_stride_;
  wave.block_counts = slot.block_counts.data();
  wave.accesses = accesses_.empty() ? nullptr : accesses_[worker].data();
  wave.program = program_.instructions.data();
  wave.program_size = (u32)program_.instructions.size();
  wave.resume = wave.program;
  wave.lds = slot.lds;
  wave.lds_size = request_.lds_size;
  wave.scratch_size = request_.scratch_size;
  wave.scratch = slot.scratch.data() + (size_t)number * kLanes * request_.scratch_size;
  wave.memory = &memory_;
  wave.recorder = slot.recorder.get();
  wave.audit = slot.audit.get();
  wave.number = number;
  wave.footprint = use_footprint_ ? &engine_.footprint : nullptr;
  wave.epoch = epoch_;

  u32* s = wave.scalars;
  memset(s, 0, kScalarConstants * sizeof(u32));
  std::copy(program_.scalar_constants.begin(), program_.scalar_constants.end(),
            s + kScalarConstants);
  const u32 live = std::min<u32>(kLanes, threads_of_workgroup_ - number * kLanes);
  wave.exec() = live == kLanes ? kAllLanes : (1ull << live) - 1;
  if (request_.kernarg_register != kNotWanted) {
    write64(s, request_.kernarg_register, request_.kernarg);
  }
  if (request_.packet_register != kNotWanted) write64(s, request_.packet_register, request_.packet);
  memcpy(s + request_.preload_register, (const u32*)request_.kernarg + request_.preload_offset,
         4 * request_.preload_count);
  const u32* grid = request_.grid;
  const u64 id = slot.workgroup;
  const u32 ids[3] = {(u32)(id % grid[0]), (u32)(id / grid[0] % grid[1]),
                      (u32)(id / grid[0] / grid[1])};
  for (int i = 0; i < 3; i++) {
    if (request_.workgroup_register[i] != kNotWanted) s[request_.workgroup_register[i]] = ids[i];
  }
  if (request_.fill_row < program_.rows) {
    splat_row(wave.regs + request_.fill_row * kLanes, request_.fill);
  }
  memcpy(wave.regs, thread_ids_[number].words, sizeof(Row));
}

// The limit that is exceeded, after counting what the workgroup has executed.
FaultKind Launch::exceeded(Slot& slot) {
  executed_ += slot.executed - slot.accounted;
  slot.accounted = slot.executed;
  if (request_.instruction_limit && executed_.load() > request_.instruction_limit) {
    return FaultKind::kInstructionLimit;
  }
  return Clock::now() > deadline_ ? FaultKind::kTimeLimit : FaultKind::kNone;
}

// Ends the launch because of a limit. The fault names a wave that is still running, if any.
void Launch::stop_at_limit(Slot& slot, FaultKind kind) {
  Wave* stopped = &slot.waves[0];
  for (Wave& wave : slot.waves) {
    if (wave.status != Status::kEnded) {
      stopped = &wave;
      break;
    }
  }
  raise_fault(*stopped, stopped->resume, kind, 0, 0, 0);
  fail(slot, *stopped);
  stop_before_ = 0;
}

void Launch::fail(Slot& slot, Wave& wave) {
  const std::lock_guard<std::mutex> lock(fault_mutex_);
  if (slot.workgroup < fault_workgroup_) {
    fault_workgroup_ = slot.workgroup;
    fault_ = wave.fault;
    stop_before_ = std::min<u64>(stop_before_.load(), slot.workgroup);
  }
}

// Runs a wave with the audit looking at every source instruction.
static void run_audited(Wave& wave) {
  for (const Inst* inst = wave.resume; inst;) {
    if (inst->handler == block_head) {
      wave.audit->block(wave, inst);
      inst = inst->handler(wave, inst);
      continue;
    }
    if (!wave.audit->before(wave, inst)) return;
    const Inst* next = inst->handler(wave, inst);
    if (!wave.audit->after(wave, inst)) return;
    inst = next;
  }
}

// Runs a wave with some of its loads giving another value.
static void run_poisoned(Wave& wave, const Poison& poison, u32 fill) {
  const Inst* inst = wave.resume;
  while (inst) {
    const bool meant = inst->index == poison.instruction && inst->handler != block_head;
    const u64 exec = wave.exec();
    inst = inst->handler(wave, inst);
    if (!meant) continue;
    const Registers& target = poison.target;
    for (u32 row = target.first; row < (u32)target.first + target.count; row++) {
      for (int c = 0; c < kChunks; c++) store(exec, wave.regs + row * kLanes, c, splat(fill));
    }
  }
}

// Runs the waves of a workgroup in turn until it ends, waits for others or has had its share.
Outcome Launch::run_slice(Slot& slot) {
  for (;;) {
    bool advanced = false;   // some wave did useful work
    bool preempted = false;
    u32 ended = 0, waiting = 0, grid_waiting = 0;
    for (u32 i = 0; i < waves_; i++) {
      Wave& wave = slot.waves[request_.reverse_waves ? waves_ - 1 - i : i];
      if (wave.status == Status::kPreempted) wave.status = Status::kRunning;
      if (wave.status == Status::kRunning) {
        wave.clock += kWaveSlice - wave.budget;
        wave.budget = kWaveSlice;
        wave.sync_operations = 0;
        if (UNLIKELY(wave.audit != nullptr)) {
          run_audited(wave);
        } else if (UNLIKELY(slot.poisoned >> wave.number & 1)) {
          run_poisoned(wave, *(const Poison*)request_.poison, request_.fill);
        } else {
          for (const Inst* inst = wave.resume; inst;) inst = inst->handler(wave, inst);
        }
        slot.executed += kWaveSlice - wave.budget;
        if (wave.status == Status::kFaulted) {
          fail(slot, wave);
          return Outcome::kFaulted;
        }
        const bool stopped_early = wave.status != Status::kPreempted;
        preempted |= !stopped_early;
        advanced |= stopped_early || wave.sync_operations < kPollsOfSpin;
      }
      ended += wave.status == Status::kEnded;
      waiting += wave.status == Status::kBarrier;
      grid_waiting += wave.status == Status::kGridBarrier;
    }
    if (grid_waiting && ended + waiting + grid_waiting == waves_) return Outcome::kYielded;
    if (ended == waves_) return Outcome::kFinished;
    if (ended + waiting == waves_) {
      for (Wave& wave : slot.waves) {
        if (wave.status == Status::kBarrier) wave.status = Status::kRunning;
      }
      if (slot.audit) slot.audit->barrier();
    }
    if (!preempted) continue;
    const FaultKind limit = exceeded(slot);
    if (limit != FaultKind::kNone) {
      stop_at_limit(slot, limit);
      return Outcome::kFaulted;
    }
    if (!advanced || ++slot.slices % kSlicesOfWorkgroup == 0) return Outcome::kYielded;
  }
}

void Launch::finish(u32 worker, std::unique_ptr<Slot> slot) {
  std::vector<u64>& total = block_counts_[worker];
  for (u32 i = 0; i < program_.blocks; i++) total[i] += slot->block_counts[i];
  if (!accesses_.empty()) engine_.bins.add(slot->workgroup, slot->block_counts);
  if (slot->recorder) {
    const auto place = std::lower_bound(samples_.begin(), samples_.end(), slot->workgroup);
    recorders_[place - samples_.begin()] = std::move(slot->recorder);
  }
  slot->audit.reset();
  engine_.free_slots[worker].push_back(std::move(slot));
}

// Lets all waves go on if every one of the launch has arrived at the grid's barrier.
void Launch::release_grid(std::deque<std::unique_ptr<Slot>>& resident) {
  u64 waiting = 0;
  for (const auto& slot : resident) {
    for (const Wave& wave : slot->waves) {
      if (wave.status == Status::kGridBarrier) {
        waiting++;
      } else if (wave.status != Status::kEnded && wave.status != Status::kBarrier) {
        return;
      }
    }
  }
  if (!waiting) return;
  for (const auto& slot : resident) {
    for (Wave& wave : slot->waves) {
      if (wave.status == Status::kGridBarrier) wave.status = Status::kRunning;
    }
    if (slot->audit) slot->audit->grid_barrier();
  }
  if (engine_.audit) engine_.audit->tick++;
}

static u64 mix(u64 hash, const void* data, size_t bytes) {
  const u8* p = (const u8*)data;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    u64 word;
    memcpy(&word, p + i, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

// Whether the launch can never end. The engine is deterministic: if the state of every wave and
// all memory come back, they come back for ever (Brent's way of finding the cycle).
bool Launch::stuck(const std::deque<std::unique_ptr<Slot>>& resident, bool more) {
  const bool all_have_run = ++turns_ % resident.size() == 0;
  if (block_counts_.size() > 1 || more || !all_have_run) return false;
  u64 state = 0;
  for (const auto& slot : resident) {
    for (const Wave& wave : slot->waves) {
      state = mix(state, &wave.resume, sizeof wave.resume) + (u64)wave.status;
      state = mix(state, wave.regs, (size_t)program_.rows * sizeof(Row));
      state = mix(state, wave.scalars, (size_t)scalar_stride_ * sizeof(u32));
    }
    state = mix(state, slot->lds, request_.lds_size);
    state = mix(state, slot->scratch.data(), slot->scratch.size());
  }
  const bool keep = turns_ >= next_keep_;
  if (!keep && state != kept_state_) return false;
  u64 memory = 0;
  for (u64 i = 0; i < memory_.count; i++) {
    const Region& region = memory_.allocations[i];
    memory = mix(memory, (const void*)region.start, region.end - region.start);
  }
  if (state == kept_state_ && memory == kept_memory_) return true;
  kept_state_ = state;
  kept_memory_ = memory;
  next_keep_ = 2 * turns_;
  return false;
}

// The fault names a wave that runs in circles and, as the other side, a barrier that is waited at.
void Launch::stop_at_deadlock(const std::deque<std::unique_ptr<Slot>>& resident) {
  Slot& slot = **std::min_element(
      resident.begin(), resident.end(),
      [](const auto& a, const auto& b) { return a->workgroup < b->workgroup; });
  Wave* running = nullptr;
  Wave* waiting = nullptr;
  u32 at_barrier = 0;
  for (Wave& wave : slot.waves) {
    if (wave.status == Status::kPreempted && !running) running = &wave;
    if (wave.status == Status::kBarrier && !waiting) waiting = &wave;
    at_barrier += wave.status == Status::kBarrier;
  }
  Wave& named = running ? *running : slot.waves[0];
  const u64 not_started = workgroups_ - std::min<u64>(workgroups_, next_.load());
  const Inst* place = named.resume;  // the branch that goes round says most
  const Inst* end = program_.instructions.data() + program_.instructions.size() - 1;
  while (place < end && place[1].handler != block_head) place++;
  raise_fault(named, place, FaultKind::kDeadlock, 0, not_started, at_barrier);
  if (waiting) named.fault.other_instruction = waiting->resume[-1].index;
  fail(slot, named);
  stop_before_ = 0;
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
      const bool unfinished = next_.load() < workgroups_ || !resident.empty();
      if (limit != FaultKind::kNone && unfinished) stop_at_limit(*slot, limit);
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
    for (const auto& counts : accesses_) engine_.accesses[i].add(counts[i]);
    for (const auto& recorder : engine_.recorders) engine_.sampled[i].add(recorder->counts[i]);
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
    accesses_.assign(workers, std::vector<AccessCounts>(program_.source_instructions));
    engine_.bins.begin(workgroups_, program_.blocks);
  }
  if (engine_.free_slots.size() < workers) engine_.free_slots.resize(workers);
  std::vector<std::thread> threads;
  for (u32 i = 1; i < workers; i++) threads.emplace_back(&Launch::work, this, i);
  work(0);
  for (std::thread& thread : threads) thread.join();
  merge();
}

}  // namespace

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
