// hiprtc: bitcode of two programs is linked to one code object.
#include <fstream>

#include "../host_runtime/check.h"
#include "later_hiprtc.h"

const char* kFunction = "__device__ int more(int x) { return x + AMOUNT; }\n";
const char* kKernel =
    "__device__ int more(int x);\n"
    "extern \"C\" __global__ void add(int* x) { x[threadIdx.x] = more(x[threadIdx.x]); }\n";
const auto kBitcode = static_cast<hiprtcJITInputType>(100);  // HIPRTC_JIT_INPUT_LLVM_BITCODE
const auto kData = static_cast<hiprtcJITInputType>(3);       // HIPRTC_JIT_INPUT_OBJECT

#define REFUSED(call) CHECK((call) == HIPRTC_ERROR_INVALID_INPUT)

int bitcode(const char* source, std::vector<char>* code) {
  const char* options[] = {"-fgpu-rdc", "-DAMOUNT=5"};
  hiprtcProgram program;
  size_t size = 0;
  CHECK(!hiprtcCreateProgram(&program, source, "part.hip", 0, nullptr, nullptr));
  CHECK(hiprtcGetBitcodeSize(program, &size) == HIPRTC_ERROR_INVALID_PROGRAM);  // not compiled
  CHECK(!hiprtcCompileProgram(program, 2, options));
  REFUSED(hiprtcGetBitcodeSize(program, nullptr));
  REFUSED(hiprtcGetBitcode(program, nullptr));
  CHECK(!hiprtcGetBitcodeSize(program, &size) && size);
  code->resize(size);
  CHECK(!hiprtcGetBitcode(program, code->data()));
  CHECK(!hiprtcDestroyProgram(&program));
  return 0;
}

int refusals(hiprtcLinkState link, std::vector<char>& code, const char* missing) {
  char text[] = "no bitcode";
  void* output;
  size_t size;
  REFUSED(hiprtcLinkAddData(link, kBitcode, nullptr, 4, "", 0, nullptr, nullptr));
  REFUSED(hiprtcLinkAddData(link, kData, code.data(), code.size(), "", 0, nullptr, nullptr));
  REFUSED(hiprtcLinkAddData(nullptr, kBitcode, code.data(), code.size(), "", 0, nullptr, nullptr));
  REFUSED(hiprtcLinkAddFile(link, kData, missing, 0, nullptr, nullptr));
  CHECK(hiprtcLinkAddFile(link, kBitcode, missing, 0, nullptr, nullptr) ==
        HIPRTC_ERROR_PROGRAM_CREATION_FAILURE);
  REFUSED(hiprtcLinkComplete(link, nullptr, &size));
  REFUSED(hiprtcLinkComplete(nullptr, &output, &size));
  REFUSED(hiprtcLinkDestroy(nullptr));
  hiprtcLinkState wrong;
  REFUSED(hiprtcLinkCreate(0, nullptr, nullptr, nullptr));
  REFUSED(hiprtcLinkCreate(1, nullptr, nullptr, &wrong));
  CHECK(!hiprtcLinkCreate(0, nullptr, nullptr, &wrong));
  CHECK(!hiprtcLinkAddData(wrong, kBitcode, text, sizeof text, "", 0, nullptr, nullptr));
  CHECK(hiprtcLinkComplete(wrong, &output, &size) == 100);  // HIPRTC_ERROR_LINKING
  CHECK(!std::strcmp(hiprtcGetErrorString(static_cast<hiprtcResult>(100)), "HIPRTC_ERROR_LINKING"));
  CHECK(!hiprtcLinkDestroy(wrong));
  REFUSED(hiprtcLinkDestroy(wrong));
  return 0;
}

int main(int, char** words) {
  std::vector<char> function, kernel;
  if (const int wrong = bitcode(kFunction, &function)) return wrong;
  if (const int wrong = bitcode(kKernel, &kernel)) return wrong;
  const char* compiler_words[] = {"-mllvm", "-inline-threshold=1"};
  hiprtcJIT_option names[] = {static_cast<hiprtcJIT_option>(10000),
                              static_cast<hiprtcJIT_option>(10001)};
  void* values[] = {compiler_words, reinterpret_cast<void*>(2)};
  hiprtcLinkState link;
  CHECK(!hiprtcLinkCreate(2, names, values, &link));
  const std::string path = std::string(words[0]) + ".bc";
  if (const int wrong = refusals(link, kernel, path.c_str())) return wrong;
  std::ofstream(path, std::ios::binary).write(function.data(), function.size());
  CHECK(!hiprtcLinkAddFile(link, kBitcode, path.c_str(), 0, nullptr, nullptr));
  CHECK(!hiprtcLinkAddData(link, kBitcode, kernel.data(), kernel.size(), "", 0, nullptr, nullptr));
  void* code;
  size_t size = 0;
  CHECK(!hiprtcLinkComplete(link, &code, &size) && size);

  hipModule_t module;
  hipFunction_t add;
  OK(hipModuleLoadData(&module, code));
  OK(hipModuleGetFunction(&add, module, "add"));
  CHECK(!hiprtcLinkDestroy(link));
  int *x, host[64];
  for (int i = 0; i < 64; i++) host[i] = i;
  OK(hipMalloc(&x, sizeof host));
  OK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
  void* arguments[] = {&x};
  OK(hipModuleLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  OK(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) CHECK(host[i] == i + 5);
  return 0;
}
