// The C interface that kernel_gym/sim/native.py loads.
#include <cstdlib>

#include "launch/launch.h"
#include "timing/unrecorded.h"

namespace {

struct Entry {
  const char* name;
  Handlers handlers;
  u32 sources;
};
std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

// Selects the handler of an operation by the places of the sources of this instruction.
Handler choose(const Entry& entry, const Inst& inst) {
  const Handlers& handlers = entry.handlers;
  u32 scalars = 0, which = 0;
  bool signs = false;
  for (u32 i = 0; i < entry.sources; i++) {
    const Operand& source = inst.src[i];
    switch (source.space) {
      case kVector:
      case kConstant:
        break;
      case kScalar:
        scalars++;
        which = i;
        break;
      case kModified | kVector:
      case kModified | kConstant:
        if (source.flags & ~(kAbs32 | kNeg32)) return handlers.any;
        signs = true;
        break;
      default:
        return handlers.any;
    }
  }
  const Handler fit = signs ? (scalars ? nullptr : handlers.signs)
                            : (scalars ? handlers.scalar[which] : handlers.rows);
  return fit && scalars <= 1 ? fit : handlers.any;
}

std::vector<Inst> with_handlers(const Inst* instructions, u32 count) {
  std::vector<Inst> all(instructions, instructions + count);
  for (Inst& inst : all) inst.handler = choose(entries()[(u64)inst.handler], inst);
  return all;
}

}  // namespace

void register_handler(const char* name, const Handlers& handlers, u32 sources) {
  entries().push_back({name, handlers, sources});
}

#define EXPORT __attribute__((visibility("default")))

extern "C" {

EXPORT u32 sim_handler_count() { return (u32)entries().size(); }
EXPORT const char* sim_handler_name(u32 i) { return entries()[i].name; }
EXPORT u32 sim_handler_sources(u32 i) { return entries()[i].sources; }

// `instructions` contain numbers of handlers instead of addresses. `fused`: as many, or null.
EXPORT Program* sim_program_new(const Inst* instructions, const Inst* fused, u32 count,
                                const u32* row_values, u32 row_count, const u32* scalar_constants,
                                u32 scalar_count, u32 rows, u32 blocks, u32 source_instructions) {
  Program* program = new Program;
  program->instructions = with_handlers(instructions, count);
  if (fused) program->fused = with_handlers(fused, count);
  program->constants = (Row*)aligned_alloc(256, sizeof(Row) * (row_count + 1));
  for (u32 i = 0; i < row_count; i++) splat_row(program->constants[i].words, row_values[i]);
  program->scalar_constants.assign(scalar_constants, scalar_constants + scalar_count);
  program->rows = rows;
  program->blocks = blocks;
  program->source_instructions = source_instructions;
  return program;
}
EXPORT void sim_program_delete(Program* program) { delete program; }

EXPORT Engine* sim_engine_new() { return new Engine; }
EXPORT void sim_engine_delete(Engine* engine) { delete engine; }

EXPORT int sim_set_memory(Engine* engine, u64 base, u64 size) {
  return engine->footprint.resize(base, size);
}
EXPORT void sim_set_allocations(Engine* engine, const Region* regions, u64 count) {
  engine->allocations.assign(regions, regions + count);
}

EXPORT void sim_set_host_call(Engine* engine, void (*call)()) { engine->host_call = call; }

EXPORT void sim_launch(Engine* engine, const Program* program, LaunchRequest* request) {
  run_launch(*engine, *program, *request);
}

// Sets the timing tables of a program. Call it once, before the first sim_model.
EXPORT void sim_program_set_timing(Program* program, const TimedInst* timed,
                                   const BlockRange* blocks) {
  program->timed.assign(timed, timed + program->source_instructions);
  program->block_ranges.assign(blocks, blocks + program->blocks);
  for (auto* instructions : {&program->instructions, &program->fused}) {
    for (Inst& inst : *instructions) {
      if (inst.handler != block_head) continue;
      inst.dst = 0;
      for (u32 i = blocks[inst.imm].first; i < blocks[inst.imm].last; i++) {
        inst.dst += nominal_cycles(timed[i]);
      }
    }
  }
}
EXPORT void sim_model(Engine* engine, const Program* program, ModelRequest* request) {
  model_launch(*engine, *program, *request);
}

// Numbers of workgroups of the last launch that stand for classes without a recorded one: those
// that do most work together, and those whose members do most. Returns how many.
EXPORT u64 sim_unrecorded(Engine* engine, const Program* program, u64 seed, u64* out, u64 most) {
  const std::vector<u64> chosen =
      unrecorded(engine->classes, program->block_ranges, engine->recorders, seed, most);
  std::copy(chosen.begin(), chosen.end(), out);
  return chosen.size();
}

// Sets the audit table of a program. Call it once, before the first audited launch.
EXPORT void sim_program_set_audit(Program* program, const AuditInst* table) {
  program->audited.assign(table, table + program->source_instructions);
}
EXPORT const Suspect* sim_suspects(Engine* engine) { return engine->audit->suspects.data(); }

// Copies the contents of all allocations (0: before a launch, 1: after it), restores them, and
// compares them.
EXPORT void sim_keep(Engine* engine, u32 which) {
  auto& kept = engine->kept[which];
  kept.resize(engine->allocations.size());
  for (size_t i = 0; i < kept.size(); i++) {
    const Region& region = engine->allocations[i];
    kept[i].assign((u8*)region.start, (u8*)region.end);
  }
}
EXPORT void sim_restore(Engine* engine, u32 which) {
  const auto& kept = engine->kept[which];
  for (size_t i = 0; i < kept.size(); i++) {
    memcpy((void*)engine->allocations[i].start, kept[i].data(), kept[i].size());
  }
}
EXPORT int sim_same(Engine* engine, u32 which) {
  const auto& kept = engine->kept[which];
  for (size_t i = 0; i < kept.size(); i++) {
    const void* now = (const void*)engine->allocations[i].start;
    if (memcmp(now, kept[i].data(), kept[i].size()) != 0) return 0;
  }
  return 1;
}
EXPORT void sim_forget(Engine* engine) {
  for (auto& kept : engine->kept) std::vector<std::vector<u8>>().swap(kept);
}

// Results of the last launch and of the last model run, by source instruction.
EXPORT const AccessCounts* sim_accesses(Engine* engine) { return engine->accesses.data(); }
EXPORT const AccessCounts* sim_sampled(Engine* engine) { return engine->sampled.data(); }
EXPORT const double* sim_spent(Engine* engine) { return engine->spent.data(); }
EXPORT const u64* sim_block_counts(Engine* engine) { return engine->block_counts.data(); }

}  // extern "C"
