"""Negative controls: wrong answers and kernels that every task must refuse."""
