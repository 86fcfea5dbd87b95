"""Paged decoding key by key, whatever the format of the cache."""

from kernel_gym.tasks.problems.fp8_kv_decode.formula import BYTES, SMALL, formula

__all__ = ["BYTES", "SMALL", "formula"]
