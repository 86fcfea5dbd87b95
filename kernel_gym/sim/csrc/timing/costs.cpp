#include "timing/costs.h"

#include <algorithm>

namespace {

constexpr double kLong = 0.25;  // of the longest workgroup: shorter ones do not decide
constexpr double kUnlike = 1.25, kFewLines = 2;

int octave_of(u64 count) { return 63 - __builtin_clzll(count | 1); }

// The latency of a line that some workgroups fetch. Those that run at the same time as the first
// one wait for memory like it. The first of the later ones on each other chiplet gets the line from
// the Infinity Cache, the others get it from the L2. `rounds`: of workgroups, one after another.
double line_latency(double workgroups, double rounds, const ModelRequest& request) {
  const double waiting = std::max(1 / workgroups, 1 / rounds);
  if (waiting >= 1) return request.hbm_latency;
  const double chiplets = std::min(workgroups, request.chiplets);
  const double later = ((chiplets - 1) * request.mall_latency +
                        (workgroups - chiplets) * request.l2_latency) /
                       (workgroups - 1);
  return waiting * request.hbm_latency + (1 - waiting) * later;
}

// Rounds in which workgroups fill the GPU that read at least half as many lines as a recorded one.
double rounds_of(const Recorder& recorder, const ModelInput& input, const ModelRequest& request) {
  const auto& lines = input.read_lines;
  if (lines.empty()) return std::max(1.0, (double)request.workgroups / (double)request.slots);
  const u32 half = lines[recorder.workgroup] / 2;
  const auto alike = std::count_if(lines.begin(), lines.end(), [&](u32 n) { return n >= half; });
  return std::max(1.0, (double)alike / (double)request.slots);
}

// The places of a load among the lines under way. `held`: latencies of its lines that no wave had
// fetched, of which other waves may have some under way. `near`: latency of its other lines.
void count_places(AccessTime& time, const MemoryEvent& event, double held, double near) {
  constexpr u32 kLineBytes = 128;
  time.lines = event.moved / kLineBytes;
  if (!time.lines) return;
  const u32 known = event.line_count, others = time.lines > known ? time.lines - known : 0;
  time.held = (held + others * near) / (double)(known + others);
}

}  // namespace

Sample sample_of(const Recorder& recorder, const ModelInput& input, const ModelRequest& request) {
  Sample sample;
  sample.recorder = &recorder;
  const double rounds = rounds_of(recorder, input, request);
  for (const WaveTrace& trace : recorder.traces) {
    std::vector<TimedEvent> events;
    events.reserve(trace.events.size());
    for (const MemoryEvent& event : trace.events) {
      const TimedInst& inst = input.instructions[event.instruction];
      AccessTime time{event.cycles, 0};
      if (inst.unit != Unit::kLds) {
        const bool scratch = inst.sharing & kUsesScratch;
        const double near = scratch ? request.scratch_latency : request.l2_latency;
        double latency = event.late ? near : request.l1_latency;
        double held = 0;
        for (u32 i = 0; i < event.line_count; i++) {
          const u64 line = trace.lines[event.first_line + i];
          const double workgroups = input.footprint.workgroups(line, event.written);
          const double own = workgroups > 0 ? line_latency(workgroups, rounds, request) : 0;
          latency = std::max(latency, own);
          held += std::max(own, request.l2_latency);
        }
        if (!inst.is_store && !event.written) count_places(time, event, held, near);
        sample.fetching += event.first_count * latency;
        sample.fetched += event.first_count;
        sample.fetches += event.first_count > 0;
        time.latency = inst.is_store ? request.store_latency : latency;
        time.cycles = std::max(time.cycles, event.moved / request.l2_bytes_per_cycle);
      }
      sample.memory += time.cycles + time.latency;
      events.push_back({event.position, event.instruction, time});
    }
    sample.events.push_back(std::move(events));
  }
  return sample;
}

Costs::Costs(const ModelInput& input, const ModelRequest& request,
             const std::vector<Sample>& samples)
    : input_(input),
      request_(request),
      samples_(samples),
      recorded_(samples.size()),
      of_class_(input.classes.all().size()),
      by_count_(input.blocks.size()) {}

void Costs::add(const std::vector<size_t>& group, const Replayed& replayed) {
  for (size_t c = 0; c < group.size(); c++) {
    const ReplayedWorkgroup& result = replayed.workgroups[c];
    Recorded& recorded = recorded_[group[c]];
    if (!recorded.replays++) {
      recorded.cycles.assign(input_.blocks.size(), 0);
      recorded.executions.assign(input_.blocks.size(), 0);
      recorded.slowest.assign(input_.blocks.size(), 0);
    }
    for (size_t b = 0; b < input_.blocks.size(); b++) {
      recorded.cycles[b] += result.cycles[b];
      recorded.executions[b] += result.executions[b];
      recorded.waves += result.cycles[b];
      recorded.slowest[b] = std::max(recorded.slowest[b], result.slowest[b]);
    }
    recorded.length += result.length;
    recorded.memory_wait += result.memory_wait;
  }
}

// The part of the cycles of all waves that passes until the last of them ends.
double Costs::slowest_share(const Recorded& recorded) const {
  return recorded.waves > 0 ? recorded.length / recorded.waves : 1.0 / request_.waves;
}

// Cycles of one execution of a block in a recorded workgroup; less than 0 if no replay ran it.
double Costs::cost(const Recorded& recorded, u32 block) const {
  const u64 executions = recorded.executions[block];
  return executions ? recorded.cycles[block] / (double)executions : -1;
}

// Notes what a block cost a wave that ran it `count` times.
void Costs::note(u32 block, u64 count, double cycles) {
  auto& buckets = by_count_[block];
  const int octave = octave_of(count);
  const auto place = std::find_if(buckets.begin(), buckets.end(),
                                  [&](const Bucket& b) { return b.octave == octave; });
  if (place == buckets.end()) {
    buckets.push_back({octave, cycles});
  } else {
    place->cost = std::max(place->cost, cycles);
  }
}

void Costs::finish() {
  for (size_t s = 0; s < recorded_.size(); s++) {
    if (!recorded_[s].replays) continue;
    of_class_[samples_[s].recorder->work_class].push_back(s);
    const Work& work = *input_.classes.all()[samples_[s].recorder->work_class].work;
    for (const auto& [counts, alike] : work.waves) {
      for (const auto& [block, count] : counts) {
        if (recorded_[s].executions[block]) note(block, count, recorded_[s].slowest[block]);
      }
    }
  }
  for (auto& buckets : by_count_) {
    std::sort(buckets.begin(), buckets.end(),
              [](const Bucket& a, const Bucket& b) { return a.octave < b.octave; });
  }
}

// Cycles of one execution of a block by a wave of a workgroup that was not recorded, which runs it
// `count` times.
Costs::ClassCost Costs::cost(u32 block, u64 count) const {
  const auto& buckets = by_count_[block];
  const int octave = octave_of(count);
  double near = -1, more = -1;
  for (const Bucket& bucket : buckets) {
    if (std::abs(bucket.octave - octave) <= 1) near = std::max(near, bucket.cost);
    if (bucket.octave > octave) more = std::max(more, bucket.cost);
  }
  if (near >= 0) return {near, 0, false};
  if (more >= 0) return {more, 0, false};
  const double guess = std::max(unhidden(block), buckets.empty() ? 0 : buckets.back().cost);
  return {guess, guess, false};
}

// The cost of a block to a wave that hides no latency. Memory is as slow as it can be, and all
// waves of the workgroup need the same units.
double Costs::unhidden(u32 block) const {
  double cycles = 0;
  const double waves = request_.waves, of_simd = std::max(1.0, waves / kSimds);
  for (u32 i = input_.blocks[block].first; i < input_.blocks[block].last; i++) {
    const TimedInst& inst = input_.instructions[i];
    switch (inst.unit) {
      case Unit::kLds:
        cycles += waves * (inst.cycles ? inst.cycles : request_.unsampled_lds);
        cycles += request_.lds_latency;
        break;
      case Unit::kMemory:
        cycles += waves * (double)input_.accesses[i].worst *
                  std::max(1.0, request_.hbm_latency / (2 * request_.miss_lines));
        cycles += inst.is_store ? request_.store_latency : request_.hbm_latency;
        break;
      case Unit::kScalarMemory:
        cycles += std::max(request_.scalar_latency, request_.hbm_latency);
        break;
      case Unit::kVector:
      case Unit::kMatrix:
      case Unit::kIdle:
        cycles += of_simd * std::max<double>(kIssue, inst.cycles);
        break;
      case Unit::kBranch:
      case Unit::kBarrier:
        cycles += kBranchCycles;
        break;
      default:
        cycles += kIssue;
    }
  }
  return cycles;
}

Costs::ClassCost Costs::of_class(const Classes::Class& work_class, u32 number) const {
  const Work& work = *work_class.work;
  double longest = 0;
  for (size_t s : of_class_[number]) {
    double cycles = 0;
    work.each_block([&](u32 block, u64 count) {
      const double own = cost(recorded_[s], block);
      cycles += (double)count * (own >= 0 ? own : cost(block, count).cycles);
    });
    longest = std::max(longest, cycles * slowest_share(recorded_[s]));
  }
  if (longest > 0) return {longest, 0, true};
  ClassCost slowest{0, 0, false};
  for (const auto& [counts, alike] : work.waves) {
    ClassCost wave{0, 0, false};
    for (const auto& [block, count] : counts) {
      const ClassCost each = cost(block, count);
      wave.cycles += (double)count * each.cycles;
      wave.guessed += (double)count * each.guessed;
    }
    if (wave.cycles > slowest.cycles) slowest = wave;
  }
  return slowest;
}

double Costs::waiting() const {
  double longest = 0, share = 0;
  for (const Recorded& recorded : recorded_) {
    if (recorded.replays) longest = std::max(longest, recorded.length / (double)recorded.replays);
  }
  for (const Recorded& recorded : recorded_) {
    if (!recorded.replays || recorded.length <= 0) continue;
    if (recorded.length / (double)recorded.replays < kLong * longest) continue;
    share = std::max(share, recorded.memory_wait / recorded.length);
  }
  return std::min(1.0, share);
}

double Costs::unseen_fetches(u32 number, u64 own, u64 read) const {
  const Sample* most = nullptr;
  for (size_t s = 0; s < recorded_.size(); s++) {
    if (!recorded_[s].replays) continue;
    const u32 own_class = samples_[s].recorder->work_class;
    if (!of_class_[number].empty() && own_class != number) continue;
    if (!most || samples_[s].fetching > most->fetching) most = &samples_[s];
  }
  if (!most) return 0;
  const double few = kFewLines * request_.hbm_latency;
  const double recorded = input_.read_lines[most->recorder->workgroup] * request_.hbm_latency;
  double longer = 0;
  const auto compare = [&](double needed, double fetching) {
    longer = std::max(longer, needed - (kUnlike * fetching + few));
  };
  compare((double)own * request_.hbm_latency, most->fetching);
  compare((double)read * request_.hbm_latency, recorded);
  const double loads = most->fetched ? (double)most->fetches / (double)most->fetched : 1;
  return longer * loads;  // by one wave, one after another
}
