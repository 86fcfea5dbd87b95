// HIP host runtime: changes of instantiated graphs, and the text of a graph.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "hip_graphs.h"

namespace {

// hipGraphExecUpdateResult and hipGraphInstantiateResult.
enum : int { kUpdated = 0, kUpdateError = 1, kTopologyChanged = 2, kTypeChanged = 3 };
enum : int { kInstantiated = 0, kInstantiateError = 1 };

struct InstantiateParams {  // hipGraphInstantiateParams
  GraphNode* wrong_node;
  unsigned long long flags;
  int result;
  void* upload_stream;
};
using Ordered = std::vector<std::pair<const GraphNode*, Work>>;

bool is_instance(const GraphInstance* instance) { return handles<GraphInstance>().has(instance); }
bool is_graph(const Graph* graph) { return handles<Graph>().has(graph); }
bool is_node(const GraphNode* node) { return handles<GraphNode>().has(node); }

// Whether a node can be switched off in an instance: of a kernel, a copy or a fill.
bool is_switchable(const GraphInstance* instance, const GraphNode* node) {
  if (!is_instance(instance) || !is_node(node) || node->type > kMemsetNode) return false;
  const auto& work = instance->work;
  return std::any_of(work.begin(), work.end(), [&](const auto& one) { return one.first == node; });
}

// What makes the work of a graph unfit for an instance with nodes of these types.
int compare(const std::vector<int>& types, const Ordered& fresh) {
  if (types.size() != fresh.size()) return kTopologyChanged;
  for (size_t i = 0; i < fresh.size(); i++) {
    if (fresh[i].first->type != types[i]) return kTypeChanged;
  }
  return kUpdated;
}
const char* name_of(int type) {
  static const char* const names[] = {"kernel", "memcpy", "memset", "host",
                                      "graph",  "empty",  "wait",   "record"};
  const int count = sizeof names / sizeof *names;
  return type >= 0 && type < count ? names[type] : "memory";
}
void write_nodes(std::FILE* file, const Graph& graph) {
  for (const GraphNode* node : graph.nodes) {
    const void* place = node;
    std::fprintf(file, "  \"%p\" [label=\"%s\"];\n", place, name_of(node->type));
    for (const void* before : node->before) {
      std::fprintf(file, "  \"%p\" -> \"%p\";\n", before, place);
    }
    if (node->child) write_nodes(file, *node->child);
  }
}

}  // namespace

extern "C" {

int hipGraphInstantiateWithFlags(GraphInstance**, Graph*, unsigned long long);

int hipGraphInstantiateWithParams(GraphInstance** instance, Graph* graph,
                                  InstantiateParams* params) {
  if (!instance || !params || !is_graph(graph)) return hip_note(kInvalidValue);
  params->wrong_node = nullptr;
  const int wrong = hipGraphInstantiateWithFlags(instance, graph, params->flags);
  params->result = wrong ? kInstantiateError : kInstantiated;
  return wrong;
}
int hipGraphNodeSetEnabled(GraphInstance* instance, GraphNode* node, unsigned enabled) {
  if (!is_switchable(instance, node)) return hip_note(kInvalidValue);
  if (enabled) {
    instance->disabled.erase(node);
  } else {
    instance->disabled.insert(node);
  }
  return hip_note(kSuccess);
}
int hipGraphNodeGetEnabled(GraphInstance* instance, GraphNode* node, unsigned* enabled) {
  if (!enabled || !is_switchable(instance, node)) return hip_note(kInvalidValue);
  *enabled = !instance->disabled.count(node);
  return hip_note(kSuccess);
}
int hipGraphExecUpdate(GraphInstance* instance, Graph* graph, GraphNode** wrong_node, int* result) {
  if (!is_instance(instance) || !is_graph(graph) || !wrong_node || !result) {
    return hip_note(kInvalidValue);
  }
  *wrong_node = nullptr;
  Ordered fresh;
  *result = hip_order(*graph, &fresh) ? compare(instance->types, fresh) : kUpdateError;
  if (*result) return hip_note(kGraphExecUpdateFailure);
  for (size_t i = 0; i < fresh.size(); i++) instance->work[i].second = std::move(fresh[i].second);
  return hip_note(kSuccess);
}
int hipGraphExecChildGraphNodeSetParams(GraphInstance* instance, GraphNode* node, Graph* child) {
  if (!is_instance(instance) || !is_node(node) || !is_graph(child)) return hip_note(kInvalidValue);
  if (node->type != kGraphNode || !node->child) return hip_note(kInvalidValue);
  Ordered old, fresh;
  if (!hip_order(*node->child, &old) || !hip_order(*child, &fresh)) return hip_note(kInvalidValue);
  std::vector<int> types;
  for (const auto& one : old) types.push_back(one.first->type);
  if (compare(types, fresh)) return hip_note(kGraphExecUpdateFailure);
  for (size_t i = 0; i < old.size(); i++) {
    for (auto& one : instance->work) {
      if (one.first == old[i].first) one.second = fresh[i].second;
    }
  }
  return hip_note(kSuccess);
}
int hipGraphDebugDotPrint(Graph* graph, const char* path, unsigned) {
  if (!is_graph(graph) || !path) return hip_note(kInvalidValue);
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path, "w"), close);
  if (!file) return hip_note(kOperatingSystem);
  std::fputs("digraph graph {\n", file.get());
  write_nodes(file.get(), *graph);
  std::fputs("}\n", file.get());
  return hip_note(kSuccess);
}

}  // extern "C"
