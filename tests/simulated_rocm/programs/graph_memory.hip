// Memory that graphs allocate and free, as nodes or in a capture, and the account of it.
#include "../host_runtime/check.h"
#include "later_graph_memory.h"

__global__ void add(int* x, int n) { x[threadIdx.x] += n; }

const size_t kBytes = 256;

size_t in_use(hipGraphMemAttributeType attribute) {
  size_t value = 99;
  return hipDeviceGetGraphMemAttribute(0, attribute, &value) ? 98 : value;
}
#define ACCOUNT(now, most)                                   \
  do {                                                       \
    CHECK(in_use(hipGraphMemAttrUsedMemCurrent) == now);     \
    CHECK(in_use(hipGraphMemAttrReservedMemCurrent) == now); \
    CHECK(in_use(hipGraphMemAttrUsedMemHigh) == most);       \
    CHECK(in_use(hipGraphMemAttrReservedMemHigh) == most);   \
  } while (0)

hipMemAllocNodeParams wanted() {
  hipMemAllocNodeParams params = {};
  params.bytesize = kBytes;
  params.poolProps.allocType = hipMemAllocationTypePinned;
  params.poolProps.location.type = hipMemLocationTypeDevice;
  return params;
}

int nodes() {
  hipGraph_t graph;
  hipGraphExec_t instance;
  hipGraphNode_t made, cleared, copied, freed, node;
  int host[64];
  OK(hipGraphCreate(&graph, 0));
  hipMemAllocNodeParams params = wanted(), read = {};
  OK(hipGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
  int* x = static_cast<int*>(params.dptr);
  CHECK(x);
  OK(hipGraphMemAllocNodeGetParams(made, &read));
  CHECK(read.dptr == x && read.bytesize == kBytes);
  hipMemsetParams fill = {};
  fill.dst = x;
  fill.elementSize = 4;
  fill.height = 1;
  fill.width = 64;
  fill.value = 9;
  OK(hipGraphAddMemsetNode(&cleared, graph, &made, 1, &fill));
  OK(hipGraphAddMemcpyNode1D(&copied, graph, &cleared, 1, host, x, kBytes, hipMemcpyDeviceToHost));
  OK(hipGraphAddMemFreeNode(&freed, graph, &copied, 1, x));
  void* pointer = nullptr;
  OK(hipGraphMemFreeNodeGetParams(freed, &pointer));
  CHECK(pointer == x);
  hipGraphNodeType type;
  OK(hipGraphNodeGetType(freed, &type));
  CHECK(type == hipGraphNodeTypeMemFree);
  ACCOUNT(0, 0);
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  for (int launch = 0; launch < 2; launch++) {
    host[63] = 0;
    OK(hipGraphLaunch(instance, nullptr));
    CHECK(host[63] == 9);
    ACCOUNT(0, kBytes);
  }
  CHECK(hipFree(x) == hipErrorInvalidValue);  // it is not in use

  params = wanted();
  params.bytesize = 0;
  CHECK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params) == hipErrorInvalidValue);
  params = wanted();
  params.poolProps.location.id = 1;
  CHECK(hipGraphAddMemAllocNode(&node, graph, nullptr, 0, &params) == hipErrorInvalidValue);
  CHECK(hipGraphAddMemFreeNode(&node, graph, nullptr, 0, nullptr) == hipErrorInvalidValue);
  CHECK(hipGraphAddMemFreeNode(&node, graph, nullptr, 0, host) == hipErrorInvalidValue);
  CHECK(hipGraphMemFreeNodeGetParams(made, &pointer) == hipErrorInvalidValue);
  OK(hipGraphDestroy(graph));
  OK(hipGraphExecDestroy(instance));
  CHECK(hipMemset(x, 0, 4) != hipSuccess);  // nothing can allocate it again
  return 0;
}

// What a graph does not free stays in use, also when the graph is gone.
int kept() {
  hipGraph_t graph;
  hipGraphExec_t instance;
  hipGraphNode_t made;
  OK(hipGraphCreate(&graph, 0));
  hipMemAllocNodeParams params = wanted();
  OK(hipGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  OK(hipGraphLaunch(instance, nullptr));
  CHECK(hipGraphLaunch(instance, nullptr) == hipErrorInvalidValue);  // it is in use already
  OK(hipGraphDestroy(graph));
  OK(hipGraphExecDestroy(instance));
  ACCOUNT(kBytes, kBytes);
  OK(hipMemset(params.dptr, 1, kBytes));
  OK(hipFree(params.dptr));
  CHECK(hipMemset(params.dptr, 1, kBytes) != hipSuccess);
  ACCOUNT(0, kBytes);
  size_t zero = 0, one = 1;
  CHECK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &one) == hipErrorInvalidValue);
  CHECK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemCurrent, &zero) ==
        hipErrorInvalidValue);
  OK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrUsedMemHigh, &zero));
  OK(hipDeviceSetGraphMemAttribute(0, hipGraphMemAttrReservedMemHigh, &zero));
  ACCOUNT(0, 0);
  return 0;
}

int captured() {
  hipStream_t stream;
  hipGraph_t graph;
  hipGraphExec_t instance;
  int *x, host[64];
  OK(hipStreamCreate(&stream));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  OK(hipMallocAsync(reinterpret_cast<void**>(&x), kBytes, stream));
  OK(hipMemsetAsync(x, 0, kBytes, stream));
  add<<<1, 64, 0, stream>>>(x, 4);
  OK(hipMemcpyAsync(host, x, kBytes, hipMemcpyDeviceToHost, stream));
  OK(hipFreeAsync(x, stream));
  OK(hipStreamEndCapture(stream, &graph));
  size_t count = 0;
  OK(hipGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 5);
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  for (int launch = 0; launch < 2; launch++) {
    host[5] = 0;
    OK(hipGraphLaunch(instance, stream));
    CHECK(host[5] == 4);
  }
  ACCOUNT(0, kBytes);
  OK(hipMallocAsync(reinterpret_cast<void**>(&x), kBytes, stream));  // no capture: at once
  ACCOUNT(0, kBytes);
  OK(hipMemsetAsync(x, 0, kBytes, stream));
  OK(hipFreeAsync(x, stream));
  CHECK(hipFreeAsync(x, stream) == hipErrorInvalidValue);
  return 0;
}

int main() {
  if (const int wrong = nodes()) return wrong;
  if (const int wrong = kept()) return wrong;
  return captured();
}
