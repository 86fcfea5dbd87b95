"""Writes candidates out of the kernels of PyTorch's compiler: `python -m`, which a mode may follow.

It reads a line with the name of a problem and answers with a line of JSON: the `source`, or the
`reason` why there is none. The next line may follow.
TorchInductor compiles the problem's reference for a simulated GPU, with symbolic sizes. Its kernels
and its host code become one module that needs PyTorch and Triton alone. The host code allocates
memory and launches kernels, so that it has a launch plan. A graph that calls a library has none.

This runs in a process of its own, because it brings a simulated GPU up.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym.policies.inductor_module import (
    MAX_AUTOTUNE,
    Compiled,
    NoCandidateError,
    with_scalars,
    written,
)
from kernel_gym.programs.enabling import enable_simulation

if TYPE_CHECKING:
    import torch
    from torch.fx import GraphModule, Node

    from kernel_gym.tasks.problem import Problem

MAX_TRIALS = 6
"""In the default mode, templates of a product are drawn evenly from Inductor's list, so many steps
apart that the list has so many steps."""
PROBES = (1.0371, 0.9642)
"""Factors of the float scalars in two compilations, which show where a scalar went."""


def candidate(name: str) -> str:
    """Returns a candidate for a problem.

    Raises:
        NoCandidateError: PyTorch's compiler makes none.
    """
    import torch

    from kernel_gym.tasks.problem import ScalarArg, Scale
    from kernel_gym.tasks.registry import get_problem
    from kernel_gym.tasks.sampling import train_workloads

    problem = get_problem(name)
    workloads = train_workloads(problem, Scale.SIM)
    # The compiler takes a size of 1 for a constant.
    workload = max(workloads, key=lambda workload: min(workload.dims.values()) > 1)
    inputs = problem.inputs(workload, torch.Generator().manual_seed(0))
    floats = [arg.name for arg in problem.args if isinstance(arg, ScalarArg) and arg.type is float]
    probes = [
        {key: _probe(float(inputs[key]), factor) for key in floats}
        for factor in (PROBES if floats else PROBES[:1])
    ]
    texts = [written(problem, _compiled(problem, {**inputs, **p}), floats) for p in probes]
    return with_scalars(texts, probes)


def _probe(value: float, factor: float) -> float:
    import torch

    return torch.tensor((value or 1.0) * factor, dtype=torch.float32).item()


def _compiled(problem: Problem, inputs: Mapping[str, object]) -> Compiled:
    import torch
    from torch._inductor.codecache import PyCodeCache
    from torch._inductor.compile_fx import compile_fx

    arguments: list[list[str]] = []

    def backend(graph: GraphModule, examples: list[torch.Tensor]) -> object:
        arguments.append([_origin(node) for node in graph.graph.find_nodes(op="placeholder")])
        return compile_fx(graph, examples)

    torch._dynamo.reset()
    PyCodeCache.cache_clear()
    function = _reference(problem)
    values = [v.cuda() if isinstance(v, torch.Tensor) else v for v in inputs.values()]
    try:
        torch.compile(function, backend=backend, dynamic=True, fullgraph=True)(*values)
    except Exception as error:  # the compiler raises errors of many kinds
        raise NoCandidateError(f"{type(error).__name__}: {error}".splitlines()[0]) from error
    module = [module for module in PyCodeCache.modules if hasattr(module, "call")][-1]
    kernels = {key: value for key, value in vars(module).items() if hasattr(value, "launchers")}
    (call,) = _functions(Path(str(module.__file__)).read_text(encoding="utf-8"), "call")
    return Compiled(call.body, arguments[-1], kernels)


def _reference(problem: Problem) -> Callable[..., object]:
    """Loads the reference from a file, because the compiler reads sources."""
    file = Path(tempfile.gettempdir()) / "reference.py"
    file.write_text(problem.reference_source(), encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(problem.reference_source(), str(file), "exec"), space)
    function: Callable[..., object] = space[problem.entry]
    return function


def _origin(placeholder: Node) -> str:
    """Returns what an input of the graph is, as an expression of the function's parameters."""
    source = placeholder.meta["grapharg"].source
    name = source.name if isinstance(source.name, str) else source.name()
    return re.sub(r"L\['(\w+)'\]", r"\1", name)


def _functions(text: str, name: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node


def main() -> None:
    """Answers each line of the input."""
    answers, sys.stdout = sys.stdout, sys.stderr
    enable_simulation(threads=1)
    _configure(sys.argv[1:] == [MAX_AUTOTUNE])
    for line in sys.stdin:
        try:
            answer = {"source": candidate(line.strip())}
        except NoCandidateError as error:
            answer = {"reason": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


def _configure(tuned: bool) -> None:
    """Prepares the compiler.

    Args:
        tuned: Whether it times every configuration and template of its mode `max-autotune`.
    """
    import torch
    from torch._functorch import config as functorch
    from torch._inductor import config, list_mode_options, select_algorithm

    torch.fx.experimental._config.use_duck_shape = False  # equal sizes may differ in other calls
    # Its caches give the code of another value where a float is a constant of the graph.
    config.fx_graph_cache = functorch.enable_autograd_cache = False
    config.max_autotune_gemm = True
    config.max_autotune_gemm_backends = "TRITON"
    config.max_autotune_conv_backends = "TRITON"
    if tuned:
        for key, value in list_mode_options(f"{MAX_AUTOTUNE}-no-cudagraphs").items():
            setattr(config, key, value)
        return
    select_algorithm.add_preprocessing_fn(
        lambda choices: choices[:: 1 + len(choices) // MAX_TRIALS]
    )


if __name__ == "__main__":
    main()
