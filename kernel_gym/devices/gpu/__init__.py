"""The backend for real GPUs, `cuda:N` and `rocm:N`: times are measured."""
