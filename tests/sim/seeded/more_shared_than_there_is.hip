// fault: lds_budget at 0
// launch: 1 | 64 | zeros(64) | dynamic_lds=66000
// more dynamic shared memory than a compute unit has
extern __shared__ float huge[];
kernel void fill(float* out) {
  huge[tid] = tid;
  barrier();
  out[tid] = huge[63 - tid];
}
