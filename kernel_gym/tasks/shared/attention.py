"""Attention whose scores are computed head by head."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import torch

from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.yardsticks import Attention, farthest_attention, softmax_attention


class AttentionByHeads(Problem):
    """Arguments q, k and v [batch, heads, tokens, width] and scale; query heads may share keys."""

    def oracle(self, **inputs: Value) -> tuple[torch.Tensor, ...]:
        """With the score matrix of one head at a time, in fp64."""
        return (self._attended(inputs, softmax_attention, torch.float64),)

    def yardstick(self, **inputs: Value) -> tuple[torch.Tensor, ...]:
        """The reference, and weights that are rounded before they are divided by their sum."""
        (reference,) = self.reference(**inputs)
        return (farthest_attention(reference, partial(self._attended, inputs)),)

    @abstractmethod
    def adjusted(
        self, scores: torch.Tensor, batch: int, head: int, inputs: Mapping[str, Value]
    ) -> torch.Tensor:
        """Returns the scores of a head [queries, keys] with what is added, and -inf where hidden.

        Args:
            scores: The scaled products of queries and keys, in the type of the result.
            batch: The batch entry.
            head: The query head.
            inputs: All arguments by name.
        """

    def _attended(
        self, inputs: Mapping[str, Value], attend: Attention, dtype: torch.dtype
    ) -> torch.Tensor:
        q, k, v = (value for name in "qkv" if isinstance(value := inputs[name], torch.Tensor))
        scale, group = inputs["scale"], q.shape[1] // k.shape[1]
        out = torch.empty(q.shape, dtype=torch.float64, device=q.device)
        for b, h in itertools.product(range(q.shape[0]), range(q.shape[1])):
            scores = q[b, h].to(dtype) @ k[b, h // group].to(dtype).mT * scale
            out[b, h] = attend(self.adjusted(scores, b, h, inputs), v[b, h // group])
        return out
