"""Negative controls: wrong answers that every task must tell from right ones.

A control takes one call of a problem and gives wrong results by name, each a tuple of outputs, or
says why it does not apply. Most corrupt one output and leave the others right, so that each output
is shown to be checked. They are results, not kernels: the judge's own check of values decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import torch

from kernel_gym.tasks.controls.low_precision import accumulated_coarsely
from kernel_gym.tasks.controls.padding import padded_answers
from kernel_gym.tasks.problem import Dims, Problem, ScalarArg, TensorArg, Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.workload import Workload

Outputs = tuple[torch.Tensor, ...]
Wrong = Mapping[str, Outputs]
"""Wrong results by what is wrong with them."""

TILE = 128
"""Elements at the end of an output that a grid one block too small leaves out."""
_RESIDUALS = ("residual", "skip", "shortcut")


@dataclass(frozen=True)
class Case:
    """One call: its inputs, and the reference's answer, which the controls spoil."""

    problem: Problem
    workload: Workload
    seed: int

    @property
    def dims(self) -> Dims:
        """The size of each axis."""
        return self.workload.dims

    @cached_property
    def inputs(self) -> dict[str, Value]:
        """The arguments."""
        return make_inputs(self.problem, self.workload, self.seed)

    @cached_property
    def answer(self) -> Outputs:
        """What the PyTorch reference says."""
        return self.answer_to(self.inputs)

    @cached_property
    def other_answer(self) -> Outputs:
        """What it says of other data of the same size."""
        return self.answer_to(make_inputs(self.problem, self.workload, self.seed + 1))

    def answer_to(self, inputs: Mapping[str, Value]) -> Outputs:
        """The reference's outputs; the arguments stay what they are if it writes to them."""
        with torch.no_grad():
            return self.problem.reference(**copied(inputs))

    def spoil(self, spoiled: Callable[[torch.Tensor], torch.Tensor | None]) -> Wrong:
        """The answer with one output spoiled, for each output for which that gives something."""
        found = {}
        for i, output in enumerate(self.problem.outputs):
            wrong = spoiled(self.answer[i])
            if wrong is not None:
                found[output.name] = (*self.answer[:i], wrong, *self.answer[i + 1 :])
        return found


Control = Callable[[Case], Wrong | str]
"""Wrong results of a case, or why there are none."""


def copied(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """The arguments with tensors of their own."""
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}


def zeros(case: Case) -> Wrong:
    """All zeros."""
    return case.spoil(torch.zeros_like)


def constant(case: Case) -> Wrong:
    """All ones, whatever the input."""
    return case.spoil(torch.ones_like)


def mean(case: Case) -> Wrong | str:
    """The mean of the answer everywhere: a constant as close as one can be."""
    found = case.spoil(_mean)
    return found or "every output is a single number"


def stale(case: Case) -> Wrong:
    """The answer to an earlier call with other data."""
    return {"answer to other data": case.other_answer}


def echo(case: Case) -> Wrong | str:
    """An input handed back as an output."""
    found = {}
    for name, value in case.inputs.items():
        if isinstance(value, torch.Tensor):
            for output, wrong in case.spoil(lambda out, v=value: _echo(v, out)).items():  # type: ignore[misc]
                found[f"{name} as {output}"] = wrong
    return found or "no input has as many elements as an output"


def bias_only(case: Case) -> Wrong | str:
    """Nothing but the bias gets through: all other floating-point tensors are zero."""
    if not _named(case.problem, ("bias",)):
        return "no argument is a bias"
    return {"others zero": case.answer_to(_zeroed(case, lambda name: "bias" not in name))}


def last_tile(case: Case) -> Wrong:
    """The last elements are left as they were allocated."""
    return case.spoil(_without_last_tile)


def half_the_rows(case: Case) -> Wrong | str:
    """Every second row is left as it was allocated."""
    found = case.spoil(_without_odd_rows)
    return found or "no output has more than one row"


def wrong_epsilon(case: Case) -> Wrong | str:
    """Epsilon ten times as large, or none at all."""
    names = [a.name for a in case.problem.args if isinstance(a, ScalarArg) and "eps" in a.name]
    found = {
        f"{name} times {factor}": case.answer_to({**case.inputs, name: case.inputs[name] * factor})
        for name in names
        for factor in (10, 0)
    }
    return found or "no scalar is an epsilon"


def dropped_residual(case: Case) -> Wrong | str:
    """The residual is not added."""
    names = _named(case.problem, _RESIDUALS)
    found = {name: case.answer_to(_zeroed(case, name.__eq__)) for name in names}
    return found or "no argument is a residual"


def low_precision(case: Case) -> Wrong | str:
    """Sums accumulated in 16 bits."""
    with torch.no_grad():
        found = accumulated_coarsely(case.problem, copied(case.inputs))
    return {"sums": found} if found else "the oracle adds up too few terms to tell"


def padding(case: Case) -> Wrong | str:
    """Zeros beyond the end of an axis take part, as masked lanes do that nobody sets apart."""
    with torch.no_grad():
        answers = padded_answers(case.problem, case.dims, case.inputs)
    return answers or "zeros beyond the end of an axis change nothing"


def no_op(case: Case) -> Wrong:
    """Buffers as the judge poisons them: all bits set, which is NaN or -1."""
    return {"poison": tuple(map(_poisoned, case.answer))}


CONTROLS: Mapping[str, Control] = MappingProxyType(
    {
        "zeros": zeros,
        "constant": constant,
        "mean": mean,
        "stale output": stale,
        "echo of an input": echo,
        "bias only": bias_only,
        "last tile unwritten": last_tile,
        "half the rows skipped": half_the_rows,
        "wrong epsilon": wrong_epsilon,
        "dropped residual": dropped_residual,
        "low-precision accumulation": low_precision,
        "padding takes part": padding,
        "no-op launch": no_op,
    }
)
"""Every control by name."""
ON_ADVERSARIAL = frozenset({"padding takes part"})
"""Controls that adversarial workloads may catch as well: train sizes need not show the mistake."""


def same_bits(left: Outputs, right: Outputs) -> bool:
    """Whether two answers are equal to the bit."""
    return all(torch.equal(_bytes(a), _bytes(b)) for a, b in zip(left, right, strict=True))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _named(problem: Problem, words: tuple[str, ...]) -> list[str]:
    """The tensor arguments whose name holds one of the words."""
    tensors = (arg.name for arg in problem.args if isinstance(arg, TensorArg))
    return [name for name in tensors if any(word in name for word in words)]


def _zeroed(case: Case, which: Callable[[str], bool]) -> dict[str, Value]:
    return {
        name: torch.zeros_like(value)
        if isinstance(value, torch.Tensor) and value.is_floating_point() and which(name)
        else value
        for name, value in case.inputs.items()
    }


def _mean(answer: torch.Tensor) -> torch.Tensor | None:
    if answer.numel() < 2:
        return None
    value = answer.double().mean()
    if not answer.dtype.is_floating_point:
        value = value.round()
    return value.to(answer.dtype).expand(answer.shape).contiguous()


def _echo(value: torch.Tensor, output: torch.Tensor) -> torch.Tensor | None:
    if value.numel() != output.numel():
        return None
    return value.to(output.dtype).reshape(output.shape).contiguous()


def _without_last_tile(answer: torch.Tensor) -> torch.Tensor:
    wrong = answer.clone().reshape(-1)
    _leave(wrong[-min(TILE, wrong.numel()) :])
    return wrong.reshape(answer.shape)


def _without_odd_rows(answer: torch.Tensor) -> torch.Tensor | None:
    rows = answer.reshape(-1, answer.shape[-1]) if answer.dim() > 1 else answer.reshape(-1, 1)
    if rows.shape[0] < 2:
        return None
    wrong = rows.clone()
    _leave(wrong[1::2])
    return wrong.reshape(answer.shape)


def _leave(part: torch.Tensor) -> None:
    """Zeros, as fresh memory often holds; ones where zero would be right."""
    zero = torch.zeros_like(part)
    part.copy_(torch.ones_like(part) if same_bits((part,), (zero,)) else zero)


def _poisoned(answer: torch.Tensor) -> torch.Tensor:
    wrong = torch.full((answer.nbytes,), 0xFF, dtype=torch.uint8)
    return wrong.view(answer.dtype).reshape(answer.shape) if answer.numel() else answer.clone()
