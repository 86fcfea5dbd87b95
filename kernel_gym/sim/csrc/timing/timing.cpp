// From the replays of recorded workgroups to the time of the launch.
#include "timing/timing.h"

#include <algorithm>
#include <map>

#include "timing/replay.h"
#include "timing/schedule.h"

namespace {

constexpr double kSegmentBytes = 64, kLineBytes = 128, kAddressLanes = 16;

// `counts` are exact. The share that misses the L1 comes from the samples.
AccessTime memory_time(const AccessCounts& counts, const AccessCounts& sampled,
                       const ModelRequest& request, bool is_store) {
  if (!counts.executions) return {};
  const double n = (double)counts.executions;
  const double missing = sampled.lines ? (double)sampled.l1_misses / sampled.lines : 1.0;
  const double moved =
      is_store ? counts.segments * kSegmentBytes : counts.lines * missing * kLineBytes;
  AccessTime time;
  time.cycles = std::max({counts.lanes / kAddressLanes, counts.bytes / kSegmentBytes,
                          (double)counts.segments, moved / request.l2_bytes_per_cycle}) /
                n;
  if (is_store) {
    time.latency = request.store_latency;
  } else {
    // One late line delays the whole instruction.
    const double late = sampled.executions ? (double)sampled.late / sampled.executions : 1.0;
    time.latency = request.l1_latency + late * (request.miss_latency - request.l1_latency);
  }
  return time;
}

// The cost of an instruction to a wave that hides no latency.
double unhidden(const TimedInst& inst, const AccessTime& time, const ModelRequest& request) {
  switch (inst.unit) {
    case Unit::kLds:
      return time.cycles + request.lds_latency;
    case Unit::kMemory:
      return time.cycles + time.latency;
    case Unit::kScalarMemory:
      return request.scalar_latency;
    case Unit::kVector:
    case Unit::kMatrix:
    case Unit::kIdle:
      return std::max<double>(kIssue, inst.cycles);
    case Unit::kBranch:
    case Unit::kBarrier:
      return kBranchCycles;
    default:
      return kIssue;
  }
}

// Cycles of a wave by block, and whether a replay ran it.
struct BlockCost {
  double cycles = 0;
  double instructions = 0;
  bool replayed = false;
};

std::vector<BlockCost> block_costs(const ModelInput& input, const ModelRequest& request,
                                   const std::vector<AccessTime>& times,
                                   const std::vector<u64>& executions, std::vector<double>& spent) {
  std::vector<BlockCost> costs(input.blocks.size());
  for (size_t b = 0; b < costs.size(); b++) {
    costs[b].instructions = input.blocks[b].last - input.blocks[b].first;
    costs[b].replayed = true;
    for (u32 i = input.blocks[b].first; i < input.blocks[b].last; i++) {
      costs[b].replayed &= executions[i] > 0;
      spent[i] = executions[i] ? spent[i] / executions[i]
                               : unhidden(input.instructions[i], times[i], request);
      costs[b].cycles += spent[i];
    }
  }
  return costs;
}

std::vector<AccessTime> access_times(const ModelInput& input, const ModelRequest& request) {
  std::vector<AccessTime> times(input.instructions.size());
  for (size_t i = 0; i < times.size(); i++) {
    const TimedInst& inst = input.instructions[i];
    const AccessCounts& sampled = input.sampled[i];
    if (inst.unit == Unit::kMemory) {
      times[i] = memory_time(input.accesses[i], sampled, request, inst.is_store);
    } else if (inst.unit == Unit::kLds && sampled.executions) {
      times[i].cycles = std::max(1.0, (double)sampled.lds_cycles / sampled.executions);
    } else if (inst.unit == Unit::kLds) {
      times[i].cycles = inst.cycles ? inst.cycles : request.unsampled_lds;
    }
  }
  return times;
}

// Numbers samples. Samples that ran the same blocks in the same order get the number of the first
// one.
std::vector<size_t> classes_of(const std::vector<const Recorder*>& samples) {
  const auto before = [&](size_t a, size_t b) { return samples[a]->traces < samples[b]->traces; };
  std::map<size_t, size_t, decltype(before)> first(before);
  std::vector<size_t> classes;
  for (size_t s = 0; s < samples.size(); s++) classes.push_back(first.emplace(s, s).first->second);
  return classes;
}

// Replays all samples in groups that share a compute unit. A group takes every `runs`th sample, so
// that neighbours come from all over the grid, as on hardware. Equal groups need one replay.
Replayed replay_samples(const ModelInput& input, const ModelRequest& request,
                        const std::vector<AccessTime>& times) {
  const std::vector<size_t> classes = classes_of(input.samples);
  const size_t runs = (classes.size() + request.copies - 1) / request.copies;
  std::map<std::vector<size_t>, u64> groups;
  for (size_t r = 0; r < runs; r++) {
    std::vector<size_t> group;
    for (u32 c = 0; c < request.copies; c++) {
      group.push_back(classes[(r + c * runs) % classes.size()]);
    }
    groups[group]++;
  }
  Replayed all(times.size());
  for (const auto& [group, count] : groups) {
    all.add(Replay(input, request, times).run(group, request.instruction_budget / runs), count);
  }
  return all;
}

}  // namespace

u32 nominal_cycles(const TimedInst& inst) {
  constexpr u32 kLoad = 600, kStore = 100, kScalar = 200, kLocal = 80;
  switch (inst.unit) {
    case Unit::kLds:
      return kLocal;
    case Unit::kMemory:
      return inst.is_store ? kStore : kLoad;
    case Unit::kScalarMemory:
      return kScalar;
    case Unit::kVector:
    case Unit::kMatrix:
    case Unit::kIdle:
      return std::max<u32>((u32)kIssue, inst.cycles);
    default:
      return (u32)kIssue;
  }
}

void run_model(const ModelInput& input, ModelRequest& request, std::vector<double>& spent) {
  const std::vector<AccessTime> times = access_times(input, request);
  spent.assign(input.instructions.size(), 0);
  if (input.samples.empty()) return;
  const Replayed replayed = replay_samples(input, request, times);
  spent = replayed.spent;
  request.replay_cycles = replayed.cycles;
  request.replayed = replayed.instructions;
  memcpy(request.busy, replayed.busy, sizeof request.busy);
  memcpy(request.stalls, replayed.stalls, sizeof request.stalls);
  const std::vector<BlockCost> costs =
      block_costs(input, request, times, replayed.executions, spent);
  // A workgroup lasts as long as its slowest wave.
  const double slowest = replayed.wave_cycles > 0 ? replayed.workgroup_cycles / replayed.wave_cycles
                                                  : 1.0 / request.waves;
  std::vector<double> cycles(input.bins.size());
  std::vector<double> totals(costs.size(), 0);
  double all = 0, explained = 0;
  for (u64 bin = 0; bin < cycles.size(); bin++) {
    const u64 end = bin + 1 < cycles.size() ? input.bins.first(bin + 1) : request.workgroups;
    const u64* counts = input.bins.counts(bin);
    double sum = 0;
    for (size_t b = 0; b < costs.size(); b++) {
      const double count = (double)counts[b];
      sum += count * costs[b].cycles;
      totals[b] += count;
      all += count * costs[b].instructions;
      explained += costs[b].replayed ? count * costs[b].instructions : 0;
    }
    cycles[bin] = sum * slowest / (double)(end - input.bins.first(bin));
  }
  for (size_t b = 0; b < costs.size(); b++) {
    for (u32 i = input.blocks[b].first; i < input.blocks[b].last; i++) spent[i] *= totals[b];
  }
  request.explained = all > 0 ? explained / all : 1;
  request.makespan = schedule(cycles, input.bins, request, input.sharing);
}
