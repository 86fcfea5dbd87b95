"""Source texts of a graph: PyTorch reference, fp64 oracle, and unfused start kernel."""

from __future__ import annotations

from kernel_gym.tasks.generated.graphs import Extra, GeneratedGraph, OperatorKind, OperatorStep

ENTRY = "fused"
BLOCK = 512

_LETTERS = {
    Extra.MATRIX: "m",
    Extra.WEIGHT: "w",
    Extra.BIAS: "b",
    Extra.WEIGHT_BIAS: "wb",
    Extra.ROW: "r",
    Extra.FACTOR: "f",
    Extra.LINEAR: "f",
    Extra.TAPS: "k",
    Extra.ROW_INDEX: "i",
}
"""The letters of further inputs. A name is a letter and the number of the step."""


def extra_names(number: int, step: OperatorStep) -> list[str]:
    """Returns the names of a step's further inputs."""
    return [f"{letter}{number}" for letter in _LETTERS.get(step.op.extra, "")]


def input_names(graph: GeneratedGraph) -> list[str]:
    """Returns the names of all inputs, `x` first."""
    return ["x", *(name for n, step in enumerate(graph.steps, 1) for name in extra_names(n, step))]


def torch_source(graph: GeneratedGraph, exact: bool = False) -> str:
    """Returns a PyTorch function of the graph: float32 with a rounded result, or exact fp64."""
    wide = "double" if exact else "float"
    lines = [f"h0 = x.{wide}()"]
    for number, step in enumerate(graph.steps, 1):
        lines.append(f"h{number} = {_torch_step(graph, number, step, wide)}")
    last = f"h{len(graph.steps)}"
    lines.append(f"return ({last if exact else f'{last}.to(torch.{graph.dtype})'},)")
    arguments = ", ".join(f"{name}: torch.Tensor" for name in input_names(graph))
    body = "\n".join(f"    {line}" for line in lines)
    head = "import torch\nimport torch.nn.functional as F\n\n\n"
    return f"{head}def {ENTRY}({arguments}) -> tuple[torch.Tensor, ...]:\n{body}\n"


def steps_text(graph: GeneratedGraph) -> str:
    """Returns the definition of each step as a list. Values between steps are float32."""
    lines = ["- h0 = x"]
    for number, step in enumerate(graph.steps, 1):
        text = _torch_step(graph, number, step, "float").replace(".float()", "")
        lines.append(f"- h{number} = {text}")
    return "\n".join([*lines, f"- out = h{len(graph.steps)}"])


def compact_text(graph: GeneratedGraph) -> str:
    """Returns a line for each step with its operator, its inputs and its constant."""
    lines = []
    for number, step in enumerate(graph.steps, 1):
        others = ["h0"] if step.op.extra is Extra.INPUT else extra_names(number, step)
        words = [f"h{number - 1}", *others, *([step.constant] if step.constant else [])]
        lines.append(f"h{number} = {step.op.name}({', '.join(words)})")
    return "\n".join(lines)


def _torch_step(graph: GeneratedGraph, number: int, step: OperatorStep, wide: str) -> str:
    before = f"h{number - 1}"
    names = extra_names(number, step)
    if step.op.kind is OperatorKind.MATMUL:
        if wide == "double":
            return step.op.torch.format(x=before, t=f"{names[0]}.double()")
        product = step.op.torch.format(x=f"{before}.to(torch.{graph.dtype})", t=names[0])
        return f"({product}).float()"
    extra = ", ".join(f"{name}.{wide}()" for name in names)
    if step.op.extra is Extra.INPUT:
        extra = "h0"
    elif step.op.extra is Extra.ROW:
        extra += "[:, None]"
    elif step.op.extra is Extra.ROW_INDEX:
        extra = names[0]
    return step.op.torch.format(x=before, t=extra, c=step.constant)


# One kernel per step, one program per row (per tile for products), float32 values between steps.

_TOTAL = ("0.0", "0.0", "acc + x", "tl.sum(acc, axis=0)")
_TOP = ('float("-inf")', 'float("-inf")', "tl.maximum(acc, x)", "tl.max(acc, axis=0)")
_SQUARES = ("0.0", "0.0", "acc + x * x", "tl.sum(acc, axis=0)")
_POWERS = ("0.0", 'float("-inf")', "acc + tl.exp(x - p0)", "tl.sum(acc, axis=0)")
_DEVIATION = "(x - p0 / cols)"
_SPREAD = (
    "0.0",
    "0.0",
    f"acc + tl.where(kept, {_DEVIATION} * {_DEVIATION}, 0.0)",
    "tl.sum(acc, axis=0)",
)
_PASSES: dict[str, tuple[tuple[tuple[str, ...], ...], str]] = {
    "row_sum": ((_TOTAL,), "p0"),
    "row_mean": ((_TOTAL,), "p0 / cols"),
    "row_max": ((_TOP,), "p0"),
    "row_norm": ((_SQUARES,), "tl.sqrt(p0)"),
    "logsumexp": ((_TOP, _POWERS), "p0 + tl.log(p1)"),
    "softmax": ((_TOP, _POWERS), "tl.exp(x - p0) / p1"),
    "log_softmax": ((_TOP, _POWERS), "x - p0 - tl.log(p1)"),
    "rms_norm": ((_SQUARES,), "x / tl.sqrt(p0 / cols + {c}) * t"),
    "layer_norm": ((_TOTAL, _SPREAD), _DEVIATION + " / tl.sqrt(p1 / cols + {c}) * t + u"),
}
"""Passes over the row, each (start, padding, update, end), with results p0, p1; then the result."""

_SOURCES = {
    "delay": ("(row - {c})", "at", "kept & (row >= {c})"),
    "take_rows": ("tl.load(t_ptr + row)", "at", "kept"),
}
"""Where a layout operator reads: row, column, and a mask of the elements that are not zero."""

_CONVOLUTION = """\
        total = tl.zeros([BLOCK], tl.float32)
        for tap in range(4):
            at_row = row - 3 + tap
            seen = kept & (at_row >= 0)
            x = tl.load(x_ptr + at_row * x_stride + at, mask=seen, other=0.0).to(tl.float32)
            t = tl.load(t_ptr + tap * t_stride + at, mask=kept, other=0.0).to(tl.float32)
            total += x * t
        tl.store(out_ptr + row * cols + at, total, mask=kept)
"""

_HEAD = '''\
@triton.jit
def {name}({parameters}, out_ptr, cols, BLOCK: tl.constexpr):
    """{words}."""
    row = tl.program_id(0).to(tl.int64)
'''
_LOOP = """\
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        kept = at < cols
"""
_MATMUL = '''\
@triton.jit
def {name}(a_ptr, a_stride, b_ptr, b_stride, out_ptr, m, n, k, TILE: tl.constexpr):
    """{words}: one program a tile of the result."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE, TILE], tl.float32)
    for start in range(0, k, TILE):
        depth = start + tl.arange(0, TILE)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_stride + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        b = tl.load(
            b_ptr + {at},
            mask=(depth[:, None] < k) & (cols[None, :] < n),
            other=0.0,
        )
        total = tl.dot(a.to(tl.{dtype}), b, total)
    tl.store(
        out_ptr + rows[:, None].to(tl.int64) * n + cols[None, :],
        total,
        mask=(rows[:, None] < m) & (cols[None, :] < n),
    )
'''


def triton_source(graph: GeneratedGraph) -> str:
    """Returns the start kernel: one kernel per step, which writes its result to memory."""
    kernels = [_kernel(graph, number, step) for number, step in enumerate(graph.steps, 1)]
    head = f'"""{describe(graph)}: one kernel a step."""\n\n'
    imports = "import torch\nimport triton\nimport triton.language as tl\n"
    return "\n\n".join([head + imports, *kernels, _host(graph)])


def describe(graph: GeneratedGraph) -> str:
    """Returns the graph in words."""
    words = []
    for number, step in enumerate(graph.steps, 1):
        constant = [step.constant] if step.constant else []
        inputs = ["x"] if step.op.extra is Extra.INPUT else extra_names(number, step)
        detail = ", ".join([*constant, *inputs])
        words.append(step.op.name + (f"({detail})" if detail else ""))
    return " -> ".join(["x", *words])


def _kernel(graph: GeneratedGraph, number: int, step: OperatorStep) -> str:
    name = f"step{number}_{step.op.name}"
    if step.op.kind is OperatorKind.MATMUL:
        deep, wide = "depth[:, None]", "cols[None, :]"
        at = f"{deep}.to(tl.int64) * b_stride + {wide}"
        if step.op.extra is Extra.LINEAR:
            at = f"{wide}.to(tl.int64) * b_stride + {deep}"
        return _MATMUL.format(name=name, words="Matrix product", dtype=graph.dtype, at=at)
    words = step.op.torch.format(x="x", t="t", c=step.constant).replace('"', "'")
    parameters = ", ".join(["x_ptr, x_stride", *(_parameters(step))])
    head = _HEAD.format(name=name, parameters=parameters, words=words)
    if step.op.kind in (OperatorKind.REDUCE, OperatorKind.NORM):
        return head + _row_passes(step)
    if step.op.kind is OperatorKind.CONVOLUTION:
        return head + _LOOP + _CONVOLUTION
    return head + _LOOP + _indent(_loads(step)) + _store(step)


def _parameters(step: OperatorStep) -> list[str]:
    if step.op.extra in (Extra.MATRIX, Extra.INPUT, Extra.TAPS):
        return ["t_ptr", "t_stride"]
    return [f"{letter}_ptr" for letter in "tu"[: len(_LETTERS.get(step.op.extra, ""))]]


def _load(pointer: str, name: str = "x", mask: str = "kept", other: str = "0.0") -> str:
    return f"{name} = tl.load({pointer}, mask={mask}, other={other}).to(tl.float32)\n"


def _loads(step: OperatorStep) -> str:
    """Returns the loads of `x` and `t` for one block of a row."""
    if step.op.kind is OperatorKind.LAYOUT:
        row, col, mask = (part.format(c=step.constant) for part in _SOURCES[step.op.name])
        return _load(f"x_ptr + {row} * x_stride + {col}", mask=mask)
    if step.width_in == "1" and step.width != "1":
        text = "x = tl.load(x_ptr + row * x_stride).to(tl.float32)\n"
    else:
        text = _load("x_ptr + row * x_stride + at")
    if step.op.extra in (Extra.MATRIX, Extra.INPUT):
        return text + _load("t_ptr + row * t_stride + at", "t")
    if step.op.extra is Extra.ROW:
        return text + "t = tl.load(t_ptr + row).to(tl.float32)\n"
    return text + _vectors(step)


def _vectors(step: OperatorStep) -> str:
    letters = "tu"[: len(_LETTERS.get(step.op.extra, ""))]
    return "".join(_load(f"{letter}_ptr + at", letter) for letter in letters)


def _store(step: OperatorStep) -> str:
    value = "x" if step.op.kind is OperatorKind.LAYOUT else step.op.triton.format(c=step.constant)
    return f"        tl.store(out_ptr + row * cols + at, {value}, mask=kept)\n"


def _row_passes(step: OperatorStep) -> str:
    passes, result = _PASSES[step.op.name]
    result, text = result.replace("{c}", step.constant), ""
    for n, (start, padding, update, end) in enumerate(passes):
        text += f"    acc = tl.full([BLOCK], {start}, tl.float32)\n" + _LOOP
        text += _indent(_load("x_ptr + row * x_stride + at", other=padding))
        text += f"        acc = {update}\n    p{n} = {end}\n"
    if step.op.kind is OperatorKind.REDUCE:
        return text + f"    tl.store(out_ptr + row, {result})\n"
    text += _LOOP + _indent(_load("x_ptr + row * x_stride + at") + _vectors(step))
    return text + f"        tl.store(out_ptr + row * cols + at, {result}, mask=kept)\n"


def _indent(text: str) -> str:
    return "".join(f"        {line}\n" for line in text.splitlines())


def _host(graph: GeneratedGraph) -> str:
    arguments = ", ".join(f"{name}: torch.Tensor" for name in input_names(graph))
    lines = ["rows, cols = x.shape"]
    for number, step in enumerate(graph.steps, 1):
        lines += _launch(graph, number, step)
    lines.append(f"return h{len(graph.steps)}")
    body = "\n".join(f"    {line}" for line in lines)
    text = f'"""{describe(graph)}, for x {graph.dtype}[rows, cols] with any row stride."""'
    return f"def {ENTRY}({arguments}) -> torch.Tensor:\n    {text}\n{body}\n"


def _launch(graph: GeneratedGraph, number: int, step: OperatorStep) -> list[str]:
    before = f"h{number - 1}" if number > 1 else "x"
    after, name = f"h{number}", f"step{number}_{step.op.name}"
    names = extra_names(number, step)
    dtype = graph.dtype if number == len(graph.steps) else "float32"
    allocate = f"torch.empty((rows, {step.width}), dtype=torch.{dtype}, device=x.device)"
    if step.op.kind is OperatorKind.MATMUL:
        factor = names[0]
        grid = f"(triton.cdiv(rows, 32), triton.cdiv({step.width}, 32))"
        sizes = f"rows, {step.width}, {step.width_in}"
        strides = f"{before}, {before}.stride(0), {factor}, {factor}.stride(0), {after}"
        return [
            f"{step.width} = {factor}.shape[{0 if step.op.extra is Extra.LINEAR else 1}]",
            f"{after} = {allocate}",
            f"{name}[{grid}]({strides}, {sizes}, TILE=32)",
        ]
    extra = ["x", "x.stride(0)"] if step.op.extra is Extra.INPUT else list(names)
    if step.op.extra in (Extra.MATRIX, Extra.TAPS):
        extra.append(f"{names[0]}.stride(0)")
    width = step.width_in if step.op.kind is OperatorKind.REDUCE else step.width
    arguments = ", ".join([before, f"{before}.stride(0)", *extra, after, width])
    return [f"{after} = {allocate}", f"{name}[(rows,)]({arguments}, BLOCK={BLOCK})"]
