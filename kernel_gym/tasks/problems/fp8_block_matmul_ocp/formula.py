"""The product of dequantised operands, whatever their format."""

from kernel_gym.tasks.problems.fp8_block_matmul.formula import SMALL, formula

__all__ = ["SMALL", "formula"]
