// Graphs that a program builds: nodes, their order, parameters that change, clones and children.
#include "../host_runtime/check.h"

__global__ void add(int* x, int n) { x[threadIdx.x] += n; }
__global__ void twice(int* x) { x[threadIdx.x] *= 2; }

__device__ int table[64];
int calls = 0;
void count_call(void* data) { calls += *static_cast<int*>(data); }

hipKernelNodeParams kernel(void* function, void** args) {
  hipKernelNodeParams params = {};
  params.func = function;
  params.gridDim = dim3(1);
  params.blockDim = dim3(64);
  params.kernelParams = args;
  return params;
}

int main() {
  int *x, host[64], three = 3, five = 5;
  OK(hipMalloc(&x, sizeof host));
  for (int i = 0; i < 64; i++) host[i] = i;
  hipGraph_t graph;
  OK(hipGraphCreate(&graph, 0));
  CHECK(hipGraphCreate(&graph, 1) == hipErrorInvalidValue);
  OK(hipGraphCreate(&graph, 0));

  // x = (i + 3) * 2, whatever the order in which the nodes were added
  hipGraphNode_t copied, added, doubled, back, called, nothing;
  void *of_add[] = {&x, &three}, *of_twice[] = {&x};
  const auto add_params = kernel(reinterpret_cast<void*>(add), of_add);
  const auto twice_params = kernel(reinterpret_cast<void*>(twice), of_twice);
  OK(hipGraphAddKernelNode(&doubled, graph, nullptr, 0, &twice_params));
  OK(hipGraphAddKernelNode(&added, graph, nullptr, 0, &add_params));
  three = 100;  // arguments were copied
  OK(hipGraphAddMemcpyNode1D(&copied, graph, nullptr, 0, x, host, sizeof host, hipMemcpyHostToDevice));
  int result[64] = {};
  OK(hipGraphAddMemcpyNode1D(&back, graph, &doubled, 1, result, x, sizeof result,
                             hipMemcpyDeviceToHost));
  OK(hipGraphAddDependencies(graph, &added, &doubled, 1));
  OK(hipGraphAddDependencies(graph, &copied, &added, 1));
  CHECK(hipGraphAddDependencies(graph, &copied, &added, 1) == hipErrorInvalidValue);
  hipHostNodeParams host_params = {count_call, &five};
  OK(hipGraphAddHostNode(&called, graph, &back, 1, &host_params));
  OK(hipGraphAddEmptyNode(&nothing, graph, nullptr, 0));

  size_t count = 0;
  OK(hipGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 6);
  hipGraphNode_t list[8];
  count = 8;
  OK(hipGraphGetRootNodes(graph, list, &count));
  CHECK(count == 2 && list[0] == copied && list[1] == nothing && !list[2]);
  OK(hipGraphNodeGetDependencies(doubled, nullptr, &count));
  CHECK(count == 1);
  OK(hipGraphGetEdges(graph, nullptr, nullptr, &count));
  CHECK(count == 4);
  hipGraphNodeType type;
  OK(hipGraphNodeGetType(called, &type));
  CHECK(type == hipGraphNodeTypeHost);
  OK(hipGraphDestroyNode(nothing));
  CHECK(hipGraphDestroyNode(nothing) == hipErrorInvalidValue);

  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  hipGraphExec_t instance;
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  OK(hipGraphLaunch(instance, stream));
  OK(hipStreamSynchronize(stream));
  for (int i = 0; i < 64; i++) CHECK(result[i] == (i + 3) * 2);
  CHECK(calls == 5);

  // a change of the instance leaves the graph alone
  three = 4;
  OK(hipGraphExecKernelNodeSetParams(instance, added, &add_params));
  OK(hipGraphLaunch(instance, stream));
  for (int i = 0; i < 64; i++) CHECK(result[i] == (i + 4) * 2);
  hipGraph_t clone, parent;
  OK(hipGraphClone(&clone, graph));
  hipGraphNode_t found;
  OK(hipGraphNodeFindInClone(&found, added, clone));
  CHECK(found != added);
  three = 7;
  OK(hipGraphKernelNodeSetParams(found, &add_params));
  OK(hipGraphCreate(&parent, 0));
  hipGraphNode_t child, filled;
  OK(hipGraphAddChildGraphNode(&child, parent, nullptr, 0, clone));
  hipMemsetParams fill = {};
  fill.dst = x;
  fill.elementSize = 4;
  fill.height = 1;
  fill.width = 64;
  fill.value = 9;
  OK(hipGraphAddMemsetNode(&filled, parent, &child, 1, &fill));
  OK(hipGraphDestroy(clone));
  hipGraphExec_t second;
  OK(hipGraphInstantiate(&second, parent, nullptr, nullptr, 0));
  OK(hipGraphLaunch(second, stream));
  for (int i = 0; i < 64; i++) CHECK(result[i] == (i + 7) * 2);
  OK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) CHECK(host[i] == 9);

  hipGraphNode_t to_symbol;
  OK(hipGraphAddMemcpyNodeToSymbol(&to_symbol, parent, nullptr, 0, HIP_SYMBOL(table), host,
                                   sizeof host, 0, hipMemcpyHostToDevice));
  OK(hipGraphAddDependencies(parent, &filled, &to_symbol, 1));
  OK(hipGraphAddDependencies(parent, &to_symbol, &child, 1));
  hipGraphExec_t never;
  CHECK(hipGraphInstantiate(&never, parent, nullptr, nullptr, 0) == hipErrorInvalidValue);  // a cycle
  OK(hipGraphRemoveDependencies(parent, &to_symbol, &child, 1));
  OK(hipGraphInstantiate(&never, parent, nullptr, nullptr, 0));
  OK(hipGraphDestroy(parent));
  OK(hipGraphDestroy(graph));
  CHECK(hipGraphGetNodes(graph, nullptr, &count) == hipErrorInvalidValue);
  CHECK(hipGraphKernelNodeSetParams(added, &add_params) == hipErrorInvalidValue);
  OK(hipGraphLaunch(second, stream));  // instances outlive their graphs
  return 0;
}
