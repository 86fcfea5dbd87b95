"""Variants of exploits and of honest kernels: other texts that do the same."""

from kernel_gym.mutation.generate import honest_variants, variants

__all__ = ["honest_variants", "variants"]
