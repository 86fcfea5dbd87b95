// Calls on the default stream of a thread do what those on the other one do.
#include "check.h"

extern "C" {
hipError_t hipMemsetAsync_spt(void*, int, size_t, hipStream_t);
hipError_t hipMemset2DAsync_spt(void*, size_t, int, size_t, size_t, hipStream_t);
hipError_t hipMemcpyAsync_spt(void*, const void*, size_t, hipMemcpyKind, hipStream_t);
hipError_t hipEventRecord_spt(hipEvent_t, hipStream_t);
hipError_t hipStreamQuery_spt(hipStream_t);
hipError_t hipDeviceGetGraphMemAttribute(int, int, void*);
hipError_t hipDeviceSetGraphMemAttribute(int, int, void*);
hipError_t hipDeviceGraphMemTrim(int);
}

int main() {
  char* device = nullptr;
  OK(hipMalloc(reinterpret_cast<void**>(&device), 64));
  OK(hipMemsetAsync_spt(device, 7, 64, nullptr));
  OK(hipMemset2DAsync_spt(device, 16, 9, 4, 2, nullptr));
  char host[64] = {};
  OK(hipMemcpyAsync_spt(host, device, 64, hipMemcpyDeviceToHost, nullptr));
  CHECK(host[0] == 9 && host[3] == 9 && host[4] == 7 && host[16] == 9 && host[63] == 7);
  hipEvent_t event;
  OK(hipEventCreate(&event));
  OK(hipEventRecord_spt(event, nullptr));
  OK(hipEventSynchronize(event));
  OK(hipStreamQuery_spt(nullptr));

  uint64_t bytes = 1, none = 0;
  OK(hipDeviceGraphMemTrim(0));
  OK(hipDeviceGetGraphMemAttribute(0, 0, &bytes));
  CHECK(bytes == 0);
  OK(hipDeviceSetGraphMemAttribute(0, 1, &none));
  CHECK(hipDeviceSetGraphMemAttribute(0, 0, &none) == hipErrorInvalidValue);
  CHECK(hipDeviceGetGraphMemAttribute(0, 4, &bytes) == hipErrorInvalidValue);
  CHECK(hipDeviceGetGraphMemAttribute(0, 0, nullptr) == hipErrorInvalidValue);
  CHECK(hipDeviceGraphMemTrim(1) == hipErrorInvalidDevice);
  return 0;
}
