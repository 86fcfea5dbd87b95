// From the replays of recorded workgroups to the time of the launch.
#include "timing/timing.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "timing/costs.h"
#include "timing/schedule.h"

namespace {

// By sample: the one that stands for it. Samples whose waves ran the same blocks in the same order
// are alike, and the one with most memory work stands for all of them.
std::vector<size_t> representatives(const std::vector<Sample>& samples) {
  const auto before = [&](size_t a, size_t b) {
    return samples[a].recorder->traces < samples[b].recorder->traces;
  };
  std::map<size_t, size_t, decltype(before)> most(before);
  std::vector<std::map<size_t, size_t, decltype(before)>::iterator> places;
  for (size_t s = 0; s < samples.size(); s++) {
    const auto place = most.emplace(s, s).first;
    if (samples[s].memory > samples[place->second].memory) place->second = s;
    places.push_back(place);
  }
  std::vector<size_t> chosen;
  for (const auto& place : places) chosen.push_back(place->second);
  return chosen;
}

// How many workgroups of a launch execute at least so many instructions.
class Workloads {
 public:
  explicit Workloads(const ModelInput& input) {
    for (const Classes::Class& each : input.classes.all()) {
      u64 executed = 0;
      each.work->each_block([&](u32 block, u64 count) {
        executed += count * (input.blocks[block].last - input.blocks[block].first);
      });
      sorted_.emplace_back(executed, each.members);
    }
    std::sort(sorted_.begin(), sorted_.end());
    for (size_t i = sorted_.size(); i-- > 1;) sorted_[i - 1].second += sorted_[i].second;
  }
  u64 from(u64 executed) const {
    const auto place =
        std::lower_bound(sorted_.begin(), sorted_.end(), std::make_pair(executed, (u64)0));
    return place == sorted_.end() ? 1 : place->second;
  }

 private:
  std::vector<std::pair<u64, u64>> sorted_;  // instructions, workgroups with as many or more
};

// Groups of samples that share a compute unit in a replay. Like shares with like: as many workgroups
// as there are with half of the work or more. So others without work change nothing.
std::map<std::vector<size_t>, u64> groups_of(const ModelInput& input, const ModelRequest& request,
                                             const std::vector<Sample>& samples) {
  std::vector<size_t> order = representatives(samples);
  const auto work = [&](size_t s) { return samples[s].recorder->executed; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(work(b), b) < std::make_pair(work(a), a);
  });
  const Workloads workloads(input);
  const u64 units = std::max<u64>(1, request.slots / request.copies);
  std::map<std::vector<size_t>, u64> groups;
  for (size_t i = 0; i < order.size();) {
    const u64 half = (work(order[i]) + 1) / 2, alike = workloads.from(half);
    const u64 copies = std::min<u64>(request.copies, (alike + units - 1) / units);
    size_t end = i;
    while (end < order.size() && end - i < copies && work(order[end]) >= half) end++;
    std::vector<size_t> group;
    for (u64 c = 0; c < copies; c++) group.push_back(order[i + c % (end - i)]);
    groups[group]++;
    i = end;
  }
  return groups;
}

// Workgroups one by one that must take longer than the recorded ones of their class.
std::vector<double> surcharges(const ModelInput& input, const ModelRequest& request,
                               const Costs& costs) {
  std::vector<double> extra;
  const auto& places = input.classes.places();
  const auto& [own, read] = std::tie(input.own_lines, input.read_lines);
  if (places.size() != request.workgroups || own.size() != places.size()) return extra;
  if (read.size() != places.size()) return extra;
  const auto size = input.classes.all().size();
  std::vector<u32> most_own(size, 0), most_read(size, 0);
  for (size_t w = 0; w < places.size(); w++) {
    most_own[places[w]] = std::max(most_own[places[w]], own[w]);
    most_read[places[w]] = std::max(most_read[places[w]], read[w]);
  }
  std::vector<char> unlike(size, 0);
  bool any = false;
  for (u32 c = 0; c < size; c++) {
    unlike[c] = costs.unseen_fetches(c, most_own[c], most_read[c]) > 0;
    any |= unlike[c];
  }
  if (!any) return extra;
  extra.assign(places.size(), 0);
  for (size_t w = 0; w < places.size(); w++) {
    if (unlike[places[w]]) extra[w] = costs.unseen_fetches(places[w], own[w], read[w]);
  }
  return extra;
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
  spent.assign(input.instructions.size(), 0);
  if (input.samples.empty()) return;
  std::vector<Sample> samples;
  for (const Recorder* recorder : input.samples) {
    samples.push_back(sample_of(*recorder, input, request));
  }
  const auto groups = groups_of(input, request, samples);
  u64 runs = 0;
  for (const auto& [group, count] : groups) runs += count;
  Costs costs(input, request, samples);
  Replayed all(input.instructions.size());
  for (const auto& [group, count] : groups) {
    Replay replay(input, request, samples);
    const Replayed& replayed = replay.run(group, request.instruction_budget / runs);
    costs.add(group, replayed);
    all.add(replayed, count);
  }
  costs.finish();
  request.replay_cycles = all.cycles;
  request.replayed = all.instructions;
  request.waiting = costs.waiting();
  memcpy(request.busy, all.busy, sizeof request.busy);
  memcpy(request.stalls, all.stalls, sizeof request.stalls);

  std::vector<double> cycles;
  std::vector<double> totals(input.blocks.size(), 0);
  double executed = 0, explained = 0, all_cycles = 0;
  double guessed = 0, most_guessed = 0, unrecorded = 0;
  for (u32 c = 0; c < input.classes.all().size(); c++) {
    const Classes::Class& each = input.classes.all()[c];
    const Costs::ClassCost cost = costs.of_class(each, c);
    cycles.push_back(cost.cycles);
    all_cycles += cost.cycles * (double)each.members;
    guessed += cost.guessed * (double)each.members;
    unrecorded += cost.recorded ? 0 : cost.cycles * (double)each.members;
    most_guessed = std::max(most_guessed, cost.guessed);
    each.work->each_block([&](u32 block, u64 count) {
      const double times = (double)count * (double)each.members;
      const double instructions = times * (input.blocks[block].last - input.blocks[block].first);
      totals[block] += times;
      executed += instructions;
      explained += costs.replayed(block) ? instructions : 0;
    });
  }
  for (size_t b = 0; b < totals.size(); b++) {
    for (u32 i = input.blocks[b].first; i < input.blocks[b].last; i++) {
      const u64 executions = all.executions[i];
      const double each = executions ? all.spent[i] / (double)executions
                                     : nominal_cycles(input.instructions[i]);
      spent[i] = totals[b] * each;
    }
  }
  request.explained = executed > 0 ? explained / executed : 1;
  request.makespan =
      schedule(cycles, surcharges(input, request, costs), input.classes, request, input.sharing);
  request.guessed = all_cycles > 0 ? guessed / all_cycles : 0;
  request.unrecorded = all_cycles > 0 ? unrecorded / all_cycles : 0;
  if (request.makespan > 0) {
    request.guessed = std::max(request.guessed, most_guessed / request.makespan);
  }
}
