// Transposes of a square matrix of doubles, a step at a time; transposes.py launches them.
// A workgroup has 256 threads, for 16 x 16 elements. n: rows and columns.
#define GLOBAL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
constexpr int side = 16;

DEVICE inline int x() { return __builtin_amdgcn_workitem_id_x() % side; }
DEVICE inline int y() { return __builtin_amdgcn_workitem_id_x() / side; }
DEVICE inline int across() { return __builtin_amdgcn_workgroup_id_x() * side; }
DEVICE inline int down() { return __builtin_amdgcn_workgroup_id_y() * side; }

// Neighbouring threads copy neighbours: what a transpose cannot beat.
GLOBAL void copy(double* out, const double* in, int n) {
  const long at = (long)(down() + y()) * n + across() + x();
  out[at] = in[at];
}

// Neighbouring threads read neighbours and write one column.
GLOBAL void read_rows(double* out, const double* in, int n) {
  out[(long)(across() + x()) * n + down() + y()] = in[(long)(down() + y()) * n + across() + x()];
}

// Neighbouring threads read one column and write neighbours.
GLOBAL void write_rows(double* out, const double* in, int n) {
  out[(long)(down() + y()) * n + across() + x()] = in[(long)(across() + x()) * n + down() + y()];
}

// A tile in LDS, so that both are rows. pad: columns that no element uses.
template <int pad>
DEVICE inline void tiled(double* out, const double* in, int n) {
  __attribute__((shared)) static double tile[side][side + pad];
  tile[y()][x()] = in[(long)(down() + y()) * n + across() + x()];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  out[(long)(across() + y()) * n + down() + x()] = tile[x()][y()];
}
GLOBAL void tiled0(double* out, const double* in, int n) { tiled<0>(out, in, n); }
GLOBAL void tiled1(double* out, const double* in, int n) { tiled<1>(out, in, n); }
