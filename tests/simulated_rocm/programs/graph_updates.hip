// Instantiated graphs: nodes that are switched off, other work for the same nodes, their text.
#include <cstdlib>
#include <string>

#include "../host_runtime/check.h"
#include "later_graph_updates.h"
__global__ void add(int* x, int n) { x[threadIdx.x] += n; }

hipGraphNode_t add_kernel(hipGraph_t graph, const hipGraphNode_t* before, size_t count, int* x,
                          int n) {
  void* arguments[] = {&x, &n};
  hipKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(add);
  params.gridDim = dim3(1);
  params.blockDim = dim3(64);
  params.kernelParams = arguments;
  hipGraphNode_t node;
  if (hipGraphAddKernelNode(&node, graph, before, count, &params) != hipSuccess) abort();
  return node;
}
int first_of(int* x) {
  int host = 0;
  if (hipMemcpy(&host, x, sizeof host, hipMemcpyDeviceToHost) != hipSuccess) abort();
  return host;
}
int main() {
  int* x;
  OK(hipMalloc(&x, 64 * sizeof(int)));
  OK(hipMemset(x, 0, 64 * sizeof(int)));
  hipGraph_t graph, other, child, shorter;
  for (hipGraph_t* one : {&graph, &other, &child, &shorter}) OK(hipGraphCreate(one, 0));
  const hipGraphNode_t one = add_kernel(graph, nullptr, 0, x, 1);
  const hipGraphNode_t ten = add_kernel(graph, &one, 1, x, 10);
  add_kernel(child, nullptr, 0, x, 100);
  hipGraphNode_t inner, empty;
  OK(hipGraphAddChildGraphNode(&inner, graph, &ten, 1, child));
  OK(hipGraphAddEmptyNode(&empty, graph, nullptr, 0));

  hipGraphInstantiateParams params = {one, 0, 7, nullptr};
  hipGraphExec_t instance;
  OK(hipGraphInstantiateWithParams(&instance, graph, &params));
  CHECK(params.errNode_out == nullptr && params.result_out == 0);
  CHECK(hipGraphInstantiateWithParams(&instance, graph, nullptr) == hipErrorInvalidValue);
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(first_of(x) == 111);

  unsigned enabled = 9;
  OK(hipGraphNodeGetEnabled(instance, ten, &enabled));
  CHECK(enabled == 1);
  OK(hipGraphNodeSetEnabled(instance, ten, 0));
  OK(hipGraphNodeGetEnabled(instance, ten, &enabled));
  CHECK(enabled == 0);
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(first_of(x) == 111 + 101);
  OK(hipGraphNodeSetEnabled(instance, ten, 1));
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(first_of(x) == 2 * 111 + 101);
  CHECK(hipGraphNodeSetEnabled(instance, empty, 0) == hipErrorInvalidValue);
  CHECK(hipGraphNodeSetEnabled(instance, nullptr, 0) == hipErrorInvalidValue);
  CHECK(hipGraphNodeGetEnabled(instance, ten, nullptr) == hipErrorInvalidValue);

  OK(hipMemset(x, 0, 64 * sizeof(int)));
  OK(hipGraphDestroy(child));
  OK(hipGraphCreate(&child, 0));
  add_kernel(child, nullptr, 0, x, 500);
  OK(hipGraphExecChildGraphNodeSetParams(instance, inner, child));
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(first_of(x) == 511);

  const hipGraphNode_t two = add_kernel(other, nullptr, 0, x, 2);
  const hipGraphNode_t twenty = add_kernel(other, &two, 1, x, 20);
  OK(hipGraphAddChildGraphNode(&inner, other, &twenty, 1, child));
  hipGraphNode_t wrong = one;
  hipGraphExecUpdateResult result;
  OK(hipMemset(x, 0, 64 * sizeof(int)));
  OK(hipGraphExecUpdate(instance, other, &wrong, &result));
  CHECK(wrong == nullptr && result == hipGraphExecUpdateSuccess);
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(first_of(x) == 522);
  add_kernel(shorter, nullptr, 0, x, 3);
  CHECK(hipGraphExecUpdate(instance, shorter, &wrong, &result) == hipErrorGraphExecUpdateFailure);
  CHECK(result == hipGraphExecUpdateErrorTopologyChanged);
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(first_of(x) == 2 * 522);

  hipMemcpy3DParms copy = {}, read = {};
  int host[64] = {};
  copy.srcPtr = make_hipPitchedPtr(host, sizeof host, 64, 1);
  copy.dstPtr = make_hipPitchedPtr(x, sizeof host, 64, 1);
  copy.extent = make_hipExtent(sizeof host, 1, 1);
  copy.kind = hipMemcpyHostToDevice;
  hipGraphNode_t moved;
  OK(hipGraphAddMemcpyNode(&moved, graph, nullptr, 0, &copy));
  OK(hipGraphMemcpyNodeGetParams(moved, &read));
  CHECK(read.dstPtr.ptr == x && read.extent.width == sizeof host);
  CHECK(hipGraphMemcpyNodeGetParams(one, &read) == hipErrorInvalidValue);

  OK(hipGraphDebugDotPrint(graph, "graph.dot", 0));
  FILE* file = fopen("graph.dot", "r");
  CHECK(file != nullptr);
  std::string text(4096, 0);
  text.resize(fread(&text[0], 1, text.size(), file));
  fclose(file);
  remove("graph.dot");
  CHECK(text.rfind("digraph", 0) == 0 && text.find("memcpy") != std::string::npos);
  CHECK(text.find("->") != std::string::npos);
  CHECK(hipGraphDebugDotPrint(graph, "/no/such/folder/graph.dot", 0) == hipErrorOperatingSystem);
  return 0;
}
