// Memory of the heap may be registered: its pages move and come back, and the heap stays sound.
#include <cstdlib>

#include "../host_runtime/check.h"

int main() {
  OK(hipFree(nullptr));
  for (int round = 0; round < 50; round++) {
    char* own = static_cast<char*>(std::malloc(64));
    std::memset(own, round, 64);
    OK(hipHostRegister(own, 64, hipHostRegisterMapped));
    unsigned flags = 0;
    OK(hipHostGetFlags(&flags, own));
    CHECK(flags == hipHostRegisterMapped);
    OK(hipHostUnregister(own));
    for (int i = 0; i < 64; i++) CHECK(own[i] == round);
    std::free(own);
    std::free(std::malloc(100 + 40 * round));
  }
  static char never[8192];
  CHECK(hipHostUnregister(never) == hipErrorHostMemoryNotRegistered);
  return 0;
}
