// HIP host runtime: the kinds of nodes of a graph, and their parameters.
#include <cstring>
#include <type_traits>

#include "hip_graphs.h"
#include "hip_memory.h"

struct Event;   // of hip_streams.cpp

extern "C" {
int hipMemcpy(void*, const void*, size_t, int);
int hipMemcpyToSymbol(const void*, const void*, size_t, size_t, int);
int hipMemcpyFromSymbol(void*, const void*, size_t, size_t, int);
int hipEventRecord(void*, void*);
int hipEventQuery(void*);
}

namespace {

struct KernelParams {
  Dim3 block;
  void** extra;
  void* function;
  Dim3 grid;
  void** args;
  unsigned shared;
};
struct MemsetParams {
  void* target;
  unsigned element;
  size_t height, pitch;
  unsigned value;
  size_t width;
};
struct HostParams {
  void (*call)(void*);
  void* data;
};

template <class T>
std::string bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable<T>::value, "kept as bytes");
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A node that is made of parameters, or the error.
struct Made {
  int error = kSuccess;
  Work work;
  std::string params;
};

Made kernel_node(const KernelParams* params) {
  if (!params) return {kInvalidValue, {}, ""};
  const char* name = params->function ? hip_kernel_of(params->function) : nullptr;
  if (!name && hip_is_function(static_cast<const char*>(params->function))) {
    name = static_cast<const char*>(params->function);
  }
  if (!name) return {params->function ? kInvalidDeviceFunction : kInvalidValue, {}, ""};
  if (!params->args && params->extra) return {kNotSupported, {}, ""};
  Made made;
  made.error = hip_recorded_launch(name, params->grid, params->block, params->args, params->shared,
                                   0, &made.work);
  made.params = bytes_of(*params);
  return made;
}
Made memset_node(const MemsetParams* params) {
  if (!params || !params->target || !params->width || !params->height) return {kInvalidValue, {}, ""};
  const MemsetParams p = *params;
  const bool known = p.element == 1 || p.element == 2 || p.element == 4;
  const size_t row = p.width * p.element;
  if (!known || (p.height > 1 && p.pitch < row)) return {kInvalidValue, {}, ""};
  if (!hip_fits(p.target, (p.height - 1) * p.pitch + row)) return {kInvalidValue, {}, ""};
  const auto work = [p] {
    for (size_t row = 0; row < p.height; row++) {
      const uint64_t start = address_of(p.target) + row * p.pitch;
      if (const int wrong = gpu().fill(start, p.value, p.width, p.element)) return hip_note(wrong);
    }
    return static_cast<int>(kSuccess);
  };
  return {kSuccess, work, bytes_of(p)};
}
Made host_node(const HostParams* params) {
  if (!params || !params->call) return {kInvalidValue, {}, ""};
  const HostParams p = *params;
  const auto work = [p] {
    p.call(p.data);
    return static_cast<int>(kSuccess);
  };
  return {kSuccess, work, bytes_of(p)};
}
Made copy_node(void* target, const void* source, size_t size, int kind) {
  if (!target || !source || !size || kind < 0 || kind > 4) return {kInvalidValue, {}, ""};
  if (!hip_fits(target, size) || !hip_fits(source, size)) return {kInvalidValue, {}, ""};
  return {kSuccess, [=] { return hipMemcpy(target, source, size, kind); }, ""};
}
// The bytes of one side of a copy in three dimensions, from the first to the last that it uses.
bool fits(const Pitched& plane, const Position& place, const Extent& extent) {
  if (!extent.width || !extent.height || !extent.depth) return true;
  const size_t start = (place.z * plane.y_size + place.y) * plane.pitch + place.x;
  const size_t rows = (extent.depth - 1) * plane.y_size + extent.height - 1;
  const char* first = static_cast<const char*>(plane.pointer) + start;
  return hip_fits(first, rows * plane.pitch + extent.width);
}
Made copy3d_node(const Copy3D* copy) {
  if (!copy) return {kInvalidValue, {}, ""};
  const bool wrong = (!copy->source_array && !fits(copy->source, copy->source_place, copy->extent)) ||
                     (!copy->target_array && !fits(copy->target, copy->target_place, copy->extent));
  return {wrong ? kInvalidValue : kSuccess, hip_recorded_copy(copy), bytes_of(*copy)};
}
// What is wrong with a copy between a variable of the program and other memory.
int check_symbol(const void* symbol, const void* other, size_t size, size_t offset) {
  if (!symbol || !other || !size) return kInvalidValue;
  uint64_t place = 0, room = 0;
  if (const int wrong = hip_find_variable(symbol, &place, &room)) return wrong;
  return is_within(offset, size, room) && hip_fits(other, size) ? kSuccess : kInvalidValue;
}
Made to_symbol_node(const void* symbol, const void* source, size_t size, size_t offset, int kind) {
  if (kind != 1 && kind != 3 && kind != kDefaultKind) return {kInvalidDirection, {}, ""};
  return {check_symbol(symbol, source, size, offset),
          [=] { return hipMemcpyToSymbol(symbol, source, size, offset, kind); }, ""};
}
Made from_symbol_node(void* target, const void* symbol, size_t size, size_t offset, int kind) {
  if (kind != 2 && kind != 3 && kind != kDefaultKind) return {kInvalidDirection, {}, ""};
  return {check_symbol(symbol, target, size, offset),
          [=] { return hipMemcpyFromSymbol(target, symbol, size, offset, kind); }, ""};
}
Made event_node(void* event, bool record) {
  if (!event || !hip_is_event(event)) return {kInvalidValue, {}, ""};
  const auto work = [=] { return record ? hipEventRecord(event, nullptr) : hipEventQuery(event); };
  return {kSuccess, work, bytes_of(event)};
}

int add(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count, int type,
        Made made) {
  if (!node || !handles<Graph>().has(graph)) return hip_note(kInvalidValue);
  if (made.error) return hip_note(made.error);
  return hip_add_checked_node(node, graph, before, count,
                              {type, std::move(made.work), std::move(made.params), graph, {}});
}
bool is_of(const GraphNode* node, int type) {
  return handles<GraphNode>().has(node) && node->type == type;
}
// Replaces what a node does.
int set(GraphNode* node, int type, Made made) {
  if (!is_of(node, type)) return hip_note(kInvalidValue);
  if (made.error) return hip_note(made.error);
  node->work = std::move(made.work);
  node->params = std::move(made.params);
  return hip_note(kSuccess);
}
// Replaces what a node does in an instance of its graph.
int set_in(GraphInstance* instance, const GraphNode* node, int type, Made made) {
  if (!handles<GraphInstance>().has(instance) || !is_of(node, type)) return hip_note(kInvalidValue);
  if (made.error) return hip_note(made.error);
  for (auto& one : instance->work) {
    if (one.first != node) continue;
    one.second = std::move(made.work);
    return hip_note(kSuccess);
  }
  return hip_note(kInvalidValue);
}
template <class T>
int get(const GraphNode* node, int type, T* params) {
  if (!params || !is_of(node, type) || node->params.size() != sizeof(T)) return hip_note(kInvalidValue);
  std::memcpy(params, node->params.data(), sizeof(T));
  return hip_note(kSuccess);
}

}  // namespace

extern "C" {

int hipGraphAddEmptyNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count) {
  return add(node, graph, before, count, kEmptyNode, {});
}
int hipGraphAddKernelNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                          const KernelParams* params) {
  return add(node, graph, before, count, kKernelNode, kernel_node(params));
}
int hipGraphKernelNodeSetParams(GraphNode* node, const KernelParams* params) {
  return set(node, kKernelNode, kernel_node(params));
}
int hipGraphKernelNodeGetParams(GraphNode* node, KernelParams* params) {
  return get(node, kKernelNode, params);
}
int hipGraphExecKernelNodeSetParams(GraphInstance* instance, GraphNode* node,
                                    const KernelParams* params) {
  return set_in(instance, node, kKernelNode, kernel_node(params));
}
int hipGraphAddMemcpyNode1D(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                            void* target, const void* source, size_t size, int kind) {
  return add(node, graph, before, count, kMemcpyNode, copy_node(target, source, size, kind));
}
int hipGraphMemcpyNodeSetParams1D(GraphNode* node, void* target, const void* source, size_t size,
                                  int kind) {
  return set(node, kMemcpyNode, copy_node(target, source, size, kind));
}
int hipGraphExecMemcpyNodeSetParams1D(GraphInstance* instance, GraphNode* node, void* target,
                                      const void* source, size_t size, int kind) {
  return set_in(instance, node, kMemcpyNode, copy_node(target, source, size, kind));
}
int hipGraphAddMemcpyNodeToSymbol(GraphNode** node, Graph* graph, GraphNode* const* before,
                                  size_t count, const void* symbol, const void* source, size_t size,
                                  size_t offset, int kind) {
  return add(node, graph, before, count, kMemcpyNode,
             to_symbol_node(symbol, source, size, offset, kind));
}
int hipGraphMemcpyNodeSetParamsToSymbol(GraphNode* node, const void* symbol, const void* source,
                                        size_t size, size_t offset, int kind) {
  return set(node, kMemcpyNode, to_symbol_node(symbol, source, size, offset, kind));
}
int hipGraphExecMemcpyNodeSetParamsToSymbol(GraphInstance* instance, GraphNode* node,
                                            const void* symbol, const void* source, size_t size,
                                            size_t offset, int kind) {
  return set_in(instance, node, kMemcpyNode, to_symbol_node(symbol, source, size, offset, kind));
}
int hipGraphAddMemcpyNodeFromSymbol(GraphNode** node, Graph* graph, GraphNode* const* before,
                                    size_t count, void* target, const void* symbol, size_t size,
                                    size_t offset, int kind) {
  return add(node, graph, before, count, kMemcpyNode,
             from_symbol_node(target, symbol, size, offset, kind));
}
int hipGraphMemcpyNodeSetParamsFromSymbol(GraphNode* node, void* target, const void* symbol,
                                          size_t size, size_t offset, int kind) {
  return set(node, kMemcpyNode, from_symbol_node(target, symbol, size, offset, kind));
}
int hipGraphExecMemcpyNodeSetParamsFromSymbol(GraphInstance* instance, GraphNode* node,
                                              void* target, const void* symbol, size_t size,
                                              size_t offset, int kind) {
  return set_in(instance, node, kMemcpyNode, from_symbol_node(target, symbol, size, offset, kind));
}
int hipGraphAddMemcpyNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                          const Copy3D* copy) {
  return add(node, graph, before, count, kMemcpyNode, copy3d_node(copy));
}
int hipGraphMemcpyNodeSetParams(GraphNode* node, const Copy3D* copy) {
  return set(node, kMemcpyNode, copy3d_node(copy));
}
int hipGraphMemcpyNodeGetParams(GraphNode* node, Copy3D* copy) {
  return get(node, kMemcpyNode, copy);
}
int hipGraphExecMemcpyNodeSetParams(GraphInstance* instance, GraphNode* node, const Copy3D* copy) {
  return set_in(instance, node, kMemcpyNode, copy3d_node(copy));
}
int hipGraphAddMemsetNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                          const MemsetParams* params) {
  return add(node, graph, before, count, kMemsetNode, memset_node(params));
}
int hipGraphMemsetNodeSetParams(GraphNode* node, const MemsetParams* params) {
  return set(node, kMemsetNode, memset_node(params));
}
int hipGraphMemsetNodeGetParams(GraphNode* node, MemsetParams* params) {
  return get(node, kMemsetNode, params);
}
int hipGraphExecMemsetNodeSetParams(GraphInstance* instance, GraphNode* node,
                                    const MemsetParams* params) {
  return set_in(instance, node, kMemsetNode, memset_node(params));
}
int hipGraphAddHostNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                        const HostParams* params) {
  return add(node, graph, before, count, kHostNode, host_node(params));
}
int hipGraphHostNodeSetParams(GraphNode* node, const HostParams* params) {
  return set(node, kHostNode, host_node(params));
}
int hipGraphHostNodeGetParams(GraphNode* node, HostParams* params) {
  return get(node, kHostNode, params);
}
int hipGraphExecHostNodeSetParams(GraphInstance* instance, GraphNode* node,
                                  const HostParams* params) {
  return set_in(instance, node, kHostNode, host_node(params));
}
int hipGraphAddEventRecordNode(GraphNode** node, Graph* graph, GraphNode* const* before,
                               size_t count, void* event) {
  return add(node, graph, before, count, kEventRecordNode, event_node(event, true));
}
int hipGraphEventRecordNodeSetEvent(GraphNode* node, void* event) {
  return set(node, kEventRecordNode, event_node(event, true));
}
int hipGraphEventRecordNodeGetEvent(GraphNode* node, void** event) {
  return get(node, kEventRecordNode, event);
}
int hipGraphExecEventRecordNodeSetEvent(GraphInstance* instance, GraphNode* node, void* event) {
  return set_in(instance, node, kEventRecordNode, event_node(event, true));
}
int hipGraphAddEventWaitNode(GraphNode** node, Graph* graph, GraphNode* const* before, size_t count,
                             void* event) {
  return add(node, graph, before, count, kWaitEventNode, event_node(event, false));
}
int hipGraphEventWaitNodeSetEvent(GraphNode* node, void* event) {
  return set(node, kWaitEventNode, event_node(event, false));
}
int hipGraphEventWaitNodeGetEvent(GraphNode* node, void** event) {
  return get(node, kWaitEventNode, event);
}
int hipGraphExecEventWaitNodeSetEvent(GraphInstance* instance, GraphNode* node, void* event) {
  return set_in(instance, node, kWaitEventNode, event_node(event, false));
}
int hipGraphAddChildGraphNode(GraphNode** node, Graph* graph, GraphNode* const* before,
                              size_t count, Graph* child) {
  if (!handles<Graph>().has(child) || child == graph) return hip_note(kInvalidValue);
  if (const int wrong = add(node, graph, before, count, kGraphNode, {})) return wrong;
  (*node)->child = hip_clone_graph(*child, true);
  return hip_note(kSuccess);
}
int hipGraphChildGraphNodeGetGraph(GraphNode* node, Graph** graph) {
  return is_of(node, kGraphNode) && node->child ? hip_store(graph, node->child)
                                                : hip_note(kInvalidValue);
}

}  // extern "C"
