// fault: lds_race at 8
// launch: 1 | 256 | f32(256), zeros(256)
// a tile is read across before it is complete
kernel void transpose(const float* x, float* out) {
  __shared__ float tile[16][17];
  const int row = tid / 16, column = tid % 16;
  tile[row][column] = x[tid];
  out[tid] = tile[column][row];
}
