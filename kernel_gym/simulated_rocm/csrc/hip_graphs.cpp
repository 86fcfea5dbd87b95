// HIP host runtime: captures of streams, and graphs of what they have recorded.
//
// All work is in order, so a recording is a list. Work of other streams is never part of it: a wait
// for an event of a capture is refused.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hip_handles.h"
#include "hip_runtime.h"

namespace {

using Work = std::function<int()>;

struct Graph {
  std::vector<Work> work;
};
struct GraphInstance {
  std::vector<Work> work;
};

std::recursive_mutex& capture_lock() {
  static auto* lock = new std::recursive_mutex;
  return *lock;
}
// What the streams that are captured now have recorded.
std::map<const void*, Graph>& captures() {
  static auto* table = new std::map<const void*, Graph>;
  return *table;
}
bool is_default_stream(const void* stream) { return address_of(stream) <= 2; }

}  // namespace

bool hip_is_captured(const void* stream) {
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  return captures().count(stream);
}

int hip_queue(const void* stream, Work work) {
  if (const int wrong = hip_check_stream(stream)) return wrong;
  {
    std::lock_guard<std::recursive_mutex> hold(capture_lock());
    const auto capture = captures().find(stream);
    if (capture != captures().end()) {
      capture->second.work.push_back(std::move(work));
      return kSuccess;
    }
  }
  return work();
}

extern "C" {

int hipStreamBeginCapture(void* stream, int mode) {
  if (mode < 0 || mode > 2) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  if (is_default_stream(stream)) return hip_note(kCaptureUnsupported);
  if (!hip_can_capture()) return hip_note(kNotSupported);
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  return hip_note(captures().emplace(stream, Graph{}).second ? kSuccess : kIllegalState);
}
int hipStreamEndCapture(void* stream, Graph** graph) {
  if (!graph) return hip_note(kInvalidValue);
  if (const int wrong = hip_check_stream(stream)) return wrong;
  std::lock_guard<std::recursive_mutex> hold(capture_lock());
  const auto capture = captures().find(stream);
  if (capture == captures().end()) return hip_note(kIllegalState);
  *graph = handles<Graph>().add(std::move(capture->second));
  captures().erase(capture);
  return kSuccess;
}
int hipStreamIsCapturing(void* stream, int* state) {
  return hip_check_stream(stream) ?: hip_store(state, hip_is_captured(stream) ? 1 : 0);
}

int hipGraphInstantiateWithFlags(GraphInstance** instance, Graph* graph, unsigned long long) {
  if (!instance) return hip_note(kInvalidValue);
  if (!handles<Graph>().has(graph)) return hip_note(kInvalidHandle);
  *instance = handles<GraphInstance>().add({graph->work});
  return kSuccess;
}
int hipGraphInstantiate(GraphInstance** instance, Graph* graph, void**, char*, size_t) {
  return hipGraphInstantiateWithFlags(instance, graph, 0);
}
int hipGraphLaunch(GraphInstance* instance, void* stream) {
  if (!handles<GraphInstance>().has(instance)) return hip_note(kInvalidHandle);
  const std::vector<Work> work = instance->work;
  return hip_queue(stream, [work] {
    for (const Work& one : work) {
      if (const int wrong = one()) return wrong;
    }
    return static_cast<int>(kSuccess);
  });
}
int hipGraphDestroy(Graph* graph) {
  return hip_note(handles<Graph>().remove(graph) ? kSuccess : kInvalidHandle);
}
int hipGraphExecDestroy(GraphInstance* instance) {
  return hip_note(handles<GraphInstance>().remove(instance) ? kSuccess : kInvalidHandle);
}

}  // extern "C"
