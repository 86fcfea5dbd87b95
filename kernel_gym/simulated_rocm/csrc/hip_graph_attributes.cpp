// HIP host runtime: attributes of kernel nodes. They are kept and read back, and change nothing.
#include <cstring>

#include "hip_graphs.h"

namespace {

enum : int { kWindow = 1, kCooperative = 2, kPriority = 8 };  // hipLaunchAttributeID
constexpr int kPersisting = 2;                                // hipAccessProperty
constexpr uint64_t kLargestWindow = 0;  // accessPolicyMaxWindowSize of the device

struct Window {
  void* start;
  int on_hit;
  float hit_ratio;
  int on_miss;
  size_t bytes;
};
union Attribute {
  Window window;
  int number;
};

size_t size_of(int attribute) {
  if (attribute == kWindow) return sizeof(Window);
  return attribute == kCooperative || attribute == kPriority ? sizeof(int) : 0;
}
bool is_kernel(const GraphNode* node) {
  return handles<GraphNode>().has(node) && node->type == kKernelNode;
}
bool is_allowed(int attribute, const Attribute& value) {
  if (attribute == kPriority) return value.number >= -1 && value.number <= 1;
  if (attribute != kWindow) return true;
  const Window& window = value.window;
  if (!(window.hit_ratio >= 0 && window.hit_ratio <= 1)) return false;
  return window.on_miss != kPersisting && window.bytes <= kLargestWindow;
}

}  // namespace

extern "C" {

int hipGraphKernelNodeSetAttribute(GraphNode* node, int attribute, const Attribute* value) {
  if (!is_kernel(node) || !value || !size_of(attribute)) return hip_note(kInvalidValue);
  if (!is_allowed(attribute, *value)) return hip_note(kInvalidValue);
  node->attributes[attribute].assign(reinterpret_cast<const char*>(value), size_of(attribute));
  return hip_note(kSuccess);
}
int hipGraphKernelNodeGetAttribute(GraphNode* node, int attribute, Attribute* value) {
  if (!is_kernel(node) || !value || !size_of(attribute)) return hip_note(kInvalidValue);
  std::memset(value, 0, size_of(attribute));
  const auto kept = node->attributes.find(attribute);
  if (kept != node->attributes.end()) std::memcpy(value, kept->second.data(), kept->second.size());
  return hip_note(kSuccess);
}
int hipGraphKernelNodeCopyAttributes(GraphNode* from, GraphNode* to) {
  if (!is_kernel(from) || !is_kernel(to)) return hip_note(kInvalidValue);
  to->attributes = from->attributes;
  return hip_note(kSuccess);
}

}  // extern "C"
