#include <hip/hip_runtime.h>

#include "scale.hpp"
__global__ void empty() {}
int main() {
  empty<<<1, 1>>>();
  return scaled(7) == 7 * FACTOR ? 0 : 1;
}
