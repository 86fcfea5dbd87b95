// HIP host runtime: work of streams, which runs at once or is recorded into a graph.
//
// A capture begins at one stream. Another one joins when it waits for an event of the capture, and
// must have been waited for when the capture ends.
#include <map>
#include <memory>
#include <mutex>

#include "hip_graphs.h"
#include "hip_streams.h"

namespace {

struct Capture {
  Graph* graph;
  const void* origin;  // the stream that has begun it
};
using Nodes = std::vector<GraphNode*>;
// Where a stream is in its capture: its next node comes behind these.
struct Place {
  std::shared_ptr<Capture> capture;
  Nodes last;
};
enum : unsigned { kAddNodes = 0, kSetNodes = 1 };
enum : int { kInvalidated = 901, kMerge = 902, kUnmatched = 903, kUnjoined = 904 };

std::recursive_mutex& capture_lock() {
  static auto* lock = new std::recursive_mutex;
  return *lock;
}
// The streams that are captured now.
std::map<const void*, Place>& captures() {
  static auto* table = new std::map<const void*, Place>;
  return *table;
}
Place* place_of(const void* stream) {
  const auto entry = captures().find(stream);
  return entry == captures().end() ? nullptr : &entry->second;
}
void add_nodes(Nodes* nodes, const Nodes& more) {
  for (GraphNode* node : more) {
    if (std::find(nodes->begin(), nodes->end(), node) == nodes->end()) nodes->push_back(node);
  }
}
// Whether all work that a stream has added to a capture is behind other nodes, or waited for.
bool has_joined(const Place& place, const Nodes& waited) {
  const Nodes& all = place.capture->graph->nodes;
  return std::all_of(place.last.begin(), place.last.end(), [&](GraphNode* node) {
    const auto is_behind = [&](GraphNode* other) {
      return std::count(other->before.begin(), other->before.end(), node) > 0;
    };
    return std::count(waited.begin(), waited.end(), node) > 0 ||
           std::count(all.begin(), all.end(), node) == 0 ||  // the program has destroyed it
           std::any_of(all.begin(), all.end(), is_behind);
  });
}
// Ends a capture for all of its streams; an error if one of them has not joined, or if the program
// has destroyed the graph.
int end_capture(const Place& origin) {
  int error = handles<Graph>().has(origin.capture->graph) ? int{kSuccess} : int{kInvalidated};
  for (auto entry = captures().begin(); entry != captures().end();) {
    const bool is_part = entry->second.capture == origin.capture;
    if (is_part && !error && !has_joined(entry->second, origin.last)) error = kUnjoined;
    entry = is_part ? captures().erase(entry) : std::next(entry);
  }
  return error;
}

}  // namespace

struct CapturePoint : Place {};

bool hip_is_captured(const void* stream) {
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  return place_of(stream);
}

std::shared_ptr<const CapturePoint> hip_capture_point(const void* stream) {
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  const Place* place = place_of(stream);
  return place ? std::make_shared<const CapturePoint>(CapturePoint{*place}) : nullptr;
}

int hip_join_capture(const void* stream, const CapturePoint& point) {
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  const bool is_active = std::any_of(captures().begin(), captures().end(), [&](const auto& entry) {
    return entry.second.capture == point.capture;
  });
  if (!is_active) return kSuccess;  // it has ended: there is nothing to wait for
  if (hip_is_default(stream)) return kCaptureUnsupported;
  Place* place = place_of(stream);
  if (place && place->capture != point.capture) return kMerge;
  if (!place) {
    captures()[stream] = point;
  } else {
    add_nodes(&place->last, point.last);
  }
  return kSuccess;
}

int hip_queue(const void* stream, Work work, int type) {
  if (const int wrong = hip_check_stream(stream)) return wrong;
  {
    std::lock_guard<std::recursive_mutex> hold(capture_lock());
    if (Place* place = place_of(stream)) {
      Graph* graph = place->capture->graph;
      GraphNode* node = hip_add_node(graph, place->last.data(), place->last.size(),
                                     {type, std::move(work), "", graph, {}});
      if (!node) return hip_note(kInvalidated);  // the program has destroyed the graph
      place->last = {node};
      return hip_note(kSuccess);
    }
  }
  return work();
}

extern "C" {

int hipStreamBeginCapture(void* stream, int mode) {
  if (mode < 0 || mode > 2) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  if (hip_is_default(stream)) return hip_note(kCaptureUnsupported);
  if (!hip_can_capture()) return hip_note(kNotSupported);
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  if (place_of(stream)) return hip_note(kIllegalState);
  const Capture made = {handles<Graph>().add({}), stream};
  captures()[stream] = {std::make_shared<Capture>(made), {}};
  return hip_note(kSuccess);
}
int hipStreamEndCapture(void* stream, Graph** graph) {
  if (!graph) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  const Place* place = place_of(stream);
  if (!place) return hip_note(kIllegalState);
  if (place->capture->origin != stream) return hip_note(kUnmatched);
  const Place origin = *place;
  const int error = end_capture(origin);
  *graph = error ? nullptr : origin.capture->graph;
  if (error == kUnjoined) hip_destroy_graph(origin.capture->graph);
  return hip_note(error);
}
int hipStreamIsCapturing(void* stream, int* state) {
  return hip_check_stream(stream) ?: hip_store(state, hip_is_captured(stream) ? 1 : 0);
}
// The list of nodes is valid until the next work of the stream.
int hipStreamGetCaptureInfo_v2(void* stream, int* state, unsigned long long* number, Graph** graph,
                               GraphNode* const** nodes, size_t* count) {
  if (const int wrong = hipStreamIsCapturing(stream, state)) return wrong;
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  const Place* place = place_of(stream);
  if (!place) return hip_note(kSuccess);
  if (number) *number = address_of(place->capture->graph);
  if (graph) *graph = place->capture->graph;
  if (nodes) *nodes = place->last.data();
  if (count) *count = place->last.size();
  return hip_note(kSuccess);
}
int hipStreamGetCaptureInfo(void* stream, int* state, unsigned long long* number) {
  return hipStreamGetCaptureInfo_v2(stream, state, number, nullptr, nullptr, nullptr);
}
int hipStreamUpdateCaptureDependencies(void* stream, GraphNode* const* nodes, size_t count,
                                       unsigned flags) {
  if (const int wrong = hip_check_stream(stream)) return wrong;
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  Place* place = place_of(stream);
  if (!place) return hip_note(kIllegalState);
  if (flags > kSetNodes || (count && !nodes)) return hip_note(kInvalidValue);
  Nodes given;
  for (size_t i = 0; i < count; i++) {
    const bool is_part = handles<GraphNode>().has(nodes[i]) &&
                         nodes[i]->graph == place->capture->graph;
    if (!is_part) return hip_note(kInvalidValue);
    add_nodes(&given, {nodes[i]});
  }
  if (flags == kSetNodes) place->last.clear();
  add_nodes(&place->last, given);
  return hip_note(kSuccess);
}

// -- launches of graphs ----------------------------------------------------------------------------

int hipGraphUpload(GraphInstance* instance, void* stream) {
  if (!handles<GraphInstance>().has(instance)) return hip_note(kInvalidValue);
  return hip_check_stream(stream);
}
int hipGraphLaunch(GraphInstance* instance, void* stream) {
  if (!handles<GraphInstance>().has(instance)) return hip_note(kInvalidValue);
  auto work = instance->work;
  const auto left_out = [&](const auto& one) { return instance->disabled.count(one.first) > 0; };
  work.erase(std::remove_if(work.begin(), work.end(), left_out), work.end());
  return hip_queue(
      stream,
      [work] {
        for (const auto& one : work) {
          if (const int wrong = one.second()) return wrong;
        }
        return static_cast<int>(kSuccess);
      },
      kGraphNode);
}
int hipGraphLaunch_spt(GraphInstance* instance, void* stream) {
  return hipGraphLaunch(instance, stream);
}

}  // extern "C"
