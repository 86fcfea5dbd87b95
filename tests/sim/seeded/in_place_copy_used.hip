// fault: global_race at 6+8+10
// launch: 1 | 128 | f32(64), zeros(64)
// two waves load the same elements: one doubles them in place, the other passes them on
kernel void double_in_place(float* x, float* out) {
  int i = tid % 64;
  float v = x[i];
  if (tid < 64) {
    x[i] = 2 * v;
  } else {
    out[i] = v;
  }
}
