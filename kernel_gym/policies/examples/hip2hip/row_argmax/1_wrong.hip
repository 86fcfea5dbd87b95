// Wrong: the running maximum starts at 0, so that rows without a positive value lose theirs.
#include <hip/hip_runtime.h>

#include <stdint.h>

template <int kThreads, int kUnroll>
__global__ void row_argmax_kernel(const float* x, float* values, int64_t* indices, int cols) {
  __shared__ float best_value[kThreads];
  __shared__ int best_index[kThreads];
  const int lane = threadIdx.x;
  const float* row = x + (int64_t)blockIdx.x * cols;

  float value = 0.0f;
  int index = 0;
  for (int base = lane; base < cols; base += kUnroll * kThreads) {
    float item[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const int c = base + i * kThreads;
      item[i] = row[c < cols ? c : cols - 1];
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (item[i] > value) {
        value = item[i];
        index = min(base + i * kThreads, cols - 1);
      }
    }
  }
  best_value[lane] = value;
  best_index[lane] = index;
  __syncthreads();
#pragma unroll
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (lane < half && best_value[lane + half] > best_value[lane]) {
      best_value[lane] = best_value[lane + half];
      best_index[lane] = best_index[lane + half];
    }
    __syncthreads();
  }
  if (lane == 0) {
    values[blockIdx.x] = best_value[0];
    indices[blockIdx.x] = best_index[0];
  }
}

extern "C" int row_argmax(const float* x, float* values, int64_t* indices, int64_t rows,
                          int64_t cols, hipStream_t stream) {
  if (cols <= 512) {
    row_argmax_kernel<64, 4><<<dim3(rows), dim3(64), 0, stream>>>(x, values, indices, (int)cols);
  } else if (cols <= 2048) {
    row_argmax_kernel<128, 8><<<dim3(rows), dim3(128), 0, stream>>>(x, values, indices, (int)cols);
  } else {
    row_argmax_kernel<1024, 8>
        <<<dim3(rows), dim3(1024), 0, stream>>>(x, values, indices, (int)cols);
  }
  return hipGetLastError();
}
