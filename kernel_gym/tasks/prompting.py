"""Prompts: what a policy is asked to write, for which device, under which rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from kernel_gym.tasks.embedded import EXTRAS, KERNELS
from kernel_gym.tasks.extension import is_extension
from kernel_gym.tasks.guide import guide, topics_of, whole_guide
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.ranges import range_texts
from kernel_gym.tasks.sampling import train_workloads
from kernel_gym.tasks.signature import (
    c_prototype,
    describe_argument,
    describe_tensor,
    python_prototype,
)
from kernel_gym.tasks.task import Mode, Task
from kernel_gym.tasks.workload import Workload

_TRITON_RULES = """\
- Submit one Python module that defines `{entry}` as above and launches your own {kernels} \
kernels; all computation happens in them.
- On the host only allocation (`torch.empty`, `torch.empty_like`, `torch.zeros`, ...) and view \
operations (`view`, `reshape` of contiguous data, `transpose`, slicing) of torch are allowed: no \
torch computation, no numpy, no copies.
- Inputs may have row strides larger than their rows, and pointers that are not aligned to 16 \
bytes; the last axis is contiguous. Outputs are new contiguous tensors, but for inputs written in \
place.
- Inputs must not be written unless they are marked as written in place."""

_HIP_RULES = """\
- Submit one HIP source file that defines the launcher above with exactly this prototype; all \
computation happens in your own `__global__` kernels, launched on `stream`.
- Every pointer is a device pointer to contiguous data; outputs are preallocated and hold \
arbitrary bytes. The launcher returns a `hipError_t` and does not synchronise.
- Include HIP headers only. No library calls, no host computation on the data.
- Inputs must not be written unless they are marked as written in place."""

_COMMON_RULES = """\
- It must be right for every legal shape and value, not only for the workloads listed: it is also \
checked and timed on unseen workloads.
- No files, network, threads, processes, or state carried from one call to the next. Each call \
allocates and fills the memory that it uses: a workspace that is kept between calls is refused."""

_SCORING = """\
Every element is compared with an fp64 oracle; the tolerance follows from the rounding of the \
output's dtype and the error of plain PyTorch. A candidate that fails anywhere scores no speed. \
A right one scores the geometric mean, over workloads, of {baseline} time over your time."""


_FROM_KERNEL = """\
Find first what bounds the start kernel: bytes, arithmetic, latency, or launches. Keep what is \
right about it, above all its {kept} and its accumulation in float32."""
_KEPT = {
    "triton": "masks",
    "hip": "bounds checks",
    "flydsl": "bounds checks, its barriers",
    "tilelang": "bounds checks",
}
"""Words of the advice on a start kernel, by language. TileLang's compiler puts the barriers."""
_FROM_TORCH = """\
Each PyTorch operator of the reference is a launch and a trip through memory: one fused kernel \
saves most of both. Where the reference is a single library call, match its traffic first."""
_FROM_WORDS = """\
There is no source to start from: take the definition above to the letter, with its shapes, dtypes \
and special cases."""


def prompt(
    task: Task,
    device_facts: str,
    workloads: Sequence[Workload] | None = None,
    arch: str = "",
    answer: str = "",
    embedded: Collection[str] = (),
) -> str:
    """Returns the prompt of a task.

    Args:
        task: The task to solve.
        device_facts: Some lines on the device: name, units, bandwidth, memory sizes.
        workloads: The train workloads to list; by default those of the full scale.
        arch: The architecture of the device. The prompt includes its guide; by default none.
        answer: Says how to hand in the source; by default in a fenced block of the reply.
        embedded: Further languages that the device takes, of `embedded.EXTRAS`. The prompt of a
            task in Triton says so, with a start kernel and the guide where there is one.
    """
    if workloads is None:
        workloads = train_workloads(task.problem, Scale.FULL)
    sections = [
        ("", _role(task)),
        ("Device", device_facts.strip()),
        ("Operation", _operation(task)),
        ("Signature", _signature(task)),
        *_sources(task, embedded),
        ("Workloads", "\n".join(f"- {workload}" for workload in workloads)),
        ("Rules", _rules(task, embedded)),
        ("Scoring", _SCORING.format(baseline=_baseline(task))),
        ("Approach", _approach(task, arch, embedded)),
        ("Answer", answer or _answer(task)),
    ]
    return "\n\n".join(f"## {title}\n{body}" if title else body for title, body in sections) + "\n"


def _role(task: Task) -> str:
    language = {"triton": "Triton", "hip": "HIP C++", **EXTRAS}[task.written_in]
    verb = "Make the kernel below faster" if task.start_source else "Write a fast kernel"
    return f"You are an expert GPU kernel engineer. {verb}, in {language}, for the device below."


def _operation(task: Task) -> str:
    if (parts := task.problem.prompt_parts(task.mode)) is not None:
        return parts.operation
    axes = "\n".join(
        f"- {a.name}: {a.low} to {a.high}" + (f", a multiple of {a.multiple}" * (a.multiple > 1))
        for a in task.problem.axes
    )
    problem = task.problem
    values = [f"- {text}" for text in (problem.domain, *range_texts(problem))]
    if any(dtype.is_floating_point and dtype.itemsize < 4 for dtype in _output_dtypes(problem)):
        values.append(f"- {problem.rounding}")
    head = f"{problem.name}: {problem.summary}\n\n{problem.definition}"
    return "\n".join([f"{head}\n\nAxes:\n{axes}\n\nValues:", *values])


def _output_dtypes(problem: Problem) -> list[torch.dtype]:
    return [output.dtype for output in problem.outputs]


def _signature(task: Task) -> str:
    if (parts := task.problem.prompt_parts(task.mode)) is not None:
        return parts.signature
    hip = task.language == "hip"
    text = c_prototype(task.problem) if hip else python_prototype(task.problem)
    lines = [f"```{'cpp' if hip else 'python'}", text, "```", "Arguments:"]
    lines += [f"- {describe_argument(arg)}" for arg in task.problem.args]
    lines += ["Outputs:"] + [f"- {describe_tensor(out)}" for out in task.problem.outputs]
    return "\n".join(lines)


def _sources(task: Task, embedded: Collection[str]) -> list[tuple[str, str]]:
    """Returns the sections with the start kernel and the reference, if the mode shows them."""
    fence = _fence(task)
    parts = []
    if task.start_source:
        parts.append(("Start kernel", f"```{fence}\n{task.start_source.rstrip()}\n```"))
    others = {"Gluon": task.gluon_source}
    others |= {EXTRAS[name]: task.embedded_source(name) for name in embedded}
    for language, source in others.items():
        if source:
            title = f"The start kernel in {language}, which you may submit as well"
            parts.append((title, f"```python\n{source.rstrip()}\n```"))
    if task.mode is not Mode.INSTRUCTION2TRITON and task.reference_source != task.start_source:
        parts.append(("PyTorch reference", f"```python\n{task.reference_source.rstrip()}\n```"))
    return parts


def _rules(task: Task, embedded: Collection[str]) -> str:
    if (parts := task.problem.prompt_parts(task.mode)) is not None:
        return f"{parts.rules}\n{_COMMON_RULES}"
    triton = _TRITON_RULES.format(entry=task.entry, kernels=_kernels(task, embedded))
    rules = _HIP_RULES if task.language == "hip" else triton
    return f"{rules}\n{_COMMON_RULES}"


def _kernels(task: Task, embedded: Collection[str]) -> str:
    """Returns the decorators that kernels of a Python module may have."""
    if task.extra:
        return f"`{KERNELS[task.extra]}`"
    others = (f"(in {EXTRAS[name]}) `{KERNELS[name]}`" for name in embedded)
    *first, last = ("`@triton.jit`", "`@gluon.jit`", *others)
    return f"{', '.join(first)} or {last}"


def _advice(mode: Mode) -> str:
    if mode.has_start_kernel:
        return _FROM_KERNEL.format(kept=_KEPT[mode.written_in])
    return _FROM_WORDS if mode is Mode.INSTRUCTION2TRITON else _FROM_TORCH


def _approach(task: Task, arch: str, embedded: Collection[str]) -> str:
    topics = topics_of(task.problem)
    if task.extra:
        guides = [whole_guide(arch, task.extra, topics)]
    else:
        languages = [task.language]
        languages += ["gluon"] if task.gluon_source else []
        languages += [name for name in embedded if task.embedded_source(name)]
        guides = [guide(arch, language, topics) for language in languages]
    return "\n".join(filter(None, (_advice(task.mode), *guides)))


def _baseline(task: Task) -> str:
    """Returns whose time a candidate is compared with, as a genitive."""
    if task.baseline == "torch":
        return "eager PyTorch's"
    return "the start kernel's" if task.start_source else "a plain kernel's"


def _answer(task: Task) -> str:
    return f"Reply with the complete source in one ```{_fence(task)} block."


def _fence(task: Task) -> str:
    """Returns the language of a candidate's text: a module that builds an extension is Python."""
    text_in_cpp = task.language == "hip" and not is_extension(task.start_source or "", "hip")
    return "cpp" if text_in_cpp else "python"
