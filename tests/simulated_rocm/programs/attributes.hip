// Attributes agree with the properties, errors have names, and wrong arguments are refused.
#include <climits>

#include "../host_runtime/check.h"

__global__ void stamp(long long* clock) { *clock = wall_clock64(); }
__global__ void nothing() {}

int attribute(hipDeviceAttribute_t number) {
  int value = -1;
  return hipDeviceGetAttribute(&value, number, 0) ? -2 : value;
}

int main() {
  hipDeviceProp_t properties;
  OK(hipGetDeviceProperties(&properties, 0));
  CHECK(attribute(hipDeviceAttributeMaxSharedMemoryPerMultiprocessor) ==
        static_cast<int>(properties.maxSharedMemoryPerMultiProcessor));
  CHECK(attribute(hipDeviceAttributeMaxSharedMemoryPerBlock) ==
        static_cast<int>(properties.sharedMemPerBlock));
  CHECK(attribute(hipDeviceAttributeMaxRegistersPerMultiprocessor) == properties.regsPerBlock);
  CHECK(attribute(hipDeviceAttributeMaxBlocksPerMultiProcessor) == 32);
  CHECK(attribute(hipDeviceAttributeMaxThreadsDim) == properties.maxThreadsDim[0]);
  CHECK(attribute(static_cast<hipDeviceAttribute_t>(84)) > 0);   // global memory
  CHECK(attribute(static_cast<hipDeviceAttribute_t>(88)) == 1);  // pools
  CHECK(attribute(static_cast<hipDeviceAttribute_t>(-1)) == -2);

  CHECK(!std::strcmp(hipGetErrorName(hipErrorContextIsDestroyed), "hipErrorContextIsDestroyed"));
  CHECK(!std::strcmp(hipGetErrorName(hipErrorCooperativeLaunchTooLarge),
                     "hipErrorCooperativeLaunchTooLarge"));
  CHECK(!std::strcmp(hipGetErrorName(static_cast<hipError_t>(12345)), "hipErrorUnknown"));

  void *managed, *pinned, *device, *pointer;
  hipPointerAttribute_t facts;
  OK(hipMallocManaged(&managed, 4096));
  OK(hipHostMalloc(&pinned, 4096, hipHostMallocPortable));
  OK(hipMalloc(&device, 4096));
  OK(hipPointerGetAttributes(&facts, managed));
  CHECK(facts.isManaged == 1);
  OK(hipPointerGetAttributes(&facts, pinned));
  CHECK(facts.isManaged == 0 && facts.allocationFlags == hipHostMallocPortable);
  CHECK(facts.memoryType == hipMemoryTypeHost);
  OK(hipPointerGetAttributes(&facts, device));
  CHECK(facts.memoryType == hipMemoryTypeDevice);

  constexpr auto kWrong = hipErrorInvalidValue;
  int on_stack = 0;
  unsigned flags = 0;
  hipEvent_t event, plain;
  hipStream_t stream;
  CHECK(hipInit(1) == kWrong);
  CHECK(hipHostFree(device) == kWrong);
  CHECK(hipHostMalloc(&pointer, 64, UINT_MAX) == kWrong);
  CHECK(hipMallocManaged(&pointer, 1024, 145) == kWrong);
  CHECK(hipHostGetFlags(&flags, &on_stack) == kWrong);
  CHECK(hipStreamCreateWithFlags(&stream, 0xff) == kWrong);
  CHECK(hipEventCreateWithFlags(&event, 0xffff) == kWrong);
  CHECK(hipMemAdvise(managed, 1 << 20, hipMemAdviseSetReadMostly, 0) == kWrong);
  OK(hipMemAdvise(managed, 4096, hipMemAdviseSetReadMostly, 0));
  CHECK(hipMemPrefetchAsync(managed, 4096, -2, nullptr) == hipErrorInvalidDevice);
  CHECK(hipMemcpy2D(device, 32, pinned, 64, 64, 4, hipMemcpyHostToDevice) ==
        hipErrorInvalidPitchValue);
  OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  OK(hipEventCreate(&plain));
  OK(hipEventRecord(event, nullptr));
  OK(hipEventRecord(plain, nullptr));
  CHECK(hipStreamWaitEvent(nullptr, event, 0xff) == kWrong);
  float milliseconds;
  CHECK(hipEventElapsedTime(&milliseconds, event, plain) == hipErrorInvalidHandle);
  long long* clocks = static_cast<long long*>(managed);
  stamp<<<1, 1>>>(clocks);
  OK(hipDeviceSynchronize());
  CHECK(hipLaunchCooperativeKernel(reinterpret_cast<void*>(nothing), dim3(1 << 20), dim3(1024),
                                   nullptr, 0, nullptr) == hipErrorCooperativeLaunchTooLarge);
  hipMemPool_t pool;
  CHECK(hipDeviceGetDefaultMemPool(&pool, -1) == hipErrorInvalidDevice);
  OK(hipDeviceGetDefaultMemPool(&pool, 0));
  uint64_t threshold = 1 << 20, read = 0;
  OK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold));
  OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrReleaseThreshold, &read));
  CHECK(read == threshold);
  return 0;
}
