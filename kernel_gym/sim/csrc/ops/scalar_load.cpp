// Scalar loads. src[0]: base pair, src[1]: offset register; imm: offset; aux: words;
// flags: 1 if the base is a buffer resource
#include "audit/audit.h"
#include "ops/access_check.h"
#include "timing/footprint.h"
#include "timing/recorder.h"
#include "timing/sharing.h"

namespace {

const Inst* s_load(Wave& wave, const Inst* inst) {
  u64 base = read64(wave.scalars, inst->src[0].index);
  u64 offset = (u64)(i64)(i32)inst->imm;
  if (inst->src[1].space == kScalar) offset += wave.scalars[inst->src[1].index];
  const u32 size = 4 * inst->aux;
  if (inst->flags) {
    base &= 0xffffffffffffull;
    const u32 records = wave.scalars[inst->src[0].index + 2];
    if (offset + size > records) {
      memset(wave.scalars + inst->dst, 0, size);
      return inst + 1;
    }
  }
  const u64 address = (base + offset) & ~3ull;
  if (!check_scalar(wave, inst, address, size)) return nullptr;
  if (UNLIKELY(wave.recorder != nullptr)) {
    wave.recorder->scalar(wave.number, inst->index, address, size);
  }
  if (UNLIKELY(wave.audit != nullptr) && !wave.audit->global(wave, inst, &address, 1, size)) {
    return nullptr;
  }
  if (UNLIKELY(wave.sharing != nullptr)) wave.sharing->access(wave, inst, &address, 1, size);
  if (wave.footprint) wave.footprint->mark(wave, address, address + size, false);
  memcpy(wave.scalars + inst->dst, (const void*)address, size);
  return inst + 1;
}
REGISTER(s_load, s_load);

// An instruction that empties a cache, which only the timing model has. flags: 1 for the scalar one
const Inst* empty_caches(Wave& wave, const Inst* inst) {
  if (UNLIKELY(wave.recorder != nullptr)) wave.recorder->empty_caches(inst->flags);
  return next(wave, inst);
}
REGISTER(empty_caches, empty_caches);

}  // namespace
