"""Times of a model with and without a package, and what the operator alone predicts."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType

import torch
from torch import Tensor, nn

from kernel_gym.packages.models.operations import Operation
from kernel_gym.packages.models.parity import GREEDY, STEPS
from kernel_gym.packages.models.pretrained import PretrainedModel
from kernel_gym.packages.models.report import Phase
from kernel_gym.packages.models.sites import Replaced

Layers = Mapping[nn.Module, Callable[..., object]]
"""Replaced modules, each with the forward method of its layer."""
NO_LAYERS: Layers = {}
MODELLED_PAIRS = 2
"""Modelled times are the same each time; the second pair shows it."""
MEASURED_PAIRS = 6
"""With six pairs the median lies between the least and the largest with a probability of 97 %."""
MEASURED_CALLS = 50
"""Calls of an operator that are measured together, as a model does not wait after each one."""
MEASURED_PROMPT = 2048
"""Most tokens of a prompt that is measured."""
MEASURED_TOKENS = 16384
"""Tokens of all prompts that are measured together: as many as servers take for one pass of a
large GPU. With a quarter of them, PyTorch on the host takes almost as long as the GPU."""
MEASURED_IMAGES = 64
"""Images that are measured together."""


class DeviceClock:
    """Seconds of a device: modelled on the simulator, else measured."""

    def __init__(self, device: str) -> None:
        from kernel_gym.programs.simulation import simulation

        self.on_gpu = torch.device(device).type != "cpu"
        self.simulation = simulation() if self.on_gpu else None
        self.pairs = MODELLED_PAIRS if self.modelled else MEASURED_PAIRS
        self._calls = 1 if self.modelled else MEASURED_CALLS

    @property
    def modelled(self) -> bool:
        """Whether the seconds are modelled."""
        return self.simulation is not None

    @property
    def captures(self) -> bool:
        """Whether the device captures PyTorch's operators; the simulated one captures kernels."""
        return self.on_gpu and not self.modelled

    def now(self) -> float:
        """Returns seconds since some moment, when all work of the device is done."""
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() if self.simulation is None else self.simulation.seconds

    def time(self, call: Callable[[], object]) -> float:
        """Returns the median seconds of a call among others, after one that warms up."""
        call()
        times = []
        for _ in range(self.pairs):
            began = self.now()
            for _ in range(self._calls):
                call()
            times.append((self.now() - began) / self._calls)
        return statistics.median(times)


@dataclass(frozen=True)
class ModuleCall:
    """A call of a replaced module: its own code and the package's layer, with the same inputs."""

    module: nn.Module
    layer: Callable[..., object]
    arguments: tuple[object, ...]

    def kept(self) -> ModuleCall:
        """Returns the call with copies of its tensors, which nothing changes later."""
        own = (a.detach().clone() if isinstance(a, Tensor) else a for a in self.arguments)
        return replace(self, arguments=tuple(own))

    def run_own(self) -> object:
        """Runs the code of the module's class."""
        return type(self.module).forward(self.module, *self.arguments)

    def run_layer(self) -> object:
        """Runs the package's layer."""
        return self.layer(*self.arguments)


@dataclass
class Calls:
    """Calls of a package's operator: an example and the number for each set of shapes.

    Attributes:
        examples: Arguments.
        modules: The call of the replaced module that the example is from, if it is known.
        counts: Calls.
        log: The package's count of calls that ran the model's own code, by reason.
        refused: Those of the pass that was recorded.
        recording: Whether calls are noted now.
        module: The call of a replaced module that runs now, if any.
    """

    examples: dict[object, tuple[object, ...]] = field(default_factory=dict)
    modules: dict[object, ModuleCall] = field(default_factory=dict)
    counts: dict[object, int] = field(default_factory=dict)
    log: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    recording: bool = True
    module: ModuleCall | None = None

    def restart(self) -> None:
        """Forgets what was refused before."""
        self.refused = Counter(self.log)

    def stop(self) -> None:
        """Ends the recording."""
        self.refused = self.log - self.refused

    def add(self, arguments: tuple[object, ...]) -> None:
        """Notes a call."""
        if not self.recording:
            return
        key = tuple(tuple(a.shape) if isinstance(a, Tensor) else a for a in arguments)
        if key not in self.examples:
            self.examples[key] = tuple(
                a.detach().clone() if isinstance(a, Tensor) else a for a in arguments
            )
            if self.module is not None:
                self.modules[key] = self.module.kept()
        self.counts[key] = self.counts.get(key, 0) + 1


@contextmanager
def recorded(kernel: ModuleType, layers: Layers = NO_LAYERS) -> Iterator[Calls]:
    """Records the calls of a package's operator by its layers, and those that it refuses.

    Args:
        kernel: The package.
        layers: Replaced modules that compute the operation and nothing else, each with its layer.
    """
    operator, calls = kernel.layers.operator, Calls(log=kernel.inputs.REFUSED)
    calls.restart()

    def record(*arguments: object) -> object:
        calls.add(arguments)
        return operator(*arguments)

    def enter(module: nn.Module, arguments: tuple[object, ...]) -> None:
        calls.module = ModuleCall(module, layers[module], arguments)

    def leave(*_: object) -> None:
        calls.module = None

    handles = [module.register_forward_pre_hook(enter) for module in layers]
    handles += [module.register_forward_hook(leave) for module in layers]
    kernel.layers.operator = record
    try:
        yield calls
    finally:
        calls.stop()
        kernel.layers.operator = operator
        for handle in handles:
            handle.remove()


def forward_phase(
    name: str,
    replaced: Replaced,
    inputs: Mapping[str, Tensor],
    clock: DeviceClock,
    operator: Operator,
) -> tuple[Phase, Calls]:
    """Returns the times of one forward pass without gradients, and the calls of the package."""

    def run() -> float:
        began = clock.now()
        with torch.no_grad():
            replaced.model(**inputs)
        return clock.now() - began

    run()
    with replaced.package(), recorded(operator.kernel, operator.alone(replaced)) as calls:
        run()
    pairs = [(run(), _with_package(replaced, run)) for _ in range(clock.pairs)]
    tokens = next(iter(inputs.values())).shape[:2].numel() if "input_ids" in inputs else 0
    return operator.phase(name, tokens, pairs, calls, clock), calls


def _with_package(replaced: Replaced, run: Callable[[], float]) -> float:
    with replaced.package():
        return run()


def generate(
    model: PretrainedModel, inputs: Mapping[str, Tensor], clock: DeviceClock
) -> tuple[Tensor, float]:
    """Returns greedy sequences, and the seconds of all forward passes after the first one."""
    marks: list[float] = []
    handles = [
        model.register_forward_pre_hook(lambda *_: marks.append(clock.now())),
        model.register_forward_hook(lambda *_: marks.append(clock.now())),
    ]
    prompt = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    try:
        with torch.no_grad():
            sequences = model.generate(**prompt, **GREEDY)
            assert isinstance(sequences, Tensor)
    finally:
        for handle in handles:
            handle.remove()
    spans = [end - begin for begin, end in zip(marks[::2], marks[1::2], strict=True)]
    return sequences, sum(spans[1:])


def decode_phase(
    replaced: Replaced, inputs: Mapping[str, Tensor], clock: DeviceClock, operator: Operator
) -> tuple[Phase, Calls, tuple[Tensor, Tensor]]:
    """Returns the times of decoding, the calls, and sequences without and with the package."""
    model = replaced.model
    original, _ = generate(model, inputs, clock)
    with replaced.package(), recorded(operator.kernel, operator.alone(replaced)) as calls:
        passes = [0]

        def count(*_: object) -> None:
            passes[0] += 1
            calls.recording = passes[0] > 1
            if passes[0] == 2:
                calls.restart()

        handle = model.register_forward_pre_hook(count)
        ours, _ = generate(model, inputs, clock)
        handle.remove()

    def run() -> float:
        return generate(model, inputs, clock)[1]

    pairs = [(run(), _with_package(replaced, run)) for _ in range(clock.pairs)]
    tokens = len(original) * (STEPS - 1)
    return operator.phase("decode", tokens, pairs, calls, clock), calls, (original, ours)


@dataclass(frozen=True)
class Operator:
    """A package's operator, and the operation as models write it.

    Attributes:
        kernel: The package.
        operation: The operation.
        fused: Whether the original has it inside a larger fused operator. Then its share of the
            model is unknown, and nothing is predicted.
    """

    kernel: ModuleType
    operation: Operation
    fused: bool = False

    def alone(self, replaced: Replaced) -> Layers:
        """Returns the replaced modules with their layers, if the operation is all they compute."""
        return replaced.layers if self.operation.alone else NO_LAYERS

    @torch.no_grad()
    def phase(
        self,
        name: str,
        tokens: int,
        pairs: list[tuple[float, float]],
        calls: Calls,
        clock: DeviceClock,
    ) -> Phase:
        """Returns a phase with what the operator alone predicts for it."""
        run = self.kernel.layers.operator
        plain = kernel = 0.0
        on_kernel, reason = 0, ""
        for key, arguments in calls.examples.items():
            count = calls.counts[key]
            prepared = self.operation.prepare(*arguments)
            own: Callable[[], object] = partial(self.operation.plain, *prepared)
            ours: Callable[[], object] = partial(run, *arguments)
            if module := calls.modules.get(key):
                own, ours = module.run_own, module.run_layer
            plain += count * clock.time(own)
            kernel += count * clock.time(ours)
            why = self.kernel.reason(*arguments)
            on_kernel += 0 if why else count
            reason = reason or why
        gains = sorted(a / b for a, b in pairs)
        seconds = statistics.median(a for a, _ in pairs)
        share = 0.0 if self.fused else min(1.0, plain / seconds)
        gain = plain / kernel if kernel else None
        return Phase(
            name=name,
            tokens=tokens,
            seconds=seconds,
            replaced_seconds=statistics.median(b for _, b in pairs),
            gain=statistics.median(gains),
            gain_low=gains[0],
            gain_high=gains[-1],
            pairs=len(pairs),
            calls=sum(calls.counts.values()),
            kernel_calls=on_kernel,
            fallback_reason=reason,
            operator_gain=gain,
            share=share,
            predicted_gain=None if gain is None or self.fused else 1 / (1 - share + share / gain),
            note=_note(gain, gains[-1]),
        )


def _note(operator_gain: float | None, gain_high: float) -> str:
    if operator_gain is None:
        return "the operator was never called"
    if operator_gain > 1 > gain_high:
        return "faster alone and slower in the model"
    return "slower in the model" if gain_high < 1 else ""
