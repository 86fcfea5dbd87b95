// fault: out_of_bounds_write at 5
// launch: 1 | 64 | i32(64, 17), ints(16)
// a value that equals the number of bins is counted
kernel void histogram(const int* x, int* bins) {
  add(&bins[x[tid]], 1);
}
