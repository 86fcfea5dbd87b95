// rocPRIM, from its own package.
#include <rocprim/rocprim.hpp>

#include "../host_runtime/check.h"
int main() {
  std::vector<int> host(1000);
  for (int i = 0; i < 1000; i++) host[i] = i * 7919 % 1000;
  int *in, *out;
  OK(hipMalloc(&in, 4000));
  OK(hipMalloc(&out, 4000));
  OK(hipMemcpy(in, host.data(), 4000, hipMemcpyHostToDevice));
  size_t size = 0;
  void* room = nullptr;
  OK(rocprim::radix_sort_keys(room, size, in, out, 1000));
  OK(hipMalloc(&room, size));
  OK(rocprim::radix_sort_keys(room, size, in, out, 1000));
  OK(hipMemcpy(host.data(), out, 4000, hipMemcpyDeviceToHost));
  for (int i = 0; i < 1000; i++) CHECK(host[i] == i);
  return 0;
}
