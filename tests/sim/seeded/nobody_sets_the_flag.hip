// fault: deadlock at 5
// launch: 2 | 64 | ints(2)
// each workgroup waits for the flag of the other before it sets its own
kernel void circle(int* flags) {
  while (look(&flags[1 - bid]) == 0) {
  }
  add(&flags[bid], 1);
}
