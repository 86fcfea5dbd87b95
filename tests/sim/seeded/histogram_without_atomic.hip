// fault: lost_write at 6
// launch: 1 | 64 | i32(64, 8), ints(8)
// lanes add to the same bin at once
kernel void histogram(const int* x, int* bins) {
  const int mine = x[tid] + 0 * bins[0];
  bins[mine] = bins[mine] + tid;
}
