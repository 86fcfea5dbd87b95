"""The base of problems that are traced from PyTorch code."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import torch

from kernel_gym.imports.traced.counting import CountedOperations
from kernel_gym.imports.traced.exact import InDouble, widened
from kernel_gym.tasks.codes import wrong_codes
from kernel_gym.tasks.names import ORIGINAL
from kernel_gym.tasks.problem import Dims, Problem, TensorArg, Value
from kernel_gym.tasks.shapes import shape_of


class TracedProblem(Problem):
    """A problem whose `reference` is a list of operators.

    The oracle runs the same operators in fp64. Shapes and costs are found on meta tensors.
    """

    startless = True
    rewritten = True
    tiny_inputs = False
    special_values = False
    text: str = ""
    """The text of the module, if it is in no file."""
    code: str = ""
    """The text of the code that was traced, if it is in no file."""

    @property
    def original(self) -> str:
        """The text of the code that was traced, for prompts. It is never executed here."""
        if self.code:
            return self.code
        path = self.folder / ORIGINAL if self.folder else None
        return path.read_text(encoding="utf-8") if path and path.is_file() else ""

    def content(self) -> Iterator[str]:
        """Yields the statement and the original, or the files of the folder."""
        yield from (self.text, self.original) if self.text else super().content()

    @property
    def folder(self) -> Path | None:
        """The folder of the problem's files, or None if it has no files."""
        return None if self.text else super().folder

    def reference_source(self) -> str:
        """Returns the text of `reference` as a module-level function that uses only torch."""
        if not self.text:
            return super().reference_source()
        functions = (n for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.FunctionDef))
        function = next(function for function in functions if function.name == "reference")
        lines = self.text.split("\n")[function.lineno - 1 : function.end_lineno]
        body = textwrap.dedent("\n".join(lines))
        body = body.replace("def reference(\n    self,", f"def {self.entry}(", 1)
        return f"import torch\n\n\n{body}\n"

    def oracle(self, *args: object, **inputs: object) -> tuple[torch.Tensor, ...]:
        """Runs the operators of `reference` in fp64."""
        wide = {k: widened(v) if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
        with InDouble():
            outputs = self.reference(**wide)
        return tuple(outputs)

    @property
    def definition(self) -> str:
        """The documentation and the code that was traced."""
        code = f"\n\n```python\n{self.original.strip()}\n```" if self.original else ""
        return super().definition + code

    def output_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each output, as stated or from a run on meta tensors."""
        stated = self._stated_shapes(dims)
        return self._measured(dims).shapes if stated is None else stated

    def bytes(self, dims: Dims) -> int:
        """Returns the bytes of all inputs and outputs."""
        stated = self._stated_shapes(dims)
        if stated is None:
            return self._measured(dims).bytes
        return super().bytes(dims)

    def flops(self, dims: Dims) -> int:
        """Returns PyTorch's count for products, and one operation for each other result."""
        return self._measured(dims).flops

    def elements(self, dims: Dims) -> int:
        """Returns the bytes, which unlike a product of axes does not depend on their number."""
        return self.bytes(dims)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Compares codes of quantised outputs: a few may differ by one."""
        return wrong_codes(found, expected)

    def _stated_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]] | None:
        """Returns the shapes of outputs by their expressions; None if one has none.

        Many sizes are tried when workloads are chosen, and a run on meta tensors takes far longer.
        """
        try:
            return {output.name: shape_of(output.shape, dims) for output in self.outputs}
        except ValueError:
            return None

    def _measured(self, dims: Dims) -> _Measured:
        key = tuple(sorted(dims.items()))
        if key not in self._measurements:
            self._measurements[key] = self._measure(dims)
        return self._measurements[key]

    @cached_property
    def _measurements(self) -> dict[tuple[tuple[str, int], ...], _Measured]:
        return {}

    def _measure(self, dims: Dims) -> _Measured:
        with torch.no_grad():
            inputs = {
                arg.name: torch.empty(shape_of(arg.shape, dims), dtype=arg.dtype, device="meta")
                for arg in self.args
                if isinstance(arg, TensorArg)
            }
            with CountedOperations() as counted:
                outputs = self.reference(**inputs)
        tensors = [t for t in (*inputs.values(), *outputs) if isinstance(t, torch.Tensor)]
        names = [output.name for output in self.outputs]
        return _Measured(
            dict(zip(names, (tuple(out.shape) for out in outputs), strict=True)),
            sum(t.numel() * t.itemsize for t in tensors),
            counted.operations,
        )


class _Measured:
    def __init__(self, shapes: dict[str, tuple[int, ...]], size: int, flops: int) -> None:
        self.shapes, self.bytes, self.flops = shapes, size, flops
