// fault: deadlock at 7+10
// launch: 3 | 64 | ints(1), zeros(3)
// a barrier of the grid waits for one workgroup too many
kernel void everyone(int* arrived, float* out) {
  if (tid == 0) {
    add(arrived, 1);
    while (look(arrived) < 4) {
    }
  }
  barrier();
  if (tid == 0) out[bid] = 1.f;
}
