// Prepares a workgroup: registers, LDS, scratch, and whether it is recorded.
#include <algorithm>
#include <cstdlib>

#include "launch/launch.h"
#include "mix.h"

namespace {

constexpr u32 kLdsPadding = 256;  // 32-bit reads of smaller values may pass the end
constexpr u8 kLdsFill = 0xff;     // uninitialised LDS reads as NaN

u8* allocate_rows(size_t bytes) { return (u8*)aligned_alloc(256, (bytes + 511) / 256 * 256); }

}  // namespace

// Draws one workgroup from each of `sample_count` equal parts of the grid, and adds the further
// ones. The seed is secret: a kernel that knew the workgroups could do less work in them.
void Launch::choose_samples() {
  const u64 count = std::min<u64>(request_.sample_count, workgroups_);
  for (u64 i = 0; i < count; i++) {
    const u64 first = i * workgroups_ / count, end = (i + 1) * workgroups_ / count;
    samples_.push_back(first + mix(request_.sample_seed + i) % (end - first));
  }
  const u64* further = (const u64*)request_.further;
  samples_.insert(samples_.end(), further, further + request_.further_count);
  std::sort(samples_.begin(), samples_.end());
  samples_.erase(std::unique(samples_.begin(), samples_.end()), samples_.end());
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

// Sets the initial LDS if some bytes of it have another value.
void Launch::fill_lds() {
  const u8* map = (const u8*)request_.lds_map;
  if (!map) return;
  first_lds_.assign(request_.lds_size, kLdsFill);
  for (u32 b = 0; b < request_.lds_size; b++) {
    if (map[b]) first_lds_[b] = (u8)(request_.fill >> 8 * (b % 4));
  }
}

std::unique_ptr<Slot> Launch::take_slot(Worker& worker) {
  std::unique_ptr<Slot> slot;
  if (worker.free_slots.empty()) {
    slot = std::make_unique<Slot>();
  } else {
    slot = std::move(worker.free_slots.back());
    worker.free_slots.pop_back();
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

void Launch::prepare(Slot& slot, Worker& worker, u64 workgroup) {
  slot.program = &program_;
  slot.workgroup = workgroup;
  slot.executed = slot.accounted = 0;
  slot.slices = 0;
  slot.block_counts.assign((size_t)waves_ * program_.blocks, 0);
  if (std::binary_search(samples_.begin(), samples_.end(), workgroup)) {
    slot.recorder = std::make_unique<Recorder>(*worker.accounts, waves_, program_.timed.data(),
                                               (u32)request_.l1_sets, samples_.size());
  }
  if (use_footprint_) slot.read_lines.clear();
  memset(slot.registers, 0, (size_t)waves_ * row_stride_ * sizeof(Row));
  if (LIKELY(first_lds_.empty())) {
    memset(slot.lds, kLdsFill, request_.lds_size);
  } else {
    memcpy(slot.lds, first_lds_.data(), request_.lds_size);
  }
  slot.poisoned = 0;
  if (UNLIKELY(request_.poison != 0)) {
    const auto& waves = ((const Poison*)request_.poison)->waves;
    const auto found = waves.find(workgroup);
    if (found != waves.end()) slot.poisoned = found->second;
  }
  if (request_.audit) {
    slot.audit = engine_.audits.start(*engine_.audit, workgroup, waves_, request_.lds_size);
  }
  for (u32 i = 0; i < waves_; i++) prepare_wave(slot, worker, i);
}

void Launch::prepare_wave(Slot& slot, Worker& worker, u32 number) {
  Wave& wave = slot.waves[number];
  wave = Wave();
  wave.regs = slot.registers + (size_t)number * row_stride_ * kLanes;
  wave.spare = (Row*)wave.regs + program_.rows;
  wave.bases[kVector] = wave.regs;
  wave.bases[kConstant] = program_.constants->words;
  wave.scalars = slot.scalars.data() + (size_t)number * scalar_stride_;
  wave.block_counts = slot.block_counts.data() + (size_t)number * program_.blocks;
  wave.accounts = worker.accounts.get();
  wave.sharing = engine_.sharing.get();
  wave.progress = 0;
  wave.workgroup = (u32)slot.workgroup;
  const bool plain = slot.audit || slot.poisoned || engine_.sharing || program_.fused.empty();
  wave.program = (plain ? program_.instructions : program_.fused).data();
  wave.program_size = (u32)program_.instructions.size();
  wave.resume = wave.program;
  wave.lds = slot.lds;
  wave.lds_size = request_.lds_size;
  wave.scratch_size = request_.scratch_size;
  wave.scratch = slot.scratch.data() + (size_t)number * kLanes * request_.scratch_size;
  wave.memory = &memory_;
  wave.places = worker.places.data() + number * kPlaces;
  wave.recorder = slot.recorder.get();
  wave.audit = slot.audit.get();
  wave.single_step = wave.audit || slot.poisoned >> number & 1;
  wave.number = number;
  wave.footprint = use_footprint_ ? &engine_.footprint : nullptr;
  wave.read_lines = &slot.read_lines;
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
