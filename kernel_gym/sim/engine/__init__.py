"""Runs compiled kernels: memory, launches, faults and audit reports."""
