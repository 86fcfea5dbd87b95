#include "check.h"

__global__ void work(float* x, int rounds) {
  float y = x[threadIdx.x];
  for (int i = 0; i < rounds; i++) y = y * 1.0001f + 1.f;
  x[threadIdx.x] = y;
}
int main() {
  float* x;
  OK(hipMalloc(&x, 1024));
  OK(hipMemset(x, 0, 1024));
  hipStream_t stream;
  hipEvent_t start, middle, stop;
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  CHECK(stream != nullptr);
  OK(hipEventCreate(&start));
  OK(hipEventCreateWithFlags(&middle, hipEventDefault));
  OK(hipEventCreate(&stop));
  float few = -1.f, many = -1.f;
  CHECK(hipEventElapsedTime(&few, start, stop) != hipSuccess);
  OK(hipEventRecord(start, stream));
  hipLaunchKernelGGL(work, dim3(1), dim3(256), 0, stream, x, 10);
  OK(hipEventRecord(middle, stream));
  work<<<1, 256, 0, stream>>>(x, 10000);
  OK(hipEventRecord(stop, stream));
  OK(hipEventSynchronize(stop));
  OK(hipStreamSynchronize(stream));
  OK(hipEventElapsedTime(&few, start, middle));
  OK(hipEventElapsedTime(&many, middle, stop));
  CHECK(few > 0.001f && few < 0.1f);
  CHECK(many > 5 * few);
  OK(hipEventQuery(stop));
  OK(hipEventDestroy(start));
  OK(hipStreamDestroy(stream));
  return 0;
}
