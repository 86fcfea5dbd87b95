"""Negative controls: wrong answers that the judge's check of values must refuse.

A control takes one call of a problem. It returns wrong answers by name, each a tuple of outputs, or
the reason why it does not apply. Most controls corrupt one output and leave the others right, which
shows that each output is checked. Controls are answers, not kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
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
"""Wrong answers by a description of the error."""

TILE = 128
"""Elements at the end of an output that are not written if the grid is one block too small."""
_RESIDUALS = ("residual", "skip", "shortcut")


@dataclass(frozen=True)
class ControlCase:
    """One call: its inputs and the answer of the reference, which the controls corrupt."""

    problem: Problem
    workload: Workload
    seed: int

    @property
    def dims(self) -> Dims:
        """The size of each axis."""
        return self.workload.dims

    @cached_property
    def inputs(self) -> dict[str, Value]:
        """The arguments of the call."""
        return make_inputs(self.problem, self.workload, self.seed)

    @cached_property
    def answer(self) -> Outputs:
        """The answer of the PyTorch reference."""
        return self.answer_to(self.inputs)

    @cached_property
    def other_answer(self) -> Outputs:
        """The answer of the reference to other data of the same size."""
        return self.answer_to(make_inputs(self.problem, self.workload, self.seed + 1))

    def answer_to(self, inputs: Mapping[str, Value]) -> Outputs:
        """Returns the reference's outputs. The arguments are copied, since it may write to them."""
        with torch.no_grad():
            return self.problem.reference(**copied(inputs))

    def spoil(self, spoiled: Callable[[torch.Tensor], torch.Tensor | None]) -> Wrong:
        """Returns answers with one wrong output each, by output. None from `spoiled` skips one."""
        answers = {}
        for i, output in enumerate(self.problem.outputs):
            wrong = spoiled(self.answer[i])
            if wrong is not None:
                answers[output.name] = (*self.answer[:i], wrong, *self.answer[i + 1 :])
        return answers


Control = Callable[[ControlCase], Wrong | str]
"""Maps a case to wrong answers, or to the reason why there are none."""


def copied(inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the arguments with cloned tensors."""
    return {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}


def zeros(case: ControlCase) -> Wrong:
    """Returns zeros everywhere."""
    return case.spoil(torch.zeros_like)


def constant(case: ControlCase) -> Wrong:
    """Returns ones everywhere, whatever the input."""
    return case.spoil(torch.ones_like)


def mean(case: ControlCase) -> Wrong | str:
    """Returns the mean of the answer everywhere, the closest constant."""
    return case.spoil(_mean) or "every output is a single number"


def stale(case: ControlCase) -> Wrong:
    """Returns the answer to an earlier call with other data."""
    return {"answer to other data": case.other_answer}


def echo(case: ControlCase) -> Wrong | str:
    """Returns an input as an output."""
    answers = {}
    for name, value in case.inputs.items():
        if isinstance(value, torch.Tensor):
            for output, wrong in case.spoil(lambda out, v=value: _echo(v, out)).items():  # type: ignore[misc]
                answers[f"{name} as {output}"] = wrong
    return answers or "no input has as many elements as an output"


def bias_only(case: ControlCase) -> Wrong | str:
    """Uses only the bias: all other floating-point tensors are zero."""
    if not _named(case.problem, ("bias",)):
        return "no argument is a bias"
    return {"others zero": case.answer_to(_zeroed(case, lambda name: "bias" not in name))}


def last_tile(case: ControlCase) -> Wrong:
    """Leaves the last elements as they were allocated."""
    return case.spoil(_without_last_tile)


def half_the_rows(case: ControlCase) -> Wrong | str:
    """Leaves every second row as it was allocated."""
    return case.spoil(_without_odd_rows) or "no output has more than one row"


def wrong_epsilon(case: ControlCase) -> Wrong | str:
    """Uses ten times the epsilon, or zero."""
    names = [a.name for a in case.problem.args if isinstance(a, ScalarArg) and "eps" in a.name]
    answers = {
        f"{name} times {factor}": case.answer_to({**case.inputs, name: case.inputs[name] * factor})
        for name in names
        for factor in (10, 0)
    }
    return answers or "no scalar is an epsilon"


def fixed_argument(case: ControlCase) -> Wrong | str:
    """Uses one value of a scalar argument always, whatever the call has."""
    own = case.problem.scalars(case.workload)
    answers = {}
    for arg in case.problem.declared:
        for value in arg.values:
            fixed = case.problem.scalars(replace(case.workload, scalars={arg.name: value}))
            if fixed[arg.name] != own[arg.name]:
                with suppress(IndexError, RuntimeError):  # then a kernel reads out of bounds
                    answer = case.answer_to({**case.inputs, arg.name: fixed[arg.name]})
                    answers[f"{arg.name} = {value:g}"] = answer
    return answers or "no scalar has declared values"


def dropped_residual(case: ControlCase) -> Wrong | str:
    """Does not add the residual."""
    names = _named(case.problem, _RESIDUALS)
    answers = {name: case.answer_to(_zeroed(case, name.__eq__)) for name in names}
    return answers or "no argument is a residual"


def low_precision(case: ControlCase) -> Wrong | str:
    """Accumulates sums in 16 bits."""
    with torch.no_grad():
        answer = accumulated_coarsely(case.problem, copied(case.inputs))
    return {"sums": answer} if answer else "the oracle adds up too few terms to tell"


def padding(case: ControlCase) -> Wrong | str:
    """Includes zeros beyond the end of an axis, as a kernel with unhandled masked lanes does."""
    with torch.no_grad():
        answers = padded_answers(case.problem, case.dims, case.inputs)
    return answers or "zeros beyond the end of an axis change nothing"


def no_op(case: ControlCase) -> Wrong:
    """Returns buffers as the judge fills them before a call: all bits set, which is NaN or -1."""
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
        "fixed argument": fixed_argument,
        "dropped residual": dropped_residual,
        "low-precision accumulation": low_precision,
        "padding takes part": padding,
        "no-op launch": no_op,
    }
)
"""All controls by name."""
ON_ADVERSARIAL = frozenset({"padding takes part", "fixed argument"})
"""Controls that adversarial workloads may refuse too, since train sizes may not show the error."""


def same_bits(left: Outputs, right: Outputs) -> bool:
    """Whether two answers are equal bit by bit."""
    return all(torch.equal(_bytes(a), _bytes(b)) for a, b in zip(left, right, strict=True))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _named(problem: Problem, words: tuple[str, ...]) -> list[str]:
    """Returns the tensor arguments with one of the words in their name."""
    tensors = (arg.name for arg in problem.args if isinstance(arg, TensorArg))
    return [name for name in tensors if any(word in name for word in words)]


def _zeroed(case: ControlCase, which: Callable[[str], bool]) -> dict[str, Value]:
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
    """Writes zeros, as fresh memory often holds, or ones if zeros would be right."""
    zero = torch.zeros_like(part)
    part.copy_(torch.ones_like(part) if same_bits((part,), (zero,)) else zero)


def _poisoned(answer: torch.Tensor) -> torch.Tensor:
    wrong = torch.full((answer.nbytes,), 0xFF, dtype=torch.uint8)
    return wrong.view(answer.dtype).reshape(answer.shape) if answer.numel() else answer.clone()
