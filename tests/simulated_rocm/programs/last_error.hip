// The last error: calls until HIP 6 replace it, also those that succeed. HIP 7 keeps it.
#include "../host_runtime/check.h"

__global__ void nothing() {}

int main(int count, char**) {
  const hipError_t later = count > 1 ? hipErrorInvalidValue : hipSuccess;
  float* x;
  CHECK(hipMalloc(nullptr, 4) == hipErrorInvalidValue);
  CHECK(hipPeekAtLastError() == hipErrorInvalidValue);
  CHECK(hipPeekAtLastError() == hipErrorInvalidValue);
  CHECK(hipGetLastError() == hipErrorInvalidValue);
  CHECK(hipGetLastError() == hipSuccess);

  CHECK(hipMalloc(nullptr, 4) == hipErrorInvalidValue);
  OK(hipMalloc(&x, 256));  // a call that works
  CHECK(hipGetLastError() == later);

  CHECK(hipMalloc(nullptr, 4) == hipErrorInvalidValue);
  nothing<<<1, 1>>>();
  CHECK(hipGetLastError() == later);

  CHECK(hipMalloc(nullptr, 4) == hipErrorInvalidValue);
  int device;
  OK(hipGetDevice(&device));  // a query
  CHECK(hipGetLastError() == later);

  hipStream_t stream;
  hipGraph_t graph;
  OK(hipStreamCreate(&stream));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  CHECK(hipMalloc(nullptr, 4) == hipErrorInvalidValue);
  OK(hipMemsetAsync(x, 0, 256, stream));  // only recorded
  CHECK(hipGetLastError() == later);
  OK(hipStreamEndCapture(stream, &graph));
  return 0;
}
