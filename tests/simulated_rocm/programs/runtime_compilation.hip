#include <hip/hiprtc.h>

#include "../host_runtime/check.h"
const char* kSource = "template <int n> __global__ void add(int* x) { x[threadIdx.x] += n; }\n";
int main() {
  hiprtcProgram program;
  CHECK(!hiprtcCreateProgram(&program, kSource, "add.hip", 0, nullptr, nullptr));
  CHECK(!hiprtcAddNameExpression(program, "add<3>"));
  CHECK(!hiprtcCompileProgram(program, 0, nullptr));
  const char* name;
  CHECK(!hiprtcGetLoweredName(program, "add<3>", &name));
  size_t size = 0;
  CHECK(!hiprtcGetCodeSize(program, &size) && size);
  std::vector<char> code(size);
  CHECK(!hiprtcGetCode(program, code.data()));
  hipModule_t module;
  hipFunction_t function;
  OK(hipModuleLoadData(&module, code.data()));
  OK(hipModuleGetFunction(&function, module, name));
  int* x;
  OK(hipMallocManaged(&x, 256));
  for (int i = 0; i < 64; i++) x[i] = i;
  void* arguments[] = {&x};
  OK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  OK(hipDeviceSynchronize());
  CHECK(x[63] == 66);
  const char* expressions[] = {"add<(int)3>", "add<1 + 2>", "&add<sizeof(__half) + 1>"};
  CHECK(!hiprtcCreateProgram(&program, kSource, "add.hip", 0, nullptr, nullptr));
  for (const char* text : expressions) CHECK(!hiprtcAddNameExpression(program, text));
  CHECK(!hiprtcCompileProgram(program, 0, nullptr));
  for (const char* text : expressions) {
    CHECK(!hiprtcGetLoweredName(program, text, &name));
    CHECK(!std::strcmp(name, "_Z3addILi3EEvPi"));
  }
  CHECK(hiprtcCreateProgram(&program, "not C++", "bad.hip", 0, nullptr, nullptr) == 0);
  CHECK(hiprtcCompileProgram(program, 0, nullptr) == HIPRTC_ERROR_COMPILATION);
  CHECK(!hiprtcGetProgramLogSize(program, &size) && size > 1);
  return 0;
}
