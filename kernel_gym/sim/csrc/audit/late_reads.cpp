#include "audit/late_reads.h"

#include <algorithm>

void LateReads::begin_workgroup(u32 lds_size) {
  any_ = false;
  lds_size_ = lds_size;
  if (waves_.size() < state_.waves.size()) waves_.resize(state_.waves.size());
  for (WaveReads& reads : waves_) reads.count = 0;
}

void LateReads::note(u32 wave, u32 instruction, const u32* places, const Runs& runs, u32 size) {
  Read& read = waves_[wave].kept[waves_[wave].count++ % kKept];
  memcpy(read.places, places, sizeof read.places);
  read.runs = runs;
  read.size = size;
  read.instruction = instruction;
  read.sequence = state_.waves[wave].issued[0];
}

void LateReads::barrier(const std::vector<Wave>& waves) {
  any_ = false;
  for (const Wave& wave : waves) {
    const WaveState& state = state_.waves[wave.number];
    if (LIKELY(state.landed[0] == state.issued[0]) || wave.status == Status::kEnded) continue;
    const WaveReads& reads = waves_[wave.number];
    for (u32 i = 0; i < std::min(reads.count, kKept); i++) {
      if (reads.kept[i].sequence > state.landed[0]) mark(wave.number, reads.kept[i]);
    }
  }
}

void LateReads::mark(u32 wave, const Read& read) {
  any_ = true;
  if (bytes_.size() < lds_size_) bytes_.resize(lds_size_);
  for (u64 rest = read.runs.starts; rest; rest &= rest - 1) {
    const u32 l = __builtin_ctzll(rest), start = read.places[l];
    for (u32 place = start; place < start + read.runs.length(l) * read.size; place++) {
      Byte& byte = bytes_[place];
      if (byte.epoch != state_.epoch) byte = {state_.epoch, 0, 0};
      byte.waves |= 1u << wave;
      byte.instruction = read.instruction;
    }
  }
}
