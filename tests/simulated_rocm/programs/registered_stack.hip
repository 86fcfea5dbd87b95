// Memory of the stack that kernels may use, again and again: its pages move while the program runs.
#include "../host_runtime/check.h"
int main() {
  for (int round = 0; round < 3000; round++) {
    int registered[16];
    for (int i = 0; i < 16; i++) registered[i] = round + i;
    OK(hipHostRegister(registered, sizeof registered, hipHostRegisterDefault));
    for (int i = 0; i < 16; i++) CHECK(registered[i] == round + i);
    OK(hipHostUnregister(registered));
    for (int i = 0; i < 16; i++) CHECK(registered[i] == round + i);
  }
  return 0;
}
