// Fourier transform: one block a row in shared memory; bit reversal first, then radix-2 steps.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void fft_kernel(const float* x, int inverse, float* out, int size, int bits) {
  extern __shared__ float row[];
  const int64_t base = (int64_t)blockIdx.x * size * 2;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const int source = (int)(__brev((unsigned)i) >> (32 - bits));
    row[2 * i] = x[base + 2 * source];
    row[2 * i + 1] = x[base + 2 * source + 1];
  }
  __syncthreads();
  for (int half = 1; half < size; half *= 2) {
    for (int pair = threadIdx.x; pair < size / 2; pair += kThreads) {
      const int k = pair % half, low = 2 * (pair / half * 2 * half + k), high = low + 2 * half;
      const float angle = (inverse ? 1.0f : -1.0f) * 3.14159265358979f * k / half;
      const float c = cosf(angle), s = sinf(angle);
      const float real = row[high] * c - row[high + 1] * s;
      const float imag = row[high] * s + row[high + 1] * c;
      row[high] = row[low] - real;
      row[high + 1] = row[low + 1] - imag;
      row[low] += real;
      row[low + 1] += imag;
    }
    __syncthreads();
  }
  const float factor = inverse ? 1.0f / size : 1.0f;
  for (int i = threadIdx.x; i < 2 * size; i += kThreads) out[base + i] = row[i] * factor;
}

extern "C" int fft_rows(const float* x, int64_t inverse, float* out, int64_t rows, int64_t size,
                        hipStream_t stream) {
  int bits = 0;
  while ((1 << bits) < size) ++bits;
  fft_kernel<<<dim3(rows), dim3(kThreads), 2 * size * sizeof(float), stream>>>(x, (int)inverse, out,
                                                                               (int)size, bits);
  return hipGetLastError();
}
