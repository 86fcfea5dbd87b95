"""Negative controls: wrong answers and wrong kernels that every task must refuse."""
