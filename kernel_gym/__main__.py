"""`python -m kernel_gym` is `kernel-gym`."""

from kernel_gym.cli import main

main()
