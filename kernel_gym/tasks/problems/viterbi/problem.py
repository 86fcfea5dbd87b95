"""Most probable state sequence of a chain: the Viterbi algorithm."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class Viterbi(Problem):
    """Maximises `sum of emission[t, path[t]] + sum of transition[path[t - 1], path[t]]`.

    `transition[i, j]` is the score of a step from state i to state j. Any path of the highest score
    is right.
    """

    name = "viterbi"
    summary = "path of states with the highest score for each batch entry, and the score"
    category = "Reduce-and-scan"
    level = 5
    tags = ("audio", "protein", "dynamic-program")
    source = (
        "CRF taggers on CoNLL-2003 and OntoNotes, TMbed membrane topology, phone alignment on TIMIT"
    )
    fair_reference = False

    args = (
        TensorArg("emission", torch.float32, shape="batch, time, states"),
        TensorArg("transition", torch.float32, shape="states, states"),
    )
    outputs = (
        Output("path", torch.int64, check=Check.CUSTOM, shape="batch, time"),
        Output("score", torch.float32, shape="batch"),
    )
    axes = (Axis("batch", 1, 8192), Axis("time", 1, 1 << 14), Axis("states", 2, 128))
    train = points(
        "batch time states",
        full=[(512, 1024, 20), (2048, 128, 37), (1024, 512, 61), (256, 2048, 9), (256, 1000, 48)],
        sim=[(16, 48, 20), (32, 20, 37), (8, 32, 61), (32, 64, 9)],
    )
    production = points(
        "batch time states",
        full=[(512, 2000, 12), (4096, 64, 45), (128, 700, 120)],
        sim=[(24, 60, 12), (32, 16, 45), (6, 24, 100)],
    )
    adversarial = ({"batch": 2, "time": 1, "states": 3},)
    distributions = ("normal", "uniform", "structured", "sparse")

    def elements(self, dims: Dims) -> int:
        """Transitions looked at, and a part for long sums, whose rounding errors add up."""
        return dims["batch"] * dims["time"] * dims["states"] ** 2 + 16 * dims["time"] ** 2

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws emissions by the distribution, and normal transitions."""
        batch, time, states = (workload.dims[axis.name] for axis in self.axes)
        shape = (batch, time, states)
        return {
            "emission": draw(shape, torch.float32, workload.distribution, generator),
            "transition": torch.randn((states, states), generator=generator),
        }

    def oracle(self, emission: torch.Tensor, transition: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Forward with the best predecessors, then back along them."""
        score, step = emission[:, 0].double(), transition.double()
        previous = []
        for t in range(1, emission.shape[1]):
            best, origin = (score[:, :, None] + step).max(dim=1)
            previous.append(origin)
            score = best + emission[:, t].double()
        total, last = score.max(dim=1)
        path = [last]
        for origin in reversed(previous):
            path.append(origin.gather(1, path[-1][:, None]).squeeze(1))
        return torch.stack(path[::-1], dim=1), total

    def reference(
        self, emission: torch.Tensor, transition: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The same in float32, as CRF layers write it."""
        score = emission[:, 0]
        history = []
        for t in range(1, emission.shape[1]):
            best, origin = torch.max(score.unsqueeze(2) + transition, dim=1)
            history.append(origin)
            score = best + emission[:, t]
        total, state = torch.max(score, dim=1)
        path = [state]
        for origin in history[::-1]:
            state = torch.gather(origin, 1, state.unsqueeze(1)).squeeze(1)
            path.append(state)
        path.reverse()
        return torch.stack(path, dim=1), total

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """A path is wrong where it leaves the states or scores less than the best.

        Sums of float32 lose `time` roundings of a score, to which each step may add the largest
        emission and the largest transition. With equal large emissions plus small differences
        PyTorch's own operators lose up to 3e-9 `time` ** 2 of them.
        """
        emission, transition = inputs["emission"], inputs["transition"]
        if name != "path":
            return super().mismatches(name, found, inputs, expected)
        assert isinstance(emission, torch.Tensor)
        assert isinstance(transition, torch.Tensor)
        sent, step = emission.double(), transition.double()
        within = found.clamp(0, sent.shape[2] - 1)

        def score(path: torch.Tensor) -> torch.Tensor:
            emitted = sent.gather(2, path[:, :, None]).squeeze(2).sum(1)
            return emitted + step[path[:, :-1], path[:, 1:]].sum(1)

        best = score(expected)
        time = sent.shape[1]
        slack = max(1e-6, 1e-8 * time) * time * (1 + sent.abs().amax() + step.abs().amax())
        lower = score(within) < best - slack
        return (found != within) | lower[:, None]

    def flops(self, dims: Dims) -> int:
        """An addition and a comparison a transition, an addition an emission."""
        batch, time, states = (dims[axis.name] for axis in self.axes)
        return batch * (time - 1) * (2 * states**2 + states)


PROBLEM = Viterbi()
