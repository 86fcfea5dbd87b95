#include "check.h"

extern __shared__ int tile[];
__global__ void reverse(const int* x, int* out, int scale) {
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = scale * tile[blockDim.x - 1 - threadIdx.x];
}
template <typename T>
__global__ void fill(T* out, T value, int columns) {
  out[(blockIdx.y * blockDim.y + threadIdx.y) * columns + blockIdx.x * blockDim.x + threadIdx.x] = value;
}
int main() {
  int host[128], *x, *out;
  for (int i = 0; i < 128; i++) host[i] = i;
  OK(hipMalloc(&x, sizeof host));
  OK(hipMalloc(&out, sizeof host));
  OK(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
  int scale = 3;
  void* args[] = {&x, &out, &scale};
  OK(hipLaunchKernel((const void*)reverse, dim3(1), dim3(128), args, sizeof host, 0));
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 128; i++) CHECK(host[i] == 3 * (127 - i));
  hipLaunchKernelGGL((fill<int>), dim3(2, 4), dim3(8, 2), 0, 0, out, 7, 16);
  OK(hipDeviceSynchronize());
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < 128; i++) CHECK(host[i] == 7);
  return 0;
}
