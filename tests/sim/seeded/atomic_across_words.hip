// fault: misaligned at 5
// launch: 1 | 64 | ints(128)
// an atomic on an address that is no multiple of four
kernel void count(int* out) {
  add((int*)((char*)out + 4 * tid + 2), 1);
}
