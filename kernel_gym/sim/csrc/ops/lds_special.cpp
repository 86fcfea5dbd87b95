// Less common LDS instructions: transposing reads, addresses from M0, counters, exchanges with two
// places. aux: byte offset.
#include "ops/access_check.h"
#include "ops/movement.h"
#include "timing/recorder.h"

namespace {

// Every 16 lanes read a block of 16 columns, in order: a lane holds the first columns of a row, the
// next lane the following ones. Each lane gets one column (gfx950; checked with Triton's products).
template <int bits, int words>
const Inst* read_transposed(Wave& wave, const Inst* inst) {
  constexpr int kPerLane = 32 * words / bits, kLanesOfRow = 16 / kPerLane;
  Row places;
  lds_places(wave.regs + inst->src[0].index, inst->aux, places);
  if (!locate_lds(wave, inst, places.words, 4 * words)) return nullptr;
  alignas(64) u32 data[kLanes][words] = {};
  const u64 exec = wave.exec();
  for (u64 lanes = exec; lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    memcpy(data[l], wave.lds + places.words[l], 4 * words);
  }
  alignas(64) u32 result[words * kLanes] = {};
  for (int l = 0; l < kLanes; l++) {
    const int column = l % 16;
    for (int row = 0; row < kPerLane; row++) {
      const u32* from = data[l / 16 * 16 + row * kLanesOfRow + column / kPerLane];
      const int place = column % kPerLane * bits, target = row * bits;
      const u64 both = from[place / 32] | (u64)from[(place + bits - 1) / 32] << 32;
      const u64 value = (both >> (place % 32)) & ((1u << bits) - 1);
      result[kLanes * (target / 32) + l] |= (u32)(value << (target % 32));
      if (target % 32 + bits > 32) {
        result[kLanes * (target / 32 + 1) + l] |= (u32)(value >> (32 - target % 32));
      }
    }
  }
  for (int w = 0; w < words; w++) {
    store_row(exec, wave.regs + inst->dst + kLanes * w, result + kLanes * w);
  }
  return inst + 1;
}
REGISTER(ds_read_b64_tr_b16, read_transposed<16, 2>);
REGISTER(ds_read_b64_tr_b8, read_transposed<8, 2>);
REGISTER(ds_read_b64_tr_b4, read_transposed<4, 2>);
REGISTER(ds_read_b96_tr_b6, read_transposed<6, 3>);

// ---- addresses by M0 and lane
void addtid_addresses(const Wave& wave, const Inst* inst, Row& out) {
  const u32 base = (wave.scalars[kM0] & 0xffff) + inst->aux;
  for (u32 l = 0; l < kLanes; l++) out.words[l] = base + 4 * l;
}

const Inst* ds_read_addtid_b32(Wave& wave, const Inst* inst) {
  Row addresses;
  addtid_addresses(wave, inst, addresses);
  if (!locate_lds(wave, inst, addresses.words, 4)) return nullptr;
  load_lanes<Kind::kWords1>(wave.exec(), wave.regs + inst->dst,
                            [&](int l) { return wave.lds + addresses.words[l]; });
  return inst + 1;
}
const Inst* ds_write_addtid_b32(Wave& wave, const Inst* inst) {
  Row addresses;
  addtid_addresses(wave, inst, addresses);
  if (!locate_lds(wave, inst, addresses.words, 4)) return nullptr;
  store_lanes<Kind::kWords1>(wave.exec(), wave.regs + inst->src[2].index,
                             [&](int l) { return wave.lds + addresses.words[l]; });
  return inst + 1;
}
REGISTER(ds_read_addtid_b32, ds_read_addtid_b32);
REGISTER(ds_write_addtid_b32, ds_write_addtid_b32);

// ---- a counter at M0 + offset: the active lanes are added or subtracted once, all get the old
// value
template <bool append>
const Inst* ds_count(Wave& wave, const Inst* inst) {
  Row addresses;
  for (u32 l = 0; l < kLanes; l++) addresses.words[l] = (wave.scalars[kM0] & 0xffff) + inst->aux;
  if (!locate_lds(wave, inst, addresses.words, 4)) return nullptr;
  u8* place = wave.lds + addresses.words[0];
  u32 old;
  memcpy(&old, place, 4);
  const u32 lanes = (u32)__builtin_popcountll(wave.exec());
  const u32 counted = append ? old + lanes : old - lanes;
  memcpy(place, &counted, 4);
  for (int c = 0; c < kChunks; c++) store(wave.exec(), wave.regs + inst->dst, c, splat(old));
  return inst + 1;
}
REGISTER(ds_append, ds_count<true>);
REGISTER(ds_consume, ds_count<false>);

// ---- exchange with two places; imm: second offset
template <class T>
const Inst* ds_exchange2(Wave& wave, const Inst* inst) {
  constexpr int kWords = sizeof(T) / 4;
  Row places[2];
  for (int i = 0; i < 2; i++) {
    lds_places(wave.regs + inst->src[0].index, i ? inst->imm : inst->aux, places[i]);
    if (!locate_lds(wave, inst, places[i].words, sizeof(T))) return nullptr;
  }
  u32* dst = wave.regs + inst->dst;
  for (u64 lanes = wave.exec(); lanes; lanes &= lanes - 1) {
    const int l = __builtin_ctzll(lanes);
    u32 old[2][kWords], swapped[2][kWords];
    for (int i = 0; i < 2; i++) {
      memcpy(old[i], wave.lds + places[i].words[l], sizeof(T));
      const u32* rows = wave.regs + inst->src[2 + i].index;
      for (int w = 0; w < kWords; w++) swapped[i][w] = rows[kLanes * w + l];
    }
    for (int i = 0; i < 2; i++) {
      memcpy(wave.lds + places[i].words[l], swapped[i], sizeof(T));
      for (int w = 0; w < kWords; w++) dst[kLanes * (kWords * i + w) + l] = old[i][w];
    }
  }
  wave.sync_operations += 1;
  return inst + 1;
}
REGISTER(ds_wrxchg2_rtn_b32, ds_exchange2<u32>);
REGISTER(ds_wrxchg2_rtn_b64, ds_exchange2<u64>);

}  // namespace
