"""Log-probabilities of the tokens that a model of transformers draws, step by step."""

from __future__ import annotations

import torch

from kernel_gym.policies.sampling_params import SamplingParams


class DrawnLogprobs:
    """Sees the logits of each step and keeps one number for each token that was drawn.

    All logits of a reply would not fit: they have a number for each token of the vocabulary. So the
    logits of a step are kept until the next one shows which token was drawn. The number is the
    probability after temperature, top k and top p, in this order, as tokens are drawn. At
    temperature 0 nothing is drawn, and it is the probability of the model itself.

    Args:
        params: How tokens are drawn.
    """

    def __init__(self, params: SamplingParams) -> None:
        from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

        draws = params.temperature > 0
        self._warpers = [
            warper
            for warper, used in (
                (TemperatureLogitsWarper(float(params.temperature or 1)), draws),
                (TopKLogitsWarper(params.top_k or 1), draws and params.top_k > 0),
                (TopPLogitsWarper(params.top_p), draws and params.top_p < 1),
            )
            if used
        ]
        self._last: torch.Tensor | None = None
        self._drawn: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Notes the logits of a step, and the probability of the token of the step before.

        Args:
            input_ids: The tokens so far, shape `[batch, length]`, int64.
            scores: The logits, shape `[batch, vocabulary]`.

        Returns:
            The logits, unchanged.
        """
        self._take(input_ids)
        warped = scores
        for warper in self._warpers:
            warped = warper(input_ids, warped.clone())
        self._last = torch.log_softmax(warped.float(), dim=-1)
        return scores

    def of(self, sequences: torch.Tensor) -> torch.Tensor:
        """Returns the log-probabilities of the written tokens, shape `[batch, written]`, float32.

        Args:
            sequences: What was generated, prompts included, shape `[batch, length]`, int64.
        """
        self._take(sequences)
        return torch.stack(self._drawn, dim=1)

    def _take(self, input_ids: torch.Tensor) -> None:
        if self._last is not None:
            drawn = self._last.gather(1, input_ids[:, -1:])
            self._drawn.append(drawn[:, 0])
            self._last = None
