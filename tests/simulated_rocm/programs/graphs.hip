// Captures of streams and graphs: what is recorded does not run, and runs at each launch.
#include "../host_runtime/check.h"
__global__ void add(int* x, int n) { x[threadIdx.x] += n; }
int main() {
  int* x;
  int host[64] = {}, one = 1;
  OK(hipMalloc(&x, sizeof host));
  OK(hipMemset(x, 0, sizeof host));
  hipStream_t stream, other;
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  OK(hipStreamCreate(&other));
  hipEvent_t start, stop, inside;
  for (hipEvent_t* event : {&start, &stop, &inside}) OK(hipEventCreate(event));

  hipStreamCaptureStatus state;
  hipGraph_t graph;
  CHECK(hipStreamEndCapture(stream, &graph) == hipErrorIllegalState);
  CHECK(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal) ==
        hipErrorStreamCaptureUnsupported);
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
  CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed) == hipErrorIllegalState);
  OK(hipStreamIsCapturing(stream, &state));
  CHECK(state == hipStreamCaptureStatusActive);
  OK(hipStreamIsCapturing(other, &state));
  CHECK(state == hipStreamCaptureStatusNone);
  int n = 2;
  add<<<1, 64, 0, stream>>>(x, n);
  n = 100;  // arguments were copied
  OK(hipMemsetAsync(x, 1, 4, stream));
  add<<<1, 64, 0, stream>>>(x, one);
  OK(hipEventRecord(inside, stream));
  OK(hipStreamWaitEvent(other, inside, 0));  // without work of its own
  CHECK(hipStreamSynchronize(stream) == hipErrorStreamCaptureUnsupported);
  OK(hipStreamEndCapture(stream, &graph));
  OK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) CHECK(host[i] == 0);

  hipGraphExec_t instance;
  OK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0));
  OK(hipGraphDestroy(graph));
  CHECK(hipGraphInstantiate(&instance, graph, nullptr, nullptr, 0) == hipErrorInvalidValue);
  OK(hipEventRecord(start, stream));
  for (int i = 0; i < 3; i++) OK(hipGraphLaunch(instance, stream));
  OK(hipEventRecord(stop, stream));
  OK(hipStreamSynchronize(stream));
  float milliseconds = 0;
  OK(hipEventElapsedTime(&milliseconds, start, stop));
  CHECK(milliseconds > 0);
  OK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  CHECK(host[0] == 0x01010101 + 1);
  for (int i = 1; i < 64; i++) CHECK(host[i] == 9);
  OK(hipGraphExecDestroy(instance));
  CHECK(hipGraphLaunch(instance, stream) == hipErrorInvalidValue);
  CHECK(hipGraphDestroy(graph) == hipErrorInvalidValue);
  return 0;
}
