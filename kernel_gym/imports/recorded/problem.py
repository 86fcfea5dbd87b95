"""A problem made of recorded calls. Its candidate has the functions of the suite."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from kernel_gym.imports.recorded.draw import ImpossibleError, draw_tensor, layout, perturbed
from kernel_gym.imports.recorded.prompting import describe_calls, rules
from kernel_gym.imports.recorded.stated import StatedWorkload, dims_key
from kernel_gym.imports.recorded.templates import CallTemplate, Integers, size_of
from kernel_gym.tasks.extension import is_extension
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, Scale, TensorArg, Value
from kernel_gym.tasks.prompt_parts import PromptParts
from kernel_gym.tasks.worker_reference import WorkerReference
from kernel_gym.tasks.workload import Split, Workload

ENTRY = "kernel_gym_call"
CALL = "call"
"""The dimension that is the number of the template."""
EXACT = "exact"
"""A further dimension of calls in fp64; not part of workloads."""
_IMPORT_OF_CALLER = "from kernel_gym.worker.sim.recorded_call import caller as _caller"


@dataclass(frozen=True)
class Origin:
    """The facts that a reader knows of a task besides its calls.

    Attributes:
        suite: The suite's name.
        name: The task's name in the suite.
        category: The suite's category.
        summary: One line.
        instruction: What a policy is asked, in the suite's words where there are some.
        implementation: The suite's own code: the start kernel, or PyTorch.
        functions: The names that a candidate must define.
        splice: Makes a complete source from a candidate's; None to take it as it is.
    """

    suite: str
    name: str
    category: str
    summary: str
    instruction: str
    implementation: str
    functions: tuple[str, ...]
    splice: Callable[[str], str] | None = None
    own: str | None = None
    """The suite's own code as a candidate writes it; by default the implementation."""


class RecordedProblem(Problem, WorkerReference):
    """Calls of functions of a suite, with fresh values, and with other sizes where those can vary.

    Args:
        origin: What the reader knows.
        templates: The forms of its calls.
        stated: Its workloads with their outputs.
        margin: Whether accesses just outside an allocation are let through.
    """

    level = 1
    axes = (Axis(CALL, 0, 1 << 20),)
    adversarial = ()
    distributions = ("recorded",)
    exchangeable = False
    strided = False
    tiny_inputs = False
    special_values = False
    own_layout = True
    recorded = True

    def __init__(
        self,
        origin: Origin,
        templates: Sequence[CallTemplate],
        stated: Sequence[StatedWorkload],
        margin: bool = False,
    ) -> None:
        self.margin = margin
        self.origin, self.templates = origin, tuple(templates)
        self.suite = origin.suite
        self.name = f"{origin.suite}/{origin.name}"
        self.category, self.summary = origin.category, origin.summary
        self.source = origin.suite
        self._stated = {dims_key(one.dims): one for one in stated}
        self._by_split = {split: [o for o in stated if o.split is split] for split in Split}
        train = [one.dims for one in self._by_split[Split.TRAIN]]
        self.train = self.production = dict.fromkeys(Scale, train)
        self.args = tuple(
            TensorArg(_input(number, k), form.type, form.mutated)
            for number, template in enumerate(self.templates)
            for k, form in enumerate(template.call.tensors)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordedProblem) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    find: Callable[[str], Problem] | None = None
    """Finds the problem again in another process; None before it is imported."""

    def __reduce__(self) -> tuple[Callable[[str], Problem], tuple[str]]:
        if self.find is None:
            raise TypeError(f"{self.name}: only imported tasks are sent to other processes")
        return self.find, (self.name,)

    @property
    def entry(self) -> str:
        """The function that makes any of the calls, which is added to a candidate."""
        return ENTRY

    @property
    def folder(self) -> Path | None:
        """None, because its files are in the checkout."""
        return None

    @property
    def definition(self) -> str:
        """The suite's own instruction."""
        return self.origin.instruction

    @property
    def implementation(self) -> str:
        """The suite's own code."""
        return self.origin.implementation

    @property
    def own_candidate(self) -> str:
        """The suite's own code as a candidate submits it."""
        return self.origin.own or self.origin.implementation

    @cached_property
    def outputs(self) -> tuple[Output, ...]:  # type: ignore[override]
        """The outputs of the first workload; those of others may differ."""
        first = next(iter(self._stated.values()), None)
        return first.outputs if first else ()

    @property
    def own_operators(self) -> frozenset[str]:
        """The operators of PyTorch that compute and that the suite's own code runs."""
        return frozenset(name for one in self._stated.values() for name in one.operators)

    def outputs_at(self, dims: Dims) -> tuple[Output, ...]:
        """Returns the outputs of a workload; in an exact call floating ones are fp64."""
        outputs = self._stated[_key(dims)].outputs
        if EXACT not in dims:
            return outputs
        return tuple(
            Output(
                o.name, torch.float64 if o.dtype.is_floating_point else o.dtype, o.check, o.shape
            )
            for o in outputs
        )

    @property
    def worker_reference(self) -> WorkerReference:
        """The suite's own code, which a confined worker runs."""
        return self

    def exact_dims(self, dims: Dims) -> Dims | None:
        """Returns the dimensions of the call in fp64, if the suite's own code takes such inputs."""
        return {**dims, EXACT: 1} if self._stated[dims_key(dims)].exact else None

    def prompt_parts(self, mode: Mode) -> PromptParts:
        """Returns the suite's words, the calls that are made, and the rules for code of a suite."""
        operation = f"{self.name}: {self.summary}\n\n{self.definition}".strip()
        made = {one.dims[CALL] for one in self._stated.values()}
        calls = describe_calls(self.origin.functions, self.templates, made)
        return PromptParts(operation, calls, rules(mode, self.own_operators))

    def stated_workloads(self, split: Split) -> list[Workload]:
        """Returns all workloads of a split."""
        return [
            Workload(one.dims, split, one.kind, "recorded", name=f"{split}-{i}")
            for i, one in enumerate(self._by_split[split])
        ]

    def kernel(self, language: str) -> str | None:
        """Returns the suite's own code, or None for another language."""
        own = "hip" if is_extension(self.own_candidate, "hip") else "triton"
        return self.own_candidate if language == own else None

    def reference_source(self) -> str:
        """Returns the suite's own code."""
        return self.origin.implementation

    def content(self) -> Iterator[str]:
        """Yields the suite's own code and the recorded calls."""
        yield self.origin.implementation
        yield json.dumps([template.to_json() for template in self.templates])
        yield json.dumps(sorted(self._stated))

    def assembled(self, source: str) -> str:
        """Returns a candidate's source with the function that makes its calls."""
        whole = self.origin.splice(source) if self.origin.splice else source
        calls = [template.calling() for template in self.templates]
        text = json.dumps(json.dumps({"functions": self.origin.functions, "templates": calls}))
        return f"{whole}\n\n\n{_IMPORT_OF_CALLER}\n{ENTRY} = _caller(globals(), {text})\n"

    def unassembled(self, text: str) -> str:
        """Returns the code of an assembled text, without the function that makes the calls."""
        code, caller, _ = text.rpartition(_IMPORT_OF_CALLER)
        return code if caller else text

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the number of the call, its tensors, the sizes of axes, seeds, and gradients.

        A call that is not stated yet has no gradients: they have the forms of its outputs.
        """
        outputs_at = self.outputs_at if _key(workload.dims) in self._stated else lambda dims: ()
        return draw_inputs(self.templates, workload.dims, generator, outputs_at)

    def perturbed(
        self, inputs: Mapping[str, Value], seed: int, coarse: bool = False
    ) -> dict[str, Value]:
        """Moves each real value among the inputs by one rounding.

        Args:
            inputs: The inputs of a call.
            seed: It decides the directions.
            coarse: Whether to move the values of one byte, and no others.
        """
        template = self.templates[int(_plain(inputs[CALL]))]
        forms = {
            _input(int(_plain(inputs[CALL])), k): form
            for k, form in enumerate(template.call.tensors)
        }
        tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
        where = tensors[0].device if tensors else torch.device("cpu")
        generator = torch.Generator(where).manual_seed(seed)
        return {
            name: perturbed(forms[name], value, generator)
            if isinstance(value, torch.Tensor) and name in forms and (value.itemsize == 1) is coarse
            else value
            for name, value in inputs.items()
        }

    def elements(self, dims: Dims) -> int:
        """Returns the elements of all tensors of a call."""
        template = self.templates[dims[CALL]]
        return sum(math.prod(shape_at(shape, dims)) for shape in template.shapes)

    def bytes(self, dims: Dims) -> int:
        """Returns the bytes of its results: a call may read only a part of its inputs."""
        changed = sum(form.mutated for form in self.templates[dims[CALL]].call.tensors)
        outputs = self.outputs_at(dims)
        results = outputs[: len(outputs) - changed]
        return sum(math.prod(_sizes(o.shape)) * o.dtype.itemsize for o in results)

    def flops(self, dims: Dims) -> int:
        """Returns 0, because the least work is not known."""
        return 0

    def output_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]]:
        """Returns the shapes of the outputs."""
        return {output.name: _sizes(output.shape) for output in self.outputs_at(dims)}

    def oracle(self, *args: object, **inputs: object) -> tuple[torch.Tensor, ...]:
        """The judge asks the reference worker: the suite's code does not run in its process."""
        raise TypeError(f"{self.name}: the oracle is in the reference worker")

    def reference(self, *args: object, **inputs: object) -> tuple[torch.Tensor, ...]:
        """The judge asks the reference worker: the suite's code does not run in its process."""
        raise TypeError(f"{self.name}: the reference is in the reference worker")

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Returns which codes of a quantised output differ by more than one."""
        return (found.double() - expected.double()).abs() > 1


def _key(dims: Dims) -> str:
    """Returns the canonical text of dimensions, of an exact call too."""
    return dims_key({name: size for name, size in dims.items() if name != EXACT})


def draw_inputs(
    templates: Sequence[CallTemplate],
    dims: Dims,
    generator: torch.Generator,
    outputs_at: Callable[[Dims], tuple[Output, ...]],
) -> dict[str, Value]:
    """Draws the inputs of a call: its number, tensors, sizes, seeds, and gradients of its outputs.

    Raises:
        ImpossibleError: There are no such inputs for these sizes.
    """
    template = templates[dims[CALL]]
    values: dict[str, Value] = {CALL: dims[CALL]}
    linked = _linked(template, dims, generator)
    for k, (form, shape) in enumerate(zip(template.call.tensors, template.shapes, strict=True)):
        sizes = shape_at(shape, dims)
        if math.prod(sizes) > 1 << 26:
            raise ImpossibleError("a tensor is too large")
        if k in linked:  # of a call of this size, which need not be the template's first
            update = {"values": linked[k], "shape": sizes, "strides": layout(form, sizes)}
            form = form.model_copy(update=update)
        values[_input(dims[CALL], k)] = draw_tensor(form, sizes, dims, generator)
    for axis in template.axes:
        values[axis] = dims[axis]
    for seed in template.seeds:  # Triton compiles again for 1 and for multiples of 16
        values[seed] = 2 * int(torch.randint(1, 1 << 30, (), generator=generator)) + 1
    if template.call.backward:
        for output in outputs_at(dims):
            if output.name.startswith("out") and output.dtype.is_floating_point:
                drawn = torch.randn(_sizes(output.shape), generator=generator)
                values[f"of_{output.name}"] = drawn.to(output.dtype)
    return values


def _linked(template: CallTemplate, dims: Dims, generator: torch.Generator) -> Integers:
    """Draws one of the recorded sets of integers that belong together."""
    sets = template.integers_at(dims)
    if len(sets) < 2:
        return sets[0] if sets else {}
    return sets[int(torch.randint(len(sets), (), generator=generator))]


def shape_at(shape: Sequence[str], dims: Dims) -> tuple[int, ...]:
    """Returns the sizes of a tensor of a template."""
    return tuple(size_of(expression, dims) for expression in shape)


def _input(number: int, index: int) -> str:
    return f"c{number}_t{index}"


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size.strip())


def _plain(value: Value) -> int:
    assert not isinstance(value, torch.Tensor)
    return int(value)
