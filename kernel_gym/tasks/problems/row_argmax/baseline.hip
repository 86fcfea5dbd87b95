// Row maximum and its index: one block of 256 threads a row. Each thread keeps the best of its
// share of the row; a tree in shared memory picks the winner.
#include <hip/hip_runtime.h>

#include <stdint.h>

constexpr int kThreads = 256;

__global__ void row_argmax_kernel(const float* x, float* values, int64_t* indices, int64_t cols) {
  __shared__ float best_value[kThreads];
  __shared__ int64_t best_index[kThreads];
  const int lane = threadIdx.x;
  const float* row = x + (int64_t)blockIdx.x * cols;

  float value = -INFINITY;
  int64_t index = 0;
  for (int64_t c = lane; c < cols; c += kThreads) {
    if (row[c] > value) {
      value = row[c];
      index = c;
    }
  }
  best_value[lane] = value;
  best_index[lane] = index;
  __syncthreads();

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
  row_argmax_kernel<<<dim3(rows), dim3(kThreads), 0, stream>>>(x, values, indices, cols);
  return hipGetLastError();
}
