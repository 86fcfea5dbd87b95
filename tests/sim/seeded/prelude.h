// Stands in for the HIP headers, which need not be there: clang's builtins are enough.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define kernel extern "C" __attribute__((global))
#define tid ((int)__builtin_amdgcn_workitem_id_x())
#define bid ((int)__builtin_amdgcn_workgroup_id_x())
#define threads ((int)__builtin_amdgcn_workgroup_size_x())
typedef float float4_ __attribute__((ext_vector_type(4)));

__device__ inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ inline int add(int* p, int x) {
  return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
__device__ inline int add_local(int* p, int x) {
  return __hip_atomic_fetch_add(p, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
__device__ inline int look(int* p) {
  return __hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
}
