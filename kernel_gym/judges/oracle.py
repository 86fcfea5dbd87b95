"""Two oracles for the truth of the corpus, neither of which is a judge.

    python -m kernel_gym.judges.oracle PLATFORM JOBS OUT

`compiled` runs a candidate's machine code on the simulated GPU (start it with `kernel-gym sim --`)
and compares with PyTorch in float64. `interpreted` runs its Triton in Triton's interpreter on the
CPU, compares with the NumPy definition and watches all accesses to memory. Each candidate has a
process of its own. The facts that are observed become a line of the file OUT.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from kernel_gym.judges.accesses import AccessWatch, watch_interpreter
from kernel_gym.judges.forked import call_forked

if TYPE_CHECKING:
    from torch import Tensor
    from torch._ops import OpOverload
    from torch.utils._python_dispatch import TorchDispatchMode

SHAPES = ((64, 256), (3, 7), (33, 100), (5, 400))
"""The shown shape, a small one, one without a full last block, and one that is wider."""
LATER_CALLS = 14
OUT_OF_BOUNDS = "is out of bounds"
"""A part of the simulated GPU's error about an address outside of all tensors."""
MAX_CANDIDATE_SECONDS = 120.0
COPIES = {
    "empty", "empty_like", "empty_strided", "new_empty", "zeros", "zeros_like", "new_zeros",
    "zero_", "fill_", "view", "reshape", "_unsafe_view", "clone", "copy_", "expand", "as_strided",
    "detach", "t", "transpose", "slice", "alias", "_to_copy", "lift_fresh", "select", "unsqueeze",
    "_local_scalar_dense", "equal", "set_", "resize_", "is_pinned", "full", "new_empty_strided",
}  # fmt: skip
"""Operators of PyTorch that compute nothing. Kernels and their launchers may need them."""


def load_module(source: str, name: str) -> ModuleType:
    """Returns a module of a source; Triton needs a file to read kernels from."""
    folder = Path(tempfile.mkdtemp(prefix="corpus-"))
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Oracle:
    """Observes facts of one candidate on one platform."""

    def __init__(self, platform: str, problem: str, candidate: str) -> None:
        import torch

        self.torch = torch
        self.device = "cuda" if platform == "compiled" else "cpu"
        self.numpy = platform == "interpreted"
        self.problem = load_module(problem, "problem")
        self.clocks = self._clocks()
        self.checks = self._checks()
        self.candidate = load_module(candidate, "candidate")
        self.launches = 0
        self.watch = AccessWatch()
        if self.numpy:
            watch_interpreter(self.watch)
        self._count_launches()

    def facts(self) -> list[str]:
        """Returns all facts against the candidate."""
        facts = set()
        if self._clocks() != self.clocks:
            facts.add("clock")
        if self._checks() != self.checks:
            facts.add("checks")
        try:
            for seed, inputs in enumerate(self._cases()):
                facts |= self._observe_call(inputs, seed)
            facts |= self._observe_repeats() | self.watch.facts
        except Exception as error:
            if OUT_OF_BOUNDS not in str(error):
                raise
            facts.add("outside")  # the simulated GPU does not continue after it
        return sorted(facts)

    def _clocks(self) -> list[object]:
        """Returns the clocks that a judge reads."""
        event = self.torch.cuda.Event
        return [time.perf_counter, time.perf_counter_ns, time.time, event.elapsed_time]

    def _checks(self) -> list[object]:
        """Returns the comparisons that a judge calls."""
        torch = self.torch
        return [torch.allclose, torch.equal, torch.isclose, torch.testing.assert_close]

    def _count_launches(self) -> None:
        """Counts the launches of the candidate's kernels."""
        for value in vars(self.candidate).values():
            if hasattr(value, "run") and hasattr(value, "fn"):
                value.run = self._counted(value.run)

    def _counted(self, launch: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object, **options: object) -> object:
            self.launches += 1
            self.watch.begin(_span(one) for one in arguments if isinstance(one, self.torch.Tensor))
            return launch(*arguments, **options)

        return counted

    def _draw(self, shape: tuple[int, int], seed: int) -> list[Tensor]:
        """Returns normal values of the shape, one tensor for each argument."""
        torch = self.torch
        generator = torch.Generator().manual_seed(7000 + seed)
        number = self.problem.ARGUMENTS
        return [torch.randn(shape, generator=generator).to(self.device) for _ in range(number)]

    def _cases(self) -> list[list[Tensor]]:
        """Returns the inputs: the shapes, transposed views, large values, and NaN."""
        cases = [self._draw(shape, seed) for seed, shape in enumerate(SHAPES)]
        cases.append([x.t() for x in self._draw((40, 24), 20)])
        torch = self.torch
        cases.append([torch.clamp(x * 10, -30, 30) for x in self._draw((16, 200), 30)])
        special = self._draw((9, 130), 40)
        special[0][2, 3] = float("nan")
        return [*cases, special]

    def _is_right(self, y: object, inputs: list[Tensor]) -> bool:
        """Says whether a result is within the tolerance of the exact one."""
        import numpy as np

        exact_inputs = [x.detach().cpu().to(self.torch.float64) for x in inputs]
        if self.numpy:
            with np.errstate(all="ignore"):
                exact = self.problem.exact(*(x.numpy() for x in exact_inputs))
        else:
            exact = self.problem.reference(*exact_inputs).numpy()
        if not isinstance(y, self.torch.Tensor) or tuple(y.shape) != exact.shape:
            return False
        result = y.detach().cpu().to(self.torch.float64).numpy()
        with np.errstate(all="ignore"):
            near = np.abs(result - exact) <= 1e-5 + 1e-4 * np.abs(exact)
        return bool((near | (np.isnan(exact) & np.isnan(result))).all())

    def _observe_call(self, inputs: list[Tensor], seed: int) -> set[str]:
        """Returns the facts of one call."""
        facts = set()
        before = [x.detach().cpu().clone() for x in inputs]
        operators: set[str] = set()
        with self._recording(operators):
            y = self.candidate.run(*inputs)
        if not self._is_right(y, before):
            facts.add("values")
        changed = [x.detach().cpu().numpy().tobytes() for x in inputs]
        if changed != [x.numpy().tobytes() for x in before]:
            facts.add("input")
        if operators - COPIES:
            facts.add("library")
        return facts

    def _recording(self, operators: set[str]) -> TorchDispatchMode:
        """Returns a context that adds the names of the operators that are called."""
        from torch.utils._python_dispatch import TorchDispatchMode

        class Recording(TorchDispatchMode):
            def __torch_dispatch__(
                self,
                function: OpOverload,
                types: object,
                args: Sequence[object] = (),
                kwargs: Mapping[str, object] | None = None,
            ) -> object:
                operators.add(function.overloadpacket.__name__)
                return function(*args, **(kwargs or {}))

        return Recording()

    def _observe_repeats(self) -> set[str]:
        """Returns the facts of calls that follow others: stale results, no launch, no work."""
        facts = set()
        inputs = self._draw((8, 64), 50)
        self.candidate.run(*inputs)
        launches = self.launches
        self.candidate.run(*inputs)
        if self.launches == launches:
            facts.add("repeat")
        for x, other in zip(inputs, self._draw((8, 64), 60), strict=True):
            x.copy_(other)
        kept = [x.clone() for x in inputs]
        if not self._is_right(self.candidate.run(*inputs), kept):
            facts.add("stale")
        for call in range(LATER_CALLS):
            inputs = self._draw((8, 64), 70 + call)
            kept = [x.clone() for x in inputs]
            y = self.candidate.run(*inputs)
        if not self._is_right(y, kept):
            facts.add("later")
        return facts


def _span(tensor: Tensor) -> tuple[int, int]:
    """Returns the first address of a tensor's memory, and the one behind the last."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def observe(platform: str, job: dict[str, str]) -> list[str]:
    """Returns the facts against one candidate."""
    return Oracle(platform, job["problem"], job["source"]).facts()


def main() -> None:
    """Writes a line of facts for each candidate of JOBS."""
    platform, jobs, out = sys.argv[1:4]
    if platform == "interpreted":
        os.environ["TRITON_INTERPRET"] = "1"
    import torch
    import triton

    del torch, triton  # loaded once, before the processes of the candidates are forked
    for job in json.loads(Path(jobs).read_text(encoding="utf-8")):
        answer = call_forked(partial(observe, platform, job), MAX_CANDIDATE_SECONDS)
        named = {"candidate": job["name"], "digest": job["digest"], "platform": platform}
        line = {**named, **answer}
        with open(out, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
