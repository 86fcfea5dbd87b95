"""Verification of drafted tokens by rejection sampling, with the random numbers given."""

from __future__ import annotations

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

CLOSE = 2**-11
"""How far, as a share, some random numbers lie from the bound: thousands of float32's roundings."""


class SpeculativeVerify(Problem):
    """Draft token t of a row is accepted if `uniform * draft[t, token] <= target[t, token]`.

    Tokens are taken in order until the first that is not accepted, at step t; `count` is the
    number of tokens before it. `token` replaces it: the column j with the largest `max(target[t, j]
    - draft[t, j], 0) / noise[j]`. If all `steps` tokens are accepted, `token` is the column with
    the largest `target[steps, j] / noise[j]`. Of equal ones the lowest column counts.
    """

    name = "speculative_verify"
    summary = "number of accepted draft tokens of each row, and the token that follows them"
    category = "Fusion"
    level = 4
    tags = ("decoder-llm", "memory-bound", "reduction", "sampling")
    source = "EAGLE-3 and Medusa drafts of 3 to 7 tokens for Llama-3-8B, Qwen2.5 and Llama-2-7B"
    domain = (
        "Rows of draft and target are probabilities that add up to 1; a probability may be 0. "
        "noise is positive, uniform at least 0 and below 1."
    )

    args = (
        TensorArg("drafted", torch.int32, shape="rows, steps"),
        TensorArg("draft", torch.float32, shape="rows, steps, vocab"),
        TensorArg("target", torch.float32, shape="rows, steps + 1, vocab"),
        TensorArg("uniform", torch.float32, shape="rows, steps"),
        TensorArg("noise", torch.float32, shape="rows, vocab"),
    )
    outputs = (
        Output("token", torch.int32, check=Check.EXACT, shape="rows"),
        Output("count", torch.int32, check=Check.EXACT, shape="rows"),
    )
    axes = (Axis("rows", 1, 4096), Axis("steps", 1, 16), Axis("vocab", 2, 1 << 18))
    train = points(
        "rows steps vocab",
        full=[(64, 5, 32000), (32, 3, 128256), (128, 7, 32000), (16, 4, 151936)],
        sim=[(16, 5, 500), (12, 3, 1002), (24, 7, 250), (6, 4, 1187)],
    )
    production = points(
        "rows steps vocab",
        full=[(256, 2, 32000), (8, 8, 128256), (1, 5, 128256), (48, 6, 50257)],
        sim=[(40, 2, 250), (4, 8, 1002), (1, 5, 4008), (12, 6, 393)],
    )
    adversarial = (
        {"rows": 9, "steps": 1, "vocab": 2},
        {"rows": 7, "steps": 3, "vocab": 5},
    )
    distributions = ("normal", "uniform", "heavy_tail", "structured")
    exchangeable = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws draft logits, target ones near them, tokens by the draft, and random numbers.

        Half of the rows begin with a run of random numbers of zero, which accept every token. Half
        of the others lie close to the bound of acceptance, where a narrower type decides otherwise.
        """
        rows, steps, vocab = (workload.dims[axis.name] for axis in self.axes)
        kind = workload.distribution
        logits = draw((rows, steps + 1, vocab), torch.float32, kind, generator)
        other = logits + 0.7 * torch.randn(logits.shape, generator=generator)
        barred = torch.rand(logits.shape, generator=generator) < 0.2
        barred[..., 0] = False
        draft = torch.softmax(logits[:, :-1], dim=2)
        drafted = torch.multinomial(draft.flatten(0, 1), 1, generator=generator)
        run = torch.randint(2 * steps + 1, (rows, 1), generator=generator) - steps
        uniform = torch.rand((rows, steps), generator=generator)
        noise = -torch.log1p(-torch.rand((rows, vocab), generator=generator))
        target = torch.softmax(other.masked_fill(barred, float("-inf")), dim=2)
        at = drafted.view(rows, steps, 1)
        bound = (target[:, :-1].gather(2, at) / draft.gather(2, at))[:, :, 0]
        beside = bound * (1 + CLOSE * torch.randn((rows, steps), generator=generator).sign())
        is_close = (torch.rand((rows, steps), generator=generator) < 0.5) & (beside < 1)
        uniform = torch.where(is_close, beside, uniform)
        return {
            "drafted": drafted.view(rows, steps).int(),
            "draft": draft,
            "target": target,
            "uniform": uniform.masked_fill(torch.arange(steps) < run, 0.0),
            "noise": noise.clamp(min=1e-6),
        }

    def oracle(
        self,
        drafted: torch.Tensor,
        draft: torch.Tensor,
        target: torch.Tensor,
        uniform: torch.Tensor,
        noise: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Row by row, in fp64."""
        rows, steps = drafted.shape
        token, count = torch.zeros(2, rows, dtype=torch.int64, device=draft.device)
        for i, proposal in enumerate(drafted.tolist()):
            p, q = draft[i].double(), target[i].double()
            done = 0
            while (
                done < steps
                and uniform[i, done].double() * p[done, proposal[done]] <= (q[done, proposal[done]])
            ):
                done += 1
            rest = q[done] if done == steps else (q[done] - p[done]).clamp(min=0)
            token[i] = (rest / noise[i].double()).argmax()
            count[i] = done
        return token, count

    def reference(
        self,
        drafted: torch.Tensor,
        draft: torch.Tensor,
        target: torch.Tensor,
        uniform: torch.Tensor,
        noise: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """All rows at once; only the step that decides is read whole."""
        steps = drafted.shape[1]
        at = drafted.long()[:, :, None]
        chance = uniform * torch.gather(draft, 2, at)[:, :, 0]
        accepted = chance <= torch.gather(target[:, :-1], 2, at)[:, :, 0]
        count = torch.cumprod(accepted.int(), dim=1).sum(dim=1)
        each = torch.arange(len(drafted), device=draft.device)
        known = draft[each, count.clamp(max=steps - 1)] * (count < steps)[:, None]
        rest = torch.clamp(target[each, count] - known, min=0) / noise
        return torch.argmax(rest, dim=1).to(torch.int32), count.to(torch.int32)

    def bytes(self, dims: Dims) -> int:
        """Reads the tokens' probabilities and one row of target and noise; writes the outputs."""
        rows, _, vocab = (dims[axis.name] for axis in self.axes)
        return 4 * rows * (3 + 2 * vocab + 2)

    def flops(self, dims: Dims) -> int:
        """A quotient and a comparison for each column of one step."""
        return 2 * dims["rows"] * dims["vocab"]


PROBLEM = SpeculativeVerify()
