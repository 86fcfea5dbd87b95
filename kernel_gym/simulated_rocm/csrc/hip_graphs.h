// Graphs: nodes with an order, as a program builds them or a capture records them.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hip_handles.h"
#include "hip_runtime.h"

using Work = std::function<int()>;

// hipGraphNodeType of HIP 6.
enum NodeType : int {
  kKernelNode = 0,
  kMemcpyNode = 1,
  kMemsetNode = 2,
  kHostNode = 3,
  kGraphNode = 4,
  kEmptyNode = 5,
  kWaitEventNode = 6,
  kEventRecordNode = 7,
};

struct Graph;
struct GraphNode {
  int type;
  Work work;
  std::string params;  // as the program gave them, for queries
  Graph* graph;
  std::vector<GraphNode*> before;
  Graph* child = nullptr;          // of a node of type kGraphNode, which owns it
  const GraphNode* origin = nullptr;  // in the graph that was cloned
  std::map<int, std::string> attributes = {};  // of a kernel, by their number
};
struct Graph {
  std::vector<GraphNode*> nodes;  // in the order in which they were added
  bool is_child = false;          // a node owns it
};
struct GraphInstance {
  std::vector<std::pair<const GraphNode*, Work>> work;  // in an order that the edges allow
  std::vector<int> types;                               // of the nodes of this work
  std::set<const GraphNode*> disabled;                  // nodes that launches leave out
};

// Adds a node behind others of its graph; null with a wrong graph or dependency.
GraphNode* hip_add_node(Graph* graph, GraphNode* const* before, size_t count, GraphNode node);
// The same for a call of the program; an error, which it notes.
int hip_add_checked_node(GraphNode** result, Graph* graph, GraphNode* const* before, size_t count,
                         GraphNode node);
Graph* hip_clone_graph(const Graph& graph, bool is_child);
void hip_destroy_graph(Graph* graph);
// Lists all work of a graph; false if its edges have a cycle.
bool hip_order(const Graph& graph, std::vector<std::pair<const GraphNode*, Work>>* result);
// Allocates and frees memory in the order of a stream. For a captured one these are nodes.
int hip_queue_allocation(void** pointer, size_t size, const void* stream);
int hip_queue_free(void* pointer, const void* stream);
