// fault: lds_race at 8
// launch: 1 | 256 | ints(1)
// one thread of each wave adds to a shared counter without an atomic
kernel void count(int* out) {
  __shared__ int counter;
  if (tid == 0) counter = 0;
  barrier();
  if (tid % 64 == 0) counter += 1;
  barrier();
  if (tid == 0) out[0] = counter;
}
