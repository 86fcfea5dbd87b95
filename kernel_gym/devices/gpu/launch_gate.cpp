// Counts the launches of a HIP candidate on a real GPU, and skips them during the no-op replay. It is
// linked into the candidate, and the linker redirects every launch to it (--wrap). A launch through
// a function that was looked up by its name is neither counted nor skipped. The no-op replay then
// returns right values, which the judge detects.
#include <cstddef>

struct Dim3 {
  unsigned x, y, z;
};

static int skip = 0;
static long launches = 0;

#define KERNEL_GYM_WRAP(name, parameters, arguments)              \
  extern "C" __attribute__((weak)) int __real_##name parameters; \
  extern "C" int __wrap_##name parameters {                      \
    ++launches;                                                  \
    return skip ? 0 : __real_##name arguments;                \
  }

#define KERNEL_GYM_BY_ADDRESS(name, shared_type)                                        \
  KERNEL_GYM_WRAP(name,                                                                 \
                  (const void* kernel, Dim3 grid, Dim3 block, void** values,            \
                   shared_type shared, void* stream),                                   \
                  (kernel, grid, block, values, shared, stream))
KERNEL_GYM_BY_ADDRESS(hipLaunchKernel, size_t)
KERNEL_GYM_BY_ADDRESS(cudaLaunchKernel, size_t)
KERNEL_GYM_BY_ADDRESS(__cudaLaunchKernel, size_t)
KERNEL_GYM_BY_ADDRESS(cudaLaunchCooperativeKernel, size_t)
KERNEL_GYM_BY_ADDRESS(hipLaunchCooperativeKernel, unsigned)  // 32 bits on AMD

#define KERNEL_GYM_BY_CONFIGURATION(name)                                             \
  KERNEL_GYM_WRAP(name, (const void* configuration, const void* kernel, void** values), \
                  (configuration, kernel, values))
KERNEL_GYM_BY_CONFIGURATION(cudaLaunchKernelExC)
KERNEL_GYM_BY_CONFIGURATION(hipLaunchKernelExC)

#define KERNEL_GYM_BY_CONFIGURATION_AND_MORE(name)                                    \
  KERNEL_GYM_WRAP(name,                                                                \
                  (const void* configuration, void* kernel, void** values, void** more), \
                  (configuration, kernel, values, more))
KERNEL_GYM_BY_CONFIGURATION_AND_MORE(cuLaunchKernelEx)
KERNEL_GYM_BY_CONFIGURATION_AND_MORE(hipDrvLaunchKernelEx)

#define KERNEL_GYM_BY_HANDLE(name)                                                              \
  KERNEL_GYM_WRAP(name,                                                                         \
                  (void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                   unsigned bz, unsigned shared, void* stream, void** values, void** more),     \
                  (kernel, gx, gy, gz, bx, by, bz, shared, stream, values, more))
KERNEL_GYM_BY_HANDLE(cuLaunchKernel)
KERNEL_GYM_BY_HANDLE(hipModuleLaunchKernel)

#define KERNEL_GYM_BY_COOPERATIVE_HANDLE(name)                                                  \
  KERNEL_GYM_WRAP(name,                                                                         \
                  (void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, \
                   unsigned bz, unsigned shared, void* stream, void** values),                  \
                  (kernel, gx, gy, gz, bx, by, bz, shared, stream, values))
KERNEL_GYM_BY_COOPERATIVE_HANDLE(cuLaunchCooperativeKernel)
KERNEL_GYM_BY_COOPERATIVE_HANDLE(hipModuleLaunchCooperativeKernel)

#define KERNEL_GYM_GRAPH(name) \
  KERNEL_GYM_WRAP(name, (void* graph, void* stream), (graph, stream))
KERNEL_GYM_GRAPH(cudaGraphLaunch)
KERNEL_GYM_GRAPH(cuGraphLaunch)
KERNEL_GYM_GRAPH(hipGraphLaunch)

KERNEL_GYM_WRAP(hipExtLaunchKernel,
                (const void* kernel, Dim3 grid, Dim3 block, void** values, size_t shared,
                 void* stream, void* start, void* stop, int flags),
                (kernel, grid, block, values, shared, stream, start, stop, flags))
KERNEL_GYM_WRAP(hipExtModuleLaunchKernel,
                (void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                 unsigned bz, size_t shared, void* stream, void** values, void** more, void* start,
                 void* stop, unsigned flags),
                (kernel, gx, gy, gz, bx, by, bz, shared, stream, values, more, start, stop, flags))

extern "C" void kernel_gym_launches_start(int noop) {
  skip = noop;
  launches = 0;
}
extern "C" long kernel_gym_launches_count() { return launches; }
