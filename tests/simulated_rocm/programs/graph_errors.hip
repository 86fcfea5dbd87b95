// Nodes with arguments that do not fit are refused when they are made, not when they run.
#include "../host_runtime/check.h"

#define REFUSED(call) CHECK((call) == hipErrorInvalidValue)

__global__ void nothing() {}
__device__ int table[16];
int unknown[16];

int copies(hipGraph_t graph, int* x, int* host) {  // x has 16 numbers
  hipGraphNode_t node, good;
  const auto up = hipMemcpyHostToDevice;
  OK(hipGraphAddMemcpyNode1D(&good, graph, nullptr, 0, x, host, 64, up));
  OK(hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, host, host + 32, 128, hipMemcpyDefault));
  REFUSED(hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, x, host, 68, up));
  REFUSED(hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, x + 1, host, 64, up));
  REFUSED(hipGraphAddMemcpyNode1D(&node, graph, nullptr, 0, host, x, 68, hipMemcpyDefault));
  REFUSED(hipGraphMemcpyNodeSetParams1D(good, x, host, 68, up));
  hipGraphExec_t instance;
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  REFUSED(hipGraphExecMemcpyNodeSetParams1D(instance, good, x, host, 68, up));
  OK(hipGraphExecMemcpyNodeSetParams1D(instance, good, x, host, 60, up));

  hipMemcpy3DParms planes = {};
  planes.srcPtr = make_hipPitchedPtr(host, 16, 4, 2);
  planes.dstPtr = make_hipPitchedPtr(x, 16, 4, 2);
  planes.extent = make_hipExtent(16, 2, 2);
  planes.kind = up;
  OK(hipGraphAddMemcpyNode(&good, graph, nullptr, 0, &planes));
  planes.dstPos.x = 4;
  REFUSED(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &planes));
  REFUSED(hipGraphMemcpyNodeSetParams(good, &planes));
  planes.dstPos.x = 0;
  planes.extent.depth = 3;
  REFUSED(hipGraphAddMemcpyNode(&node, graph, nullptr, 0, &planes));
  return 0;
}

int fills(hipGraph_t graph, int* x) {
  hipGraphNode_t node, good;
  hipMemsetParams params = {};
  params.dst = x;
  params.elementSize = 4;
  params.height = 2;
  params.pitch = 32;
  params.width = 8;
  OK(hipGraphAddMemsetNode(&good, graph, nullptr, 0, &params));
  params.height = 3;
  REFUSED(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  REFUSED(hipGraphMemsetNodeSetParams(good, &params));
  params.height = 1;
  params.width = 17;
  REFUSED(hipGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  return 0;
}

int symbols(hipGraph_t graph, int* x, int* host) {
  hipGraphNode_t to, from, node;
  const auto up = hipMemcpyHostToDevice, down = hipMemcpyDeviceToHost;
  const void* symbol = HIP_SYMBOL(table);
  OK(hipGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, symbol, host, 64, 0, up));
  OK(hipGraphAddMemcpyNodeFromSymbol(&from, graph, &to, 1, host + 16, symbol, 64, 0, down));
  REFUSED(hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, host, 64, 4, up));
  REFUSED(hipGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, host, symbol, 68, 0, down));
  REFUSED(hipGraphMemcpyNodeSetParamsToSymbol(to, symbol, host, 68, 0, up));
  REFUSED(hipGraphMemcpyNodeSetParamsFromSymbol(from, host, symbol, 64, 4, down));
  CHECK(hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, symbol, host, 64, 0, down) ==
        hipErrorInvalidMemcpyDirection);
  CHECK(hipGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, unknown, host, 64, 0, up) ==
        hipErrorInvalidSymbol);

  hipGraphExec_t instance;
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  REFUSED(hipGraphExecMemcpyNodeSetParamsToSymbol(instance, to, symbol, host, 68, 0, up));
  OK(hipGraphExecMemcpyNodeSetParamsToSymbol(instance, to, symbol, host + 32, 32, 32, up));
  OK(hipGraphExecMemcpyNodeSetParamsFromSymbol(instance, from, host + 16, symbol, 32, 32, down));
  for (int i = 0; i < 64; i++) host[i] = i;
  OK(hipGraphLaunch(instance, nullptr));
  for (int i = 0; i < 8; i++) CHECK(host[16 + i] == 32 + i);
  CHECK(host[24] == 24);
  return 0;
}

#if HIP_VERSION_MAJOR >= 6
#define Attribute hipLaunchAttributeValue
#else
#define Attribute hipKernelNodeAttrValue
#endif

int attributes(hipGraph_t graph) {
  hipGraphNode_t node, other, empty;
  hipKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(nothing);
  params.gridDim = params.blockDim = dim3(1);
  OK(hipGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  OK(hipGraphAddKernelNode(&other, graph, nullptr, 0, &params));
  OK(hipGraphAddEmptyNode(&empty, graph, nullptr, 0));
  const auto window = hipKernelNodeAttributeAccessPolicyWindow;
  const auto together = hipKernelNodeAttributeCooperative;
  Attribute value = {}, read = {};
  value.accessPolicyWindow.hitRatio = 0.5f;
  value.accessPolicyWindow.hitProp = hipAccessPropertyPersisting;
  OK(hipGraphKernelNodeSetAttribute(node, window, &value));
  OK(hipGraphKernelNodeGetAttribute(node, window, &read));
  CHECK(read.accessPolicyWindow.hitRatio == 0.5f);
  CHECK(read.accessPolicyWindow.hitProp == hipAccessPropertyPersisting);
  value.cooperative = 1;
  OK(hipGraphKernelNodeSetAttribute(node, together, &value));
  OK(hipGraphKernelNodeGetAttribute(other, together, &read));
  CHECK(read.cooperative == 0);
  REFUSED(hipGraphKernelNodeSetAttribute(empty, together, &value));
  REFUSED(hipGraphKernelNodeSetAttribute(node, static_cast<decltype(window)>(99), &value));
  REFUSED(hipGraphKernelNodeSetAttribute(node, window, nullptr));
  value = {};
  value.accessPolicyWindow.hitRatio = 1.5f;
  REFUSED(hipGraphKernelNodeSetAttribute(node, window, &value));
  value.accessPolicyWindow.hitRatio = 1.f;
  value.accessPolicyWindow.num_bytes = 1;  // the device keeps no such window
  REFUSED(hipGraphKernelNodeSetAttribute(node, window, &value));
  return 0;
}

int main() {
  int *x, host[64] = {};
  OK(hipMalloc(&x, 64));
  int wrong = 0;
  for (int part = 0; part < 4 && !wrong; part++) {
    hipGraph_t graph;
    OK(hipGraphCreate(&graph, 0));
    wrong = part == 0   ? copies(graph, x, host)
            : part == 1 ? fills(graph, x)
            : part == 2 ? symbols(graph, x, host)
                        : attributes(graph);
    OK(hipGraphDestroy(graph));
  }
  return wrong;
}
