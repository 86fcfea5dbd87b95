// Linked into a HIP candidate on a real GPU, where the linker sends every launch through here
// (--wrap): counts launches, and swallows them during the no-op replay.
#include <cstddef>

struct Dim3 {
  unsigned x, y, z;
};

static int swallow = 0;
static long launches = 0;

#define KERNEL_GYM_WRAP(name)                                                                   \
  extern "C" __attribute__((weak)) int __real_##name(const void*, Dim3, Dim3, void**, size_t,   \
                                                     void*);                                    \
  extern "C" int __wrap_##name(const void* kernel, Dim3 grid, Dim3 block, void** arguments,     \
                               size_t shared, void* stream) {                                   \
    ++launches;                                                                                 \
    return swallow ? 0 : __real_##name(kernel, grid, block, arguments, shared, stream);         \
  }

KERNEL_GYM_WRAP(hipLaunchKernel)
KERNEL_GYM_WRAP(cudaLaunchKernel)
KERNEL_GYM_WRAP(__cudaLaunchKernel)
KERNEL_GYM_WRAP(cudaLaunchCooperativeKernel)

// AMD's takes the bytes of shared memory as 32 bits.
extern "C" __attribute__((weak)) int __real_hipLaunchCooperativeKernel(const void*, Dim3, Dim3,
                                                                       void**, unsigned, void*);
extern "C" int __wrap_hipLaunchCooperativeKernel(const void* kernel, Dim3 grid, Dim3 block,
                                                 void** arguments, unsigned shared, void* stream) {
  ++launches;
  if (swallow) return 0;
  return __real_hipLaunchCooperativeKernel(kernel, grid, block, arguments, shared, stream);
}

extern "C" void kernel_gym_launches_start(int noop) {
  swallow = noop;
  launches = 0;
}
extern "C" long kernel_gym_launches_count() { return launches; }
