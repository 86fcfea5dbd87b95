// fault: deadlock at 10+13
// launch: 1 | 128 | ints(1)
// a wave waits for a flag that is set behind the barrier it never reaches
kernel void handshake(int* out) {
  __shared__ int flag;
  volatile int* p = &flag;
  if (tid == 0) flag = 0;
  barrier();
  if (tid < 64) {
    while (*p == 0) {
    }
  }
  barrier();
  if (tid == 64) *p = 1;
  out[0] = 1;
}
