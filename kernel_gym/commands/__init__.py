"""The commands of `kernel-gym`, one a module."""
