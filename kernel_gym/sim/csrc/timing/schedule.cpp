#include "timing/schedule.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

namespace {

constexpr u64 kScheduled = 1 << 16;   // workgroups scheduled one by one
constexpr u64 kMostSharing = 1 << 22; // the same for launches that hand data over
constexpr int kPasses = 32;

// Workgroups one by one: `length(w)` cycles each. `begin` is when each starts.
template <class Length>
double place(u64 count, u64 slots, double interval, const Length& length,
             std::vector<double>* begin) {
  std::priority_queue<double, std::vector<double>, std::greater<double>> free_at;
  double end = 0;
  for (u64 w = 0; w < count; w++) {
    double from = (double)w * interval;
    if (free_at.size() == slots) {
      from = std::max(from, free_at.top());
      free_at.pop();
    }
    if (begin) (*begin)[w] = from;
    const double until = from + length(w);
    free_at.push(until);
    end = std::max(end, until);
  }
  return end;
}

// The schedule of workgroups that hand data over. Events are in the order in which the engine ran
// them, so that a write comes before its reads. The start of a workgroup depends on the end of
// others, and their end on what they waited for. So the schedule is repeated until it is stable.
class Handovers {
 public:
  Handovers(const std::vector<double>& cycles, const ModelRequest& request, const Sharing& sharing)
      : cycles_(cycles), request_(request), sharing_(sharing) {
    begin_.resize(cycles.size());
    delay_.resize(cycles.size());
    follows_.resize(cycles.size());
    written_.resize(sharing.events().size() + 1);
    for (size_t w = 0; w < cycles.size(); w++) {
      const u64 total = sharing.totals()[w];
      rate_.push_back(total ? cycles[w] / (double)total : 0);
    }
  }

  double run() {
    double longest = 0;
    for (int pass = 0; pass < kPasses; pass++) {
      const double end = place(
          cycles_.size(), request_.slots, request_.start_interval,
          [&](u64 w) { return cycles_[w] + delay_[w]; }, &begin_);
      if (pass && std::abs(end - longest) <= 1e-6 * end) return end;
      longest = std::max(longest, end);
      hand_over();
    }
    return longest;
  }

 private:
  void hand_over() {
    std::fill(delay_.begin(), delay_.end(), 0);
    std::fill(follows_.begin(), follows_.end(), 0);
    const auto& events = sharing_.events();
    for (size_t i = 0; i < events.size(); i++) {
      const ShareEvent& event = events[i];
      const u32 w = event.workgroup;
      const double now = begin_[w] + delay_[w] + rate_[w] * (double)event.progress;
      const double source = written_[event.source];
      switch (event.kind) {
        case ShareEvent::kWrites:
          written_[i + 1] = std::max(now, follows_[w]);
          follows_[w] = 0;
          break;
        case ShareEvent::kFollows:
          follows_[w] = std::max(follows_[w], source + request_.atomic_handover);
          break;
        case ShareEvent::kWaits:
          delay_[w] += std::max(0.0, source + request_.handover - now);
          break;
        case ShareEvent::kWaitsAtomic:
          delay_[w] += std::max(0.0, source + request_.atomic_handover - now);
          break;
      }
    }
  }

  const std::vector<double>& cycles_;
  const ModelRequest& request_;
  const Sharing& sharing_;
  std::vector<double> begin_, delay_, follows_;  // by workgroup
  std::vector<double> rate_;  // by workgroup: cycles for each nominal cycle
  std::vector<double> written_;  // by number of the event
};

double total_of(const std::vector<double>& cycles, const std::vector<double>& extra,
                const Classes& classes) {
  double total = std::accumulate(extra.begin(), extra.end(), 0.0);
  for (size_t c = 0; c < cycles.size(); c++) total += cycles[c] * (double)classes.all()[c].members;
  return total;
}

}  // namespace

double schedule(const std::vector<double>& cycles, const std::vector<double>& extra,
                const Classes& classes, const ModelRequest& request, const Sharing* sharing) {
  const u64 count = request.workgroups;
  const bool shares = sharing && !sharing->events().empty();
  const auto& places = classes.places();
  const auto length = [&](u64 w) { return cycles[places[w]] + (extra.empty() ? 0 : extra[w]); };
  // Too many events: run one workgroup after another.
  if (shares && (sharing->overflowed() || count > kMostSharing || places.empty())) {
    return total_of(cycles, extra, classes);
  }
  if (!shares && count > kScheduled) {
    double longest = *std::max_element(cycles.begin(), cycles.end());
    if (!extra.empty()) longest += *std::max_element(extra.begin(), extra.end());
    const double started = (double)count * request.start_interval + longest;
    const double busy =
        total_of(cycles, extra, classes) / (double)request.slots + longest / 2;
    return std::max(started, busy);
  }
  if (!shares) return place(count, request.slots, request.start_interval, length, nullptr);
  std::vector<double> each(count);
  for (u64 w = 0; w < count; w++) each[w] = length(w);
  return Handovers(each, request, *sharing).run();
}
