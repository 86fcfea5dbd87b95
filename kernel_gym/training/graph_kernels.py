"""Right Triton kernels of differing structure for one generated graph, without matrix products.

A :class:`KernelPlan` says how a graph is computed: which steps share a kernel, how much of a row a
program holds at a time, and how many rows it computes. Every plan gives a whole submission. Names
are short and follow from the numbers of steps, so that a small policy can write them: `h2` is the
value after step 2, `s2` a sum of step 2, `m2`, `w2`, `b2` and `i2` its further inputs. The result
has the dtype of the input, as every generated graph asks.

A program of several rows has blocks of at most 512 columns: where they are larger, and
vectors load in another layout than rows, Triton exchanges them through LDS, which is too small.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kernel_gym.tasks.generated.graphs import Extra, GeneratedGraph, OperatorKind, OperatorStep
from kernel_gym.tasks.generated.kernels import ENTRY, extra_names, input_names

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
LANES = (256, 512, 1024)
"""Elements of a row for each warp of a program that holds whole rows."""
MAX_WARPS = 16
"""A workgroup of an AMD GPU has at most 1024 lanes."""
BLOCKS = (256, 512, 1024, 2048)
WARPS = (1, 2, 4, 8)
MAX_SHARED_BLOCK = 512
"""Most elements of each row in a block of several rows."""
ROWS = (1, 1, 2, 4)
PROGRAMS = (32, 64, 128, 304)
"""Numbers of persistent programs; an MI300X has 304 compute units."""
BOUND_WARPS = (4, 8, 16)
_KINDS = (OperatorKind.POINT, OperatorKind.REDUCE, OperatorKind.NORM, OperatorKind.LAYOUT)
_SUM, _TOP = ("tl.sum", "0.0"), ("tl.max", 'float("-inf")')
_MEAN = "({h} - s{n} / cols)"
_PASSES: dict[str, tuple[tuple[tuple[str, tuple[str, str], str], ...], str]] = {
    "row_sum": ((("s", _SUM, "{h}"),), "s{n}"),
    "row_mean": ((("s", _SUM, "{h}"),), "s{n} / cols"),
    "row_max": ((("t", _TOP, "{h}"),), "t{n}"),
    "row_norm": ((("s", _SUM, "{h} * {h}"),), "tl.sqrt(s{n})"),
    "logsumexp": (
        (("t", _TOP, "{h}"), ("s", _SUM, "tl.exp({h} - t{n})")),
        "t{n} + tl.log(s{n})",
    ),
    "rms_norm": ((("s", _SUM, "{h} * {h}"),), "{h} * tl.rsqrt(s{n} / cols + {c}) * w{n}"),
    "layer_norm": (
        (("s", _SUM, "{h}"), ("v", _SUM, f"{_MEAN} * {_MEAN}")),
        _MEAN + " * tl.rsqrt(v{n} / cols + {c}) * w{n} + b{n}",
    ),
}
"""Reductions of a row, each (letter, fold, term), and the value that follows from them."""


@dataclass(frozen=True)
class KernelPlan:
    """How a graph is computed.

    Attributes:
        structure: `whole` holds a row in a program, `persistent` one row after another in a fixed
            number of programs; `chunks` passes over rows block by block. `bound` holds a row in a
            block of constant size: it is right up to that width alone.
        size: The number of programs, or of elements of a row in a block, by structure; else 0.
        warps: Warps of a program, or for whole rows the elements for each warp.
        rows: Rows of a program at a time; more than one only in `chunks`.
        cuts: Numbers of the steps after which another kernel begins.
    """

    structure: str
    size: int
    warps: int
    rows: int = 1
    cuts: tuple[int, ...] = ()

    @property
    def schedule(self) -> dict[str, int]:
        """The numbers of the plan by name."""
        kernels = len(self.cuts) + 1
        return {"size": self.size, "warps": self.warps, "rows": self.rows, "kernels": kernels}


def writable(graph: GeneratedGraph) -> bool:
    """Whether the templates can compute a graph: each row on its own, without products."""
    return all(step.op.kind in _KINDS for step in graph.steps)


def draw_plan(graph: GeneratedGraph, rng: random.Random) -> KernelPlan:
    """Draws a plan. Three of four are one kernel; the others have one or two cuts."""
    structure = rng.choice(("whole", "persistent", "chunks", "chunks"))
    size = rng.choice({"persistent": PROGRAMS, "chunks": BLOCKS}.get(structure, (0,)))
    warps = rng.choice(WARPS if structure == "chunks" else LANES)
    rows = rng.choice(ROWS) if structure == "chunks" and size <= MAX_SHARED_BLOCK else 1
    cuts: list[int] = []
    if len(graph.steps) > 1 and not rng.randrange(4):
        places = range(1, len(graph.steps))
        cuts = sorted(rng.sample(places, min(len(places), rng.choice((1, 1, 2)))))
    return KernelPlan(structure, size, warps, rows, tuple(cuts))


def bound_plan(graph: GeneratedGraph, rng: random.Random, width: int) -> KernelPlan:
    """Draws a plan that is right on rows up to a width, rounded up to a power of two, alone."""
    block = 1 << (width - 1).bit_length()
    return replace(
        draw_plan(graph, rng), structure="bound", size=block, warps=rng.choice(BOUND_WARPS), rows=1
    )


def default_plan(graph: GeneratedGraph) -> KernelPlan:
    """The plan that speeds are compared with: a fused kernel that passes over blocks of 512."""
    return KernelPlan("chunks", 512, 4)


def kernel_source(graph: GeneratedGraph, plan: KernelPlan) -> str:
    """Writes the submission of a plan.

    Raises:
        ValueError: The graph has a product or a convolution.
    """
    if not writable(graph):
        raise ValueError(f"no template for {graph.text}")
    ends = (*plan.cuts, len(graph.steps))
    starts = (0, *plan.cuts)
    parts = [_Part(graph, plan, a, b) for a, b in zip(starts, ends, strict=True)]
    return "\n\n".join([HEAD, *(part.kernel() for part in parts), _host(graph, plan, parts)])


@dataclass(frozen=True)
class _Line:
    """A statement inside of a loop over blocks, with the name that it gives a value to."""

    name: str
    text: str


class _Part:
    """The steps `first + 1` to `last` of a graph in one kernel."""

    def __init__(self, graph: GeneratedGraph, plan: KernelPlan, first: int, last: int) -> None:
        self.graph, self.plan, self.first, self.last = graph, plan, first, last
        self.steps = list(enumerate(graph.steps, 1))[first:last]
        self.several = plan.rows > 1
        self.chunked = plan.structure == "chunks"
        self.body: list[str] = []
        self.block: list[_Line] = []

    @property
    def name(self) -> str:
        return f"kernel{self.last}"

    @property
    def reads_x(self) -> bool:
        """Whether a kernel after the first one reads the input of the graph once more."""
        return self.first > 0 and self._combines_x

    @property
    def _combines_x(self) -> bool:
        return any(s.op.extra is Extra.INPUT for _, s in self.steps)

    def arguments(self) -> list[str]:
        """The tensors of the kernel and their strides, as the host passes them."""
        values = [f"h{self.first}" if self.first else "x", *(["x"] if self.reads_x else [])]
        words = [word for v in values for word in ([v, f"{v}.stride(0)"] if v == "x" else [v])]
        for n, step in self.steps:
            for name in extra_names(n, step):
                matrix = step.op.extra is Extra.MATRIX
                words += [name, f"{name}.stride(0)"] if matrix else [name]
        return [*words, f"h{self.last}", "rows", "cols"]

    def kernel(self) -> str:
        """Returns the text of the kernel."""
        names = [re.sub(r"\.stride\(0\)", "_stride", word) for word in self.arguments()]
        names = [n if n in ("rows", "cols") or n.endswith("_stride") else f"{n}_ptr" for n in names]
        constants = ["BLOCK", *(["ROWS"] if self.several else [])]
        parameters = ", ".join([*names, *(f"{c}: tl.constexpr" for c in constants)])
        self._input()
        for number, step in self.steps:
            self._step(number, step)
        self._store()
        body, indent = "\n".join(self.body), "    "
        head = f"@triton.jit\ndef {self.name}({parameters}):\n"
        if self.plan.structure == "persistent":
            loop = "    for row in range(tl.program_id(0), rows, tl.num_programs(0)):\n"
            return head + _indent(self._ranges(), indent) + loop + _indent(body, 2 * indent)
        return head + _indent(self._row() + self._ranges() + body, indent)

    def _row(self) -> str:
        if self.several:
            return "row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]\n"
        return "row = tl.program_id(0).to(tl.int64)\n"

    def _ranges(self) -> str:
        """The columns of a program that holds whole rows."""
        return "" if self.chunked else "at = tl.arange(0, BLOCK)\nkept = at < cols\n"

    def _chunk(self) -> list[str]:
        """The columns of a block, and for several rows what is inside of the matrix."""
        if not self.several:
            return ["at = start + tl.arange(0, BLOCK)", "kept = at < cols"]
        wide = "at = start + tl.arange(0, BLOCK)[None, :]"
        return [wide, "within = at < cols", "kept = (row < rows) & within"]

    def _input(self) -> None:
        """Loads the value before the first step, where a step reads it."""
        width = self.graph.steps[self.first].width_in
        h = f"h{self.first}"
        if width == "1":
            self._scalar(h, f"h{self.first}_ptr + row")
        elif self.first:
            self._load(h, f"{h}_ptr + row * cols + at")
        moved = self.steps[0][1].op.kind is OperatorKind.LAYOUT
        if (self.first == 0 and not moved) or self._combines_x:
            self._load("h0", "x_ptr + row * x_stride + at")

    def _load(self, name: str, pointer: str, mask: str = "kept") -> None:
        text = f"{name} = tl.load({pointer}, mask={mask}, other=0.0).to(tl.float32)"
        self.block.append(_Line(name, text))

    def _scalar(self, name: str, pointer: str, cast: str = ".to(tl.float32)") -> None:
        mask = ", mask=row < rows, other=0" if self.several else ""
        self.body.append(f"{name} = tl.load({pointer}{mask}){cast}")

    def _step(self, n: int, step: OperatorStep) -> None:
        h, op = f"h{n - 1}", step.op
        for name in extra_names(n, step):
            if op.extra is Extra.MATRIX:
                self._load(name, f"{name}_ptr + row * {name}_stride + at")
            elif op.extra is Extra.ROW_INDEX:
                self._scalar(name, f"{name}_ptr + row", "")
            else:
                self._load(name, f"{name}_ptr + at", "within" if self.several else "kept")
        if op.kind is OperatorKind.LAYOUT:
            self._layout(n, step)
            return
        if op.kind is OperatorKind.POINT:
            other = "h0" if op.extra is Extra.INPUT else f"m{n}"
            value = re.sub(r"\bx\b", h, op.triton.format(c=step.constant))
            self._value(n, step, re.sub(r"\bt\b", other, value))
            return
        passes, result = _PASSES[op.name]
        for letter, fold, term in passes:
            self._fold(f"{letter}{n}", fold, term.format(h=h, n=n))
        self._value(n, step, result.format(h=h, n=n, c=step.constant))

    def _layout(self, n: int, step: OperatorStep) -> None:
        c = step.constant
        source, mask = (f"i{n}", "kept") if step.op.name == "take_rows" else (f"(row - {c})", "")
        self._load(f"h{n}", f"x_ptr + {source} * x_stride + at", mask or f"kept & (row >= {c})")

    def _value(self, n: int, step: OperatorStep, value: str) -> None:
        line = _Line(f"h{n}", f"h{n} = {value}")
        if step.width == "1":
            self.body.append(line.text)
        else:
            self.block.append(line)

    def _fold(self, name: str, fold: tuple[str, str], term: str) -> None:
        """Reduces a term over the row."""
        call, padding = fold
        inside = f"tl.where(kept, {term}, {padding})"
        axis = "axis=1, keep_dims=True" if self.several else "axis=0"
        if not self.chunked:
            self._flush()
            self.body.append(f"{name} = {call}({inside}, {axis})")
            return
        update = f"a + {inside}" if call == "tl.sum" else f"tl.maximum(a, {inside})"
        shape = "[ROWS, BLOCK]" if self.several else "[BLOCK]"
        self.body.append(f"a = tl.full({shape}, {padding}, tl.float32)")
        self._loop(f"a = {update}")
        self.body.append(f"{name} = {call}(a, {axis})")

    def _flush(self) -> None:
        """Writes the statements of a whole row once."""
        self.body += [line.text for line in self.block]
        self.block = []

    def _loop(self, last: str) -> None:
        """A pass over the row: the statements that the last one needs."""
        needed, lines = set(re.findall(r"\w+", last)), [last]
        for line in reversed(self.block):
            if line.name in needed:
                needed |= set(re.findall(r"\w+", line.text))
                lines.insert(0, line.text)
        head = "for start in range(0, cols, BLOCK):\n"
        inside = "\n".join([*self._chunk(), *lines])
        self.body.append(head + _indent(inside, "    ").rstrip("\n"))

    def _store(self) -> None:
        h, step = f"h{self.last}", self.graph.steps[self.last - 1]
        if step.width == "1":
            mask = ", mask=row < rows" if self.several else ""
            self.body.append(f"tl.store({h}_ptr + row, {h}{mask})")
            return
        store = f"tl.store({h}_ptr + row * cols + at, {h}, mask=kept)"
        if self.chunked:
            self._loop(store)
        else:
            self._flush()
            self.body.append(store)


def _host(graph: GeneratedGraph, plan: KernelPlan, parts: Sequence[_Part]) -> str:
    lines = ["rows, cols = x.shape"]
    if plan.structure in ("whole", "persistent"):
        lines.append("block = triton.next_power_of_2(cols)")
    for part in parts:
        width = graph.steps[part.last - 1].width
        dtype = "x.dtype" if part is parts[-1] else "torch.float32"
        shape = f"(rows, {'1' if width == '1' else 'cols'})"
        new = f"h{part.last} = torch.empty({shape}, dtype={dtype}, device=x.device)"
        arguments = ", ".join([*part.arguments(), *_launch(plan)])
        lines += [new, f"{part.name}[{_grid(plan)}]({arguments})"]
    lines.append(f"return h{len(graph.steps)}")
    return f"def {ENTRY}({', '.join(input_names(graph))}):\n" + _indent("\n".join(lines), "    ")


def _grid(plan: KernelPlan) -> str:
    if plan.rows > 1:
        return f"(triton.cdiv(rows, {plan.rows}),)"
    return f"(min(rows, {plan.size}),)" if plan.structure == "persistent" else "(rows,)"


def _launch(plan: KernelPlan) -> Iterator[str]:
    if plan.structure in ("chunks", "bound"):
        rows = f", ROWS={plan.rows}" if plan.rows > 1 else ""
        yield f"BLOCK={plan.size}{rows}, num_warps={plan.warps}"
    else:
        yield f"BLOCK=block, num_warps=min(max(block // {plan.warps}, 1), {MAX_WARPS})"


def _indent(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" for line in text.splitlines())
