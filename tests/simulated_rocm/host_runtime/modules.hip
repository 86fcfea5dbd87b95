#include "check.h"

int main() {
  hipModule_t module;
  hipFunction_t function;
  CHECK(hipModuleLoadData(&module, "no code at all") == hipErrorInvalidImage);
  OK(hipModuleLoad(&module, MODULE));
  OK(hipModuleGetFunction(&function, module, "scale"));
  hipFunction_t missing;
  CHECK(hipModuleGetFunction(&missing, module, "not_there") == hipErrorNotFound);
  float host[256], *x, factor = 3.f;
  for (int i = 0; i < 256; i++) host[i] = i;
  OK(hipMalloc(&x, sizeof host));
  OK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
  void* args[] = {&x, &factor};
  OK(hipModuleLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, 0, args, nullptr));
  struct {
    float* x;
    float factor;
  } packed = {x, 2.f};
  size_t size = sizeof packed;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   HIP_LAUNCH_PARAM_END};
  OK(hipModuleLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, 0, nullptr, extra));
  OK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) CHECK(host[i] == 6.f * i);
  OK(hipModuleUnload(module));
  return 0;
}
