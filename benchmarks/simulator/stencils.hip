// Stencils of published measurements on one die of an MI250X; stencils.py launches them.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))

DEVICE inline int lane() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline int column() { return __builtin_amdgcn_workgroup_id_x() * 256 + lane(); }
DEVICE inline int row() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE inline int plane() { return __builtin_amdgcn_workgroup_id_z(); }

// The second differences of a grid, a point a thread. hx to hz: weights of the directions.
GLOBAL void laplacian(double* out, const double* u, int nx, int ny, int nz, double hx, double hy, double hz) {
  const int i = column(), j = row(), k = plane();
  if (i == 0 || i >= nx - 1 || j == 0 || j >= ny - 1 || k == 0 || k >= nz - 1) return;
  const long slice = (long)nx * ny, at = i + (long)nx * j + slice * k;
  const double sides = (u[at - 1] + u[at + 1]) * hx + (u[at - nx] + u[at + nx]) * hy;
  out[at] = sides + (u[at - slice] + u[at + slice]) * hz - 2 * (hx + hy + hz) * u[at];
}

// The same with `rows` points a thread, in the order of their addresses.
template <int rows>
DEVICE inline void tiled(double* out, const double* u, int nx, int ny, int nz, double hx, double hy, double hz) {
  const int i = column(), j = rows * row(), k = plane();
  if (i == 0 || i >= nx - 1 || k == 0 || k >= nz - 1) return;
  const long slice = (long)nx * ny, at = i + (long)nx * j + slice * k;
  double sum[rows];
#pragma unroll
  for (int n = 0; n < rows; n++) sum[n] = u[at - slice + n * nx] * hz;
  if (j > 0) sum[0] += u[at - nx] * hy;
#pragma unroll
  for (int n = 0; n < rows; n++) {
    const double middle = u[at + n * nx];
    sum[n] += (u[at + n * nx - 1] + u[at + n * nx + 1]) * hx - 2 * (hx + hy + hz) * middle;
    if (n > 0) sum[n - 1] += middle * hy;
    if (n < rows - 1) sum[n + 1] += middle * hy;
  }
  if (j < ny - rows) sum[rows - 1] += u[at + rows * nx] * hy;
#pragma unroll
  for (int n = 0; n < rows; n++) sum[n] += u[at + slice + n * nx] * hz;
#pragma unroll
  for (int n = 0; n < rows; n++) {
    if (j + n > 0 && j + n < ny - 1) out[at + n * nx] = sum[n];
  }
}
GLOBAL void laplacian1(double* out, const double* u, int nx, int ny, int nz, double hx, double hy, double hz) {
  tiled<1>(out, u, nx, ny, nz, hx, hy, hz);
}
GLOBAL void laplacian4(double* out, const double* u, int nx, int ny, int nz, double hx, double hy, double hz) {
  tiled<4>(out, u, nx, ny, nz, hx, hy, hz);
}
GLOBAL void laplacian8(double* out, const double* u, int nx, int ny, int nz, double hx, double hy, double hz) {
  tiled<8>(out, u, nx, ny, nz, hx, hy, hz);
}

// The derivative of `radius` neighbours on each side along a row. w: weight of a neighbour.
template <int radius>
DEVICE inline void along(float* out, const float* u, int nx, int ny, float w) {
  const int i = column();
  if (i < radius || i >= nx - radius) return;
  const long at = i + (long)nx * (row() + (long)ny * plane());
  float sum = u[at] * w;
#pragma unroll
  for (int n = 1; n <= radius; n++) sum += (u[at - n] + u[at + n]) * (w + n);
  out[at] = sum;
}
GLOBAL void along1(float* out, const float* u, int nx, int ny, float w) { along<1>(out, u, nx, ny, w); }
GLOBAL void along2(float* out, const float* u, int nx, int ny, float w) { along<2>(out, u, nx, ny, w); }
GLOBAL void along3(float* out, const float* u, int nx, int ny, float w) { along<3>(out, u, nx, ny, w); }
GLOBAL void along4(float* out, const float* u, int nx, int ny, float w) { along<4>(out, u, nx, ny, w); }
