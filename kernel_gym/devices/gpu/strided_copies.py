"""Copies and fills of tensors that are not contiguous, as launches of kernels of this project.

A driver copies contiguous pieces. A transposed tensor has as many pieces as elements, so such a
step of a plan becomes one launch. The launcher executes it like a copy, in a call without the
candidate's kernels too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from kernel_gym.launcher.pieces import MAX_PIECES, axes_of, count_of_pieces
from kernel_gym.plans.types import (
    ELEMENT_BYTES,
    BufferReference,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanArgument,
    PlanCode,
    PlanKernel,
    PlanStep,
)

MAX_AXES = 5
"""Axes that the kernels take, after neighbours that lie together are one."""
_BLOCK, _WARPS = 1024, 4
_WORD_BYTES = 8
_FORMS = {"cuda": CodeForm.CUBIN, "hip": CodeForm.HSACO}


@triton.jit
def place_of(index, n1, n2, n3, n4, s0, s1, s2, s3, s4):
    """Returns the offset of the element with an index, in elements."""
    place = (index % n4) * s4
    index = index // n4
    place += (index % n3) * s3
    index = index // n3
    place += (index % n2) * s2
    index = index // n2
    return place + (index % n1) * s1 + (index // n1) * s0


@triton.jit
def copy_strided(  # type: ignore[no-untyped-def]
    target,
    t0,
    t1,
    t2,
    t3,
    t4,
    count,
    n1,
    n2,
    n3,
    n4,
    source,
    s0,
    s1,
    s2,
    s3,
    s4,
    BLOCK: tl.constexpr,
):
    """Copies `count` elements, in the order of the target's axes."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    value = tl.load(source + place_of(index, n1, n2, n3, n4, s0, s1, s2, s3, s4), mask=inside)
    tl.store(target + place_of(index, n1, n2, n3, n4, t0, t1, t2, t3, t4), value, mask=inside)


@triton.jit
def fill_strided(  # type: ignore[no-untyped-def]
    target, t0, t1, t2, t3, t4, count, n1, n2, n3, n4, value, BLOCK: tl.constexpr
):
    """Sets `count` elements to a value."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    place = place_of(index, n1, n2, n3, n4, t0, t1, t2, t3, t4)
    tl.store(target + place, value, mask=index < count)


@dataclass(frozen=True)
class _Compiled:
    code: PlanCode
    name: str


class StridedCopies:
    """Replaces steps in too many pieces for a driver.

    Args:
        target: Triton's backend, architecture and lanes of a warp, such as `("hip", "gfx942", 64)`.
    """

    def __init__(self, target: Sequence[object]) -> None:
        self._target = GPUTarget(*target)

    def launched(self, plan: LaunchPlan) -> LaunchPlan:
        """Returns a plan in which such copies and fills are launches.

        Those with more than `MAX_AXES` axes stay, and fills of complex128. The launcher refuses
        them.
        """
        for number, step in enumerate(plan.steps):
            if isinstance(step, CopyStep | FillStep) and _is_for_a_kernel(step):
                plan = self._with_launch(plan, number, step)
        return plan

    def _with_launch(self, plan: LaunchPlan, number: int, step: CopyStep | FillStep) -> LaunchPlan:
        compiled = _compiled(self._target, isinstance(step, CopyStep), _width_of(step.target))
        codes, kernels = list(plan.codes), list(plan.kernels)
        if compiled.code not in codes:
            codes.append(compiled.code)
        kernel = PlanKernel(codes.index(compiled.code), compiled.name)
        if kernel not in kernels:
            kernels.append(kernel)
        launch = _launch_of(step, kernels.index(kernel), self._target.warp_size)
        steps: list[PlanStep] = [*plan.steps[:number], launch, *plan.steps[number + 1 :]]
        return replace(plan, codes=tuple(codes), kernels=tuple(kernels), steps=tuple(steps))


def _is_for_a_kernel(step: CopyStep | FillStep) -> bool:
    views = _views_of(step)
    if isinstance(step, FillStep) and len(step.pattern) > _WORD_BYTES:
        return False
    return count_of_pieces(*views) > MAX_PIECES and len(_words_of(*views)) <= MAX_AXES


def _views_of(step: CopyStep | FillStep) -> tuple[BufferView, ...]:
    return (step.target, step.source) if isinstance(step, CopyStep) else (step.target,)


def _width_of(view: BufferView) -> int:
    return min(_WORD_BYTES, ELEMENT_BYTES[view.dtype])


def _words_of(*views: BufferView) -> list[tuple[int, ...]]:
    """Returns the axes of tensors, in elements of at most 8 bytes."""
    words = ELEMENT_BYTES[views[0].dtype] // _width_of(views[0])
    axes = [(axis[0], *(stride * words for stride in axis[1:])) for axis in axes_of(*views)]
    return axes if words == 1 else [*axes, (words, *(1 for _ in views))]


def _launch_of(step: CopyStep | FillStep, kernel: int, lanes: int) -> LaunchStep:
    views = _views_of(step)
    axes = _words_of(*views)
    axes = [(1, *(0 for _ in views))] * (MAX_AXES - len(axes)) + axes
    count = 1
    for axis in axes:
        count *= axis[0]
    numbers = [axis[0] for axis in axes]
    arguments = [_address(step.target), *(_word(axis[1]) for axis in axes)]
    arguments += [_word(count), *map(_word, numbers[1:])]
    if isinstance(step, CopyStep):
        arguments += [_address(step.source), *(_word(axis[2]) for axis in axes)]
    else:
        arguments.append(PlanArgument(step.pattern[: _width_of(step.target)]))
    grid, block = (-(-count // _BLOCK), 1, 1), (_WARPS * lanes, 1, 1)
    return LaunchStep(kernel, grid, block, 0, tuple(arguments), copies=True)


def _address(view: BufferView) -> PlanArgument:
    reference = BufferReference(0, view.buffer, view.offset)
    return PlanArgument(bytes(_WORD_BYTES), (reference,))


def _word(value: int) -> PlanArgument:
    return PlanArgument(value.to_bytes(_WORD_BYTES, "little"))


@lru_cache(maxsize=32)
def _compiled(target: GPUTarget, copies: bool, width: int) -> _Compiled:
    """Compiles a kernel for elements of so many bytes."""
    function: JITFunction = copy_strided if copies else fill_strided
    words = dict.fromkeys(function.arg_names, "i64")
    given = {"target": f"*i{8 * width}", "source": f"*i{8 * width}", "value": f"i{8 * width}"}
    signature = words | {name: given[name] for name in words if name in given}
    signature["BLOCK"] = "constexpr"
    source = ASTSource(function, signature, {"BLOCK": _BLOCK})
    compiled = triton.compile(source, target=target, options={"num_warps": _WARPS})
    form = _FORMS[target.backend]
    return _Compiled(PlanCode(form, bytes(compiled.asm[str(form)])), compiled.metadata.name)
