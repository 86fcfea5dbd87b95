"""The PyTorch function of a claim, which the author of the claim may have written.

Its code runs in a confined process only, on tensors without values. That process sends a list of
PyTorch's operators, one for each combination of shapes. The judge checks the list, bounds its cost
and runs it: for expected values, for the fp64 oracle and for the timing model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

from kernel_gym.imports.authoring.request import FoundSizes, TracingRequest
from kernel_gym.imports.authoring.tracer import CodeError, Tracer
from kernel_gym.imports.traced.code import write, written_arguments
from kernel_gym.imports.traced.exact import InDouble, widened
from kernel_gym.imports.traced.file import NotInShapes, sizes_of_shapes
from kernel_gym.imports.traced.graph import Node, TracedGraph, is_random
from kernel_gym.imports.traced.running import cost_of, run_graph
from kernel_gym.imports.traced.template import Unexplained, structure, unify
from kernel_gym.inert import inert_line
from kernel_gym.referee.statement import ClaimError, InputPart
from kernel_gym.tasks.problem import Dims, Value
from kernel_gym.tasks.shapes import shape_of

MAX_OPERATIONS = 1 << 42
"""Most operations of one run: about a minute of a CPU."""
MAX_BYTES = 4 << 30
"""Most bytes that one run may hold, where its inputs are small."""
MAX_MULTIPLE_OF_INPUTS = 16
"""Most bytes that one run may hold, as a multiple of its inputs."""
_FILE, _INPUTS = "reference.py", "referee_inputs.py"
Shapes = Mapping[str, tuple[int, ...]]


class ConfinedReference:
    """A function of a claim, as operators.

    Args:
        text: The text of a module. It is never executed in this process.
        entry: The function.
        parts: The arguments of the function, by name.
        count: How many tensors it returns; None takes all.
    """

    def __init__(
        self, text: str, entry: str, parts: Sequence[InputPart], count: int | None = None
    ) -> None:
        self._text, self._entry, self._parts, self._count = text, entry, tuple(parts), count
        self._graphs: dict[tuple[tuple[int, ...], ...], TracedGraph] = {}

    def run(self, inputs: Mapping[str, Value], exact: bool = False) -> tuple[torch.Tensor, ...]:
        """Runs the operators on inputs.

        Args:
            inputs: The arguments by name. They are not changed.
            exact: Compute in fp64, whatever floating-point dtype the code asks for.

        Raises:
            ClaimError: The code cannot be traced at these shapes, or costs too much.
        """
        tensors = {
            name: value.contiguous()
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor)
        }
        graph = self.graph({name: tuple(value.shape) for name, value in tensors.items()})
        if not exact:
            return self._stated(graph, run_graph(graph, tensors))
        wide = {name: widened(value) for name, value in tensors.items()}
        with InDouble():
            return self._stated(graph, run_graph(graph, wide))

    def graph(self, shapes: Shapes) -> TracedGraph:
        """Returns the operators at some shapes of the tensors.

        Raises:
            ClaimError: The code cannot be traced, or costs too much.
        """
        key = tuple(shapes[part.name] for part in self._parts if part.dtype)
        if key not in self._graphs:
            # In a thread of its own, where no dispatch mode of the caller counts or changes this.
            with ThreadPoolExecutor(1) as thread:
                self._graphs[key] = thread.submit(self._trace_and_check, shapes).result()
        return self._graphs[key]

    def text_for(self, points: Sequence[Dims]) -> str:
        """Returns the text of a module that calls the operators, for all sizes.

        It holds these calls only, so that a process with the rights of the judge may run it.

        Args:
            points: Sizes at which the function is traced.

        Raises:
            ClaimError: The operators depend on the sizes in a way that is not understood.
        """
        graphs = [self.graph(self._shapes(dims)) for dims in points]
        if len({structure(graph) for graph in graphs}) > 1:
            raise ClaimError("reference: it runs other operators at other sizes, so that it cannot "
                             "be timed on a GPU")  # fmt: skip
        names = [part.name for part in self._parts]
        ends = graphs[0].outputs[: self._count]
        try:
            nodes = unify(graphs, points)
            code = write(nodes, ends, frozenset({*names, *points[0], "torch", "aten", "math"}))
            sizes = sizes_of_shapes(code.sizes, [node for node in nodes if node.op == "argument"])
        except (Unexplained, NotInShapes) as error:
            raise ClaimError(f"reference: it cannot be timed on a GPU: {error}") from None
        results = ", ".join(code.results[end] for end in ends)
        lines = ["aten = torch.ops.aten", *sizes, *code.lines, f"return ({results},)"]
        body = "\n".join(f"    {line}" for line in lines)
        head = "import math\n\nimport torch\n\n\n"
        return f"{head}def {self._entry}({', '.join(names)}):\n{body}\n"

    def _shapes(self, dims: Dims) -> Shapes:
        return {part.name: shape_of(part.shape, dims) for part in self._parts if part.dtype}

    def _trace_and_check(self, shapes: Shapes) -> TracedGraph:
        return self._checked(self._traced(shapes), shapes)

    def _traced(self, shapes: Shapes) -> TracedGraph:
        files = {_FILE: self._text, _INPUTS: _inputs_text(self._parts, shapes)}
        request = TracingRequest(files, f"{_FILE}:{self._entry}", f"{_INPUTS}:inputs")
        try:
            with Tracer(request, FoundSizes({})) as tracer:
                graph = tracer.trace({}, train=True).forward
        except CodeError as error:
            raise ClaimError(f"reference: {error}") from None
        names = {part.name for part in self._parts}
        return graph.model_copy(update={"nodes": tuple(_named(n, names) for n in graph.nodes)})

    def _checked(self, graph: TracedGraph, shapes: Shapes) -> TracedGraph:
        """Runs the operators without values, and bounds what they cost."""
        if any(is_random(node) for node in graph.nodes):
            raise ClaimError("reference: it draws random numbers, so that no answer is right")
        try:
            meta = {
                part.name: torch.empty(shapes[part.name], dtype=part.torch_dtype, device="meta")
                for part in self._parts
                if part.dtype
            }
            cost = cost_of(graph, meta)
            self._stated(graph, run_graph(graph, meta))
        except ClaimError:
            raise
        except Exception as error:  # the graph is from a hostile process
            raise ClaimError(f"reference: {inert_line(str(error), 300)}") from None
        most = max(MAX_BYTES, MAX_MULTIPLE_OF_INPUTS * sum(value.nbytes for value in meta.values()))
        if cost.operations > MAX_OPERATIONS or cost.peak_bytes > most:
            raise ClaimError(
                f"reference: found {cost.operations:.2g} operations and {cost.peak_bytes:.2g} "
                f"bytes at {dict(shapes)}, expected at most {MAX_OPERATIONS:.2g} and {most:.2g}: "
                "use smaller shapes"
            )
        return graph

    def _stated(
        self, graph: TracedGraph, outputs: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, ...]:
        """Leaves out inputs that the function writes to and does not return."""
        if self._count is None:
            return outputs
        least = len(outputs) - len(written_arguments(graph.nodes))
        if not least <= self._count <= len(outputs):
            raise ClaimError(
                f"reference: found {least} outputs of {self._entry!r}, expected {self._count}"
            )
        return outputs[: self._count]


def _named(node: Node, names: set[str]) -> Node:
    """Undoes the renaming of arguments with names that the tracer uses itself."""
    if node.name is None or node.name in names or node.name[:-1] not in names:
        return node
    return node.model_copy(update={"name": node.name[:-1]})


def _inputs_text(parts: Sequence[InputPart], shapes: Shapes) -> str:
    """Returns a module that makes the arguments; no values are drawn while code is traced."""
    lines = []
    for part in parts:
        if part.value is None:
            made = f"torch.empty({shapes[part.name]!r}, dtype=torch.{part.dtype})"
        else:
            made = f"{type(part.value).__name__}({str(part.value)!r})"
        lines.append(f"        {part.name!r}: {made},")
    body = "\n".join(lines)
    return f"import torch\n\n\ndef inputs():\n    return {{\n{body}\n    }}\n"
