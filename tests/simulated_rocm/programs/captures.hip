// Captures of several streams, and nodes that a program puts into a capture.
#include "../host_runtime/check.h"

__global__ void add(int* x, int n) { x[threadIdx.x] += n; }
__global__ void sum(int* z, int* x, int* y) { z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }

const auto kMode = hipStreamCaptureModeGlobal;

struct Streams {
  hipStream_t first, second, third;
  hipEvent_t fork, second_done, third_done;
};

// Two streams fill x and y, then the first one adds these.
int fork_and_join(const Streams& s, int* x, int* y, int* z) {
  OK(hipStreamBeginCapture(s.first, kMode));
  OK(hipEventRecord(s.fork, s.first));
  OK(hipStreamWaitEvent(s.second, s.fork, 0));
  OK(hipStreamWaitEvent(s.third, s.fork, 0));
  hipStreamCaptureStatus status;
  OK(hipStreamIsCapturing(s.second, &status));
  CHECK(status == hipStreamCaptureStatusActive);
  OK(hipMemsetAsync(y, 0, 256, s.third));
  add<<<1, 64, 0, s.third>>>(y, 5);
  OK(hipEventRecord(s.third_done, s.third));
  OK(hipMemsetAsync(x, 0, 256, s.second));
  OK(hipEventRecord(s.second_done, s.second));
  OK(hipStreamWaitEvent(s.first, s.second_done, 0));
  OK(hipStreamWaitEvent(s.first, s.third_done, 0));
  sum<<<1, 64, 0, s.first>>>(z, x, y);
  hipGraph_t graph;
  CHECK(hipStreamEndCapture(s.second, &graph) == hipErrorStreamCaptureUnmatched);
  OK(hipStreamEndCapture(s.first, &graph));
  OK(hipStreamIsCapturing(s.second, &status));
  CHECK(status == hipStreamCaptureStatusNone);

  size_t nodes = 0, edges = 0, roots = 0;
  OK(hipGraphGetNodes(graph, nullptr, &nodes));
  OK(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
  OK(hipGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(nodes == 4 && edges == 3 && roots == 2);  // events are no nodes
  hipGraphExec_t instance;
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  OK(hipMemset(z, 0, 256));
  OK(hipGraphLaunch(instance, s.first));
  int host[64];
  OK(hipMemcpy(host, z, 256, hipMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 5);
  OK(hipGraphExecDestroy(instance));
  OK(hipGraphDestroy(graph));
  OK(hipStreamWaitEvent(s.third, s.second_done, 0));  // of a capture that has ended
  OK(hipStreamSynchronize(s.third));
  return 0;
}

int wrong_ends(const Streams& s, int* x) {
  hipGraph_t graph, other;
  OK(hipStreamBeginCapture(s.first, kMode));
  OK(hipEventRecord(s.fork, s.first));
  OK(hipStreamWaitEvent(s.second, s.fork, 0));
  add<<<1, 64, 0, s.second>>>(x, 1);
  CHECK(hipStreamEndCapture(s.first, &graph) == hipErrorStreamCaptureUnjoined);
  CHECK(!graph);
  CHECK(hipStreamEndCapture(s.first, &graph) == hipErrorIllegalState);
  OK(hipStreamSynchronize(s.second));

  OK(hipStreamBeginCapture(s.first, kMode));
  OK(hipStreamBeginCapture(s.second, kMode));
  OK(hipEventRecord(s.fork, s.first));
  CHECK(hipStreamWaitEvent(s.second, s.fork, 0) == hipErrorStreamCaptureMerge);
  OK(hipStreamEndCapture(s.first, &graph));
  OK(hipStreamEndCapture(s.second, &other));
  CHECK(graph != other);

  OK(hipStreamBeginCapture(s.first, kMode));
  hipStreamCaptureStatus status;
  unsigned long long number;
  OK(hipStreamGetCaptureInfo_v2(s.first, &status, &number, &graph, nullptr, nullptr));
  OK(hipGraphDestroy(graph));
  CHECK(hipMemsetAsync(x, 0, 4, s.first) == hipErrorStreamCaptureInvalidated);
  CHECK(hipStreamEndCapture(s.first, &graph) == hipErrorStreamCaptureInvalidated);
  return 0;
}

int own_nodes(const Streams& s, int* x) {
  hipStreamCaptureStatus status;
  hipGraph_t graph;
  const hipGraphNode_t* last;
  size_t count = 9;
  unsigned long long number;
  CHECK(hipStreamUpdateCaptureDependencies(s.first, nullptr, 0, 0) == hipErrorIllegalState);
  CHECK(hipStreamGetCaptureInfo_v2(s.first, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        hipErrorInvalidValue);
  OK(hipStreamGetCaptureInfo_v2(s.first, &status, &number, &graph, &last, &count));
  CHECK(status == hipStreamCaptureStatusNone && count == 9);

  int host[64] = {};
  OK(hipStreamBeginCapture(s.first, kMode));
  OK(hipMemsetAsync(x, 0, 256, s.first));
  OK(hipStreamGetCaptureInfo_v2(s.first, &status, &number, &graph, &last, &count));
  CHECK(status == hipStreamCaptureStatusActive && graph && count == 1);
  hipGraphNode_t copied, cleared = last[0], foreign;
  hipGraph_t other;
  OK(hipGraphAddMemcpyNode1D(&copied, graph, last, count, host, x, 256, hipMemcpyDeviceToHost));
  OK(hipGraphCreate(&other, 0));
  OK(hipGraphAddEmptyNode(&foreign, other, nullptr, 0));
  CHECK(hipStreamUpdateCaptureDependencies(s.first, &foreign, 1, 0) == hipErrorInvalidValue);
  CHECK(hipStreamUpdateCaptureDependencies(s.first, nullptr, 1, 0) == hipErrorInvalidValue);
  CHECK(hipStreamUpdateCaptureDependencies(s.first, &copied, 1, 7) == hipErrorInvalidValue);
  OK(hipStreamUpdateCaptureDependencies(s.first, &copied, 1, hipStreamAddCaptureDependencies));
  OK(hipStreamGetCaptureInfo_v2(s.first, &status, nullptr, nullptr, &last, &count));
  CHECK(count == 2 && last[0] == cleared && last[1] == copied);
  OK(hipStreamUpdateCaptureDependencies(s.first, &copied, 1, hipStreamSetCaptureDependencies));
  add<<<1, 64, 0, s.first>>>(x, 3);
  OK(hipStreamEndCapture(s.first, &graph));

  size_t edges = 0;
  OK(hipGraphGetEdges(graph, nullptr, nullptr, &edges));
  CHECK(edges == 2);  // a chain: the fill, the copy, the kernel
  hipGraphExec_t instance;
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  host[0] = 7;
  OK(hipGraphLaunch(instance, s.first));
  CHECK(host[0] == 0);
  OK(hipMemcpy(host, x, 256, hipMemcpyDeviceToHost));
  for (int value : host) CHECK(value == 3);
  return 0;
}

int main() {
  int *x, *y, *z;
  for (int** memory : {&x, &y, &z}) OK(hipMalloc(memory, 256));
  Streams s;
  for (hipStream_t* stream : {&s.first, &s.second, &s.third}) OK(hipStreamCreate(stream));
  for (hipEvent_t* event : {&s.fork, &s.second_done, &s.third_done}) OK(hipEventCreate(event));
  if (const int wrong = fork_and_join(s, x, y, z)) return wrong;
  if (const int wrong = wrong_ends(s, x)) return wrong;
  return own_nodes(s, x);
}
