// Handles that no call has made, or that are destroyed already, are refused and never followed.
#include "check.h"

#define DESTROYED(call) CHECK((call) == hipErrorContextIsDestroyed)
#define REFUSED(call) CHECK((call) == hipErrorInvalidHandle)

__global__ void work(float* x) { x[threadIdx.x] += 1.f; }

template <class T>
T made_up(uintptr_t address) {
  return reinterpret_cast<T>(address);
}

int streams(float* x, hipEvent_t event, hipStream_t bad) {
  unsigned flags;
  int number;
  float host[64];
  DESTROYED(hipStreamDestroy(bad));
  DESTROYED(hipStreamSynchronize(bad));
  DESTROYED(hipStreamQuery(bad));
  DESTROYED(hipStreamGetFlags(bad, &flags));
  DESTROYED(hipStreamGetPriority(bad, &number));
  DESTROYED(hipStreamWaitEvent(bad, event, 0));
  DESTROYED(hipEventRecord(event, bad));
  DESTROYED(hipMemcpyAsync(host, x, sizeof host, hipMemcpyDeviceToHost, bad));
  DESTROYED(hipMemsetAsync(x, 0, 256, bad));
  DESTROYED(hipLaunchKernel(reinterpret_cast<void*>(work), 1, 64, nullptr, 0, bad));
  return 0;
}
int events(hipEvent_t good, hipEvent_t bad) {
  float milliseconds;
  OK(hipEventRecord(good, nullptr));
  REFUSED(hipEventRecord(bad, nullptr));
  REFUSED(hipEventSynchronize(bad));
  REFUSED(hipEventQuery(bad));
  REFUSED(hipEventElapsedTime(&milliseconds, good, bad));
  REFUSED(hipEventElapsedTime(&milliseconds, bad, good));
  REFUSED(hipStreamWaitEvent(nullptr, bad, 0));
  CHECK(hipEventDestroy(bad) == (bad ? hipErrorContextIsDestroyed : hipErrorInvalidHandle));
  return 0;
}
int modules(hipModule_t bad) {
  hipFunction_t function;
  void* pointer;
  size_t bytes;
  REFUSED(hipModuleGetFunction(&function, bad, "work"));
  REFUSED(hipModuleGetGlobal(&pointer, &bytes, bad, "table"));
  REFUSED(hipModuleUnload(bad));
  return 0;
}
int functions(hipFunction_t bad) {
  int number;
  void* args[] = {nullptr};
  REFUSED(hipModuleLaunchKernel(bad, 1, 1, 1, 64, 1, 1, 0, nullptr, args, nullptr));
  REFUSED(hipFuncGetAttribute(&number, HIP_FUNC_ATTRIBUTE_NUM_REGS, bad));
  CHECK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&number, bad, 64, 0) ==
        hipErrorInvalidDeviceFunction);
  return 0;
}

int main() {
  float* x;
  OK(hipMalloc(&x, 256));
  hipStream_t stream;
  hipEvent_t event, good;
  OK(hipStreamCreate(&stream));
  OK(hipStreamDestroy(stream));
  OK(hipEventCreate(&event));
  OK(hipEventCreate(&good));
  float milliseconds;
  REFUSED(hipEventElapsedTime(&milliseconds, event, event));  // never recorded
  OK(hipEventDestroy(event));
  REFUSED(hipStreamDestroy(nullptr));
  for (hipStream_t bad : {stream, made_up<hipStream_t>(0x1234), made_up<hipStream_t>(~0ull)}) {
    if (int line = streams(x, good, bad)) return line;
  }
  for (hipEvent_t bad : {event, made_up<hipEvent_t>(0), made_up<hipEvent_t>(0x1234)}) {
    if (int line = events(good, bad)) return line;
  }
  for (uintptr_t bad : {uintptr_t{0}, uintptr_t{0x1234}, reinterpret_cast<uintptr_t>(&stream)}) {
    if (int line = modules(made_up<hipModule_t>(bad))) return line;
    if (int line = functions(made_up<hipFunction_t>(bad))) return line;
  }
  CHECK(hipGetLastError() != hipSuccess);
  OK(hipDeviceSynchronize());
  return 0;
}
