// Streams for PyTorch extensions in HIP, where PyTorch has no headers for them: there is one device,
// and everything on it runs in order.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>
#include <hip/hip_runtime.h>

namespace kernel_gym {

class Stream {
 public:
  operator hipStream_t() const { return nullptr; }
  hipStream_t stream() const { return nullptr; }
  c10::DeviceIndex device_index() const { return 0; }
  c10::Device device() const { return c10::Device(c10::DeviceType::CUDA, 0); }
  void synchronize() const { TORCH_CHECK(hipDeviceSynchronize() == hipSuccess, "the GPU failed"); }
  bool query() const { return true; }
};

inline Stream current_stream(c10::DeviceIndex = -1) { return {}; }

// There is one device, which is always the current one.
class Guard {
 public:
  template <class... Arguments>
  explicit Guard(const Arguments&...) {}
};

inline void check(hipError_t status) {
  TORCH_CHECK(status == hipSuccess, "HIP error: ", hipGetErrorString(status));
}

inline const hipDeviceProp_t* properties(c10::DeviceIndex = -1) {
  static const hipDeviceProp_t found = [] {
    hipDeviceProp_t properties;
    check(hipGetDeviceProperties(&properties, 0));
    return properties;
  }();
  return &found;
}

}  // namespace kernel_gym

namespace c10::hip {
using HIPStream = ::kernel_gym::Stream;
using HIPGuard = ::kernel_gym::Guard;
using OptionalHIPGuard = ::kernel_gym::Guard;
inline HIPStream getCurrentHIPStream(c10::DeviceIndex = -1) { return {}; }
inline HIPStream getDefaultHIPStream(c10::DeviceIndex = -1) { return {}; }
inline HIPStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return {}; }
inline c10::DeviceIndex current_device() { return 0; }
inline c10::DeviceIndex device_count() { return 1; }
using HIPGuardMasqueradingAsCUDA = ::kernel_gym::Guard;
using OptionalHIPGuardMasqueradingAsCUDA = ::kernel_gym::Guard;
using HIPStreamMasqueradingAsCUDA = ::kernel_gym::Stream;
inline HIPStream getCurrentHIPStreamMasqueradingAsCUDA(c10::DeviceIndex = -1) { return {}; }
}  // namespace c10::hip

namespace c10::cuda {
using CUDAStream = ::kernel_gym::Stream;
using CUDAGuard = ::kernel_gym::Guard;
using OptionalCUDAGuard = ::kernel_gym::Guard;
inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return {}; }
inline c10::DeviceIndex current_device() { return 0; }
inline c10::DeviceIndex device_count() { return 1; }
}  // namespace c10::cuda

namespace at::hip {
using namespace c10::hip;
inline const hipDeviceProp_t* getCurrentDeviceProperties() { return ::kernel_gym::properties(); }
inline const hipDeviceProp_t* getDeviceProperties(c10::DeviceIndex device) {
  return ::kernel_gym::properties(device);
}
}  // namespace at::hip
namespace at::cuda {
using namespace c10::cuda;
inline const hipDeviceProp_t* getCurrentDeviceProperties() { return ::kernel_gym::properties(); }
inline const hipDeviceProp_t* getDeviceProperties(c10::DeviceIndex device) {
  return ::kernel_gym::properties(device);
}
}  // namespace at::cuda

#define C10_HIP_CHECK(call) ::kernel_gym::check(call)
#define C10_HIP_KERNEL_LAUNCH_CHECK() ::kernel_gym::check(hipGetLastError())
#define C10_CUDA_CHECK(call) ::kernel_gym::check(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ::kernel_gym::check(hipGetLastError())
#define AT_CUDA_CHECK(call) ::kernel_gym::check(call)
