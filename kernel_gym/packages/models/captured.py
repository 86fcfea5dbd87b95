"""Decoding as servers run it: the kernels of one token are captured once and replayed.

While a small batch decodes, PyTorch on the host takes longer than the kernels on the GPU. Servers
therefore capture the launches of one token (`torch.cuda.CUDAGraph`) and repeat them by one call.
"""

from __future__ import annotations

import copy
import itertools
import statistics
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from kernel_gym.packages.models.measure import (
    MEASURED_CALLS,
    Calls,
    DeviceClock,
    Operator,
    recorded,
)
from kernel_gym.packages.models.pretrained import PretrainedModel
from kernel_gym.packages.models.report import Phase
from kernel_gym.packages.models.sites import Replaced

NAME = "captured decode"
REPLAYS = 20
"""Replays that are timed together."""
FACTORS = (2, 2048), (2048, 5632)
"""The sizes of a product that stands between two calls of an operator."""
WEIGHTS = 16
"""Products with different weights: 369 MB, more than caches hold (256 MB in an MI300X)."""


class CapturedClock(DeviceClock):
    """Seconds of a GPU for calls whose launches are captured and replayed."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        left, right = FACTORS
        self._left = torch.ones(left, dtype=torch.float16, device=device)
        weights = torch.ones(WEIGHTS, *right, dtype=torch.float16, device=device)
        self._weights = itertools.cycle(weights.unbind())

    def time(self, call: Callable[[], object]) -> float:
        """Returns the median seconds that a call adds to a product, as models alternate them.

        A kernel that is repeated alone finds its code and weights in the caches, so that it takes
        less time. In a model, the weights of all layers pass through the caches between two calls.
        """
        both = capture(lambda: [(call(), self._multiply()) for _ in range(MEASURED_CALLS)])
        rest = capture(lambda: [self._multiply() for _ in range(MEASURED_CALLS)])
        added = [self.replay(both) - self.replay(rest) for _ in range(self.pairs)]
        return statistics.median(added) / MEASURED_CALLS

    def _multiply(self) -> Tensor:
        return torch.mm(self._left, next(self._weights))

    def replay(self, graph: torch.cuda.CUDAGraph) -> float:
        """Returns the mean seconds of a graph among others."""
        graph.replay()
        began = self.now()
        for _ in range(REPLAYS):
            graph.replay()
        return (self.now() - began) / REPLAYS


def capture(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Returns the launches of a call, after one that warms up."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


@torch.no_grad()
def one_token(model: PretrainedModel, tokens: Tensor) -> Callable[[], Tensor]:
    """Returns a call that decodes one token, and that leaves the cache as it was.

    Args:
        model: A decoder whose cache has tensors that no call changes in place.
        tokens: Ids [requests, tokens], of which the last ones are decoded after the others.
    """
    cache = model(input_ids=tokens[:, :-1], use_cache=True).past_key_values
    last = tokens[:, -1:].contiguous()

    @torch.no_grad()
    def step() -> Tensor:
        own = copy.copy(cache)
        own.layers = [copy.copy(layer) for layer in cache.layers]
        logits = model(input_ids=last, past_key_values=own, use_cache=True).logits
        assert isinstance(logits, Tensor)
        return logits

    return step


def captured_phase(
    replaced: Replaced, inputs: Mapping[str, Tensor], operator: Operator, device: str
) -> tuple[Phase, Calls]:
    """Returns the times of one decoded token, replayed from graphs, and the package's calls.

    Raises:
        RuntimeError: The launches of the model cannot be captured.
    """
    clock = CapturedClock(device)
    step = one_token(replaced.model, inputs["input_ids"])
    original = capture(step)
    with replaced.package():
        with recorded(operator.kernel, operator.alone(replaced)) as calls:
            step()
        ours = capture(step)
    pairs = [(clock.replay(original), clock.replay(ours)) for _ in range(clock.pairs)]
    return operator.phase(NAME, len(inputs["input_ids"]), pairs, calls, clock), calls
