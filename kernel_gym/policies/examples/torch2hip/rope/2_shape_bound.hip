// Shape-bound: compiled for four head sizes; any other is an error.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

template <int half_dim>
__global__ void rope_kernel(const __half* x, const float* cos, const float* sin, __half* out,
                            int heads) {
  const int64_t token = blockIdx.x;
  const int pair = blockIdx.y * kThreads + threadIdx.x;
  if (pair >= heads * half_dim) return;
  const int head = pair / half_dim;
  const int i = pair - head * half_dim;
  const float c = cos[token * half_dim + i];
  const float s = sin[token * half_dim + i];
  const int64_t at = (token * heads + head) * 2 * half_dim + i;
  const float a = __half2float(x[at]);
  const float b = __half2float(x[at + half_dim]);
  out[at] = __float2half(a * c - b * s);
  out[at + half_dim] = __float2half(b * c + a * s);
}

template <int half_dim>
int launch(const __half* x, const float* cos, const float* sin, __half* out, int64_t tokens,
           int64_t heads, hipStream_t stream) {
  const dim3 grid(tokens, (heads * half_dim + kThreads - 1) / kThreads);
  rope_kernel<half_dim><<<grid, dim3(kThreads), 0, stream>>>(x, cos, sin, out, (int)heads);
  return hipGetLastError();
}

extern "C" int rope(const __half* x, const float* cos, const float* sin, __half* out,
                    int64_t tokens, int64_t heads, int64_t head_dim, hipStream_t stream) {
  switch (head_dim) {
    case 64:
      return launch<32>(x, cos, sin, out, tokens, heads, stream);
    case 96:
      return launch<48>(x, cos, sin, out, tokens, heads, stream);
    case 128:
      return launch<64>(x, cos, sin, out, tokens, heads, stream);
    case 256:
      return launch<128>(x, cos, sin, out, tokens, heads, stream);
    default:
      return hipErrorInvalidValue;
  }
}
