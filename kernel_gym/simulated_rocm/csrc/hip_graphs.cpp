// HIP host runtime: graphs, their nodes and the order of these.
#include "hip_graphs.h"

#include <map>
#include <set>

namespace {

bool is_graph(const Graph* graph) { return handles<Graph>().has(graph); }
bool is_node(const GraphNode* node) { return handles<GraphNode>().has(node); }

bool is_before(const GraphNode* first, const GraphNode* second) {
  return std::count(second->before.begin(), second->before.end(), first) > 0;
}

// Fills a list of the program: with a null list only its length, else as many as fit.
template <class T>
int list_of(const std::vector<T*>& members, T** list, size_t* count) {
  if (!count) return hip_note(kInvalidValue);
  if (list) {
    for (size_t i = 0; i < *count; i++) list[i] = i < members.size() ? members[i] : nullptr;
  }
  *count = list ? std::min(*count, members.size()) : members.size();
  return hip_note(kSuccess);
}

// Checks edges between nodes of a graph that are to be added or removed.
bool are_edges(const Graph* graph, GraphNode* const* from, GraphNode* const* to, size_t count,
               bool exist) {
  if (!is_graph(graph) || (count && (!from || !to))) return false;
  for (size_t i = 0; i < count; i++) {
    if (!is_node(from[i]) || !is_node(to[i]) || from[i] == to[i]) return false;
    if (from[i]->graph != graph || to[i]->graph != graph) return false;
    if (is_before(from[i], to[i]) != exist) return false;
  }
  return true;
}

}  // namespace

GraphNode* hip_add_node(Graph* graph, GraphNode* const* before, size_t count, GraphNode node) {
  if (!is_graph(graph) || (count && !before)) return nullptr;
  std::set<const GraphNode*> unique;
  for (size_t i = 0; i < count; i++) {
    if (!is_node(before[i]) || before[i]->graph != graph) return nullptr;
    if (!unique.insert(before[i]).second) return nullptr;
  }
  node.graph = graph;
  node.before.assign(before, before + count);
  graph->nodes.push_back(handles<GraphNode>().add(std::move(node)));
  return graph->nodes.back();
}

int hip_add_checked_node(GraphNode** result, Graph* graph, GraphNode* const* before, size_t count,
                         GraphNode node) {
  if (!result) return hip_note(kInvalidValue);
  GraphNode* added = hip_add_node(graph, before, count, std::move(node));
  if (!added) return hip_note(kInvalidValue);
  *result = added;
  return hip_note(kSuccess);
}

Graph* hip_clone_graph(const Graph& graph, bool is_child) {
  Graph* copy = handles<Graph>().add({});
  copy->is_child = is_child;
  std::map<const GraphNode*, GraphNode*> copies;
  for (const GraphNode* node : graph.nodes) {
    GraphNode made = *node;
    made.graph = copy;
    made.origin = node;
    if (node->child) made.child = hip_clone_graph(*node->child, true);
    copy->nodes.push_back(handles<GraphNode>().add(std::move(made)));
    copies[node] = copy->nodes.back();
  }
  for (GraphNode* node : copy->nodes) {
    for (GraphNode*& before : node->before) before = copies[before];
  }
  return copy;
}

void hip_destroy_graph(Graph* graph) {
  for (GraphNode* node : graph->nodes) {
    if (node->child) hip_destroy_graph(node->child);
    handles<GraphNode>().remove(node);
  }
  handles<Graph>().remove(graph);
}

bool hip_order(const Graph& graph, std::vector<std::pair<const GraphNode*, Work>>* result) {
  std::set<const GraphNode*> done;
  while (done.size() < graph.nodes.size()) {
    const size_t before = done.size();
    for (const GraphNode* node : graph.nodes) {
      const bool ready = std::all_of(node->before.begin(), node->before.end(),
                                     [&](const GraphNode* one) { return done.count(one); });
      if (done.count(node) || !ready) continue;
      done.insert(node);
      if (node->child && !hip_order(*node->child, result)) return false;
      if (node->work) result->emplace_back(node, node->work);
    }
    if (done.size() == before) return false;
  }
  return true;
}

extern "C" {

int hipGraphCreate(Graph** graph, unsigned flags) {
  if (!graph || flags) return hip_note(kInvalidValue);
  if (!hip_can_capture()) return hip_note(kNotSupported);
  *graph = handles<Graph>().add({});
  return hip_note(kSuccess);
}
int hipGraphClone(Graph** clone, Graph* graph) {
  if (!clone || !is_graph(graph)) return hip_note(kInvalidValue);
  *clone = hip_clone_graph(*graph, false);
  return hip_note(kSuccess);
}
int hipGraphDestroy(Graph* graph) {
  if (!is_graph(graph) || graph->is_child) return hip_note(kInvalidValue);
  hip_destroy_graph(graph);
  return hip_note(kSuccess);
}
int hipGraphInstantiateWithFlags(GraphInstance** instance, Graph* graph, unsigned long long flags) {
  if (!instance || !is_graph(graph) || flags & ~0xfULL) return hip_note(kInvalidValue);
  GraphInstance made;
  if (!hip_order(*graph, &made.work)) return hip_note(kInvalidValue);  // a cycle
  for (const auto& one : made.work) made.types.push_back(one.first->type);
  *instance = handles<GraphInstance>().add(std::move(made));
  return hip_note(kSuccess);
}
int hipGraphInstantiate(GraphInstance** instance, Graph* graph, void**, char*, size_t) {
  return hipGraphInstantiateWithFlags(instance, graph, 0);
}
int hipGraphExecDestroy(GraphInstance* instance) {
  return hip_note(handles<GraphInstance>().remove(instance) ? kSuccess : kInvalidValue);
}

// -- the order of nodes ----------------------------------------------------------------------------

int hipGraphAddDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to,
                            size_t count) {
  if (!are_edges(graph, from, to, count, false)) return hip_note(kInvalidValue);
  for (size_t i = 0; i < count; i++) to[i]->before.push_back(from[i]);
  return hip_note(kSuccess);
}
int hipGraphRemoveDependencies(Graph* graph, GraphNode* const* from, GraphNode* const* to,
                               size_t count) {
  if (!are_edges(graph, from, to, count, true)) return hip_note(kInvalidValue);
  for (size_t i = 0; i < count; i++) {
    auto& before = to[i]->before;
    before.erase(std::remove(before.begin(), before.end(), from[i]), before.end());
  }
  return hip_note(kSuccess);
}
int hipGraphGetNodes(Graph* graph, GraphNode** nodes, size_t* count) {
  return is_graph(graph) ? list_of(graph->nodes, nodes, count) : hip_note(kInvalidValue);
}
int hipGraphGetRootNodes(Graph* graph, GraphNode** nodes, size_t* count) {
  if (!is_graph(graph)) return hip_note(kInvalidValue);
  std::vector<GraphNode*> roots;
  for (GraphNode* node : graph->nodes) {
    if (node->before.empty()) roots.push_back(node);
  }
  return list_of(roots, nodes, count);
}
int hipGraphGetEdges(Graph* graph, GraphNode** from, GraphNode** to, size_t* count) {
  if (!is_graph(graph) || !count || !from != !to) return hip_note(kInvalidValue);
  std::vector<GraphNode*> starts, ends;
  for (GraphNode* node : graph->nodes) {
    for (GraphNode* before : node->before) {
      starts.push_back(before);
      ends.push_back(node);
    }
  }
  size_t again = *count;
  return list_of(starts, from, count) ?: list_of(ends, to, &again);
}
int hipGraphNodeGetDependencies(GraphNode* node, GraphNode** nodes, size_t* count) {
  return is_node(node) ? list_of(node->before, nodes, count) : hip_note(kInvalidValue);
}
int hipGraphNodeGetDependentNodes(GraphNode* node, GraphNode** nodes, size_t* count) {
  if (!is_node(node)) return hip_note(kInvalidValue);
  std::vector<GraphNode*> behind;
  for (GraphNode* other : node->graph->nodes) {
    if (is_before(node, other)) behind.push_back(other);
  }
  return list_of(behind, nodes, count);
}
int hipGraphNodeGetType(GraphNode* node, int* type) {
  if (!is_node(node)) return hip_note(kInvalidValue);
  return hip_store(type, hip_is_6() ? node->type : node->type + 1);  // HIP 5 counts from one
}
int hipGraphNodeFindInClone(GraphNode** result, GraphNode* original, Graph* clone) {
  if (!result || !is_node(original) || !is_graph(clone)) return hip_note(kInvalidValue);
  for (GraphNode* node : clone->nodes) {
    if (node->origin == original) return hip_store(result, node);
  }
  return hip_note(kInvalidValue);
}
int hipGraphDestroyNode(GraphNode* node) {
  if (!is_node(node)) return hip_note(kInvalidValue);
  auto& nodes = node->graph->nodes;
  nodes.erase(std::remove(nodes.begin(), nodes.end(), node), nodes.end());
  for (GraphNode* other : nodes) {
    auto& before = other->before;
    before.erase(std::remove(before.begin(), before.end(), node), before.end());
  }
  if (node->child) hip_destroy_graph(node->child);
  handles<GraphNode>().remove(node);
  return hip_note(kSuccess);
}

}  // extern "C"
